//! Space that is free is used before the heap grows.

use std::sync::Arc;

use adamant_heap::{Durability, Error, Heap, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = crate::setup::options();
    options.background = false;
    // As little as a heap can have: one zone of 256 MiB.
    options.address_bytes_max = 0;
    let (heap, _) = Heap::open(Arc::clone(directory), options).expect("opens");
    heap
}

fn reserve(heap: &Heap, bytes: u64) -> Result<u64, Error> {
    heap.transaction(Durability::Buffered, |tx| tx.reserve(bytes))
}

#[test]
fn opening_again_and_again_does_not_make_a_run_each_time() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    reserve(&open(&directory), 100).expect("there is room");
    let used_bytes = open(&directory).stats().used_bytes;
    for _ in 0..50 {
        let heap = open(&directory);
        reserve(&heap, 100).expect("there is room");
        heap.close().expect("closes");
    }
    assert_eq!(open(&directory).stats().used_bytes, used_bytes, "all fit into the first run");
}

#[test]
fn a_transaction_finds_what_the_last_pin_let_go() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let block = reserve(&heap, 200 << 20).expect("there is room");
    let pin = heap.pin().expect("ours");
    heap.transaction::<_, Error>(Durability::Buffered, |tx| tx.free(block)).expect("allocated");
    reserve(&heap, 200 << 20).expect_err("the pin may still look at it");
    drop(pin);
    assert_eq!(reserve(&heap, 200 << 20).expect("nobody looks at it"), block);
}
