//! Commits beside one that is on its way: nothing that they wrote is given up before that is there.
//!
//! The watermark cannot pass the number of the one that is on its way. A lane that started over all the same, or a
//! file of a large commit that was written over, would leave numbers that are nowhere: after a power cut at
//! that moment the heap would not open. The moment is short, so that only a test that makes it long meets it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::journals::Journal;
use crate::{
    Directory, Durability, Flushing, Heap, JournalKind, MemoryDirectory, Options, Read, Recovery,
};

/// More commits than a lane holds, by far.
const COMMITS_MAX: usize = 1400;
/// Files of their own that commits have when the lane is full; one of them was made with the pool.
const FILES: usize = 4;

fn open(directory: &Arc<dyn Directory>) -> (Heap, Recovery) {
    let options = Options {
        journal: JournalKind::Undo,
        flushing: Flushing::None,
        address_bytes_max: 1 << 30,
        background: false,
        ..Default::default()
    };
    Heap::open(Arc::clone(directory), options).expect("opens")
}

/// Files for entries that no lane has room for.
fn large_files(directory: &Arc<dyn Directory>) -> usize {
    let log = directory.subdirectory("log").unwrap();
    log.list().unwrap().iter().filter(|name| name.starts_with("large-")).count()
}

/// What the next process finds if this one dies now.
fn copy(directory: &Arc<dyn Directory>) -> Arc<dyn Directory> {
    let target: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    for folder in [None, Some("log")] {
        let within = |directory: &Arc<dyn Directory>| match folder {
            Some(name) => directory.subdirectory(name).unwrap(),
            None => Arc::clone(directory),
        };
        let (from, to) = (within(directory), within(&target));
        for name in from.list().unwrap() {
            let Ok(Some(file)) = from.open(&name) else { continue };
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(&mut bytes, 0).unwrap();
            to.create(&name).unwrap().write_at(&bytes, 0).unwrap();
        }
    }
    target
}

#[test]
fn what_is_committed_beside_one_on_its_way_is_kept_until_that_is_there() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let (heap, _) = open(&directory);
    let Journal::Undo(lanes) = &*heap.journal else { unreachable!("asked for") };
    // Another thread takes a number, and its entry takes its time.
    let slow = lanes.shared.hold().unwrap();
    lanes.shared.order.begin(slow.state.index, &mut Vec::new());
    let mut blocks = BTreeMap::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while blocks.len() < COMMITS_MAX && large_files(&directory) < FILES {
                let mut reserved = heap.reserve(16).unwrap();
                let byte = blocks.len() as u8;
                reserved.fill(byte);
                blocks.insert(reserved.offset(), byte);
                heap.publish(Durability::Sync, [reserved]).unwrap();
            }
        });
    });
    let (found, recovery) = open(&copy(&directory));
    assert!(recovery.records >= blocks.len() as u64, "{recovery:?}");
    let view = found.view().unwrap();
    for (block, byte) in &blocks {
        assert!(view.block(*block).unwrap().starts_with(&[*byte; 16]), "{block:#x}");
    }
    drop(view);
    let report = found.check().unwrap();
    assert!(report.is_clean() && report.blocks == blocks.len() as u64, "{:?}", report.findings);
    assert_eq!(large_files(&directory), FILES, "the lane was full, and files were not given up");
    lanes.shared.order.end(slow.state.index, super::order::NONE);
    drop(slow);
    heap.close().unwrap();
    assert!(large_files(&directory) < FILES, "all is covered");
}
