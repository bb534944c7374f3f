//! Damage stays damage when a change is applied over its page.
//!
//! Regression: a page was flipped on the device, a commit changed other bytes of it, and the
//! checkpoint refused, as it should. But the next opening replayed the log over the page without
//! verifying it and gave it a fresh checksum: the wrong byte was served, and `check` found nothing.
//! Now a page is verified before its first store (C7), and before a log is applied to it.

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

/// A store with one block of 3,000 bytes, closed; a byte of the block is flipped at `at`.
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

/// Flips a byte of a block.
fn flip(directory: &Arc<dyn Directory>, block: u64, at: u64) {
    let mut byte = read(directory, file_offset(block) + at, 1);
    byte[0] ^= 8;
    write(directory, file_offset(block) + at, &byte);
}

/// Changes other bytes of the block's page.
fn try_to_change(heap: &Heap, block: u64) -> Result<(), Error> {
    heap.transaction(Durability::Sync, |tx| {
        tx.write(block, 0, 8)?.fill(1);
        Ok(())
    })
}

fn change(heap: &Heap, block: u64) {
    try_to_change(heap, block).expect("commits to the log");
}

#[test]
fn a_store_to_a_damaged_page_is_refused_and_nothing_else_ends() {
    let (directory, block) = flipped(1500);
    let heap = open(&directory).expect("opens: nothing was touched yet");
    for _ in 0..2 {
        let refused = try_to_change(&heap, block);
        match &refused {
            Err(Error::Damaged { offset, .. }) => assert_eq!(*offset, file_offset(block)),
            other => panic!("expected damage, found {other:?}"),
        }
        heap.transaction(Durability::Sync, |tx| {
            let other = tx.reserve(2 * 4096)?;
            tx.write(other, 0, 9)?.fill(1);
            Ok::<_, Error>(())
        })
        .expect("other pages are whole");
        heap.checkpoint().expect("nothing of it is in the log");
    }
    drop(heap);
    let heap = open(&directory).expect("opens");
    assert!(!heap.check().expect("checks").is_clean(), "it has no checksum that fits");
}

#[test]
fn recovery_verifies_what_no_checkpoint_was_at_work_on() {
    let (directory, block) = flipped(1500);
    write(&directory, file_offset(block) + 1500, &[7]);
    let heap = open(&directory).expect("opens");
    change(&heap, block);
    drop(heap); // Without a checkpoint: the next opening recovers.
    flip(&directory, block, 1500);
    for _ in 0..2 {
        let refused = open(&directory).map(drop);
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    }
    // After an outside repair it opens again: the commit was in the log all the time.
    flip(&directory, block, 1500);
    let heap = open(&directory).expect("opens");
    let view = heap.view().expect("not a child");
    let bytes = view.block(block).expect("a block");
    assert_eq!((bytes[..8].to_vec(), bytes[1500]), (vec![1; 8], 7));
    drop(view);
    assert!(heap.check().expect("checks").is_clean());
}

/// Reads bytes of the pool file. With `write`, a test restores or changes bytes of the tables of
/// doubt and of pages, as after a crash that tears pages of a batch.
fn read(directory: &Arc<dyn Directory>, offset: u64, len: usize) -> Vec<u8> {
    let pool = directory.open("pool").expect("opens").expect("is there");
    let mut bytes = vec![0; len];
    pool.read_at(&mut bytes, offset).expect("reads");
    bytes
}

fn write(directory: &Arc<dyn Directory>, offset: u64, bytes: &[u8]) {
    let pool = directory.open("pool").expect("opens").expect("is there");
    pool.write_at(bytes, offset).expect("writes");
}

/// A recovery that crashed within its batch: the page of the block is torn, its table is whole, and
/// the checkpoint is the previous one.
fn torn() -> (Arc<dyn Directory>, u64, u64) {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory).expect("creates");
    let reserve = |heap: &Heap| {
        heap.transaction(Durability::Sync, |tx| {
            let block = tx.reserve(3 * 4096)?;
            tx.write(block, 0, 3 * 4096)?.fill(7);
            Ok::<_, Error>(block)
        })
        .expect("commits")
    };
    let (block, other) = (reserve(&heap), reserve(&heap));
    heap.close().expect("closes");
    let heap = open(&directory).expect("opens");
    change(&heap, block);
    drop(heap);
    let (slots, log) = (read(&directory, 4096, 8192), log(&directory));
    let page = read(&directory, file_offset(block), 4096);
    drop(open(&directory).expect("recovers"));
    write(&directory, 4096, &slots);
    put_log(&directory, &log);
    let mut half = read(&directory, file_offset(block), 4096);
    // As if one of its sectors had arrived, but not the checksum.
    half[512..].copy_from_slice(&page[512..]);
    half[4..8].fill(3);
    write(&directory, file_offset(block), &half);
    (directory, block, other)
}

fn log(directory: &Arc<dyn Directory>) -> Vec<(String, Vec<u8>)> {
    let log = directory.subdirectory("log").expect("is there");
    let names = log.list().expect("lists");
    let read = |name: String| {
        let file = log.open(&name).expect("opens").expect("is there");
        let mut bytes = vec![0; file.len().expect("has a length") as usize];
        file.read_at(&mut bytes, 0).expect("reads");
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

fn put_log(directory: &Arc<dyn Directory>, files: &[(String, Vec<u8>)]) {
    let log = directory.subdirectory("log").expect("is there");
    for (name, bytes) in files {
        log.open(name).expect("opens").expect("is there").write_at(bytes, 0).expect("writes");
    }
}

#[test]
fn a_torn_page_that_a_table_names_is_mended() {
    for read_only in [true, false] {
        let (directory, block, _) = torn();
        let mut options = options();
        options.read_only = read_only;
        let (heap, recovery) = Heap::open(Arc::clone(&directory), options).expect("opens");
        assert_eq!(recovery.torn_pages, 1);
        let view = heap.view().expect("not a child");
        let bytes = view.block(block).expect("a block");
        assert!(bytes[..8].iter().all(|byte| *byte == 1));
        assert!(bytes[8..3 * 4096].iter().all(|byte| *byte == 7));
        drop(view);
        assert!(heap.check().expect("checks").is_clean());
        if read_only {
            let copy: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
            heap.back_up(copy.as_ref()).expect("copies");
            assert!(open(&copy).expect("opens").check().expect("checks").is_clean());
        }
    }
}

#[test]
fn damage_beside_torn_pages_is_told() {
    for at in [0, 4096, 2 * 4096] {
        let (directory, block, other) = torn();
        // The tail names only the first page of the block: `check` finds damage elsewhere.
        let damaged = if at == 0 { file_offset(other) } else { file_offset(block) + at };
        let mut page = read(&directory, damaged, 4096);
        page[100] ^= 4;
        write(&directory, damaged, &page);
        let heap = open(&directory).expect("opens: the tail names it not");
        assert!(!heap.check().expect("checks").is_clean(), "{at}");
    }
    // The tail names it, but no table does.
    let (directory, block, _) = torn();
    write(&directory, 12_288, &[0; 49_152]);
    let refused = open(&directory).map(drop);
    match refused {
        Err(Error::Damaged { offset, .. }) => assert_eq!(offset, file_offset(block)),
        other => panic!("expected damage of the page, found {other:?}"),
    }
}

/// A table of a finished recovery has no meaning any more.
#[test]
fn what_a_finished_table_names_may_not_be_torn() {
    let (directory, block, _) = torn();
    open(&directory).expect("opens").close().expect("closes");
    let heap = open(&directory).expect("opens");
    change(&heap, block);
    drop(heap);
    let mut page = read(&directory, file_offset(block), 4096);
    page[100] ^= 4;
    write(&directory, file_offset(block), &page);
    let refused = open(&directory).map(drop);
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}
