//! Operands within transactions: what counts as a read of a key, and what needs no merge.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use adamant::{Engine, Keyspace, KeyspaceOptions, Store, Transaction};
use adamant_medium::memory::MemoryDirectory;

use super::{small, text, with_joined};

/// A merge is a write of its key, and no read.
#[test]
fn transactions_conflict_by_what_they_read_alone() {
    for engine in [Engine::Lsm, Engine::Bplus] {
        let store = Store::in_memory().unwrap();
        let options = KeyspaceOptions::new().engine(engine).merge_operator("append");
        let kept = store.keyspace_with("kept", options).unwrap();
        let (mut one, mut other) = (store.begin().unwrap(), store.begin().unwrap());
        let mut reads = store.begin().unwrap();
        let mut blind = store.begin().unwrap();
        one.merge(&kept, "key", "1").unwrap();
        other.merge(&kept, "key", "2").unwrap();
        reads.merge(&kept, "key", "3").unwrap();
        assert_eq!(reads.get(&kept, "key").unwrap(), Some("3".into()));
        blind.merge(&kept, "key", "4").unwrap();
        assert!(blind.contains(&kept, "key").unwrap(), "it is there, whatever was there before");
        one.commit().unwrap();
        other.commit().unwrap();
        assert!(reads.commit().unwrap_err().is_conflict());
        blind.commit().unwrap();
        assert_eq!(text(&kept, "key").as_deref(), Some("124"));
        let mut ranged = store.begin().unwrap();
        assert_eq!(ranged.iter(&kept).count(), 1);
        ranged.put(&kept, "x", "y").unwrap();
        kept.merge("key", "5").unwrap();
        assert!(ranged.commit().unwrap_err().is_conflict(), "a merge is a write");
    }
}

/// However a transaction reads what its own operand makes of a key, the key counts as read.
#[test]
fn each_way_to_read_an_own_operand_counts_as_a_read() {
    type Read = fn(&mut Transaction, &Keyspace);
    let ways: [Read; 9] = [
        |tx, kept| assert_eq!(tx.iter(kept).count(), 3),
        |tx, kept| assert_eq!(tx.iter(kept).rev().count(), 3),
        |tx, kept| assert!(tx.range(kept, "b"..).next().is_some()),
        |tx, kept| assert!(tx.range(kept, ..="b").next_back().is_some()),
        |tx, kept| assert_eq!(tx.multi_get(kept, ["b"]).unwrap(), [Some("12".into())]),
        |tx, kept| assert_eq!(tx.get_with(kept, "b", <[u8]>::len).unwrap(), Some(2)),
        |tx, kept| assert_eq!(tx.take(kept, "b").unwrap(), Some("12".into())),
        |tx, kept| assert!(tx.rename(kept, "b", "z").is_ok()),
        |tx, kept| assert!(tx.extract_if(kept, "b".."c", |_, _| false).unwrap().is_empty()),
    ];
    for engine in [Engine::Lsm, Engine::Bplus] {
        for (number, read) in ways.iter().enumerate() {
            let store = Store::in_memory().unwrap();
            let options = KeyspaceOptions::new().engine(engine).merge_operator("append");
            let kept = store.keyspace_with("kept", options).unwrap();
            kept.extend([("a", "1"), ("b", "1"), ("c", "1")]).unwrap();
            let mut transaction = store.begin().unwrap();
            transaction.merge(&kept, "b", "2").unwrap();
            read(&mut transaction, &kept);
            kept.merge("b", "3").unwrap();
            let refused = transaction.commit().unwrap_err();
            assert!(refused.is_conflict(), "{engine:?}, {number}: {refused}");
        }
    }
}

/// Keys are scanned without values: a key whose operands cannot be merged is a key.
#[test]
fn keys_of_a_transaction_need_no_merge() {
    let (options, joined) = with_joined(small());
    let store = Store::open_directory(Arc::new(MemoryDirectory::new()), options).unwrap();
    for (engine, name) in [(Engine::Lsm, "log"), (Engine::Bplus, "tree")] {
        let options = KeyspaceOptions::new().engine(engine).merge_operator("joined");
        let kept = store.keyspace_with(name, options).unwrap();
        kept.extend([("a", "1"), ("b", "1"), ("c", "1")]).unwrap();
        let mut transaction = store.begin().unwrap();
        transaction.merge(&kept, "b", "2").unwrap();
        joined.fails.store(true, Ordering::Relaxed);
        let keys = transaction.iter(&kept).keys().collect::<adamant::Result<Vec<_>>>();
        assert_eq!(keys.unwrap(), ["a", "b", "c"]);
        let keys = transaction.iter(&kept).keys().rev().collect::<adamant::Result<Vec<_>>>();
        assert_eq!(keys.unwrap(), ["c", "b", "a"]);
        assert!(transaction.iter(&kept).any(|entry| entry.is_err()));
        joined.fails.store(false, Ordering::Relaxed);
        assert_eq!(transaction.get(&kept, "b").unwrap(), Some("1,2".into()));
    }
}
