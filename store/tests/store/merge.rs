//! Merge operators: what an operand makes of a key, in every engine, and what happens where the
//! operator fails or is not registered.

mod model;
mod transactions;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use adamant::{
    Durability, Engine, Error, Keyspace, KeyspaceOptions, LsmError, LsmOptions, MergeError,
    MergeOperator, Options, Store,
};
use adamant_medium::memory::MemoryDirectory;

/// Joins texts with a comma; refuses empty ones, and fails, or panics, on request.
#[derive(Default)]
struct Joined {
    fails: AtomicBool,
    panics: AtomicBool,
}

impl MergeOperator for Joined {
    fn merge(
        &self,
        _key: &[u8],
        older: &[u8],
        newer: &[u8],
        merged: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        assert!(!self.panics.load(Ordering::Relaxed), "on request");
        if self.fails.load(Ordering::Relaxed) {
            return Err(MergeError::new("expected a better day"));
        }
        merged.extend_from_slice(&[older, b",", newer].concat());
        Ok(())
    }

    fn check(&self, _key: &[u8], operand: &[u8]) -> Result<(), MergeError> {
        match operand {
            [] => Err(MergeError::new("expected a text, found none")),
            _ => Ok(()),
        }
    }
}

fn small() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 4 << 10;
    lsm.table_bytes_max = 8 << 10;
    lsm.base_bytes_min = 16 << 10;
    lsm.level0_tables_max = 3;
    lsm.level_ratio = 3;
    lsm.block_bytes = 256;
    lsm.blob_bytes_min = Some(200);
    Options::new().durability(Durability::Buffered).lsm(lsm)
}

fn with_joined(options: Options) -> (Options, Arc<Joined>) {
    let joined = Arc::new(Joined::default());
    (options.merge_operator("joined", Arc::<Joined>::clone(&joined)), joined)
}

#[test]
fn operands_agree_with_a_model_in_every_engine() {
    for seed in 0..6 {
        for operator in ["add", "append", "joined"] {
            for engine in [Engine::Lsm, Engine::Bplus, Engine::Critbit] {
                model::run(operator, engine, seed);
            }
        }
    }
}

fn text(keyspace: &Keyspace, key: &str) -> Option<String> {
    keyspace.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn joined_in(store: &Store, engine: Engine) -> Keyspace {
    let options = KeyspaceOptions::new().engine(engine).merge_operator("joined");
    store.keyspace_with("kept", options).unwrap()
}

/// A program without the operator opens the store: what needs no operator works, and nothing is
/// lost.
#[test]
fn without_its_operator_a_keyspace_keeps_what_it_cannot_merge() {
    for engine in [Engine::Lsm, Engine::Bplus] {
        let directory = Arc::new(MemoryDirectory::new());
        let open = |options: Options| Store::open_directory(directory.clone(), options).unwrap();
        let (options, _) = with_joined(small());
        let store = open(options.clone());
        let kept = joined_in(&store, engine);
        kept.put("b", "one").unwrap();
        kept.compact().unwrap();
        kept.merge("b", "two").unwrap();
        kept.put("c", "see").unwrap();
        drop(kept);
        store.close().unwrap();

        let store = open(small());
        let infos = store.keyspaces().unwrap();
        assert_eq!(infos[0].merge_operator.as_deref(), Some("joined"), "registered or not");
        let kept = store.open_keyspace("kept").unwrap();
        let needs = |error: Error| {
            let said = error.to_string();
            assert!(said.contains("\"kept\"") && said.contains("\"joined\""), "{said}");
            let is_it = matches!(error, Error::Lsm { error: LsmError::NoOperator { .. }, .. });
            assert!(is_it, "{said}");
        };
        needs(kept.merge("b", "three").unwrap_err());
        needs(store.transaction(|tx| tx.merge(&kept, "b", "three")).unwrap_err());
        kept.put("a", "ay").unwrap();
        kept.put("d", "dee").unwrap();
        kept.delete("c").unwrap();
        assert!(kept.contains("b").unwrap());
        assert_eq!(kept.len().unwrap(), 3);
        kept.compact().unwrap();
        let keys: Vec<_> = kept.iter().keys().map(|key| key.unwrap().to_vec()).collect();
        assert_eq!(keys, [b"a", b"b", b"d"]);
        if engine == Engine::Lsm {
            needs(kept.get("b").unwrap_err());
            needs(kept.iter().find_map(Result::err).expect("b cannot be read"));
            needs(kept.iter().rev().find_map(Result::err).expect("b cannot be read"));
            assert_eq!(kept.range("c"..).count(), 1);
            assert_eq!(kept.iter().next().unwrap().unwrap().1, "ay");
        }
        assert!(store.check().unwrap().findings.is_empty());
        drop(kept);
        store.close().unwrap();

        let store = open(options);
        let kept = joined_in(&store, engine);
        kept.merge("b", "three").unwrap();
        assert_eq!(text(&kept, "b").as_deref(), Some("one,two,three"));
        kept.compact().unwrap();
        assert_eq!(text(&kept, "b").as_deref(), Some("one,two,three"));
    }
}

/// An operator that fails, or panics, fails the read; no flush and no compaction drops an operand.
#[test]
fn what_an_operator_fails_to_merge_stays() {
    let (options, joined) = with_joined(small().background(false));
    let store = Store::open_directory(Arc::new(MemoryDirectory::new()), options).unwrap();
    let kept = joined_in(&store, Engine::Lsm);
    let mut expected = "0".to_owned();
    kept.put("key", "0").unwrap();
    for round in 1..12 {
        let switch = if round % 2 == 0 { &joined.fails } else { &joined.panics };
        switch.store(true, Ordering::Relaxed);
        kept.merge("key", round.to_string()).unwrap();
        expected = format!("{expected},{round}");
        match round % 3 {
            0 => kept.compact().unwrap(),
            1 => {
                kept.put("other", vec![7; 5_000]).unwrap();
                kept.compact().unwrap();
            }
            _ => {}
        }
        let failed = kept.get("key").unwrap_err();
        let is_it = matches!(failed, Error::Lsm { error: LsmError::MergeFailed { .. }, .. });
        assert!(is_it && failed.to_string().contains("\"joined\""), "{failed}");
        switch.store(false, Ordering::Relaxed);
        assert_eq!(text(&kept, "key"), Some(expected.clone()), "round {round}");
    }
    kept.compact().unwrap();
    assert_eq!(text(&kept, "key"), Some(expected));
    assert!(store.check().unwrap().findings.is_empty());

    // On trees the merge itself fails, and nothing is changed.
    let tree = KeyspaceOptions::new().merge_operator("joined");
    let tree = store.keyspace_with("tree", tree).unwrap();
    tree.merge("key", "1").unwrap();
    joined.panics.store(true, Ordering::Relaxed);
    let mut batch = store.batch();
    batch.put(&tree, "before", "1").unwrap();
    batch.merge(&tree, "key", "2").unwrap();
    assert!(batch.commit().unwrap_err().to_string().contains("panicked"));
    joined.panics.store(false, Ordering::Relaxed);
    assert_eq!((text(&tree, "key"), tree.len().unwrap()), (Some("1".into()), 1));
}

/// More operands of a key than a compaction gathers, while none can be merged: all are there, in
/// their order, and become one value when they can be, with snapshots in between.
#[test]
fn more_operands_than_are_gathered_stay_until_they_can_be_merged() {
    const BYTES: usize = 64 << 10;
    const COUNT: usize = 600;
    let (options, joined) = with_joined(small().background(false));
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 1 << 20;
    let store = Store::open_directory(Arc::new(MemoryDirectory::new()), options.lsm(lsm)).unwrap();
    let kept = joined_in(&store, Engine::Lsm);
    let item = |number: usize| vec![b'a' + (number % 26) as u8; BYTES];
    kept.put("key", "0").unwrap();
    kept.compact().unwrap();
    let mut snapshots = Vec::new();
    for number in 0..COUNT {
        // A few can be merged, in the middle.
        let fails = !(300..305).contains(&number);
        joined.fails.store(fails, Ordering::Relaxed);
        kept.merge("key", item(number)).unwrap();
        if number % 200 == 100 {
            snapshots.push((number, store.snapshot().unwrap()));
        }
        if number % 150 == 149 {
            joined.fails.store(true, Ordering::Relaxed);
            kept.compact().unwrap();
        }
    }
    let expected = |count: usize| {
        let items: Vec<_> = [vec![b'0']].into_iter().chain((0..count).map(item)).collect();
        items.join(&b',')
    };
    kept.compact().unwrap();
    joined.fails.store(false, Ordering::Relaxed);
    for of in ["unmerged", "merged"] {
        assert!(kept.get("key").unwrap().unwrap() == expected(COUNT)[..], "{of}");
        for (number, snapshot) in &snapshots {
            let found = snapshot.get(&kept, "key").unwrap().unwrap();
            assert!(found == expected(number + 1)[..], "{of}: at {number}");
        }
        kept.compact().unwrap();
    }
    drop(snapshots);
    kept.compact().unwrap();
    assert!(kept.get("key").unwrap().unwrap() == expected(COUNT)[..], "without snapshots");
    assert!(store.check().unwrap().findings.is_empty());
}

#[test]
fn operands_are_checked_before_they_are_written() {
    let (options, _) = with_joined(small());
    let store = Store::open_directory(Arc::new(MemoryDirectory::new()), options).unwrap();
    for (engine, name) in [(Engine::Lsm, "log"), (Engine::Bplus, "tree")] {
        let options = KeyspaceOptions::new().engine(engine);
        let plain = store.keyspace_with(name, options).unwrap();
        let none = plain.merge("key", "1").unwrap_err();
        assert!(none.to_string().contains("expected a merge operator, found none"), "{none}");
        let kept = store.keyspace_with(name, options.merge_operator("joined")).unwrap();
        for kept in [&plain, &kept] {
            kept.merge("key", "1").unwrap();
        }
        assert!(kept.merge("key", "").unwrap_err().to_string().contains("expected a text"));
        let long = vec![1; adamant::OPERAND_BYTES_MAX + 1];
        let is_long = |error: Error| matches!(error, Error::ValueTooLong { .. });
        assert!(is_long(kept.merge("key", &long).unwrap_err()));
        assert!(is_long(store.batch().merge(&kept, "key", &long).unwrap_err()));
        assert!(is_long(store.transaction(|tx| tx.merge(&kept, "key", &long)).unwrap_err()));
        kept.merge("long", &long[1..]).unwrap();
        kept.merge("long", "2").unwrap();
        assert_eq!(kept.get("long").unwrap().map(|value| value.len()), Some(long.len() + 1));
        assert_eq!(text(&kept, "key").as_deref(), Some("1,1"));
        let other = store.keyspace_with(name, KeyspaceOptions::new().merge_operator("add"));
        let is_other = matches!(&other, Err(Error::WrongMergeOperator { name: of, expected, found })
            if of == name && expected == "add" && found == "joined");
        assert!(is_other, "{other:?}");
        let odd = store.keyspace_with("odd", KeyspaceOptions::new().merge_operator(""));
        assert!(odd.is_err());
    }
    let expiring = store.expiring_with("ends", KeyspaceOptions::new().merge_operator("add"));
    assert!(expiring.unwrap_err().to_string().contains("deadlines"));
    let multimap = store.multimap_with("words", KeyspaceOptions::new().merge_operator("add"));
    assert!(multimap.unwrap_err().to_string().contains("multimaps"));
    assert!(store.open_multimap("words").is_err(), "it was not made");
}

/// Both threads find none recorded, and wait for the writer lock: the second one must not replace
/// what operands may have been written for.
#[test]
fn of_two_operators_that_are_given_at_once_one_is_refused() {
    let store = Store::open_directory(Arc::new(MemoryDirectory::new()), small()).unwrap();
    for round in 0..20 {
        let engine = if round % 2 == 0 { Engine::Lsm } else { Engine::Bplus };
        let name = format!("{round}");
        let kept = store.keyspace_with(&name, KeyspaceOptions::new().engine(engine)).unwrap();
        let only = store.begin_exclusive().unwrap();
        let given = thread::scope(|scope| {
            let give = |operator| {
                let options = KeyspaceOptions::new().merge_operator(operator);
                store.keyspace_with(&name, options).map(drop)
            };
            let threads = ["add", "append"].map(|operator| scope.spawn(move || give(operator)));
            thread::sleep(Duration::from_millis(5));
            drop(only);
            threads.map(|thread| thread.join().unwrap())
        });
        let refused =
            given.iter().filter(|given| matches!(given, Err(Error::WrongMergeOperator { .. })));
        assert_eq!((given.iter().filter(|given| given.is_ok()).count(), refused.count()), (1, 1));
        // And the other one holds.
        kept.put("key", [1; 8]).unwrap();
        kept.merge("key", [1; 8]).unwrap();
        let bytes = if given[0].is_ok() { 8 } else { 16 };
        assert_eq!(kept.get("key").unwrap().map(|value| value.len()), Some(bytes));
    }
}

#[test]
fn names_of_the_library_cannot_be_registered_again() {
    for (name, is_free) in [("add", false), ("", false), ("add2", true)] {
        let options = Options::new().merge_operator(name, Arc::new(Joined::default()));
        let opened = Store::open_directory(Arc::new(MemoryDirectory::new()), options);
        assert_eq!(opened.is_ok(), is_free, "{name:?}");
    }
}

/// An operator runs under the store's lock: where it uses the store it gets an error, and does not
/// wait for itself.
#[test]
fn an_operator_that_uses_the_store_gets_an_error() {
    struct Curious(std::sync::Mutex<Option<Keyspace>>);
    impl MergeOperator for Curious {
        fn merge(
            &self,
            key: &[u8],
            _older: &[u8],
            newer: &[u8],
            merged: &mut Vec<u8>,
        ) -> Result<(), MergeError> {
            if let Some(keyspace) = &*self.0.lock().unwrap() {
                keyspace.get(key).map_err(|error| MergeError::new(error.to_string()))?;
            }
            merged.extend_from_slice(newer);
            Ok(())
        }
    }
    let curious = Arc::new(Curious(std::sync::Mutex::default()));
    let options = Options::new().merge_operator("curious", Arc::<Curious>::clone(&curious));
    let store = Store::open_directory(Arc::new(MemoryDirectory::new()), options).unwrap();
    let tree = KeyspaceOptions::new().merge_operator("curious");
    let tree = store.keyspace_with("tree", tree).unwrap();
    *curious.0.lock().unwrap() = Some(tree.clone());
    tree.merge("key", "1").unwrap();
    let refused = tree.merge("key", "2").unwrap_err();
    assert!(matches!(refused, Error::Lsm { error: LsmError::MergeFailed { .. }, .. }));
    assert_eq!(text(&tree, "key").as_deref(), Some("1"));
    *curious.0.lock().unwrap() = None;
}

/// Another operator by a copy that gets the name, as the guide has it: operands that were not
/// merged yet are never merged by another operator than theirs.
#[test]
fn a_copy_that_gets_the_name_has_another_operator() {
    for engine in [Engine::Lsm, Engine::Bplus] {
        let store = Store::in_memory().unwrap();
        let with = |name: &str, operator: &str| {
            let options = KeyspaceOptions::new().engine(engine).merge_operator(operator);
            store.keyspace_with(name, options).unwrap()
        };
        let number = |number: u64| number.to_le_bytes();
        let best = with("best", "add");
        best.merge("ada", number(7)).unwrap();
        best.merge("ada", number(2)).unwrap();
        let mut transaction = store.begin().unwrap();
        transaction.merge(&best, "ada", number(100)).unwrap();
        let mut batch = store.batch();
        batch.merge(&best, "ada", number(100)).unwrap();

        let copy = with("best.copy", "max_u64");
        copy.load_sorted(best.iter().collect::<Result<Vec<_>, _>>().unwrap()).unwrap();
        store.swap_keyspaces("best", "best.copy").unwrap();
        assert!(store.drop_keyspace("best.copy").unwrap());
        for failed in [
            transaction.commit().unwrap_err(),
            batch.commit().unwrap_err(),
            best.merge("ada", number(100)).unwrap_err(),
            best.get("ada").unwrap_err(),
        ] {
            assert!(matches!(failed, Error::KeyspaceDropped { .. }), "{engine:?}: {failed}");
        }
        let best = store.open_keyspace("best").unwrap();
        assert_eq!(best.get("ada").unwrap(), Some(number(9).into()));
        best.merge("ada", number(8)).unwrap();
        assert_eq!(best.get("ada").unwrap(), Some(number(9).into()));
        best.merge("ada", number(10)).unwrap();
        assert_eq!(best.get("ada").unwrap(), Some(number(10).into()));
    }
}

/// The feed has the values that merges left, so that applied to nothing it is the store.
#[test]
fn the_feed_has_merged_values() {
    for engine in [Engine::Lsm, Engine::Bplus] {
        let store = Store::in_memory().unwrap();
        store.record_changes(Some(1 << 20)).unwrap();
        let options = KeyspaceOptions::new().engine(engine).merge_operator("append");
        let kept = store.keyspace_with("kept", options).unwrap();
        kept.put("key", "1").unwrap();
        kept.merge("key", "2").unwrap();
        let mut batch = store.batch();
        batch.merge(&kept, "key", "3").unwrap();
        batch.merge(&kept, "new", "4").unwrap();
        batch.merge(&kept, "key", "5").unwrap();
        batch.commit().unwrap();
        store.transaction(|tx| tx.merge(&kept, "key", "6")).unwrap();
        let mut model = BTreeMap::new();
        let mut changes = store.changes(0).unwrap();
        while let Some(commit) = changes.try_next().unwrap() {
            for change in commit.changes {
                if let adamant::Change::Put { key, value, .. } = change {
                    model.insert(key, value);
                }
            }
        }
        let found = kept.iter().collect::<adamant::Result<BTreeMap<_, _>>>().unwrap();
        assert_eq!(found, model);
        assert_eq!(model[&b"key"[..]], "12356");
    }
}

/// Operands go where the store goes: to backups, to compacted and repaired copies, to readers
/// beside.
#[test]
fn operands_go_where_the_store_goes() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    let (options, _) = with_joined(small().background(false));
    let store = Store::open_with(at("store"), options.clone()).unwrap();
    let kept = joined_in(&store, Engine::Lsm);
    kept.put("key", "1").unwrap();
    kept.compact().unwrap();
    kept.merge("key", "2").unwrap();
    kept.compact().unwrap();
    kept.merge("key", "3").unwrap();
    store.sync().unwrap();
    let look = |store: &Store| text(&store.open_keyspace("kept").unwrap(), "key");
    store.backup(at("backup")).unwrap();
    let backup = Store::open_with(at("backup"), options.clone()).unwrap();
    assert_eq!(look(&backup).as_deref(), Some("1,2,3"));
    backup.close().unwrap();
    let beside = Store::open_with(at("store"), options.clone().beside_writer(true)).unwrap();
    assert_eq!(look(&beside).as_deref(), Some("1,2,3"));
    beside.close().unwrap();
    drop(kept);
    store.close().unwrap();
    let read_only = Store::open_with(at("store"), options.clone().read_only(true)).unwrap();
    assert_eq!(look(&read_only).as_deref(), Some("1,2,3"));
    read_only.close().unwrap();
    adamant::compact_with(at("backup"), options.clone()).unwrap();
    let compacted = Store::open_with(at("backup"), options.clone()).unwrap();
    assert_eq!(look(&compacted).as_deref(), Some("1,2,3"));
    joined_in(&compacted, Engine::Lsm).merge("key", "4").unwrap();
    assert_eq!(look(&compacted).as_deref(), Some("1,2,3,4"));
}

/// Repair without the operator refuses; with it, a key that cannot be merged costs itself alone.
#[test]
fn repair_saves_what_can_be_merged() {
    let directory: Arc<dyn adamant::Directory> = Arc::new(MemoryDirectory::new());
    struct Odd(AtomicBool);
    impl MergeOperator for Odd {
        fn merge(
            &self,
            key: &[u8],
            older: &[u8],
            newer: &[u8],
            merged: &mut Vec<u8>,
        ) -> Result<(), MergeError> {
            if key == b"k 5" && self.0.load(Ordering::Relaxed) {
                return Err(MergeError::new("expected another key"));
            }
            merged.extend_from_slice(&[older, newer].concat());
            Ok(())
        }
    }
    let odd = Arc::new(Odd(AtomicBool::new(false)));
    let with = small().merge_operator("odd", Arc::<Odd>::clone(&odd));
    let store = Store::open_directory(Arc::clone(&directory), with.clone()).unwrap();
    let kept = KeyspaceOptions::new().engine(Engine::Lsm).merge_operator("odd");
    let kept = store.keyspace_with("kept", kept).unwrap();
    for number in 0..9 {
        kept.put(format!("k {number}"), "1").unwrap();
    }
    kept.compact().unwrap();
    odd.0.store(true, Ordering::Relaxed);
    for number in 0..9 {
        kept.merge(format!("k {number}"), "2").unwrap();
    }
    drop(kept);
    store.close().unwrap();
    let repair = |options: Options| {
        let target: Arc<dyn adamant::Directory> = Arc::new(MemoryDirectory::new());
        let report = adamant::repair_into(&directory, Arc::clone(&target), options)?;
        Ok::<_, Error>((report, target))
    };
    let refused = repair(small()).unwrap_err();
    assert!(refused.to_string().contains("\"odd\""), "{refused}");
    let (report, target) = repair(with.clone()).unwrap();
    let said = format!("{report:?}");
    assert!(said.contains("k 5") && said.contains("expected another key"), "{said}");
    let saved = Store::open_directory(target, with).unwrap();
    let saved = saved.open_keyspace("kept").unwrap();
    assert_eq!(saved.len().unwrap(), 8);
    assert_eq!(text(&saved, "k 8").as_deref(), Some("12"));
    let all = (Bound::<&str>::Unbounded, Bound::Unbounded);
    assert!(saved.range(all).all(|entry| entry.unwrap().1 == "12"));
}
