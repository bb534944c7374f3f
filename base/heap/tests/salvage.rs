//! What is left of damaged pools of the undo journal: a block that is read holds what was committed,
//! or it is refused, and nothing is written.

#[path = "cases/files.rs"]
mod files;

use std::sync::Arc;

use adamant_heap::{
    Durability, Error, Flushing, Heap, JournalKind, Options, Read, Salvage, Transaction, Write,
};
use fastrand::Rng;

use crate::files::{Files, directory_of, files_of, new_directory};

/// Small blocks of a heap, and their bytes.
const BLOCKS: u8 = 12;
const BYTES: usize = 100;
/// The tag of the last commit.
const LAST: u8 = 200;
/// Bytes of a block that is changed in place.
const LARGE_BYTES: usize = 3 << 20;

fn options() -> Options {
    let mut options = Options::default();
    options.journal = JournalKind::Undo;
    options.flushing = Flushing::None;
    options.address_bytes_max = 1 << 30;
    options
}

fn fill(tx: &mut Transaction<'_>, block: u64, tag: u8) -> Result<(), Error> {
    tx.write(block, 0, BYTES).map(|bytes| bytes.fill(tag))
}

/// The files of a heap that died, its blocks, and what they hold. Of the last commit, which fills the
/// last block with `LAST`, nothing but its entry has reached the medium.
fn killed() -> (Files, Vec<(u64, u8)>) {
    let directory = new_directory();
    let (heap, _) = Heap::open(Arc::clone(&directory), options()).expect("creates");
    let mut blocks = heap
        .transaction(Durability::Sync, |tx| {
            let reserve = |tag| {
                let block = tx.reserve(BYTES as u64)?;
                fill(tx, block, tag).map(|()| (block, tag))
            };
            (0..BLOCKS).map(reserve).collect::<Result<Vec<_>, Error>>()
        })
        .expect("commits");
    for (block, tag) in blocks.iter_mut().step_by(2) {
        *tag += 100;
        heap.transaction(Durability::Sync, |tx| fill(tx, *block, *tag)).expect("commits");
    }
    let pool = files_of(&directory).swap_remove(0);
    let last = blocks.last().expect("some").0;
    heap.transaction(Durability::Sync, |tx| fill(tx, last, LAST)).expect("commits");
    let mut files = files_of(&directory);
    files[0] = pool;
    (files, blocks)
}

/// What a block is filled with; `None` if it is refused.
fn tag_of(salvage: &Salvage, block: u64, bytes: usize) -> Option<u8> {
    let found = &salvage.block(block).ok()?[..bytes];
    assert!(found.iter().all(|byte| *byte == found[0]), "block {block:#x} is torn");
    Some(found[0])
}

/// Opens what is left, which must not change it.
fn salvage(files: &Files, look: impl FnOnce(&Salvage)) {
    let directory = directory_of(files);
    let salvage = Salvage::open(&directory).expect("can be read");
    assert_eq!(salvage.journal(), JournalKind::Undo);
    look(&salvage);
    drop(salvage);
    assert!(files_of(&directory) == *files, "nothing is written");
}

fn lanes_of(files: &mut Files) -> &mut Vec<u8> {
    &mut files.iter_mut().find(|(_, name, _)| name == "lanes").expect("there").2
}

#[test]
fn what_memory_does_not_have_yet_is_laid_over_it() {
    let (files, blocks) = killed();
    salvage(&files, |salvage| {
        assert!(salvage.findings().is_empty(), "{:?}", salvage.findings());
        assert!(salvage.records() > 0 && salvage.lost_pages() == 0);
        let (last, others) = blocks.split_last().expect("some");
        for (block, tag) in others {
            assert_eq!(tag_of(salvage, *block, BYTES), Some(*tag));
        }
        assert_eq!(tag_of(salvage, last.0, BYTES), Some(LAST));
        assert_eq!(salvage.allocated_blocks(), Some(BLOCKS.into()));
        assert!(salvage.block(last.0 + 8).is_err(), "no block begins there");
    });
}

#[test]
fn a_damaged_byte_of_the_lanes_costs_no_more_than_the_last_commit() {
    let (mut files, blocks) = killed();
    let bytes = lanes_of(&mut files).clone();
    let used = (0..bytes.len()).filter(|at| *at < 72 || bytes[*at] != 0).step_by(3);
    let (mut told, mut dropped) = (0, 0);
    for at in used {
        let mut files = files.clone();
        lanes_of(&mut files)[at] ^= 1 << (at % 8);
        salvage(&files, |salvage| {
            told += u64::from(!salvage.findings().is_empty());
            let ((last, before), others) = blocks.split_last().expect("some");
            for (block, tag) in others {
                assert_eq!(tag_of(salvage, *block, BYTES), Some(*tag), "byte {at}");
            }
            match tag_of(salvage, *last, BYTES) {
                Some(LAST) => {}
                tag if tag == Some(*before) => dropped += 1,
                tag => panic!("byte {at}: {tag:?}"),
            }
        });
    }
    assert!(told > 50 && dropped > 0, "{told} told, {dropped} times without the last");
}

#[test]
fn without_lanes_memory_is_read_as_it_is() {
    let (files, blocks) = killed();
    let is_committed = |salvage: &Salvage| {
        assert!(!salvage.findings().is_empty());
        blocks.iter().all(|(block, tag)| {
            let found = tag_of(salvage, *block, BYTES);
            found == Some(*tag) || found == Some(LAST)
        })
    };
    for len in [0, 10, 4095, 4096, 100_000] {
        let mut files = files.clone();
        lanes_of(&mut files).truncate(len);
        salvage(&files, |salvage| assert!(is_committed(salvage), "{len} bytes"));
    }
    let mut files = files;
    files.retain(|(_, name, _)| name != "lanes");
    salvage(&files, |salvage| assert!(is_committed(salvage)));
}

#[test]
fn a_pool_without_header_is_known_by_its_lanes() {
    let (mut files, blocks) = killed();
    files[0].2[40] ^= 1;
    salvage(&files, |salvage| {
        assert_eq!(salvage.findings().len(), 1, "{:?}", salvage.findings());
        assert_eq!(tag_of(salvage, blocks[0].0, BYTES), Some(blocks[0].1));
    });
    lanes_of(&mut files)[24] ^= 1;
    let refused = Salvage::open(&directory_of(&files)).map(drop);
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}

/// A heap that died while it changed a large block in place, which held ones.
fn half_done() -> (Files, u64) {
    let directory = new_directory();
    let (heap, _) = Heap::open(Arc::clone(&directory), options()).expect("creates");
    let block = heap
        .transaction(Durability::Sync, |tx| {
            let block = tx.reserve(LARGE_BYTES as u64)?;
            tx.write(block, 0, LARGE_BYTES)?.fill(1);
            Ok::<_, Error>(block)
        })
        .expect("commits");
    let mut files = Files::new();
    let outcome = heap.transaction(Durability::Sync, |tx| {
        for at in (0..LARGE_BYTES).step_by(1 << 18) {
            tx.write(block, at, 1 << 18)?.fill(2);
        }
        files = files_of(&directory);
        Err::<(), _>(Error::Misuse { what: "planned" })
    });
    assert!(outcome.is_err());
    (files, block)
}

#[test]
fn what_a_transaction_in_progress_changed_is_put_back() {
    let (files, block) = half_done();
    salvage(&files, |salvage| {
        assert!(salvage.findings().is_empty(), "{:?}", salvage.findings());
        assert_eq!(tag_of(salvage, block, LARGE_BYTES), Some(1));
    });
}

#[test]
fn what_nobody_can_put_back_is_refused() {
    let (files, block) = half_done();
    let is_refused = |salvage: &Salvage| {
        assert!(!salvage.findings().is_empty());
        salvage.lost_pages() > 0 && salvage.block(block).is_err()
    };
    let mut without = files.clone();
    without.retain(|(_, name, _)| name != "lanes");
    salvage(&without, |salvage| assert!(is_refused(salvage)));

    // The first entry with old bytes, which others behind it prove.
    let mut damaged = files;
    let large = damaged.iter_mut().find(|(_, name, _)| name.starts_with("large-"));
    large.expect("some").2[100] ^= 1;
    salvage(&damaged, |salvage| assert!(is_refused(salvage)));
}

#[test]
fn any_damage_to_the_pool_is_no_panic() {
    let (files, blocks) = killed();
    let pool = &files[0].2;
    let used: Vec<usize> = (0..pool.len()).filter(|at| pool[*at] != 0).collect();
    for seed in 0..200 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut files = files.clone();
        for _ in 0..3 {
            let at = used[random.usize(..used.len())] / 8 * 8 + random.usize(..8);
            files[0].2[at] ^= 1 << random.u8(..8);
        }
        match Salvage::open(&directory_of(&files)) {
            Ok(salvage) => {
                let read = |block: u64| salvage.block(block).map_or(0, <[u8]>::len);
                for (block, _) in &blocks {
                    assert!(read(*block) == 0 || read(*block) >= 8, "no block is smaller");
                }
                for root in 0..16 {
                    let _ = salvage.root(root);
                }
                salvage.blocks_of(BYTES as u64, &mut |block| {
                    read(block);
                });
            }
            Err(Error::Damaged { .. } | Error::Unsupported { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
