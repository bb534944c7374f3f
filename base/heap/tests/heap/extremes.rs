//! Extreme arguments are answered like everything between them.

use std::sync::Arc;

use adamant_heap::{Durability, Error, Heap, Options, Write};
use adamant_medium::memory::MemoryDirectory;

fn open(options: Options) -> Heap {
    let (heap, _) = Heap::open(Arc::new(MemoryDirectory::new()), options).expect("opens");
    heap
}

fn make(heap: &Heap, bytes: u64) -> Result<u64, Error> {
    heap.transaction(Durability::Deferred, |tx| tx.reserve(bytes))
}

#[test]
fn options_may_be_as_small_and_as_large_as_numbers_go() {
    for value in [0, 1, 1 << 41, 1 << 50, u64::MAX - 1, u64::MAX] {
        let mut options = crate::setup::options();
        options.address_bytes_max = value;
        options.log_bytes_max = value;
        options.deferred_ms_max = value;
        options.deferred_bytes_max = value;
        let heap = open(options);
        make(&heap, 0).expect("a smallest block");
        make(&heap, 100).expect("there is room");
        make(&heap, 1 << 40).expect_err("more than a heap holds");
        make(&heap, u64::MAX).expect_err("more than a heap holds");
        assert!(heap.check().expect("can be checked").is_clean());
        heap.close().expect("closes");
    }
}

#[test]
fn a_write_of_nothing_changes_nothing() {
    let mut options = crate::setup::options();
    options.background = false;
    let heap = open(options);
    let block = make(&heap, 100).expect("there is room");
    let before = heap.stats().journal.last_sequence;
    let written = heap.transaction::<_, Error>(Durability::Sync, |tx| {
        assert!(tx.write(block, 5, 0)?.is_empty());
        assert!(tx.write(block, usize::MAX, 1).is_err());
        assert!(tx.update_u64(block, usize::MAX, 1).is_err());
        Ok(())
    });
    written.expect("nothing is within every block");
    assert_eq!(heap.stats().journal.last_sequence, before, "nothing to make durable");
}
