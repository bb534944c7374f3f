//! The undo journal after a crash of the process: a copy of the files as they are at some moment is
//! what the next one finds. (Crashes of the medium are `testing/sim`'s.)

#[path = "cases/files.rs"]
mod files;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_heap::{
    Directory, Durability, Error, Flushing, Heap, JournalKind, Options, Read, Recovery, Salvage,
    Transaction, Write,
};
use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::persist::Persist;
use adamant_medium::region::Region;
use adamant_medium::storage::{File, Lock};
use adamant_wire::checksum::crc32c;
use fastrand::Rng;

use crate::files::{Files, directory_of, files_of, new_directory};

/// What blocks should hold.
type Model = BTreeMap<u64, Vec<u8>>;

const SIZES: [usize; 8] = [8, 24, 100, 1000, 4096, 5000, 33_000, 200_000];
const PLANNED: Error = Error::Misuse { what: "planned" };

fn options() -> Options {
    let mut options = Options::default();
    options.journal = JournalKind::Undo;
    options.flushing = Flushing::None;
    options.address_bytes_max = 1 << 30;
    options
}

fn open(directory: &Arc<dyn Directory>) -> Result<(Heap, Recovery), Error> {
    Heap::open(Arc::clone(directory), options())
}

fn assert_holds(heap: &Heap, model: &Model) {
    assert!(holds(heap, model));
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.blocks, model.len() as u64, "no block leaks, none is lost");
}

fn holds(heap: &Heap, model: &Model) -> bool {
    reads(&heap.view().expect("open"), model)
}

fn reads(read: &impl Read, model: &Model) -> bool {
    model.iter().all(|(block, bytes)| {
        read.block(*block).is_ok_and(|found| found.get(..bytes.len()) == Some(bytes))
    })
}

fn any(model: &Model, random: &mut Rng) -> Option<u64> {
    (!model.is_empty()).then(|| *model.keys().nth(random.usize(..model.len())).expect("there"))
}

/// Does something to a block, and to the model.
fn change(tx: &mut Transaction<'_>, model: &mut Model, random: &mut Rng) -> Result<(), Error> {
    let tag = random.u8(..);
    match (random.u8(..8), any(model, random)) {
        (0..3, _) | (_, None) => {
            let bytes = SIZES[random.usize(..SIZES.len())];
            let block = tx.reserve(bytes as u64)?;
            tx.write(block, 0, bytes)?.fill(tag);
            model.insert(block, vec![tag; bytes]);
        }
        (3..6, Some(block)) => {
            let bytes = model.get_mut(&block).expect("there");
            let at = random.usize(..bytes.len());
            let len = random.usize(1..=(bytes.len() - at).min(3000));
            tx.write(block, at, len)?.fill(tag);
            bytes[at..at + len].fill(tag);
        }
        (6, Some(block)) => {
            tx.free(block)?;
            model.remove(&block);
        }
        (_, Some(block)) => {
            tx.set_root(random.usize(..8), block)?;
        }
    }
    Ok(())
}

/// One transaction, perhaps with a savepoint that fails in it, perhaps failing itself.
fn transact(heap: &Heap, model: &mut Model, random: &mut Rng, cut: impl FnOnce()) {
    let mut planned = model.clone();
    let fails = random.u8(..6) == 0;
    let outcome = heap.transaction(Durability::Sync, |tx| {
        for _ in 0..random.usize(1..6) {
            if random.u8(..4) == 0 {
                let mut inner = planned.clone();
                let fails = random.bool();
                let result = tx.savepoint(|tx| {
                    change(tx, &mut inner, random)?;
                    change(tx, &mut inner, random)?;
                    if fails { Err(PLANNED) } else { Ok(()) }
                });
                match result {
                    Ok(()) => planned = inner,
                    Err(Error::Misuse { .. }) => assert!(fails),
                    Err(other) => return Err(other),
                }
            } else {
                change(tx, &mut planned, random)?;
            }
        }
        cut();
        if fails { Err(PLANNED) } else { Ok(()) }
    });
    match outcome {
        Ok(()) => *model = planned,
        Err(Error::Misuse { .. }) => assert!(fails),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_process_that_dies_anywhere_leaves_all_that_was_committed() {
    for seed in 0..25 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let directory = new_directory();
        let (mut heap, _) = open(&directory).expect("creates");
        let mut current = Arc::clone(&directory);
        let mut model = Model::new();
        for _ in 0..random.usize(1..6) {
            for _ in 0..random.usize(1..40) {
                transact(&heap, &mut model, &mut random, || ());
            }
            // It dies within a transaction, or behind one.
            let mut files = None;
            if random.bool() {
                let before = model.clone();
                transact(&heap, &mut model, &mut random, || files = Some(files_of(&current)));
                model = before;
            }
            let files = files.unwrap_or_else(|| files_of(&current));
            drop(heap);
            current = directory_of(&files);
            // Who only reads sees what recovery makes of it.
            let left = Salvage::open(&current).expect("can be read");
            assert!(left.findings().is_empty(), "{:?}", left.findings());
            assert!(reads(&left, &model), "read without recovery");
            assert_eq!(left.allocated_blocks(), Some(model.len() as u64));
            drop(left);
            // Recovery that dies behind its work finds nothing, and before it all, again.
            let again = directory_of(&files_of(&current));
            heap = open(&current).expect("recovers").0;
            assert_holds(&heap, &model);
            let (other, _) = open(&again).expect("recovers");
            assert_holds(&other, &model);
        }
        heap.close().expect("closes");
        drop(heap);
        let (heap, recovery) = open(&current).expect("opens");
        assert!(recovery.was_closed && recovery.records == 0);
        assert_holds(&heap, &model);
    }
}

#[test]
fn threads_that_die_leave_all_that_was_committed() {
    let directory = new_directory();
    let (heap, _) = open(&directory).expect("creates");
    let models = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let heap = &heap;
                scope.spawn(move || {
                    let (mut random, mut model) = (Rng::with_seed(thread), Model::new());
                    for _ in 0..800 {
                        if random.u8(..3) == 0
                            && let Some(block) = any(&model, &mut random)
                        {
                            heap.free(Durability::Sync, block).expect("frees");
                            model.remove(&block);
                            continue;
                        }
                        let bytes = SIZES[random.usize(..4)];
                        let mut reserved = heap.reserve(bytes as u64).expect("room");
                        reserved.fill(thread as u8);
                        model.insert(reserved.offset(), vec![thread as u8; bytes]);
                        heap.publish(Durability::Sync, [reserved]).expect("publishes");
                    }
                    model
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    let model: Model = models.into_iter().flatten().collect();
    let copy = directory_of(&files_of(&directory));
    let (recovered, recovery) = open(&copy).expect("recovers");
    assert!(recovery.records > 0);
    assert_holds(&recovered, &model);
}

/// The files of a heap that died after a few commits, and what it held after each. Of the last
/// commit nothing but its entry has reached the medium. `last` says what that does.
fn few_commits(
    last: impl FnOnce(&mut Transaction<'_>, &mut Model) -> Result<(), Error>,
) -> (Files, Vec<Model>) {
    let directory = new_directory();
    let (heap, _) = open(&directory).expect("creates");
    let mut random = Rng::with_seed(4);
    let mut states = vec![Model::new()];
    for _ in 0..12 {
        let mut model = states.last().expect("one").clone();
        heap.transaction(Durability::Sync, |tx| change(tx, &mut model, &mut random))
            .expect("commits");
        states.push(model);
    }
    let pool = files_of(&directory).swap_remove(0);
    let mut model = states.last().expect("one").clone();
    heap.transaction(Durability::Sync, |tx| last(tx, &mut model)).expect("commits");
    states.push(model);
    let mut files = files_of(&directory);
    files[0] = pool;
    (files, states)
}

/// Changes a block that was there.
fn write_small(tx: &mut Transaction<'_>, model: &mut Model) -> Result<(), Error> {
    let small = model.iter_mut().find(|(_, bytes)| bytes.len() <= 4096);
    let (block, bytes) = small.expect("one is small");
    bytes.fill(77);
    tx.write(*block, 0, bytes.len()).map(|bytes| bytes.fill(77))
}

#[test]
fn a_fresh_block_that_did_not_reach_the_medium_takes_its_commit_with_it() {
    let (files, states) = few_commits(|tx, model| {
        let block = tx.reserve(100)?;
        tx.write(block, 0, 100)?.fill(77);
        model.insert(block, vec![77; 100]);
        Ok(())
    });
    let (heap, recovery) = open(&directory_of(&files)).expect("recovers");
    assert!(recovery.records > 0);
    assert_holds(&heap, &states[states.len() - 2]);
}

#[test]
fn a_damaged_byte_of_the_lanes_is_an_error_or_drops_the_last_entry() {
    let (files, states) = few_commits(write_small);
    let lanes = files.iter().position(|(_, name, _)| name == "lanes").expect("there");
    let last = states.last().expect("some");
    let used: Vec<usize> = {
        let bytes = &files[lanes].2;
        (0..bytes.len()).filter(|at| bytes[*at] != 0).collect()
    };
    let (mut errors, mut dropped) = (0, 0);
    for at in (0..72).chain(used.iter().copied().filter(|at| *at >= 4096)) {
        let mut files = files.clone();
        files[lanes].2[at] ^= 1 << (at % 8);
        match open(&directory_of(&files)) {
            Err(Error::Damaged { file, .. }) => {
                errors += 1;
                assert_eq!(file.file_name(), Some("lanes".as_ref()));
            }
            Err(other) => panic!("byte {at}: {other}"),
            Ok((heap, _)) if holds(&heap, last) => {
                assert!(at >= 44, "byte {at} of the header is needed");
            }
            Ok((heap, _)) => {
                dropped += 1;
                let before = &states[states.len() - 2];
                assert_holds(&heap, before);
            }
        }
    }
    assert!(errors > 200 && dropped > 10, "{errors} errors, {dropped} times the tail");
}

#[test]
fn hostile_entries_under_checksums_that_fit_are_no_panic() {
    let (files, _) = few_commits(write_small);
    let lanes = files.iter().position(|(_, name, _)| name == "lanes").expect("there");
    let bytes = &files[lanes].2;
    let seed = crc32c(0, &bytes[24..40]);
    let len_at = |bytes: &[u8], at: usize| {
        16 + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("four")) as usize
    };
    let entries: Vec<usize> = (4096..bytes.len())
        .step_by(64)
        .filter(|&at| (1..=3).contains(&bytes[at + 15]) && at + len_at(bytes, at) <= bytes.len())
        .filter(|&at| {
            let crc = crc32c(seed, &bytes[at + 4..at + len_at(bytes, at)]);
            bytes[at..at + 4] == crc.to_le_bytes()
        })
        .collect();
    assert!(entries.len() > 10, "{} entries", entries.len());
    for round in 0..400 {
        println!("round {round}");
        let mut random = Rng::with_seed(round);
        let mut files = files.clone();
        let bytes = &mut files[lanes].2;
        let at = entries[random.usize(..entries.len())];
        let len = len_at(bytes, at);
        for _ in 0..random.usize(1..4) {
            let within = random.usize(4..len.min(80));
            bytes[at + within] = [0, 0xFF, random.u8(..)][random.usize(..3)];
        }
        let len = len_at(bytes, at).min(bytes.len() - at);
        let crc = crc32c(seed, &bytes[at + 4..at + len]);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        if let Ok((heap, _)) = open(&directory_of(&files)) {
            let _ = heap.check();
        }
    }
}

#[test]
fn lanes_that_are_missing_or_cut_are_an_error() {
    let (files, _) = few_commits(write_small);
    let lanes = files.iter().position(|(_, name, _)| name == "lanes").expect("there");
    for len in [0, 10, 4095, 4096, 100_000] {
        let mut files = files.clone();
        files[lanes].2.truncate(len);
        assert!(matches!(open(&directory_of(&files)), Err(Error::Damaged { .. })), "{len}");
    }
    let mut files = files;
    files.remove(lanes);
    assert!(matches!(open(&directory_of(&files)), Err(Error::Damaged { .. })));
}

/// Overwrites a large block in place, in a transaction that is larger than a lane.
fn overwrite(heap: &Heap, block: u64, bytes: usize, tag: u8) -> Result<(), Error> {
    heap.transaction(Durability::Sync, |tx| {
        (0..bytes).step_by(50_000).try_for_each(|at| {
            let len = 50_000.min(bytes - at);
            tx.write(block, at, len).map(|bytes| bytes.fill(tag))
        })
    })
}

#[test]
fn transactions_larger_than_a_lane_have_files_of_their_own() {
    const BYTES: usize = 6 << 20;
    let directory = new_directory();
    let (heap, _) = open(&directory).expect("creates");
    let block = heap
        .transaction(Durability::Sync, |tx| {
            let block = tx.reserve(BYTES as u64)?;
            tx.write(block, 0, BYTES)?.fill(1);
            Ok::<_, Error>(block)
        })
        .expect("commits");
    let mut within = None;
    let mut tag = 1;
    for fails in [false, true, false] {
        let before = tag;
        let outcome = heap.transaction(Durability::Sync, |tx| {
            for at in (0..BYTES).step_by(1 << 18) {
                tx.write(block, at, 1 << 18)?.fill(before + 1);
            }
            within = Some((files_of(&directory), before));
            if fails { Err(PLANNED) } else { Ok(()) }
        });
        assert_eq!(outcome.is_err(), fails);
        tag = if fails { before } else { before + 1 };
        let (files, before) = within.take().expect("was there");
        let large =
            |files: &Files| files.iter().filter(|(_, name, _)| name.starts_with("large-")).count();
        assert!(large(&files) >= 2, "{} files", large(&files));
        let copy = directory_of(&files);
        let (recovered, _) = open(&copy).expect("rolls back");
        assert!(
            recovered.view().expect("open").block(block).expect("there")[..BYTES]
                .iter()
                .all(|byte| *byte == before)
        );
        // One is kept to be written over.
        let kept = |files: &Files| {
            let large = files.iter().filter(|(_, name, _)| name.starts_with("large-"));
            let lengths: Vec<usize> = large.map(|(_, _, bytes)| bytes.len()).collect();
            matches!(lengths[..], [len] if len <= 4 << 20)
        };
        assert!(kept(&files_of(&copy)), "recovery removes the others");
        assert!(kept(&files_of(&directory)), "the commit or the abort removes the others");
        assert!(
            heap.view().expect("open").block(block).expect("there")[..BYTES]
                .iter()
                .all(|byte| *byte == tag)
        );
    }
}

/// A directory with so many bytes left for `allocate`.
#[derive(Debug)]
struct Small {
    inner: Arc<dyn Directory>,
    left: Arc<AtomicU64>,
}

#[derive(Debug)]
struct SmallFile {
    inner: Arc<dyn File>,
    left: Arc<AtomicU64>,
}

impl Small {
    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(SmallFile { inner, left: Arc::clone(&self.left) })
    }
}

impl Directory for Small {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn open(&self, name: &str) -> MediumResult<Option<Arc<dyn File>>> {
        Ok(self.inner.open(name)?.map(|file| self.file(file)))
    }

    fn create(&self, name: &str) -> MediumResult<Arc<dyn File>> {
        Ok(self.file(self.inner.create(name)?))
    }

    fn rename(&self, source: &str, target: &str) -> MediumResult<()> {
        self.inner.rename(source, target)
    }

    fn remove(&self, name: &str) -> MediumResult<()> {
        self.inner.remove(name)
    }

    fn list(&self) -> MediumResult<Vec<String>> {
        self.inner.list()
    }

    fn sync(&self) -> MediumResult<()> {
        self.inner.sync()
    }

    fn subdirectory(&self, name: &str) -> MediumResult<Arc<dyn Directory>> {
        let inner = self.inner.subdirectory(name)?;
        Ok(Arc::new(Small { inner, left: Arc::clone(&self.left) }))
    }

    fn lock(&self, name: &str) -> MediumResult<Box<dyn Lock>> {
        self.inner.lock(name)
    }

    fn lock_shared(&self, name: &str) -> MediumResult<Box<dyn Lock>> {
        self.inner.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> MediumResult<()> {
        self.inner.random(buffer)
    }

    fn persist(&self, how: Flushing) -> MediumResult<Arc<dyn Persist>> {
        self.inner.persist(how)
    }
}

impl File for SmallFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn len(&self) -> MediumResult<u64> {
        self.inner.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> MediumResult<()> {
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> MediumResult<()> {
        self.inner.write_at(bytes, offset)
    }

    fn allocate(&self, offset: u64, len: u64) -> MediumResult<()> {
        let new = (offset + len).saturating_sub(self.inner.len()?);
        let left = self.left.load(Ordering::Relaxed);
        if new > left {
            let full = std::io::ErrorKind::StorageFull.into();
            return Err(MediumError::io("allocate space in", self.path(), Some(offset), len, full));
        }
        self.left.store(left - new, Ordering::Relaxed);
        self.inner.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> MediumResult<()> {
        self.inner.punch(offset, len)
    }

    fn set_len(&self, len: u64) -> MediumResult<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> MediumResult<()> {
        self.inner.sync()
    }

    unsafe fn map_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> MediumResult<()> {
        // SAFETY: our caller promises what it asks for.
        unsafe { self.inner.map_private(region, region_offset, file_offset, len) }
    }

    unsafe fn map_shared(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> MediumResult<()> {
        // SAFETY: our caller promises what it asks for.
        unsafe { self.inner.map_shared(region, region_offset, file_offset, len) }
    }
}

#[test]
fn a_full_medium_undoes_what_needs_more_and_lets_the_rest_go_on() {
    const BYTES: usize = 3 << 20;
    for left in [0, 1 << 19, 1 << 20, 3 << 20] {
        let directory: Arc<dyn Directory> =
            Arc::new(Small { inner: new_directory(), left: Arc::new(AtomicU64::new(left)) });
        let refused = open(&directory).map(drop);
        assert!(refused.is_err_and(|error| error.is_out_of_space()), "no room for {left} bytes");
    }
    let left = Arc::new(AtomicU64::new(64 << 20));
    let inner = new_directory();
    let directory: Arc<dyn Directory> =
        Arc::new(Small { inner: Arc::clone(&inner), left: Arc::clone(&left) });
    let (heap, _) = open(&directory).expect("creates");
    let block = heap
        .transaction(Durability::Sync, |tx| {
            let block = tx.reserve(BYTES as u64)?;
            tx.write(block, 0, BYTES)?.fill(1);
            Ok::<_, Error>(block)
        })
        .expect("room");
    let small = heap
        .transaction(Durability::Sync, |tx| {
            (0..2000).map(|_| tx.reserve(200)).collect::<Result<Vec<u64>, Error>>()
        })
        .expect("room");
    left.store(0, Ordering::Relaxed);
    for round in 0..3 {
        let refused = overwrite(&heap, block, BYTES, 2);
        assert!(refused.is_err_and(|error| error.is_out_of_space()));
        let view = heap.view().expect("open");
        assert!(view.block(block).expect("there")[..BYTES].iter().all(|byte| *byte == 1));
        drop(view);
        // A record of 400 KB, which no lane has room for: its file is there.
        heap.transaction(Durability::Sync, |tx| {
            small.iter().try_for_each(|&block| {
                tx.write(block, 0, 200)?.fill(round);
                Ok::<_, Error>(())
            })
        })
        .expect("a file is kept for it");
        if round == 1 {
            // What else there is on the medium after a crash is room for it, too.
            let (copy, _) = open(&directory_of(&files_of(&inner))).expect("recovers");
            let view = copy.view().expect("open");
            assert!(small.iter().all(|block| view.block(*block).expect("there")[0] == round));
        }
    }
    heap.transaction(Durability::Sync, |tx| small.iter().try_for_each(|&block| tx.free(block)))
        .expect("frees need no space");
    // What fits into a lane goes on, a lane's length over and over, and so do frees.
    for round in 0..5000_u64 {
        heap.transaction(Durability::Sync, |tx| {
            tx.set_root(0, round)?;
            tx.write(block, 0, 100).map(|bytes| bytes.fill(3))
        })
        .expect("needs no space");
    }
    let (copy, _) = open(&directory_of(&files_of(&inner))).expect("recovers");
    assert_eq!(copy.view().expect("open").root(0), 4999);
    left.store(16 << 20, Ordering::Relaxed);
    overwrite(&heap, block, BYTES, 4).expect("room again");
    heap.transaction(Durability::Sync, |tx| tx.free(block)).expect("frees");
    heap.close().expect("closes");
}

#[test]
fn the_other_journal_is_refused_and_named() {
    let directory = new_directory();
    drop(open(&directory).expect("creates"));
    let mut redo = options();
    redo.journal = JournalKind::Redo;
    let refused = Heap::open(Arc::clone(&directory), redo.clone()).map(drop);
    let words = refused.expect_err("another journal").to_string();
    assert!(words.contains("redo") && words.contains("undo"), "{words}");
    let directory = new_directory();
    drop(Heap::open(Arc::clone(&directory), redo).expect("creates"));
    assert!(matches!(open(&directory), Err(Error::Unsupported { .. })));
    let mut verifying = options();
    verifying.verify_first_touch = true;
    let refused = Heap::open(new_directory(), verifying).map(drop);
    assert!(matches!(refused, Err(Error::Misuse { .. })));
}
