//! Heap transactions over a file system in memory: commits are there, failures leave no trace, and
//! reopening finds the same.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use adamant_heap::{Durability, Error, Heap, Options, Read, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

fn options() -> Options {
    let mut options = crate::setup::options();
    options.background = false;
    options.log_bytes_max = 4 << 20;
    options.address_bytes_max = 4 << 30;
    options
}

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let (heap, _) = Heap::open(Arc::clone(directory), options()).expect("opens");
    heap
}

fn new_directory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

fn assert_clean(heap: &Heap) {
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// Reserves a block and fills it with bytes derived from `tag`.
fn make(tx: &mut impl Write, tag: u64, bytes: usize) -> Result<u64, Error> {
    let block = tx.reserve(bytes as u64)?;
    let target = tx.write(block, 0, bytes)?;
    for (index, byte) in target.iter_mut().enumerate() {
        *byte = (tag as usize + index) as u8;
    }
    Ok(block)
}

fn holds(read: &impl Read, block: u64, tag: u64, bytes: usize) -> bool {
    let found = read.block(block).expect("a block");
    found[..bytes].iter().enumerate().all(|(index, byte)| *byte == (tag as usize + index) as u8)
}

#[test]
fn what_was_committed_is_there_after_reopening() {
    let directory = new_directory();
    let sizes =
        [1, 8, 9, 100, 127, 128, 129, 1024, 1500, 4096, 5000, 32_768, 32_769, 300_000, 3 << 20];
    let heap = open(&directory);
    let mut blocks = Vec::new();
    for (tag, bytes) in sizes.into_iter().enumerate() {
        let block = heap
            .transaction(Durability::Sync, |tx| {
                let block = make(tx, tag as u64, bytes)?;
                tx.set_root(1, block)?;
                Ok::<_, Error>(block)
            })
            .expect("commits");
        blocks.push(block);
    }
    assert_clean(&heap);
    heap.close().expect("closes");
    let heap = open(&directory);
    let view = heap.view().expect("not a child");
    for ((tag, bytes), block) in sizes.into_iter().enumerate().zip(&blocks) {
        assert!(holds(&view, *block, tag as u64, bytes), "{bytes} bytes at {block:#x}");
    }
    assert_eq!(view.root(1), *blocks.last().expect("some"));
    drop(view);
    assert_clean(&heap);
}

#[test]
fn an_error_or_a_panic_restores_every_byte() {
    let directory = new_directory();
    let heap = open(&directory);
    let block = heap
        .transaction(Durability::Buffered, |tx| {
            let block = make(tx, 3, 1000)?;
            tx.set_root(0, block)?;
            Ok::<_, Error>(block)
        })
        .expect("commits");
    let before = heap.view().expect("not a child").block(block).expect("a block").to_vec();
    let spoil = |tx: &mut adamant_heap::Transaction<'_>| -> Result<(), Error> {
        tx.write(block, 10, 500)?.fill(0xEE);
        tx.update_u64(block, 0, 0)?;
        make(tx, 9, 77)?;
        make(tx, 9, 400_000)?;
        tx.set_root(0, 1)?;
        tx.free(block)
    };
    let failed = heap.transaction(Durability::Buffered, |tx| {
        spoil(tx)?;
        Err::<(), _>(Error::Misuse { what: "on purpose" })
    });
    assert!(matches!(failed, Err(Error::Misuse { .. })));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        heap.transaction(Durability::Buffered, |tx| {
            spoil(tx)?;
            panic!("on purpose");
            #[expect(unreachable_code, reason = "gives the closure its type")]
            Ok::<(), Error>(())
        })
    }));
    assert!(panicked.is_err());
    let view = heap.view().expect("not a child");
    assert_eq!(view.root(0), block);
    assert_eq!(view.block(block).expect("a block"), before);
    drop(view);
    assert_clean(&heap);
    let blocks = heap.check().expect("checks").blocks;
    assert_eq!(blocks, 1, "nothing leaked");
}

#[test]
fn a_savepoint_fails_alone() {
    let heap = open(&new_directory());
    let (kept, other) = heap
        .transaction(Durability::Buffered, |tx| {
            let kept = make(tx, 1, 200)?;
            let failed = tx.savepoint(|tx| {
                tx.write(kept, 0, 200)?.fill(0);
                tx.savepoint(|tx| make(tx, 5, 50).map(drop))?;
                tx.free(kept)?;
                Err::<(), _>(Error::Misuse { what: "on purpose" })
            });
            assert!(failed.is_err());
            assert!(holds(tx, kept, 1, 200), "restored");
            let other = tx.savepoint(|tx| {
                tx.write(kept, 0, 1)?[0] = 77;
                make(tx, 2, 60_000)
            })?;
            Ok::<_, Error>((kept, other))
        })
        .expect("commits");
    let view = heap.view().expect("not a child");
    assert_eq!(view.block(kept).expect("a block")[0], 77);
    assert!(holds(&view, other, 2, 60_000));
    drop(view);
    assert_clean(&heap);
    assert_eq!(heap.check().expect("checks").blocks, 2);
}

#[test]
fn hooks_are_called_by_the_commit_and_by_nothing_else() {
    let heap = open(&new_directory());
    let called = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hook = |name: &'static str| {
        let called = Arc::clone(&called);
        move |sequence: u64| called.lock().unwrap().push((name, sequence))
    };
    let taken = || std::mem::take(&mut *called.lock().unwrap());
    let outcome = heap.transaction(Durability::Sync, |tx| {
        tx.on_commit(hook("undone"));
        make(tx, 1, 100)?;
        Err::<(), _>(Error::Misuse { what: "on purpose" })
    });
    assert!(outcome.is_err() && taken().is_empty());
    let outer = |tx: &mut adamant_heap::Transaction<'_>| {
        tx.on_commit(hook("first"));
        let failed = tx.savepoint(|tx| {
            tx.on_commit(hook("of a savepoint that failed"));
            Err::<(), _>(Error::Misuse { what: "on purpose" })
        });
        assert!(failed.is_err());
        tx.savepoint(|tx| {
            tx.on_commit(hook("second"));
            make(tx, 2, 100)
        })?;
        tx.on_commit(hook("third"));
        assert!(taken().is_empty(), "not before the commit");
        Ok::<_, Error>(())
    };
    heap.transaction(Durability::Sync, outer).expect("commits");
    let sequence = heap.stats().journal.last_sequence;
    assert_eq!(taken(), [("first", sequence), ("second", sequence), ("third", sequence)]);
    // A hook that panics: the commit is there, and the heap goes on.
    let mut block = 0;
    let panic = catch_unwind(AssertUnwindSafe(|| {
        heap.transaction(Durability::Sync, |tx| {
            tx.on_commit(|_| panic!("on purpose"));
            tx.on_commit(hook("behind it"));
            block = make(tx, 3, 5000)?;
            Ok::<_, Error>(())
        })
    }));
    assert!(panic.is_err() && taken().is_empty());
    assert!(holds(&heap.view().expect("open"), block, 3, 5000));
    heap.transaction(Durability::Sync, |tx| {
        tx.on_commit(hook("of nothing"));
        Ok::<_, Error>(())
    })
    .expect("commits");
    assert_eq!(taken().len(), 1);
    assert_clean(&heap);
}

#[test]
fn forged_pointers_are_errors() {
    let heap = open(&new_directory());
    let block = heap.transaction(Durability::Buffered, |tx| make(tx, 1, 100)).expect("commits");
    let view = heap.view().expect("not a child");
    for offset in [1, block + 1, block + 8, block - 1, 4096 * 50, 1 << 40, 1 << 46, u64::MAX] {
        assert!(view.block(offset).is_err(), "{offset:#x}");
    }
    drop(view);
    let outcome = heap.transaction(Durability::Buffered, |tx| {
        assert!(tx.write(block, 90, 50).is_err(), "beyond the block");
        assert!(tx.write(block, usize::MAX, 2).is_err());
        assert!(tx.free(block + 8).is_err());
        tx.free(block)?;
        assert!(tx.free(block).is_err(), "twice");
        Ok::<_, Error>(())
    });
    outcome.expect("commits");
    assert!(heap.transaction(Durability::Buffered, |tx| tx.free(block)).is_err(), "free already");
    assert_clean(&heap);
}

#[test]
fn a_nested_transaction_is_an_error_not_a_deadlock() {
    let heap = open(&new_directory());
    let inner = heap.transaction(Durability::Buffered, |_| {
        Ok::<_, Error>(heap.transaction(Durability::Buffered, |_| Ok::<_, Error>(())))
    });
    assert!(matches!(inner, Ok(Err(Error::Misuse { .. }))));
}

#[test]
fn what_a_pin_may_look_at_is_not_reused() {
    let heap = open(&new_directory());
    let block = heap.transaction(Durability::Buffered, |tx| make(tx, 1, 100)).expect("commits");
    let pin = heap.pin().expect("not a child");
    heap.transaction(Durability::Buffered, |tx| tx.free(block)).expect("frees");
    for tag in 0..500 {
        let other =
            heap.transaction(Durability::Buffered, |tx| make(tx, tag, 100)).expect("commits");
        assert_ne!(other, block, "reused under a pin");
    }
    assert!(holds(&heap.view().expect("not a child"), block, 1, 100), "still as it was");
    assert!(heap.stats().quarantined > 0);
    drop(pin);
    let mut reused = false;
    for tag in 0..500 {
        reused |= heap.transaction(Durability::Buffered, |tx| make(tx, tag, 100)).expect("commits")
            == block;
    }
    assert!(reused, "free again after the pin");
}

#[test]
fn random_work_agrees_with_a_model_across_reopening() {
    let seed = 20_261_121;
    let mut random = fastrand::Rng::with_seed(seed);
    let directory = new_directory();
    let mut heap = open(&directory);
    let mut model: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for round in 0..600u64 {
        let mut next = model.clone();
        let fail = random.u32(..5) == 0;
        let outcome = heap.transaction(Durability::Buffered, |tx| {
            for step in 0..random.usize(1..40) {
                let tag = round * 100 + step as u64;
                let known: Vec<u64> = next.keys().copied().collect();
                if known.is_empty() || random.u32(..3) > 0 {
                    let bytes = match random.u32(..20) {
                        0 => random.usize(30_000..200_000),
                        1..4 => random.usize(1000..10_000),
                        _ => random.usize(1..300),
                    };
                    next.insert(make(tx, tag, bytes)?, (tag, bytes));
                } else {
                    let block = known[random.usize(..known.len())];
                    let (_, bytes) = next[&block];
                    if random.bool() {
                        tx.free(block)?;
                        next.remove(&block);
                    } else {
                        let target = tx.write(block, 0, bytes)?;
                        for (index, byte) in target.iter_mut().enumerate() {
                            *byte = (tag as usize + index) as u8;
                        }
                        next.insert(block, (tag, bytes));
                    }
                }
            }
            if fail { Err(Error::Misuse { what: "on purpose" }) } else { Ok(()) }
        });
        assert_eq!(outcome.is_err(), fail, "seed {seed} round {round}: {outcome:?}");
        if !fail {
            model = next;
        }
        if round % 60 == 59 {
            let report = heap.check().expect("checks");
            assert!(report.is_clean(), "seed {seed} round {round}: {:?}", report.findings);
            assert_eq!(report.blocks, model.len() as u64, "seed {seed} round {round}");
            if random.bool() {
                heap.close().expect("closes");
            } else {
                drop(heap);
            }
            heap = open(&directory);
            let view = heap.view().expect("not a child");
            for (block, (tag, bytes)) in &model {
                assert!(holds(&view, *block, *tag, *bytes), "seed {seed} round {round} {block:#x}");
            }
        }
    }
    heap.transaction(Durability::Buffered, |tx| model.keys().try_for_each(|block| tx.free(*block)))
        .expect("frees everything");
    let report = heap.check().expect("checks");
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.blocks, 0);
}

#[test]
fn an_empty_directory_only_becomes_a_heap() {
    let directory = new_directory();
    directory.create("letter.txt").expect("creates");
    let refused = Heap::open(Arc::clone(&directory), options());
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    let mut refusing = options();
    refusing.create = false;
    assert!(Heap::open(new_directory(), refusing).is_err());
}

#[test]
fn a_closed_heap_refuses_every_use() {
    let directory = new_directory();
    let heap = open(&directory);
    let block = heap.transaction(Durability::Buffered, |tx| make(tx, 1, 100)).expect("commits");
    heap.close().expect("closes");
    // Another handle may write the pool from now on, so nothing of the old one may be read.
    let other = open(&directory);
    assert!(matches!(heap.view().map(drop), Err(Error::Misuse { .. })));
    assert!(matches!(heap.pin().map(drop), Err(Error::Misuse { .. })));
    assert!(matches!(heap.check().map(drop), Err(Error::Misuse { .. })));
    let write = heap.transaction(Durability::Buffered, |tx| tx.free(block));
    assert!(matches!(write, Err(Error::Misuse { .. })), "{write:?}");
    assert!(holds(&other.view().expect("not a child"), block, 1, 100));
}

/// A commit leaves out what it wrote to blocks that it frees, and nothing else: not neighbours in
/// the same cache line or in the same word of a bitmap, nor blocks that an undone savepoint freed.
#[test]
fn blocks_that_are_written_and_freed_do_not_reach_the_record() {
    const COUNT: u64 = 300;
    for bytes in [8, 24, 64, 5000] {
        let directory = new_directory();
        let heap = open(&directory);
        let blocks = heap
            .transaction(Durability::Sync, |tx| {
                (0..COUNT).map(|tag| make(tx, tag, bytes)).collect::<Result<Vec<_>, Error>>()
            })
            .expect("there is room");
        let write_all = |tx: &mut adamant_heap::Transaction<'_>| {
            blocks.iter().zip(COUNT..).try_for_each(|(&block, tag)| {
                let target = tx.write(block, 0, bytes)?;
                for (index, byte) in target.iter_mut().enumerate() {
                    *byte = (tag as usize + index) as u8;
                }
                Ok::<_, Error>(())
            })
        };
        let is_freed = |at: usize| at % 3 == 1;
        let before = heap.stats().journal.log_appended_bytes;
        heap.transaction(Durability::Sync, |tx| {
            write_all(tx)?;
            let undone: Result<(), Error> = tx.savepoint(|tx| {
                blocks.iter().try_for_each(|&block| tx.free(block))?;
                Err(Error::TooLarge { bytes: 1, bytes_max: 0 })
            });
            undone.expect_err("on purpose");
            let freed = blocks.iter().enumerate().filter(|(at, _)| is_freed(*at));
            tx.savepoint(|tx| freed.clone().try_for_each(|(_, &block)| tx.free(block)))
        })
        .expect("commits");
        let some = heap.stats().journal.log_appended_bytes - before;
        let check = |heap: &Heap| {
            let view = heap.view().expect("open");
            for (at, &block) in blocks.iter().enumerate().filter(|(at, _)| !is_freed(*at)) {
                assert!(holds(&view, block, COUNT + at as u64, bytes), "{bytes}: block {at}");
            }
        };
        check(&heap);
        assert_clean(&heap);
        drop(heap);
        let heap = open(&directory);
        check(&heap);
        // All that is left: only the frees are in the record.
        let before = heap.stats().journal.log_appended_bytes;
        heap.transaction(Durability::Sync, |tx| {
            let mut left = blocks.iter().enumerate().filter(|(at, _)| !is_freed(*at));
            left.try_for_each(|(_, &block)| {
                tx.write(block, 0, 8)?.fill(7);
                tx.free(block)
            })
        })
        .expect("commits");
        let none = heap.stats().journal.log_appended_bytes - before;
        // Of large blocks few share a word of a bitmap.
        let frees_bytes = if bytes < 1000 { 2000 } else { 5000 };
        assert!(none < frees_bytes && none < some, "{bytes}: {none} and {some} bytes of log");
        assert_clean(&heap);
    }
}

#[test]
fn a_guard_commits_or_undoes() {
    let directory = new_directory();
    let heap = open(&directory);
    let mut write = heap.begin_write().expect("begins");
    let block = make(&mut *write, 1, 100).expect("there is space");
    write.set_root(0, block).expect("a root");
    let within = heap.begin_write();
    assert!(matches!(within, Err(Error::Misuse { .. })), "it would wait for itself");
    write.commit(Durability::Sync).expect("commits");
    let undone = |change: &dyn Fn()| {
        change();
        assert!(!heap.has_writer(), "the turn ended with the guard");
        let view = heap.view().expect("a view");
        assert_eq!(view.root(0), block);
        assert!(holds(&view, block, 1, 100));
    };
    let overwrite = || {
        let mut write = heap.begin_write().expect("begins");
        write.write(block, 0, 100).expect("a block").fill(9);
        write.set_root(0, 0).expect("a root");
        write
    };
    undone(&|| drop(overwrite()));
    undone(&|| {
        let panics = || {
            let _write = overwrite();
            panic!("by the test");
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    });
    undone(&|| {
        let permit = heap.take_write_permit().expect("the turn");
        drop(permit.begin_write().expect("begins"));
    });
    std::thread::scope(|scope| {
        let write = overwrite();
        let other = scope.spawn(|| heap.transaction(Durability::Sync, |tx| tx.set_root(1, block)));
        drop(write);
        other.join().expect("no panic").expect("commits");
    });
    assert_clean(&heap);
    heap.close().expect("closes");
    assert!(matches!(heap.begin_write(), Err(Error::Misuse { .. })), "it is closed");
    let view = open(&directory);
    let view = view.view().expect("a view");
    assert_eq!((view.root(0), view.root(1)), (block, block));
}
