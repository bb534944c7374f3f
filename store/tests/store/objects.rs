//! Application objects, changed in the same commits as keyspaces.

use adamant::{Error, Options, Result, Store};
use adamant_heap::{Error as HeapError, TypedRead, TypedWrite};

const NAME: &str = "entries ever";

fn count(store: &Store) -> Result<u64> {
    let view = store.heap()?.view()?;
    let root = view.named_root::<u64>(NAME)?;
    Ok(root.map(|root| view.get(root).copied()).transpose()?.unwrap_or(0))
}

/// Inserts so many entries, and counts them in an object, all in one commit.
fn insert(store: &Store, first: u64, entries: u64) -> Result<()> {
    let keyspace = store.keyspace("entries")?;
    store.transaction(|tx| {
        for number in first..first + entries {
            tx.put(&keyspace, number.to_le_bytes(), "value")?;
        }
        tx.on_heap(move |heap| {
            let root = heap.named_root_or_create(NAME, |_| Ok(0_u64))?;
            *heap.get_mut(root)? += entries;
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn keys_and_objects_change_together_and_are_there_when_opened_again() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let store = Store::open_with(&path, Options::new())?;
    // The last one is large enough for a chunked commit.
    for (first, entries) in [(0, 1), (1, 3), (4, 3_000)] {
        insert(&store, first, entries)?;
        assert_eq!(count(&store)?, first + entries);
        assert_eq!(store.keyspace("entries")?.len()?, first + entries);
    }
    assert!(store.check()?.is_clean(), "{:?}", store.check()?.findings);
    store.close()?;
    let store = Store::open(&path)?;
    assert_eq!((count(&store)?, store.keyspace("entries")?.len()?), (3_004, 3_004));
    assert!(store.check()?.is_clean());
    Ok(())
}

#[test]
fn work_that_fails_undoes_all_of_the_commit() -> Result<()> {
    let store = Store::in_memory()?;
    insert(&store, 0, 5)?;
    let keyspace = store.keyspace("entries")?;
    for entries in [1, 2_000_u64] {
        let mut tx = store.begin()?;
        for number in 0..entries {
            tx.put(&keyspace, format!("more {number}"), "")?;
        }
        tx.on_heap(|heap| {
            let root = heap.named_root_or_create(NAME, |_| Ok(0_u64))?;
            *heap.get_mut(root)? += 100;
            Ok(())
        });
        tx.on_heap(|_| Err(HeapError::Misuse { what: "it is refused" }));
        let error = tx.commit().expect_err("its work failed").to_string();
        assert!(error.contains("it is refused"), "{error}");
        assert_eq!((count(&store)?, keyspace.len()?), (5, 5));
    }
    assert!(store.check()?.is_clean());
    Ok(())
}

#[test]
fn work_goes_with_its_savepoint_and_needs_no_keys() -> Result<()> {
    let store = Store::in_memory()?;
    let mut tx = store.begin()?;
    let add = |number: u64| {
        move |heap: &mut adamant_heap::Transaction<'_>| {
            let root = heap.named_root_or_create(NAME, |_| Ok(0_u64))?;
            *heap.get_mut(root)? += number;
            Ok(())
        }
    };
    tx.on_heap(add(1));
    let undone = tx.savepoint(|tx| {
        tx.on_heap(add(10));
        Err::<(), Error>(Error::KeyTooLong { bytes: 0, bytes_max: 0 })
    });
    assert!(undone.is_err());
    tx.savepoint(|tx| {
        tx.on_heap(add(100));
        Ok::<(), Error>(())
    })?;
    tx.commit()?;
    assert_eq!(count(&store)?, 101);
    // A dropped or conflicting transaction does nothing.
    let mut dropped = store.begin()?;
    dropped.on_heap(add(1_000));
    drop(dropped);
    let keyspace = store.keyspace("entries")?;
    let mut late = store.begin()?;
    late.get(&keyspace, "key")?;
    late.put(&keyspace, "key", "late")?;
    late.on_heap(add(10_000));
    keyspace.insert("key", "early")?;
    assert!(late.commit().expect_err("it read what changed").is_conflict());
    assert_eq!(count(&store)?, 101);
    // The store itself cannot be used there.
    let mut within = store.begin()?;
    let (tried, inner) = (keyspace.clone(), store.clone());
    within.on_heap(move |_| {
        assert!(tried.get("key").is_err() && inner.snapshot().is_err());
        Ok(())
    });
    within.commit()?;
    assert_eq!(keyspace.get("key")?, Some("early".into()));
    Ok(())
}
