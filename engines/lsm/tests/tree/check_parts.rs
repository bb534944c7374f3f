//! A check beside a writer: it releases the heap after every 2,048 records of memtables or so, and
//! reports no finding for concurrent changes.

use std::sync::Arc;

use adamant_heap::{Directory, Durability, MemoryDirectory};
use adamant_lsm::{Error, LsmCheck, LsmChecking, Options};

use crate::heap_damage::{blocks, change};
use crate::store::Store;

const ENTRIES: u32 = 10_000;

fn write(store: &Store, numbers: impl Iterator<Item = u32>) {
    let pairs: Vec<_> = numbers.map(|number| (format!("{number:05}"), [7; 20])).collect();
    store
        .heap
        .transaction(Durability::Buffered, |tx| {
            let pairs = pairs.iter().map(|(key, value)| (key.as_bytes(), Some(&value[..])));
            store.tree.write(tx, pairs)
        })
        .unwrap();
}

/// Checks in parts, with `between` them; returns the number of parts, and the check.
fn check(store: &Store, between: impl Fn(u32)) -> Result<(u32, LsmCheck), Error> {
    let (mut checking, mut parts) = (LsmChecking::default(), 0);
    loop {
        parts += 1;
        let view = store.heap.view()?;
        if let Some(check) = store.tree.check_part(&view, &mut checking, &|| true)? {
            return Ok((parts, check));
        }
        drop(view);
        between(parts);
    }
}

#[test]
fn others_come_in_between_and_are_no_damage() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let store = Store::open(&directory, Options::default()).unwrap();
    write(&store, 0..ENTRIES);
    let (parts, whole) = check(&store, |_| {}).unwrap();
    assert_eq!(parts, ENTRIES / 2048 + 1, "each part stops, the last one comes to the end");
    let report = whole.finish();
    assert!(report.is_clean() && report.entries == u64::from(ENTRIES), "{report:?}");

    let seen = || Ok(store.context.sequences().visible());
    for flushed_at in 1..=4 {
        let before = store.tree.stats();
        let (parts, whole) = check(&store, |part| {
            if part > 12 {
                return;
            }
            write(&store, part * 500..part * 500 + 700);
            if part == flushed_at {
                store.tree.rotate(&store.heap).unwrap();
            }
            if part == flushed_at + 1 {
                assert!(store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap());
            }
        })
        .unwrap();
        assert!(parts > 2, "{parts} parts");
        assert!(store.tree.stats().flushes > before.flushes, "one went meanwhile");
        let report = whole.finish();
        assert!(report.is_clean(), "flushed at {flushed_at}: {report:?}");
        write(&store, 0..ENTRIES);
    }
}

/// A later part verifies what an earlier one has not reached.
#[test]
fn a_record_that_was_changed_is_found_by_the_part_that_comes_to_it() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let store = Store::open(&directory, Options::default()).unwrap();
    write(&store, 0..ENTRIES);
    let last = blocks(&store).into_iter().rfind(|block| block.kind == "chunk").unwrap();
    let found = check(&store, |part| {
        if part == 1 {
            change(&store, last, last.len - 1, &[8], false);
        }
    });
    assert!(found.is_err(), "the last byte of {last:?}: {found:?}");
}
