//! Chunked transactions: admitted views see the heap as it was before, all of it, also when the
//! transaction fails in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant_heap::{Durability, Error, Heap, Read, View, Write};
use adamant_medium::memory::MemoryDirectory;

/// Sizes of blocks: words, small ones that share lines, nodes, and one of pages of its own.
const SIZES: [usize; 8] = [8, 8, 24, 100, 300, 1500, 4000, 40_000];
const COPIED_BYTES_MAX: u64 = 16 << 20;

fn open() -> Heap {
    let mut options = crate::setup::options();
    options.address_bytes_max = 4 << 30;
    Heap::open(Arc::new(MemoryDirectory::new()), options).expect("opens").0
}

/// Blocks of all sizes, filled with 0; root 1 holds the round.
fn fill(heap: &Heap) -> Vec<u64> {
    heap.transaction(Durability::Buffered, |tx| {
        let mut blocks = Vec::new();
        for _ in 0..20 {
            for bytes in SIZES {
                let block = tx.reserve(bytes as u64)?;
                tx.write(block, 0, bytes)?.fill(0);
                blocks.push(block);
            }
        }
        Ok::<_, Error>(blocks)
    })
    .expect("commits")
}

/// The round of all blocks and of the root.
fn round_of(view: &View<'_>, blocks: &[u64]) -> u64 {
    let round = view.root(1);
    for (block, bytes) in blocks.iter().zip(SIZES.into_iter().cycle()) {
        let found = &view.block(*block).expect("a block")[..bytes];
        let other = found.iter().find(|byte| **byte != round as u8);
        assert!(other.is_none(), "block {block:#x} of round {other:?} in round {round}");
    }
    round
}

#[test]
fn views_see_all_of_a_transaction_or_nothing() {
    let heap = open();
    let blocks = fill(&heap);
    let (is_over, admit_readers) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let round = round_of(&heap.view().expect("opens"), &blocks);
                    assert!(round >= last, "{round} after {last}");
                    last = round;
                }
            });
        }
        let (mut round, mut extra) = (0, Vec::new());
        for turn in 0..60 {
            let fails = turn % 3 == 2;
            let done = heap.chunked_transaction(
                Durability::Buffered,
                COPIED_BYTES_MAX,
                |tx| {
                    for (at, (block, bytes)) in
                        blocks.iter().zip(SIZES.into_iter().cycle()).enumerate()
                    {
                        tx.write(*block, 0, bytes)?.fill(round as u8 + 1);
                        while at == 4 && !tx.yield_to_readers() {
                            std::thread::yield_now();
                        }
                        if at % 40 == 20 && tx.yield_to_readers() {
                            admit_readers.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    tx.set_root(1, round + 1)?;
                    // As other code uses the allocator.
                    if let Some(block) = extra.pop() {
                        tx.free(block)?;
                    }
                    let block = tx.reserve(3000)?;
                    tx.write(block, 0, 3000)?.fill(7);
                    if tx.yield_to_readers() {
                        admit_readers.fetch_add(1, Ordering::Relaxed);
                    }
                    let earlier = tx.earlier();
                    if let Some(earlier) = earlier {
                        assert_eq!(earlier.block(blocks[0])?[0], round as u8);
                    }
                    if fails { Err(Error::Misuse { what: "on purpose" }) } else { Ok(block) }
                },
                |ending| {
                    ending.yield_to_readers();
                    ending.drain_readers();
                },
            );
            match done {
                Ok(block) => {
                    round += 1;
                    extra.push(block);
                }
                Err(error) => assert!(fails, "{error}"),
            }
            assert_eq!(round_of(&heap.view().expect("opens"), &blocks), round);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(admit_readers.into_inner() > 0, "later on, too");
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn what_is_lent_between_two_pieces_stays_as_it_was() {
    let heap = open();
    let blocks = fill(&heap);
    let (changed, unchanged) = (blocks[5], blocks[6]);
    let (is_begun, is_lent) = (AtomicBool::new(false), AtomicBool::new(false));
    let lent = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !is_begun.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let view = heap.view().expect("let in");
            let lent = [changed, unchanged].map(|block| view.lend(block, 1000).expect("lends"));
            drop(view);
            is_lent.store(true, Ordering::Release);
            lent
        });
        heap.chunked_transaction(
            Durability::Buffered,
            COPIED_BYTES_MAX,
            |tx| {
                tx.write(changed, 0, 1000)?.fill(1);
                is_begun.store(true, Ordering::Release);
                while !is_lent.load(Ordering::Acquire) {
                    tx.yield_to_readers();
                    std::thread::yield_now();
                }
                tx.write(changed, 0, 1000)?.fill(2);
                Ok::<_, Error>(())
            },
            |_| (),
        )
        .expect("commits");
        reader.join().expect("no panic")
    });
    assert!(lent.iter().all(|lent| lent.iter().all(|byte| *byte == 0)));
    let view = heap.view().expect("opens");
    assert!(view.block(changed).expect("a block")[..1000].iter().all(|byte| *byte == 2));
}

#[test]
fn beyond_the_bytes_that_may_be_copied_views_wait_for_the_end() {
    let heap = open();
    let blocks = fill(&heap);
    heap.chunked_transaction(
        Durability::Buffered,
        2000,
        |tx| {
            assert!(tx.can_yield() && tx.earlier().is_some());
            for (block, bytes) in blocks.iter().zip(SIZES.into_iter().cycle()) {
                tx.write(*block, 0, bytes)?.fill(1);
            }
            tx.set_root(1, 1)
        },
        |_| (),
    )
    .expect("commits");
    assert_eq!(round_of(&heap.view().expect("opens"), &blocks), 1);
}

#[test]
fn a_panic_between_two_pieces_leaves_what_was_there() {
    let heap = open();
    let blocks = fill(&heap);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        heap.chunked_transaction(
            Durability::Buffered,
            COPIED_BYTES_MAX,
            |tx| {
                tx.write(blocks[3], 0, 100)?.fill(9);
                tx.set_root(1, 9)?;
                tx.yield_to_readers();
                panic!("on purpose");
                #[expect(unreachable_code, reason = "says what the closure returns")]
                Ok::<_, Error>(())
            },
            |_| (),
        )
    }));
    assert!(panicked.is_err());
    assert_eq!(round_of(&heap.view().expect("opens"), &blocks), 0);
}

/// Bytes of the replaced blocks, and their number.
const REPLACED_BYTES: usize = 100;
const REPLACED: usize = 3000;

/// Reads the blocks named by the block of root 2, all of one round.
fn walk(heap: &Heap) -> u64 {
    let view = heap.view().expect("opens");
    let table = view.block(view.root(2)).expect("the table").chunks_exact(8).take(REPLACED);
    let blocks = table.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
    let mut round = None;
    for (at, block) in blocks.enumerate() {
        // A borrowed block must be allocated, whatever run it is in.
        let found = match at % 16 {
            0 => view.lend(block, REPLACED_BYTES).expect("allocated").to_vec(),
            _ => view.block(block).expect("a block")[..REPLACED_BYTES].to_vec(),
        };
        assert!(found.iter().all(|byte| *byte == found[0]), "block {at} is whole");
        let first = *round.get_or_insert(found[0]);
        assert_eq!(found[0], first, "block {at} is of the same round");
    }
    u64::from(round.expect("some blocks"))
}

/// Every block is replaced by another one. The old ones become free and the new ones allocated
/// beside readers, who see either all of the old ones or all of the new ones, also when the
/// transaction fails.
#[test]
fn what_is_replaced_is_seen_whole_until_its_commit_and_after_it() {
    let heap = open();
    let replace = |round: u64, fails: bool| {
        heap.chunked_transaction(
            Durability::Buffered,
            COPIED_BYTES_MAX,
            |tx| {
                let old = tx.root(2);
                let table = if old == 0 { tx.reserve(8 * REPLACED as u64)? } else { old };
                for at in 0..REPLACED {
                    let block = tx.reserve(REPLACED_BYTES as u64)?;
                    tx.write(block, 0, REPLACED_BYTES)?.fill(round as u8);
                    if old != 0 {
                        let word = tx.block(table)?[8 * at..][..8].try_into().expect("8 bytes");
                        tx.free(u64::from_le_bytes(word))?;
                    }
                    tx.write(table, 8 * at, 8)?.copy_from_slice(&block.to_le_bytes());
                    if at % 64 == 0 {
                        tx.yield_to_readers();
                    }
                }
                tx.set_root(2, table)?;
                if fails { Err(Error::Misuse { what: "on purpose" }) } else { Ok(()) }
            },
            |_| (),
        )
    };
    replace(0, false).expect("commits");
    let (is_over, walks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !is_over.load(Ordering::Relaxed) {
                let round = walk(&heap);
                assert!(round >= last, "{round} after {last}");
                last = round;
                walks.fetch_add(1, Ordering::Relaxed);
            }
        });
        for round in 1..40 {
            let fails = round % 4 == 3;
            assert_eq!(replace(round, fails).is_err(), fails);
            let expected = if fails { round - 1 } else { round };
            assert_eq!(walk(&heap), expected);
            let seen = walks.load(Ordering::Relaxed);
            while walks.load(Ordering::Relaxed) == seen {
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
}
