//! A handle used after a fork is an error in the child, and the parent goes on (R6).

use std::sync::Arc;

use adamant_heap::{Durability, Error, Heap, Read, Write};
use adamant_medium::memory::MemoryDirectory;

#[test]
fn a_child_is_refused_and_the_parent_goes_on() {
    let (heap, _) =
        Heap::open(Arc::new(MemoryDirectory::new()), crate::setup::options()).expect("opens");
    let block = heap
        .transaction(Durability::Sync, |tx| {
            let block = tx.reserve(64)?;
            tx.write(block, 0, 64)?.fill(7);
            Ok::<_, Error>(block)
        })
        .expect("commits");
    let (pin, reservation) = (heap.pin().expect("pins"), heap.reserve(100).expect("reserves"));
    // SAFETY: the child makes only the calls under test and then ends without unwinding; it takes
    // no lock that another thread of the parent may have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(heap.view(), Err(Error::Misuse { .. }))
            && matches!(
                heap.transaction(Durability::Sync, |_| Ok::<_, Error>(())),
                Err(Error::Misuse { .. })
            )
            && matches!(heap.sync(), Err(Error::Misuse { .. }))
            && matches!(heap.check(), Err(Error::Misuse { .. }))
            && matches!(heap.check_writable(), Err(Error::Misuse { .. }))
            && matches!(heap.pin(), Err(Error::Misuse { .. }))
            && matches!(heap.reserve(100), Err(Error::Misuse { .. }))
            && matches!(heap.take_write_permit(), Err(Error::Misuse { .. }))
            && heap.stats().pool_bytes == 0
            && heap.last_commit() == 0
            && matches!(heap.close(), Err(Error::Misuse { .. }));
        drop((pin, reservation));
        drop(heap);
        // SAFETY: ends the child at once, which shares nothing that needs an orderly end.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: `child` is our own child, `status` is a live integer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child saw errors and ended by itself");
    assert_eq!(heap.view().expect("not a child").block(block).expect("a block")[..64], [7; 64]);
    heap.transaction(Durability::Sync, |tx| tx.free(block)).expect("commits");
    heap.close().expect("closes");
}
