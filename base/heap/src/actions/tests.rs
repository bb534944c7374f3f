//! Tests: requests of several threads at once, with the writer lock held until all of them wait.

use std::sync::Arc;
use std::thread::{ScopedJoinHandle, scope};
use std::time::Duration;

use crate::{Durability, Error, Heap, MemoryDirectory, Options, Reservation, Result};

const DEFERRED: Durability = Durability::Deferred;

fn open() -> Heap {
    let options = Options { background: false, ..Options::default() };
    Heap::open(Arc::new(MemoryDirectory::new()), options).unwrap().0
}

fn reserve(heap: &Heap, bytes: u64) -> Reservation {
    let mut reservation = heap.reserve(bytes).unwrap();
    reservation.fill(7);
    reservation
}

fn block(heap: &Heap, bytes: u64) -> u64 {
    let reservation = reserve(heap, bytes);
    let block = reservation.offset();
    heap.publish(DEFERRED, [reservation]).unwrap();
    block
}

/// Publishes and frees at once, on a thread each, while this one holds the writer lock; runs `then`
/// when all wait, asleep. Returns the outcome of each, and the number of records.
fn at_once(
    heap: &Heap,
    durability: Durability,
    published: Vec<Reservation>,
    freed: &[u64],
    then: impl FnOnce(),
) -> (Vec<Result<()>>, u64) {
    let waiting = published.len() + freed.len();
    let before = heap.last_commit();
    let permit = heap.take_write_permit().unwrap();
    let outcomes = scope(|scope| {
        let published: Vec<_> = published
            .into_iter()
            .map(|one| scope.spawn(move || heap.publish(durability, [one])))
            .collect();
        let freed: Vec<_> =
            freed.iter().map(|&one| scope.spawn(move || heap.free(durability, one))).collect();
        while heap.requests.waiting() < waiting as u64 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(5));
        then();
        drop(permit);
        let threads = published.into_iter().chain(freed);
        threads.map(ScopedJoinHandle::join).map(|outcome| outcome.expect("no panic")).collect()
    });
    (outcomes, heap.last_commit() - before)
}

#[test]
fn all_that_wait_share_a_record() {
    let heap = open();
    for round in 0..20 {
        let freed: Vec<u64> = [8, 64, 64, 3000, 50_000].map(|bytes| block(&heap, bytes)).into();
        let published: Vec<_> = [8, 64, 100, 900].map(|bytes| reserve(&heap, bytes)).into();
        let blocks: Vec<u64> = published.iter().map(Reservation::offset).collect();
        let (outcomes, records) = at_once(&heap, DEFERRED, published, &freed, || ());
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(records, 1);
        let report = heap.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
        assert_eq!(report.blocks, 4 * (round + 1));
        let view = heap.view().unwrap();
        for block in blocks {
            assert_eq!(crate::Read::block(&view, block).unwrap()[..8], [7; 8]);
        }
    }
}

#[test]
fn what_cannot_be_done_is_told_to_who_asked_and_hurts_nobody() {
    let heap = open();
    for bytes in [8, 64, 3000, 50_000] {
        let (twice, once) = (block(&heap, bytes), block(&heap, bytes));
        let reserved = reserve(&heap, bytes);
        let freed = [twice, once, twice, reserved.offset(), twice, 3, u64::MAX, once + 8];
        let published = vec![reserve(&heap, 64)];
        let kept = published[0].offset();
        let (outcomes, records) = at_once(&heap, DEFERRED, published, &freed, || ());
        assert_eq!(records, 1);
        let is_wrong = |outcome: &Result<()>| matches!(outcome, Err(Error::InvalidPointer { .. }));
        assert!(outcomes[0].is_ok() && outcomes[2].is_ok(), "{outcomes:?}");
        let of_twice = [&outcomes[1], &outcomes[3], &outcomes[5]];
        assert_eq!(of_twice.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
        assert_eq!(of_twice.iter().filter(|outcome| is_wrong(outcome)).count(), 2);
        assert!([4, 6, 7, 8].iter().all(|at| is_wrong(&outcomes[*at])), "{outcomes:?}");
        drop(reserved);
        heap.free(DEFERRED, kept).unwrap();
        let report = heap.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
        assert_eq!(report.blocks, 0);
    }
}

#[test]
fn who_waits_for_what_is_not_written_is_told() {
    let heap = open();
    let freed = [64, 64, 50_000].map(|bytes| block(&heap, bytes));
    let published = vec![reserve(&heap, 64), reserve(&heap, 900)];
    let (outcomes, records) = at_once(&heap, Durability::Sync, published, &freed, || {
        heap.journal.writable().unwrap().poison(Error::ReadOnly);
    });
    assert_eq!(records, 0);
    let is_poisoned = |outcome: &Result<()>| matches!(outcome, Err(Error::Poisoned { .. }));
    assert!(outcomes.iter().all(is_poisoned), "{outcomes:?}");
    assert_eq!(
        crate::space::allocated::Allocated::blocks(&heap.space.image, &heap.space.classes)
            .unwrap()
            .count(),
        3
    );
}

#[test]
fn who_waits_when_the_heap_is_closed_is_refused() {
    let heap = open();
    let freed = [block(&heap, 64), block(&heap, 64)];
    let before = heap.last_commit();
    let permit = heap.take_write_permit().unwrap();
    scope(|scope| {
        let threads = freed.map(|block| {
            let heap = &heap;
            scope.spawn(move || heap.free(DEFERRED, block))
        });
        while heap.requests.waiting() < 2 {
            std::thread::yield_now();
        }
        let closing = scope.spawn(|| heap.close());
        while heap.refuse_closed().is_ok() {
            std::thread::yield_now();
        }
        drop(permit);
        for thread in threads {
            assert!(matches!(thread.join().unwrap(), Err(Error::Misuse { .. })));
        }
        closing.join().unwrap().unwrap();
    });
    assert_eq!(heap.last_commit(), before);
}

#[test]
fn a_large_publish_needs_a_turn_of_its_own() {
    let heap = open();
    let published: Vec<_> = (0..3).map(|_| reserve(&heap, 100_000)).collect();
    let permit = heap.take_write_permit().unwrap();
    scope(|scope| {
        let threads: Vec<_> = published
            .into_iter()
            .map(|one| scope.spawn(|| heap.publish(DEFERRED, [one])))
            .collect();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(heap.requests.waiting(), 0);
        drop(permit);
        threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
    assert_eq!(heap.check().unwrap().blocks, 3);
}
