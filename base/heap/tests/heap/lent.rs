//! Borrowed blocks are neither overwritten nor reused while a slice of them lives.

use std::sync::Arc;

use adamant_heap::{
    Durability, Error, Heap, MemoryDirectory, Options, Read, Slice, Transaction, Write,
};

const DEFERRED: Durability = Durability::Deferred;
/// Of blocks in runs, and of an extent.
const LENGTHS: [u64; 3] = [100, 6_000, 300_000];

fn open() -> Heap {
    let mut options = Options::default();
    options.background = false;
    Heap::open(Arc::new(MemoryDirectory::new()), options).unwrap().0
}

/// A block full of a byte.
fn block(heap: &Heap, len: u64, byte: u8) -> u64 {
    let filled = |tx: &mut Transaction<'_>| {
        let block = tx.reserve(len)?;
        tx.write(block, 0, len as usize)?.fill(byte);
        Ok::<_, Error>(block)
    };
    heap.transaction(DEFERRED, filled).unwrap()
}

fn lend(heap: &Heap, block: u64, len: u64) -> Result<Slice, Error> {
    heap.view().unwrap().lend(block, len as usize)
}

#[test]
fn a_lent_block_cannot_be_overwritten() {
    let heap = open();
    for len in LENGTHS {
        let block = block(&heap, len, 3);
        let slice = lend(&heap, block, len).unwrap();
        let overwrite = || {
            heap.transaction(DEFERRED, |tx| {
                tx.write(block, 0, 8)?.fill(9);
                Ok::<_, Error>(())
            })
        };
        let overwrite_if_not_lent = |byte: u8| {
            heap.transaction(DEFERRED, |tx| {
                let target = tx.overwrite(block, 1, 50)?;
                let is_free = target.is_some();
                target.into_iter().for_each(|target| target.fill(byte));
                Ok::<_, Error>(is_free)
            })
        };
        assert!(!overwrite_if_not_lent(8).unwrap(), "who asks is told");
        assert_eq!(slice, vec![3; len as usize]);
        assert!(matches!(overwrite(), Err(Error::Misuse { .. })));
        let part = slice.slice(1..60);
        drop(slice);
        assert!(overwrite().is_err(), "a part of it is left");
        assert_eq!(part, vec![3; 59]);
        drop(part);
        assert!(overwrite_if_not_lent(8).unwrap());
        assert_eq!(
            heap.view().unwrap().block(block).unwrap()[..52],
            [&[3][..], &[8; 50], &[3]].concat()
        );
        overwrite().unwrap();
        assert_eq!(lend(&heap, block, len).unwrap()[..8], [9; 8]);
    }
}

#[test]
fn a_lent_block_that_was_freed_is_reused_when_the_slice_is_gone() {
    let heap = open();
    for (round, len) in (0..).zip(LENGTHS.into_iter().chain(LENGTHS)) {
        let first = block(&heap, len, 1);
        let slice = lend(&heap, first, len).unwrap();
        if round < LENGTHS.len() {
            heap.transaction(DEFERRED, |tx| tx.free(first)).unwrap();
        } else {
            heap.free(DEFERRED, first).unwrap();
        }
        let error = lend(&heap, first, len).unwrap_err();
        assert!(matches!(error, Error::InvalidPointer { .. }), "{error}");
        let others: Vec<u64> = (0..70).map(|_| block(&heap, len, 2)).collect();
        assert!(!others.contains(&first), "somebody still looks at it");
        assert_eq!(slice, vec![1; len as usize]);
        assert!(heap.stats().quarantined >= 1);
        drop(slice);
        let more: Vec<u64> = (0..2_000).map(|_| block(&heap, len.min(6_000), 2)).collect();
        if len <= 6_000 {
            assert!(more.contains(&first), "it is reused at last");
        }
        assert_eq!(heap.stats().quarantined, 0);
    }
    assert!(heap.check().unwrap().findings.is_empty());
}

#[test]
fn what_is_no_block_is_not_lent() {
    let heap = open();
    let block = block(&heap, 100, 1);
    for (offset, len) in [(block + 1, 10), (block, 100_000), (1 << 39, 1), (0, 1)] {
        let error = lend(&heap, offset, len).unwrap_err();
        assert!(matches!(error, Error::InvalidPointer { .. }), "{error}");
    }
    assert_eq!(lend(&heap, block, 20).unwrap(), [1; 20], "few bytes are a copy");
    heap.transaction(DEFERRED, |tx| {
        tx.write(block, 0, 20)?.fill(2);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn slices_outlive_the_heap_on_any_thread() {
    let heap = open();
    let blocks: Vec<u64> = (0..40).map(|byte| block(&heap, 5_000, byte)).collect();
    let slices: Vec<Slice> =
        blocks.iter().map(|&block| lend(&heap, block, 5_000).unwrap()).collect();
    heap.close().unwrap();
    drop(heap);
    let threads = slices.into_iter().enumerate().map(|(byte, slice)| {
        std::thread::spawn(move || assert_eq!(slice, vec![byte as u8; 5_000]))
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
}

/// Freed memory goes back to the system, but not borrowed blocks.
#[test]
fn shrinking_leaves_what_is_lent() {
    let heap = open();
    let keep = block(&heap, 100, 5);
    let blocks: Vec<u64> = (0..12).map(|byte| block(&heap, 3_000_000, byte)).collect();
    let slices: Vec<Slice> =
        blocks.iter().map(|&block| lend(&heap, block, 3_000_000).unwrap()).collect();
    for &block in &blocks {
        heap.transaction(DEFERRED, |tx| tx.free(block)).unwrap();
    }
    heap.shrink().unwrap();
    for (byte, slice) in (0_u8..).zip(&slices) {
        assert!(slice.iter().all(|&there| there == byte));
    }
    drop(slices);
    heap.transaction(DEFERRED, |tx| {
        tx.write(keep, 0, 1)?.fill(6);
        Ok::<_, Error>(())
    })
    .unwrap();
    heap.shrink().unwrap();
    assert!(heap.check().unwrap().findings.is_empty());
}
