//! Damage stays damage when a change is laid over its page.
//!
//! Once, a page was flipped on the device, a commit changed other bytes of it, and the checkpoint
//! refused, as it should. But the next opening replayed the log over the page without judging it
//! and gave it a fresh checksum: the wrong byte was served, and `check` found nothing.

use std::sync::Arc;

use adamant_heap::layout::file_offset;
use adamant_heap::{Durability, Error, Heap, Options, Read, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

fn options() -> Options {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    options
}

fn open(directory: &Arc<dyn Directory>) -> Result<Heap, Error> {
    Heap::open(Arc::clone(directory), options()).map(|(heap, _)| heap)
}

/// A store with one block of 3,000 bytes, closed; a byte of it is flipped at `at`.
fn flipped(at: u64) -> (Arc<dyn Directory>, u64) {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory).expect("creates");
    let block = heap
        .transaction(Durability::Sync, |tx| {
            let block = tx.reserve(3000)?;
            tx.write(block, 0, 3000)?.fill(7);
            Ok::<_, Error>(block)
        })
        .expect("commits");
    heap.close().expect("closes");
    let pool = directory.open("pool").expect("opens").expect("is there");
    pool.write_at(&[9], file_offset(block) + at).expect("writes");
    (directory, block)
}

/// Changes other bytes of the block's page.
fn change(heap: &Heap, block: u64) {
    heap.transaction(Durability::Sync, |tx| {
        tx.write(block, 0, 8)?.fill(1);
        Ok::<_, Error>(())
    })
    .expect("commits to the log");
}

#[test]
fn an_applier_that_met_damage_leaves_it_to_be_met_again() {
    let (directory, block) = flipped(1500);
    let heap = open(&directory).expect("opens: nothing was touched yet");
    change(&heap, block);
    assert!(matches!(heap.checkpoint(), Err(Error::Damaged { .. })));
    drop(heap);
    for _ in 0..2 {
        let refused = open(&directory).map(drop);
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    }
}

#[test]
fn recovery_judges_what_no_applier_was_at_work_on() {
    let (directory, block) = flipped(1500);
    let heap = open(&directory).expect("opens");
    change(&heap, block);
    drop(heap); // Without a checkpoint: the next opening recovers.
    let refused = open(&directory).map(drop);
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}

#[test]
fn what_was_mended_outside_opens_again() {
    let (directory, block) = flipped(1500);
    let heap = open(&directory).expect("opens");
    change(&heap, block);
    assert!(heap.checkpoint().is_err());
    drop(heap);
    let pool = directory.open("pool").expect("opens").expect("is there");
    pool.write_at(&[7], file_offset(block) + 1500).expect("writes");
    let heap = open(&directory).expect("the commit was in the log all the time");
    let view = heap.view().expect("not a child");
    let bytes = view.block(block).expect("a block");
    assert_eq!((bytes[..8].to_vec(), bytes[1500]), (vec![1; 8], 7));
    drop(view);
    assert!(heap.check().expect("checks").is_clean());
}
