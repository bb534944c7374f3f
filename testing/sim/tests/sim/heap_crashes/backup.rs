//! Backups of a heap that is written to meanwhile, on disks that crash, fill up and are damaged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_heap::{Durability, Error, Flushing, Heap, Read, Write};
use adamant_medium::storage::Directory;
use adamant_sim::tally::{seed, states_max};
use adamant_sim::{Call, Choice, Hooked, Promise, SimDirectory, SimDisk, Tally};
use parking_lot::Mutex;

use crate::heap_crashes::model::{Model, commit_of, open};
use crate::heap_crashes::try_power_cuts;
use crate::heap_crashes::workload::{Mix, Workload};

fn mix(number: u64) -> Mix {
    Mix {
        seed: seed(number),
        steps: 60,
        large_one_in: 12,
        upkeep_one_in: 10,
        shrink_one_in: 12,
        ..Mix::default()
    }
}

/// The outcome of a backup.
struct Made {
    outcome: Result<u64, Error>,
    /// The commit that was visible when it began.
    first: u64,
    models: Vec<Model>,
}

/// Takes the steps of a workload, then copies the heap; before each write to the copy come more
/// steps.
fn copy(disk: &SimDisk, target: &SimDisk, mix: Mix) -> Made {
    let mut workload = Workload::create(disk, mix).unwrap();
    for _ in 0..mix.steps {
        workload.step().unwrap();
    }
    let (heap, first) = (Arc::clone(&workload.heap), workload.last().commit);
    let workload = Arc::new(Mutex::new(workload));
    let stepping = Arc::clone(&workload);
    let directory = Hooked::new(SimDirectory::root(target), move |call, _| {
        if call == Call::Write {
            // A heap that has no space for a commit continues.
            let _ = stepping.lock().step();
        }
        Ok(())
    });
    let outcome = heap.back_up(&directory);
    let workload = workload.lock();
    workload.last().verify(&workload.heap);
    Made { outcome, first, models: workload.models.clone() }
}

/// Panics unless a disk holds no heap, or a whole one of one of the commits from `first` on.
fn verify_copy(disk: &SimDisk, models: &[Model], first: u64, is_made: bool) -> Option<u64> {
    let exists = SimDirectory::root(disk).open("pool").unwrap().is_some();
    assert!(exists || !is_made, "a copy that was made is gone");
    if !exists {
        return None;
    }
    let (heap, recovery) = open(disk, Flushing::Auto).unwrap();
    assert!(recovery.was_closed, "{recovery:?}");
    let commit = commit_of(&heap);
    assert!(commit >= first, "commit {commit} is older than {first}, the one it began at");
    let model = &models[commit as usize];
    model.verify(&heap);
    let report = heap.check().unwrap();
    assert!(report.is_clean(), "of commit {commit}: {:#?}", report.findings);
    assert_eq!(report.blocks, model.block_count(), "blocks of commit {commit}");
    Some(commit)
}

#[test]
fn a_copy_is_some_commit_whole_or_nothing() {
    let (mut tally, mut later) = (Tally::new(), 0);
    for number in 70..76 {
        let (disk, target) = (SimDisk::new(seed(number)), SimDisk::new(seed(number)));
        let Made { outcome, first, models } = copy(&disk, &target, mix(number));
        outcome.unwrap();
        let made = target.operation_count();
        let end = verify_copy(&target.crash(made, &mut Choice::None), &models, first, true);
        later += end.unwrap() - first;
        let mut cursor = target.cursor();
        for point in cursor.point()..=made {
            cursor.advance_to(point);
            if point % 5 != 0 && point + 12 < made {
                continue;
            }
            tally.points += 1;
            for choice in cursor.choices(states_max(3), point) {
                tally.state(&target, point, &choice, || {
                    let crashed = cursor.crash(&mut choice.clone()).without_history();
                    verify_copy(&crashed, &models, first, point == made);
                });
            }
        }
        // The backup does no harm to its source, at whichever point that crashed meanwhile.
        if number == 70 {
            let cuts = try_power_cuts(&disk, &models, 7, 2);
            tally.points += cuts.points;
            tally.states += cuts.states;
            tally.repeated += cuts.repeated;
        }
    }
    assert!(later > 30, "commits came while copies were made: {later}");
    tally.print("copies");
}

#[test]
fn a_copy_without_space_is_given_up() {
    let (disk, target) = (SimDisk::new(seed(77)), SimDisk::new(seed(77)));
    copy(&disk, &target, mix(77)).outcome.unwrap();
    let mut space = target.space_used_bytes();
    let mut refused = 0;
    while space > 0 {
        space = space.saturating_sub(256 << 10);
        let (disk, target) = (SimDisk::new(seed(77)), SimDisk::new(seed(77)));
        target.set_space_bytes(Some(space));
        let Made { outcome, first, models } = copy(&disk, &target, mix(77));
        match &outcome {
            Ok(_) => {}
            Err(error) => {
                assert!(error.is_out_of_space(), "{error}");
                let names = SimDirectory::root(&target).list().unwrap();
                assert!(!names.iter().any(|name| name.starts_with("pool")), "{names:?}");
                refused += 1;
            }
        }
        verify_copy(&target, &models, first, outcome.is_ok());
    }
    assert!(refused > 5, "{refused}");
}

/// Replaces a block of a heap by one of the same size, 1 MB, so that its pool keeps its size.
fn replace_block(heap: &Heap, fill: u8) -> Result<(), Error> {
    heap.transaction(Durability::Buffered, |tx| {
        let (before, block) = (tx.root(1), tx.reserve(1_000_000)?);
        tx.write(block, 0, 1_000_000)?.fill(fill);
        tx.set_root(1, block)?;
        if before == 0 { Ok(()) } else { tx.free(before) }
    })
}

/// Space held of the log for a backup is not worth a commit.
#[test]
fn writers_take_the_space_of_a_copy() {
    let disk = SimDisk::new(seed(78));
    let heap = Arc::new(open(&disk, Flushing::Auto).unwrap().0);
    for fill in 0..20 {
        replace_block(&heap, fill).unwrap();
    }
    let space = disk.space_used_bytes() + (8 << 20);
    disk.set_space_bytes(Some(space));
    let target = SimDisk::new(seed(78));
    let (writer, commits) = (Arc::clone(&heap), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&commits);
    let directory = Hooked::new(SimDirectory::root(&target), move |call, _| {
        for fill in (0..6).filter(|_| call == Call::Write) {
            replace_block(&writer, fill).expect("a commit needs no space but that of the log");
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    let error = heap.back_up(&directory).unwrap_err();
    assert!(error.is_out_of_space() && error.to_string().contains("log"), "{error}");
    assert!(commits.load(Ordering::Relaxed) > 20, "{commits:?}");
    // No file is held any more, and the next backup needs none of them.
    let target = SimDisk::new(seed(78));
    heap.back_up(&SimDirectory::root(&target)).unwrap();
    let (copy, _) = open(&target, Flushing::Auto).unwrap();
    let view = copy.view().unwrap();
    assert!(view.block(view.root(1)).unwrap()[..1_000_000].iter().all(|&byte| byte == 5));
}

#[test]
fn a_damaged_page_is_named_and_not_copied() {
    let disk = SimDisk::new(seed(79));
    let mut workload = Workload::create(&disk, mix(79)).unwrap();
    for _ in 0..40 {
        workload.step().unwrap();
    }
    workload.heap.checkpoint().unwrap();
    let pool = SimDirectory::root(&disk).open("pool").unwrap().unwrap();
    let len = pool.len().unwrap();
    let mut byte = [0];
    let offset = (0..len)
        .rev()
        .step_by(997)
        .find(|&at| {
            pool.read_at(&mut byte, at).unwrap();
            byte[0] != 0
        })
        .unwrap();
    pool.write_at(&[byte[0] ^ 4], offset).unwrap();
    let target = SimDisk::new(1);
    let error = workload.heap.back_up(&SimDirectory::root(&target)).unwrap_err();
    let Error::Damaged { file, offset: found, .. } = &error else { panic!("{error}") };
    assert_eq!((&**file, *found), (pool.path(), offset - offset % 4096));
    let names = SimDirectory::root(&target).list().unwrap();
    assert!(!names.iter().any(|name| name.starts_with("pool")), "{names:?}");
    pool.write_at(&byte, offset).unwrap();
    let target = SimDisk::new(2);
    workload.heap.back_up(&SimDirectory::root(&target)).unwrap();
    let promise = Promise::exactly(workload.last().commit);
    crate::heap_crashes::verify(&target, &workload.models, promise);
}
