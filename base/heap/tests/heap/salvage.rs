//! Salvage of damaged pools: a block that is read holds what was committed, or it is refused, and
//! nothing is written.

use std::sync::Arc;

use adamant_heap::layout::{PAGE_BYTES, file_offset};
use adamant_heap::{Durability, Error, Heap, Options, Read, Salvage, Write};

use crate::files::{Files, directory_of, files_of, new_directory};

/// Small blocks of a heap, and their bytes: some three to a page.
const BLOCKS: u8 = 60;
const BYTES: usize = 1200;
/// A block of pages of its own.
const LARGE_BYTES: usize = 300_000;

fn options() -> Options {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    options
}

/// The files of a heap, the small blocks in it, each full of its number, and the large one. Only
/// the log has the last commit, unless the heap was closed.
fn heap(is_closed: bool) -> (Files, Vec<u64>, u64) {
    let directory = new_directory();
    let (heap, _) = Heap::open(Arc::clone(&directory), options()).expect("creates");
    let fill = |block: Option<u64>, bytes: usize, tag: u8| {
        heap.transaction(Durability::Sync, |tx| {
            let block = block.map_or_else(|| tx.reserve(bytes as u64), Ok)?;
            tx.write(block, 0, bytes)?.fill(tag);
            Ok::<_, Error>(block)
        })
        .expect("commits")
    };
    let large = fill(None, LARGE_BYTES, 99);
    let blocks: Vec<u64> = (0..BLOCKS).map(|_| fill(None, BYTES, 111)).collect();
    heap.checkpoint().expect("is made");
    for (tag, block) in (0..).zip(&blocks) {
        fill(Some(*block), BYTES, tag);
    }
    if is_closed {
        heap.close().expect("closes");
    }
    (files_of(&directory), blocks, large)
}

/// Opens a damaged heap for salvage, which must not change it.
fn salvage(files: &Files, look: impl FnOnce(&Salvage)) {
    let directory = directory_of(files);
    let salvage = Salvage::open(&directory).expect("can be read");
    look(&salvage);
    drop(salvage);
    assert!(files_of(&directory) == *files, "nothing is written");
}

/// The refused blocks. All others hold their number.
fn refused(salvage: &Salvage, blocks: &[u64]) -> Vec<u64> {
    let mut refused = Vec::new();
    for (tag, block) in (0_u8..).zip(blocks) {
        match salvage.block(*block) {
            Ok(found) => assert!(found[..BYTES].iter().all(|byte| *byte == tag), "{block:#x}"),
            Err(Error::Damaged { .. }) => refused.push(*block),
            Err(other) => panic!("{other}"),
        }
    }
    refused
}

#[test]
fn what_the_pool_does_not_have_yet_is_laid_over_it() {
    let (files, blocks, large) = heap(false);
    salvage(&files, |salvage| {
        assert!(salvage.findings().is_empty(), "{:?}", salvage.findings());
        assert!(salvage.records() >= BLOCKS.into() && salvage.lost_pages() == 0);
        assert_eq!(refused(salvage, &blocks), []);
        assert_eq!(salvage.block(large).expect("whole")[LARGE_BYTES - 1], 99);
        assert_eq!(salvage.allocated_blocks(), Some(u64::from(BLOCKS) + 1));
        assert!(salvage.block(blocks[0] + 8).is_err(), "no block begins there");
        let mut found = Vec::new();
        salvage.blocks_of(BYTES as u64, &mut |block| found.push(block));
        found.sort_unstable();
        let mut expected = blocks.clone();
        expected.sort_unstable();
        assert_eq!(found, expected);
    });
}

#[test]
fn a_damaged_page_costs_what_lies_on_it_and_no_more() {
    let (files, blocks, large) = heap(true);
    let victim = blocks[30];
    let mut damaged = files.clone();
    damaged[0].2[file_offset(victim) as usize + 5] ^= 1;
    let page = victim / PAGE_BYTES;
    salvage(&damaged, |salvage| {
        assert_eq!((salvage.findings().len(), salvage.lost_pages()), (1, 1));
        assert_eq!(salvage.findings()[0].offset, file_offset(page * PAGE_BYTES));
        let refused = refused(salvage, &blocks);
        let is_on_it =
            |block: u64| (block / PAGE_BYTES..=(block + BYTES as u64) / PAGE_BYTES).contains(&page);
        assert!(refused.contains(&victim) && refused.iter().all(|block| is_on_it(*block)));
        assert_eq!(salvage.allocated_blocks(), None);
    });
    // The rest of a large block can be read.
    let mut damaged = files;
    damaged[0].2[file_offset(large) as usize + 2 * PAGE_BYTES as usize] ^= 1;
    let page = PAGE_BYTES as usize;
    salvage(&damaged, |salvage| {
        assert_eq!(refused(salvage, &blocks), []);
        assert!(matches!(salvage.block(large), Err(Error::Damaged { .. })));
        let (bytes, parts) = salvage.whole_parts(large).expect("a block");
        assert_eq!(parts, [0..2 * page, 3 * page..bytes]);
        assert_eq!(salvage.part(large, 3 * page, 10).expect("whole"), [99; 10]);
        assert!(salvage.part(large, 2 * page - 1, 10).is_err());
    });
}

#[test]
fn a_pool_without_header_is_known_by_its_log() {
    let (mut files, blocks, _) = heap(false);
    files[0].2[40] ^= 1;
    salvage(&files, |salvage| {
        assert_eq!(salvage.findings().len(), 1, "{:?}", salvage.findings());
        assert_eq!(refused(salvage, &blocks), []);
    });
    files.truncate(1);
    let refused = Salvage::open(&directory_of(&files)).map(drop);
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}
