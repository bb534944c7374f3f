//! Tests: changes of several threads at once, with the writer lock held until all of them wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Result as Joined, ScopedJoinHandle, scope};
use std::time::Duration;

use crate::{Durability, Error, Heap, MemoryDirectory, Options, Read, Result, Transaction, Write};

const DEFERRED: Durability = Durability::Deferred;
/// Words of a block: the first one counts all changes, each thread has one of the others.
const WORDS: usize = 17;

fn open() -> (Heap, u64) {
    let options = Options { background: false, ..Options::default() };
    let heap = Heap::open(Arc::new(MemoryDirectory::new()), options).unwrap().0;
    let block = heap.transaction(DEFERRED, |transaction| {
        let block = transaction.reserve(8 * WORDS as u64)?;
        transaction.write(block, 0, 8 * WORDS)?.fill(0);
        Ok::<u64, Error>(block)
    });
    (heap, block.unwrap())
}

fn word<R: Read>(heap: &R, block: u64, index: usize) -> u64 {
    let bytes = heap.block(block).unwrap()[8 * index..].first_chunk();
    u64::from_le_bytes(*bytes.unwrap())
}

/// Increments the thread's word and the shared one; returns the shared count.
fn count(transaction: &mut Transaction<'_>, block: u64, thread: usize) -> Result<u64> {
    for index in [0, thread] {
        let next = word(transaction, block, index) + 1;
        transaction.update_u64(block, 8 * index, next)?;
    }
    Ok(word(transaction, block, 0))
}

/// Runs `work` as combined transactions, on threads 1 to `threads`, while this one holds the writer
/// lock; runs `then` when all wait. Returns the outcome of each, and the number of records.
fn at_once(
    heap: &Heap,
    durability: Durability,
    threads: usize,
    work: impl Fn(&mut Transaction<'_>, usize) -> Result<u64> + Sync,
    then: impl FnOnce(),
) -> (Vec<Joined<Result<u64>>>, u64) {
    let before = heap.last_commit();
    let permit = heap.take_write_permit().unwrap();
    let work = &work;
    let outcomes = scope(|scope| {
        let change = |thread: usize| {
            move || heap.transaction_combined(durability, 64, |heap| work(heap, thread))
        };
        let running: Vec<_> = (1..=threads).map(|thread| scope.spawn(change(thread))).collect();
        while heap.calls.waiting() < threads as u64 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(5));
        then();
        drop(permit);
        running.into_iter().map(ScopedJoinHandle::join).collect()
    });
    (outcomes, heap.last_commit() - before)
}

/// Checks that the block shows `counts` changes of each thread.
fn check(heap: &Heap, block: u64, counts: &[u64]) {
    let view = heap.view().unwrap();
    let found: Vec<u64> = (1..=counts.len()).map(|index| word(&view, block, index)).collect();
    assert_eq!(found, counts);
    assert_eq!(word(&view, block, 0), counts.iter().sum());
}

#[test]
fn all_that_wait_share_a_record_and_each_has_its_result() {
    let (heap, block) = open();
    for round in 1..=20 {
        let work = |heap: &mut Transaction<'_>, thread| count(heap, block, thread);
        let (outcomes, records) = at_once(&heap, DEFERRED, 6, work, || ());
        let mut counts: Vec<u64> = outcomes.into_iter().map(|one| one.unwrap().unwrap()).collect();
        counts.sort_unstable();
        assert!(counts.into_iter().eq(6 * (round - 1) + 1..=6 * round));
        assert_eq!(records, 1);
        check(&heap, block, &[round; 6]);
    }
    assert!(heap.check().unwrap().is_clean());
}

#[test]
fn an_error_is_told_to_its_owner_and_hurts_nobody() {
    let (heap, block) = open();
    let work = |heap: &mut Transaction<'_>, thread| {
        let counted = count(heap, block, thread);
        if thread == 3 { Err(Error::ReadOnly) } else { counted }
    };
    let (outcomes, records) = at_once(&heap, DEFERRED, 5, work, || ());
    for (outcome, thread) in outcomes.into_iter().zip(1..) {
        let outcome = outcome.unwrap();
        assert!(if thread == 3 {
            matches!(outcome, Err(Error::ReadOnly))
        } else {
            outcome.is_ok()
        });
    }
    assert_eq!(records, 4, "each has gone on alone");
    check(&heap, block, &[1, 1, 0, 1, 1]);
}

#[test]
fn a_panic_happens_on_the_thread_of_its_owner() {
    let (heap, block) = open();
    let work = |heap: &mut Transaction<'_>, thread| {
        let counted = count(heap, block, thread);
        assert_ne!(thread, 2, "planned");
        counted
    };
    let (outcomes, _) = at_once(&heap, DEFERRED, 4, work, || ());
    let panicked: Vec<bool> = outcomes.iter().map(Joined::is_err).collect();
    assert_eq!(panicked, [false, true, false, false]);
    assert!(outcomes.into_iter().flatten().all(|outcome| outcome.is_ok()));
    check(&heap, block, &[1, 0, 1, 1]);
    // The writer lock is free.
    heap.transaction(DEFERRED, |heap| count(heap, block, 2)).unwrap();
}

#[test]
fn who_waits_for_what_is_not_written_is_told() {
    let (heap, block) = open();
    // Everything committed by now is durable: an answer for another record would be wrong.
    heap.sync().unwrap();
    let work = |heap: &mut Transaction<'_>, thread| count(heap, block, thread);
    let (outcomes, records) = at_once(&heap, Durability::Sync, 5, work, || {
        heap.journal.writable().unwrap().poison(Error::ReadOnly);
    });
    assert_eq!(records, 0);
    for outcome in outcomes {
        let outcome = outcome.unwrap();
        assert!(matches!(outcome, Err(Error::Poisoned { .. })), "{outcome:?}");
    }
    check(&heap, block, &[0; 5]);
}

#[test]
fn who_waits_when_the_heap_is_closed_is_refused() {
    let (heap, block) = open();
    scope(|scope| {
        let mut closing = None;
        let work = |heap: &mut Transaction<'_>, thread| count(heap, block, thread);
        let (outcomes, _) = at_once(&heap, DEFERRED, 3, work, || {
            closing = Some(scope.spawn(|| heap.close()));
            while heap.refuse_closed().is_ok() {
                std::thread::yield_now();
            }
        });
        for outcome in outcomes {
            assert!(matches!(outcome.unwrap(), Err(Error::Misuse { .. })));
        }
        closing.unwrap().join().unwrap().unwrap();
    });
}

#[test]
fn what_does_not_fit_a_batch_has_a_turn_of_its_own() {
    let (heap, block) = open();
    let permit = heap.take_write_permit().unwrap();
    scope(|scope| {
        let change = |(thread, bytes)| {
            let heap = &heap;
            let work = move |heap: &mut Transaction<'_>| count(heap, block, thread);
            scope.spawn(move || heap.transaction_combined(DEFERRED, bytes, work))
        };
        let kinds = [(1, 8 << 10), (2, 8 << 10), (3, 8 << 10), (4, 8 << 10), (5, 64), (6, 1 << 20)];
        let threads = kinds.map(change);
        while heap.calls.waiting() < 4 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(5));
        assert!((4..=5).contains(&heap.calls.waiting()));
        drop(permit);
        threads.into_iter().for_each(|thread| assert!(thread.join().unwrap().is_ok()));
    });
    check(&heap, block, &[1; 6]);
}

#[test]
fn changes_of_many_threads_beside_others_are_made_once_each() {
    let (heap, block) = open();
    let (heap, failures) = (&heap, AtomicU64::new(0));
    let (threads, changes) = (8, 2_000);
    scope(|scope| {
        for thread in 1..=threads {
            let failures = &failures;
            scope.spawn(move || {
                let mut last = 0;
                for number in 0..changes {
                    if number % 50 == 7 {
                        let counted = heap.transaction(DEFERRED, |heap| count(heap, block, thread));
                        last = counted.unwrap();
                        continue;
                    }
                    let fails = number % 100 == 3;
                    let counted = heap.transaction_combined(DEFERRED, 64, |heap| {
                        let counted = count(heap, block, thread)?;
                        if fails { Err(Error::ReadOnly) } else { Ok(counted) }
                    });
                    match counted {
                        Ok(counted) => {
                            assert!(counted > last, "{counted} after {last}");
                            last = counted;
                        }
                        Err(Error::ReadOnly) if fails => {
                            failures.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(failures.into_inner(), threads as u64 * changes / 100);
    check(heap, block, &vec![changes - changes / 100; threads]);
    assert!(heap.check().unwrap().is_clean());
}
