//! First-touch verification of pages.

use std::sync::Arc;

use adamant_heap::{Durability, Error, Heap, Options, Read, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

fn options() -> Options {
    let mut options = crate::setup::options();
    options.address_bytes_max = 1 << 30;
    options
}

fn open(directory: &Arc<dyn Directory>) -> Heap {
    Heap::open(Arc::clone(directory), options()).expect("opens").0
}

/// Reserves a block and fills it with bytes derived from `tag`.
fn make(tx: &mut impl Write, tag: u64, bytes: usize) -> Result<u64, Error> {
    let block = tx.reserve(bytes as u64)?;
    tx.write(block, 0, bytes)?.fill(tag as u8);
    Ok(block)
}

#[test]
fn a_flipped_bit_is_an_error_at_first_touch_when_asked_for() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let blocks = heap
        .transaction(Durability::Sync, |tx| {
            (0..200).map(|tag| make(tx, tag, 3000)).collect::<Result<Vec<_>, Error>>()
        })
        .expect("commits");
    heap.close().expect("closes");
    let victim = blocks[100];
    let at = adamant_heap::layout::file_offset(victim) + 1500;
    let pool = directory.open("pool").expect("opens").expect("is there");
    let mut byte = [0];
    pool.read_at(&mut byte, at).expect("reads");
    pool.write_at(&[byte[0] ^ 4], at).expect("writes");
    let mut verifying = options();
    verifying.verify_first_touch = true;
    let (heap, _) = Heap::open(Arc::clone(&directory), verifying).expect("opens");
    let view = heap.view().expect("not a child");
    let mut damaged = 0;
    for block in &blocks {
        match view.block(*block) {
            Ok(_) => {}
            Err(Error::Damaged { offset, .. }) => {
                damaged += 1;
                assert_eq!(offset / 4096, at / 4096, "names the page");
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!((1..=2).contains(&damaged), "the blocks on that page, found {damaged}");
    drop(view);
    // Writing beside the damaged block works, writing into it is refused.
    heap.transaction(Durability::Sync, |tx| {
        for (tag, block) in
            (0..).zip(&blocks).filter(|(_, block)| (**block).abs_diff(victim) > 8192)
        {
            tx.write(*block, 0, 8)?.fill(tag);
        }
        assert!(tx.write(victim, 0, 8).is_err());
        make(tx, 1, 50_000).map(drop)
    })
    .expect("commits");
    let report = heap.check();
    assert!(report.is_ok_and(|report| report.findings.len() == 1));
}
