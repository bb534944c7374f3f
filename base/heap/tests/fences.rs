//! How many fences the undo journal takes: a store, a flush and a fence cost 160 ns, so they are
//! what a commit costs.

use std::sync::Arc;

use adamant_heap::{
    Durability, Error, Flushing, Heap, JournalKind, MemoryDirectory, Options, Read, Transaction,
    Write,
};

fn open() -> Heap {
    open_with(Options::default().copies_bytes_max)
}

/// With so many bytes of copies a transaction.
fn open_with(copies_bytes_max: usize) -> Heap {
    let mut options = Options::default();
    options.copies_bytes_max = copies_bytes_max;
    options.journal = JournalKind::Undo;
    options.flushing = Flushing::Volatile;
    options.address_bytes_max = 1 << 30;
    Heap::open(Arc::new(MemoryDirectory::new()), options).expect("opens").0
}

fn fences(heap: &Heap) -> u64 {
    heap.stats().journal.fences
}

/// Fences of one run of `work`, in steady state: everything was done a few times before.
fn steady(heap: &Heap, mut work: impl FnMut(&mut Transaction<'_>) -> Result<(), Error>) -> u64 {
    let mut taken = 0;
    for _ in 0..5 {
        let before = fences(heap);
        heap.transaction(Durability::Sync, &mut work).expect("commits");
        taken = fences(heap) - before;
    }
    taken
}

fn make(heap: &Heap, bytes: u64) -> u64 {
    heap.transaction(Durability::Sync, |tx| {
        let block = tx.reserve(bytes)?;
        tx.write(block, 0, bytes as usize)?.fill(1);
        Ok::<_, Error>(block)
    })
    .expect("commits")
}

#[test]
fn nothing_costs_nothing() {
    let heap = open();
    make(&heap, 64);
    assert_eq!(steady(&heap, |_| Ok(())), 0);
    assert_eq!(steady(&heap, |tx| tx.block(tx.root(0)).map(drop).or(Ok(()))), 0);
}

#[test]
fn an_allocation_or_a_free_costs_one() {
    let heap = open();
    let spare: Vec<u64> = (0..10).map(|_| make(&heap, 64)).collect();
    let alloc = |tx: &mut Transaction<'_>| {
        let block = tx.reserve(64)?;
        tx.write(block, 0, 64)?.fill(7);
        tx.set_root(0, block)
    };
    assert_eq!(steady(&heap, alloc), 1);
    let mut spare = spare.into_iter();
    assert_eq!(steady(&heap, |tx| tx.free(spare.next().expect("enough"))), 1);
}

#[test]
fn a_hundred_blocks_cost_one() {
    let heap = open();
    let publish = |tx: &mut Transaction<'_>| {
        (0..100).try_for_each(|tag| {
            let block = tx.reserve(32)?;
            tx.write(block, 0, 32)?.fill(tag);
            Ok(())
        })
    };
    // New runs are commits of their own; one of these classes holds more than five rounds.
    assert_eq!(steady(&heap, publish), 1);
}

#[test]
fn blocks_of_more_than_4_kib_are_fenced_before_they_are_published() {
    let heap = open();
    let mut last = make(&heap, 5000);
    let publish = |tx: &mut Transaction<'_>| {
        tx.free(last)?;
        last = tx.reserve(5000)?;
        tx.write(last, 0, 5000).map(|bytes| bytes.fill(7))
    };
    assert_eq!(steady(&heap, publish), 2);
}

#[test]
fn a_write_to_a_small_block_costs_one() {
    let heap = open();
    for bytes in [8, 64, 1024, 4096] {
        let block = make(&heap, bytes);
        let mut tag = 0;
        let write = |tx: &mut Transaction<'_>| {
            tag += 1;
            tx.write(block, 0, bytes as usize).map(|bytes| bytes.fill(tag))
        };
        assert_eq!(steady(&heap, write), 1, "{bytes} bytes");
    }
}

#[test]
fn a_write_to_a_large_block_costs_two() {
    let heap = open();
    let block = make(&heap, 100_000);
    for bytes in [8, 64, 4096] {
        let mut tag = 0;
        let write = |tx: &mut Transaction<'_>| {
            tag += 1;
            tx.write(block, 5000, bytes).map(|bytes| bytes.fill(tag))
        };
        assert_eq!(steady(&heap, write), 2, "{bytes} bytes: undo entry, commit with new bytes");
    }
    let write = |tx: &mut Transaction<'_>| tx.write(block, 0, 5000).map(|bytes| bytes.fill(7));
    assert_eq!(steady(&heap, write), 3, "too much for a checksum: undo entry, new bytes, commit");
}

/// Appends 120 bytes behind those in use, of which a word in a block of its own tells.
fn append(
    heap: &Heap,
    used: u64,
    buffer: u64,
) -> impl FnMut(&mut Transaction<'_>) -> Result<(), Error> {
    let view = heap.view().expect("ours");
    let word = view.block(used).expect("a block")[..8].try_into().expect("8 bytes");
    let mut at = u64::from_le_bytes(word) & 0xFFFF;
    move |tx| {
        tx.write_unused(buffer, at as usize, 120)?.fill(at as u8);
        at += 120;
        tx.update_u64(used, 0, at)
    }
}

#[test]
fn an_append_to_a_large_block_costs_one() {
    let heap = open();
    let (used, buffer) = (make(&heap, 8), make(&heap, 100_000));
    assert_eq!(steady(&heap, append(&heap, used, buffer)), 1);
    // An undo entry for the ordinary write proves what was before: no more for the append.
    let mut more = append(&heap, used, buffer);
    let both = |tx: &mut Transaction<'_>| {
        tx.write(buffer, 90_000, 8)?.fill(2);
        more(tx)
    };
    assert_eq!(steady(&heap, both), 2);
    let failed = |tx: &mut Transaction<'_>| {
        tx.write_unused(buffer, 50_000, 8)?.fill(3);
        Err::<(), _>(Error::Misuse { what: "on purpose" })
    };
    let before = fences(&heap);
    assert!(heap.transaction(Durability::Sync, failed).is_err());
    assert_eq!(fences(&heap) - before, 0, "nothing is put back");
}

/// By what a commit wrote in place recovery judges whether it was complete, until there is an entry
/// behind it.
#[test]
fn an_append_over_what_was_just_committed_costs_two() {
    let heap = open();
    let (used, buffer) = (make(&heap, 8), make(&heap, 100_000));
    let mut tag = 0;
    let again = |tx: &mut Transaction<'_>| {
        tag += 1;
        tx.write_unused(buffer, 1000, 50)?.fill(tag);
        tx.update_u64(used, 0, u64::from(tag))
    };
    assert_eq!(steady(&heap, again), 2, "an undo entry, too");
    let mut side = 0;
    let after_publish = |tx: &mut Transaction<'_>| {
        side += 1;
        tx.write_unused(buffer, 2000 + 50 * side, 50)?.fill(1);
        tx.update_u64(used, 0, side as u64)
    };
    let mut after_publish = after_publish;
    for expected in [2, 2] {
        let mut reservation = heap.reserve(100).expect("there is room");
        reservation.fill(1);
        heap.publish(Durability::Sync, [reservation]).expect("published");
        let before = fences(&heap);
        heap.transaction(Durability::Sync, &mut after_publish).expect("commits");
        assert_eq!(fences(&heap) - before, expected, "nobody knows what was published");
    }
    let before = fences(&heap);
    heap.transaction(Durability::Sync, &mut after_publish).expect("commits");
    assert_eq!(fences(&heap) - before, 1);
}

#[test]
fn many_small_blocks_change_in_place_with_a_fence_each() {
    let heap = open_with(1000);
    let blocks: Vec<u64> = (0..30).map(|_| make(&heap, 100)).collect();
    let mut tag = 0;
    let mut write = |tx: &mut Transaction<'_>| {
        tag += 1;
        // The second round finds all of them saved.
        for block in blocks.iter().chain(&blocks) {
            tx.write(*block, 10, 20)?.fill(tag);
            tx.write(*block, 60, 30)?.fill(tag);
        }
        Ok(())
    };
    let fences = steady(&heap, &mut write);
    // Copies are whole lines: two or three of a block of 104 bytes. Two fences are of the commit.
    assert!((30 - 1000 / 128 + 3..=30 - 1000 / 192 + 3).contains(&(fences as usize)), "{fences}");
}

#[test]
fn many_looks_at_blocks_end_their_copies() {
    let heap = open_with(128 << 10);
    let blocks: Vec<u64> = (0..60).map(|_| make(&heap, 100)).collect();
    for (looks, fences) in [(2, 1..=1), (20, 40..=60)] {
        let write = |tx: &mut Transaction<'_>| {
            blocks.iter().try_for_each(|block| {
                (0..looks).try_for_each(|_| tx.block(blocks[0]).map(drop))?;
                tx.write(*block, 10, 20).map(|bytes| bytes.fill(looks))
            })
        };
        let taken = steady(&heap, write);
        assert!(fences.contains(&taken), "{taken} fences with {looks} looks a write");
    }
}

#[test]
fn what_a_savepoint_put_back_in_place_is_fenced_before_the_commit() {
    let heap = open();
    let block = make(&heap, 100_000);
    let mut tag = 0;
    let write = |tx: &mut Transaction<'_>| {
        tag += 1;
        tx.write(block, 0, 8)?.fill(tag);
        let undone: Result<(), Error> = tx.savepoint(|tx| {
            tx.write(block, 50_000, 8)?.fill(tag);
            Err(Error::Misuse { what: "on purpose" })
        });
        assert!(undone.is_err());
        Ok(())
    };
    assert_eq!(steady(&heap, write), 4, "two undo entries, what was put back, commit");
}

#[test]
fn ranges_of_a_large_block_declared_at_once_cost_two() {
    let heap = open();
    let block = make(&heap, 100_000);
    let ranges: Vec<_> = (0..10).map(|range| (block, range * 9000, 64)).collect();
    let write = |tx: &mut Transaction<'_>| {
        tx.snapshot_many(&ranges)?;
        ranges
            .iter()
            .try_for_each(|&(block, at, len)| tx.write(block, at, len).map(|bytes| bytes.fill(7)))
    };
    assert_eq!(steady(&heap, write), 2, "undo entry, commit with new bytes");
}

#[test]
fn an_abort_costs_what_its_changes_in_place_need() {
    let heap = open();
    let (small, large) = (make(&heap, 100), make(&heap, 100_000));
    let failing = |block: u64| {
        let before = fences(&heap);
        let failed = heap.transaction(Durability::Sync, |tx| {
            tx.write(block, 0, 50)?.fill(9);
            Err::<(), _>(Error::Misuse { what: "on purpose" })
        });
        assert!(matches!(failed, Err(Error::Misuse { .. })));
        fences(&heap) - before
    };
    assert_eq!(failing(small), 0, "copies are forgotten");
    assert_eq!(failing(large), 3, "undo entry, old bytes, abort");
}

#[test]
fn starting_a_lane_over_costs_two_in_a_thousand_commits() {
    let heap = open();
    let block = make(&heap, 64);
    let before = fences(&heap);
    let rounds = 10_000;
    for round in 0..rounds {
        heap.transaction(Durability::Sync, |tx| tx.update_u64(block, 0, round)).expect("commits");
    }
    let extra = fences(&heap) - before - rounds;
    assert!((1..=2 * rounds / 900).contains(&extra), "{extra} of {rounds}");
}
