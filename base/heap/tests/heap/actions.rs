//! Reserving, publishing and freeing without a transaction, from many threads: each block belongs
//! to one of them at a time, and published blocks survive reopening.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};

use adamant_heap::{ClassShape, Durability, Error, Heap, Read, Reservation, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

const DEFERRED: Durability = Durability::Deferred;

fn memory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

fn open(directory: &Arc<dyn Directory>) -> Heap {
    try_open(directory).expect("opens")
}

fn try_open(directory: &Arc<dyn Directory>) -> Result<Heap, Error> {
    let mut options = crate::setup::options();
    options.address_bytes_max = 1 << 30;
    Ok(Heap::open(Arc::clone(directory), options)?.0)
}

/// A thread's model of its blocks: tag and length by offset.
type Blocks = BTreeMap<u64, (u8, usize)>;

fn fill(mut reservation: Reservation, tag: u8) -> Reservation {
    reservation.fill(tag);
    reservation
}

fn assert_holds(heap: &Heap, blocks: &Blocks) {
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.blocks, blocks.len() as u64);
    let view = heap.view().expect("ours");
    for (block, (tag, len)) in blocks {
        let bytes = view.block(*block).expect("published");
        assert!(bytes[..*len].iter().all(|byte| byte == tag), "{block:#x} of {len} bytes");
    }
}

fn random_bytes(random: &mut fastrand::Rng) -> usize {
    match random.u8(..16) {
        0 => random.usize(30_000..100_000),
        1..4 => random.usize(200..5000),
        _ => random.usize(1..200),
    }
}

/// One thread's share of random actions; `blocks` records every result.
fn act(heap: &Heap, random: &mut fastrand::Rng, tag: u8, blocks: &mut Blocks) {
    let len = random_bytes(random);
    match random.u8(..8) {
        0 => drop(fill(heap.reserve(len as u64).expect("there is room"), !tag)),
        1 => {
            let reserve = |_| fill(heap.reserve_zeroed(len as u64).expect("there is room"), tag);
            let reservations: Vec<_> = (0..random.usize(1..20)).map(reserve).collect();
            let offsets: Vec<u64> = reservations.iter().map(Reservation::offset).collect();
            heap.publish(DEFERRED, reservations).expect("published");
            blocks.extend(offsets.into_iter().map(|offset| (offset, (tag, len))));
        }
        2 | 3 if !blocks.is_empty() => {
            let block = *blocks.keys().nth(random.usize(..blocks.len())).expect("one of them");
            heap.free(DEFERRED, block).expect("allocated");
            blocks.remove(&block);
        }
        4 => {
            let reservation = fill(heap.reserve(len as u64).expect("there is room"), tag);
            let is_kept = random.bool();
            let done = heap.transaction::<u64, Error>(DEFERRED, |tx| {
                let block = tx.publish(reservation)?;
                assert!(tx.block(block)?[..len].iter().all(|byte| *byte == tag));
                if is_kept { Ok(block) } else { Err(Error::Misuse { what: "undone on purpose" }) }
            });
            blocks.extend(done.ok().map(|block| (block, (tag, len))));
        }
        5 if !blocks.is_empty() => {
            let (block, (_, old)) = blocks.iter().next().map(|(b, v)| (*b, *v)).expect("one");
            let made = heap.transaction::<u64, Error>(DEFERRED, |tx| {
                tx.free(block)?;
                let made = tx.reserve(len as u64)?;
                tx.write(made, 0, len)?.fill(tag);
                Ok(made)
            });
            assert_eq!(blocks.remove(&block), Some((tag, old)));
            blocks.insert(made.expect("there is room"), (tag, len));
        }
        _ => {
            let reservation = fill(heap.reserve(len as u64).expect("there is room"), tag);
            let offset = reservation.offset();
            heap.publish(DEFERRED, [reservation]).expect("published");
            blocks.insert(offset, (tag, len));
        }
    }
    if let Some((block, (_, len))) = blocks.iter().nth(random.usize(..=blocks.len())) {
        let view = heap.view().expect("ours");
        let bytes = view.block(*block).expect("published");
        assert!(bytes[..*len].iter().all(|byte| *byte == tag), "{block:#x} is not ours any more");
    }
}

/// A running thread, counted until this is dropped.
struct Left<'l>(&'l AtomicU64);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn many_threads_share_the_heap_and_no_block() {
    let directory = memory();
    let mut all = Blocks::new();
    for round in 0..3 {
        let heap = open(&directory);
        assert_holds(&heap, &all);
        let left = AtomicU64::new(6);
        let shares: Vec<Blocks> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while left.load(Ordering::Relaxed) > 0 {
                    let report = heap.check().expect("can be checked");
                    assert!(report.is_clean(), "{:?}", report.findings);
                }
            });
            let threads: Vec<_> = (0..6u8)
                .map(|thread| {
                    let tag = thread + 1;
                    let mut blocks: Blocks =
                        all.iter().filter(|(_, v)| v.0 == tag).map(|(b, v)| (*b, *v)).collect();
                    let (heap, left) = (&heap, &left);
                    scope.spawn(move || {
                        // Dropped however the thread ends.
                        let _left = Left(left);
                        let mut random = fastrand::Rng::with_seed(round * 100 + u64::from(thread));
                        (0..400).for_each(|_| act(heap, &mut random, tag, &mut blocks));
                        blocks
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        all = shares.into_iter().flatten().collect();
        assert_holds(&heap, &all);
        heap.close().expect("closes");
    }
    assert_holds(&open(&directory), &all);
}

#[test]
fn one_thread_reserves_another_fills_a_third_publishes() {
    let heap = open(&memory());
    let (filled, reserved) = (mpsc::channel(), mpsc::channel());
    std::thread::scope(|scope| {
        let heap = &heap;
        scope.spawn(move || {
            for len in 1..500 {
                reserved.0.send(heap.reserve(len).expect("there is room")).expect("received");
            }
        });
        scope.spawn(move || {
            for reservation in reserved.1 {
                filled.0.send(fill(reservation, 7)).expect("received");
            }
        });
        let reservations: Vec<Reservation> = filled.1.iter().collect();
        let expected = reservations.iter().map(|r| (r.offset(), (7, r.len()))).collect();
        let done = heap.transaction::<(), Error>(DEFERRED, |tx| {
            reservations.into_iter().try_for_each(|reservation| tx.publish(reservation).map(drop))
        });
        done.expect("published");
        assert_holds(heap, &expected);
    });
}

#[test]
fn freeing_twice_at_once_is_one_success() {
    let heap = open(&memory());
    for bytes in [8, 100, 3000, 50_000] {
        for _ in 0..100 {
            let reservation = heap.reserve(bytes).expect("there is room");
            let block = reservation.offset();
            heap.publish(DEFERRED, [reservation]).expect("published");
            let (barrier, freed) = (Barrier::new(2), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        barrier.wait();
                        match heap.free(DEFERRED, block) {
                            Ok(()) => drop(freed.fetch_add(1, Ordering::Relaxed)),
                            Err(Error::InvalidPointer { .. }) => {}
                            Err(other) => panic!("{other:?}"),
                        }
                    });
                }
            });
            assert_eq!(freed.into_inner(), 1, "{bytes} bytes");
        }
    }
    assert_holds(&heap, &Blocks::new());
}

#[test]
fn what_was_not_published_is_gone() {
    let directory = memory();
    let heap = open(&directory);
    let kept = heap.reserve(100).expect("there is room");
    let dropped: Vec<_> =
        [8, 100, 100_000].map(|bytes| heap.reserve(bytes).expect("there is room")).into();
    for reservation in &dropped {
        let view = heap.view().expect("ours");
        view.block(reservation.offset()).expect_err("nobody may look at it yet");
    }
    heap.free(DEFERRED, kept.offset()).expect_err("it is not allocated");
    drop(dropped);
    assert_holds(&heap, &Blocks::new());
    let used_bytes = heap.stats().used_bytes;
    for _ in 0..1000 {
        drop(heap.reserve(100_000).expect("there is room"));
    }
    assert_eq!(heap.stats().used_bytes, used_bytes, "cancelled blocks are used again");
    drop(kept);
    heap.close().expect("closes");
    assert_holds(&open(&directory), &Blocks::new());
}

#[test]
fn a_reservation_outlives_its_heap_and_keeps_the_directory_locked() {
    let directory = memory();
    let heap = open(&directory);
    let mut reservation = heap.reserve(100_000).expect("there is room");
    heap.close().expect("closes");
    heap.reserve(1).expect_err("it is closed");
    heap.publish(DEFERRED, [fill(open(&memory()).reserve(1).expect("there is room"), 1)])
        .expect_err("it is of another heap");
    drop(heap);
    reservation.fill(9);
    assert!(reservation.iter().all(|byte| *byte == 9));
    try_open(&directory).expect_err("somebody may still write to the memory of the pool");
    drop(reservation);
    assert_holds(&open(&directory), &Blocks::new());
}

#[test]
fn an_abort_leaves_the_bytes_of_a_neighbour() {
    let heap = open(&memory());
    // Blocks of 8 bytes: eight of them share a cache line.
    let mut reservations: Vec<_> =
        (0..64).map(|_| fill(heap.reserve(8).expect("there is room"), 1)).collect();
    let published: Vec<_> = reservations.drain(..32).collect();
    let blocks: Vec<u64> = published.iter().map(Reservation::offset).collect();
    heap.publish(DEFERRED, published).expect("published");
    let mut between: Vec<_> = (0..blocks.len())
        .map(|index| {
            heap.free(DEFERRED, blocks[index]).expect("allocated");
            heap.reserve(8).expect("there is room")
        })
        .collect();
    let undone = heap.transaction::<(), Error>(DEFERRED, |tx| {
        let own: Vec<u64> = (0..100).map(|_| tx.reserve(8)).collect::<Result<_, _>>()?;
        for block in own {
            tx.savepoint(|tx| tx.write(block, 0, 8).map(|bytes| bytes.fill(3)))?;
        }
        between.iter_mut().chain(&mut reservations).for_each(|r| r.fill(5));
        Err(Error::Misuse { what: "undone on purpose" })
    });
    undone.expect_err("on purpose");
    for reservation in between.iter().chain(&reservations) {
        assert_eq!(reservation[..], [5; 8], "{:#x}", reservation.offset());
    }
}

#[test]
fn actions_within_a_transaction_are_errors_but_reserving_is_not() {
    let heap = open(&memory());
    heap.transaction::<(), Error>(DEFERRED, |tx| {
        let reservation = fill(heap.reserve(50)?, 4);
        let block = tx.publish(reservation)?;
        for refused in [heap.free(DEFERRED, block), heap.publish(DEFERRED, [heap.reserve(10)?])] {
            assert!(matches!(refused, Err(Error::Misuse { .. })), "{refused:?}");
        }
        Ok(())
    })
    .expect("commits");
}

#[test]
fn registered_classes_are_the_pool_s_from_then_on() {
    let directory = memory();
    let shapes =
        [(100, false, 8), (100, true, 64), (1000, true, 1024), (1, false, 4096), (40_944, true, 8)]
            .map(|(unit_bytes, has_header, alignment)| ClassShape {
                unit_bytes,
                has_header,
                alignment,
            });
    let mut all = Blocks::new();
    for round in 0..3 {
        let heap = open(&directory);
        for shape in shapes {
            let class = heap.register_class(shape).expect("there is room");
            assert_eq!(heap.register_class(shape).expect("it is there"), class);
            let len = shape.unit_bytes as usize;
            let header = if shape.has_header { 16 } else { 0 };
            for _ in 0..50 {
                let reservation = heap.reserve_in(class).expect("there is room");
                assert!(reservation.len() >= len + header);
                assert!(reservation[..header].iter().all(|byte| *byte == 0));
                let block = reservation.offset();
                assert!(block.is_multiple_of(shape.alignment.into()), "{block:#x} of {shape:?}");
                heap.publish(DEFERRED, [fill(reservation, round)]).expect("published");
                all.insert(block, (round, len));
                let made = heap.transaction::<_, Error>(DEFERRED, |tx| {
                    let block = tx.reserve_in(class)?;
                    tx.write(block, 0, header + len)?.fill(round);
                    Ok(block)
                });
                all.insert(made.expect("there is room"), (round, header + len));
            }
        }
        assert_holds(&heap, &all);
        heap.close().expect("closes");
    }
    let heap = open(&directory);
    assert_holds(&heap, &all);
    for (unit_bytes, has_header, alignment) in
        [(0, false, 8), (8, false, 4), (8, false, 24), (40_950, true, 8), (8, false, 8192)]
    {
        let shape = ClassShape { unit_bytes, has_header, alignment };
        heap.register_class(shape).expect_err("there can be no such class");
    }
    let mut registered = 0;
    let full = (1..200).find_map(|unit| {
        let shape = ClassShape { unit_bytes: unit * 8, has_header: false, alignment: 8 };
        registered += 1;
        heap.register_class(shape).err()
    });
    assert!(matches!(full, Some(Error::Misuse { .. })), "{full:?} after {registered}");
    heap.close().expect("closes");
    assert_holds(&open(&directory), &all);
}
