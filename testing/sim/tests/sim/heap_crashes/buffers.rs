//! Buffers on the heap, to which entries are appended by `write_unused`: after a crash the bytes in
//! use are those of a commit, whatever aborted transactions and savepoints left behind them.
//!
//! A buffer is filled, frozen, freed and made again, its pages used by other blocks meanwhile, and
//! sometimes emptied and refilled in place. Its bytes are held back from the pool file, up to a
//! part of the log, while checkpoints, backups, shrinking and a memory bound do their work.

use std::sync::Arc;

use adamant_heap::{
    Directory, Durability, Error, Flushing, Heap, MemoryDirectory, Options, Read, Recovery, Result,
    Transaction, View, Write,
};
use adamant_sim::mutation;
use adamant_sim::site::Site;
use adamant_sim::tally::{seed, states_max};
use adamant_sim::{Mark, Promise, SimDirectory, SimDisk, Tally};

use crate::heap_crashes::model::{commit_of, word};
use crate::heap_crashes::workload::ALL;

/// Blocks beside the buffers.
const SLOTS: usize = 4;
/// Words of the header: the number of the commit, then block and bytes of the buffer in use, of the
/// frozen one, and of the others.
const HEADER_BYTES: usize = 8 + 16 * (2 + SLOTS);
/// Bytes of a buffer; of smaller ones copies would be made.
const BUFFER_BYTES: usize = 45_000;
/// Bytes that are written to a buffer when it is made, before any of them is in use.
const FIRST_BYTES: usize = 300;

/// The heap's contents after a commit: by slot of the header, the buffer in use first.
#[derive(Clone, Debug, Default)]
struct State {
    commit: u64,
    blocks: [Option<Arc<Vec<u8>>>; 2 + SLOTS],
    loose: u64,
}

/// Offset of a slot in the header.
fn place(index: usize) -> usize {
    8 + 16 * index
}

impl State {
    fn verify(&self, view: &View<'_>) {
        let header = view.root(0);
        if self.commit == 0 {
            assert_eq!(header, 0, "nothing was committed");
            return;
        }
        for (index, expected) in self.blocks.iter().enumerate() {
            let (block, bytes) =
                (word(view, header, place(index)), word(view, header, place(index) + 8));
            let Some(expected) = expected else {
                assert_eq!((block, bytes), (0, 0), "block {index}");
                continue;
            };
            assert_eq!(bytes, expected.len() as u64, "bytes of block {index}");
            let found = &view.block(block).expect("a block")[..expected.len()];
            assert!(found == expected.as_slice(), "block {index} of {bytes} bytes differs");
        }
    }
}

/// Opens the heap of a disk, and panics unless it is a promised commit, whole. Returns its number.
fn verify(disk: &SimDisk, flushing: Flushing, states: &[State], promise: Promise) -> u64 {
    let (heap, _) =
        open(disk, flushing).unwrap_or_else(|error| panic!("recovery failed: {error:?}"));
    let commit = commit_of(&heap);
    let promised = promise.least..=promise.most;
    assert!(promised.contains(&commit), "commit {commit} was recovered, {promise:?}");
    let state = &states[commit as usize];
    state.verify(&heap.view().expect("ours"));
    let report = heap.check().expect("checked");
    assert!(report.is_clean(), "after commit {commit}: {:#?}", report.findings);
    let blocks = state.blocks.iter().flatten().count() as u64 + u64::from(commit > 0);
    let blocks = blocks..=blocks + states.iter().map(|state| state.loose).max().unwrap_or(0);
    assert!(blocks.contains(&report.blocks), "{} blocks after commit {commit}", report.blocks);
    commit
}

/// Opens the heap on a disk, with bounds that the workload reaches.
fn open(disk: &SimDisk, flushing: Flushing) -> Result<(Heap, Recovery)> {
    open_in(Arc::new(SimDirectory::root(disk)), flushing)
}

fn open_in(directory: Arc<dyn Directory>, flushing: Flushing) -> Result<(Heap, Recovery)> {
    let mut options = Options::default();
    options.flushing = flushing;
    options.log_bytes_max = 4 << 20;
    options.log_held_bytes_max = 60_000;
    options.address_bytes_max = 256 << 20;
    options.memory_bytes_max = 200_000;
    options.background = false;
    Heap::open(directory, options)
}

/// A scripted user: the same seed does the same.
struct User {
    disk: SimDisk,
    flushing: Flushing,
    heap: Heap,
    states: Vec<State>,
    random: fastrand::Rng,
}

impl User {
    fn create(disk: &SimDisk, flushing: Flushing, number: u64) -> Result<User> {
        let heap = open(disk, flushing)?.0;
        Mark::Durable.put(disk, 0);
        let (disk, states) = (disk.clone(), vec![State::default()]);
        let random = fastrand::Rng::with_seed(number);
        Ok(User { disk, flushing, heap, states, random })
    }

    fn run(disk: &SimDisk, flushing: Flushing, number: u64, steps: u64) -> Vec<State> {
        let mut user = User::create(disk, flushing, number).expect("created");
        let (mut dropped, mut held) = (false, false);
        for _ in 0..steps {
            user.step().expect("nothing fails");
            user.last().verify(&user.heap.view().expect("ours"));
            let stats = user.heap.stats();
            dropped |= stats.memory.dropped_bytes > 0;
            held |= stats.journal.log_held_bytes > 0;
        }
        assert!(dropped && held, "bytes are held back, memory is given back");
        user.states
    }

    fn last(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    fn step(&mut self) -> Result<()> {
        match self.random.u8(..40) {
            0..=2 => self.heap.checkpoint()?,
            3 => self.heap.sync()?,
            4 => {
                self.heap.close()?;
                Mark::Durable.put(&self.disk, self.last().commit);
                self.heap = open(&self.disk, self.flushing)?.0;
            }
            5 => drop(self.heap.shrink()?),
            6 => self.back_up()?,
            // Beside transactions; no pointer to it ever exists.
            7 => {
                let mut reservation = self.heap.reserve(self.random.u64(1..9000))?;
                reservation.fill(5);
                if let Some(last) = self.states.last_mut() {
                    last.loose += 1;
                }
                return self.heap.publish(Durability::Buffered, [reservation]);
            }
            8 => self.heap.lend_log_space(|| ())?,
            9..=13 => return self.transaction(true),
            _ => return self.transaction(false),
        }
        Mark::Durable.put(&self.disk, self.last().commit);
        Ok(())
    }

    /// Backs the heap up, and verifies the copy.
    fn back_up(&self) -> Result<()> {
        let target: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        self.heap.back_up(target.as_ref())?;
        let (copy, _) = open_in(target, self.flushing)?;
        self.last().verify(&copy.view()?);
        assert!(copy.check()?.is_clean(), "the copy is whole");
        Ok(())
    }

    /// A transaction, or one that is aborted at the end.
    fn transaction(&mut self, fails: bool) -> Result<()> {
        let mut state = self.last().clone();
        state.commit += 1;
        let durability = *self.random.choice(ALL).expect("some");
        let mut random = self.random.fork();
        if !fails {
            Mark::Begun.put(&self.disk, state.commit);
        }
        let done = self.heap.transaction(durability, |tx| {
            work(tx, &mut state, &mut random)?;
            if fails { Err(Error::Misuse { what: "given up on purpose" }) } else { Ok(()) }
        });
        match done {
            Err(Error::Misuse { .. }) if fails => {
                self.last().verify(&self.heap.view()?);
                return Ok(());
            }
            // Whether it is visible or not, it may be there after a crash.
            Err(error) => {
                self.states.push(state);
                return Err(error);
            }
            Ok(()) => assert!(!fails, "it was given up"),
        }
        match durability {
            Durability::Sync => Mark::Durable.put(&self.disk, state.commit),
            Durability::Buffered => Mark::Buffered.put(&self.disk, state.commit),
            Durability::Deferred => {}
        }
        self.states.push(state);
        Ok(())
    }
}

/// The change of the buffer in a transaction: only one of these, as each relies on the bytes in use
/// when it began.
fn work(tx: &mut Transaction<'_>, state: &mut State, random: &mut fastrand::Rng) -> Result<()> {
    let header = match tx.root(0) {
        0 => {
            let header = tx.reserve_zeroed(HEADER_BYTES as u64)?;
            tx.set_root(0, header)?;
            header
        }
        header => header,
    };
    match (random.u8(..20), &state.blocks[0], &state.blocks[1]) {
        (0, Some(_), _) => {
            state.blocks[0] = Some(Arc::default());
            tx.update_u64(header, place(0) + 8, 0)?;
        }
        (1..=3, _, Some(_)) => set(tx, header, state, 1, None)?,
        (4, Some(buffer), _) if !buffer.is_empty() => {
            let at = random.usize(..buffer.len());
            let mut bytes = buffer.to_vec();
            random.fill(&mut bytes[at..]);
            let block = word(tx, header, place(0));
            tx.write(block, at, bytes.len() - at)?.copy_from_slice(&bytes[at..]);
            state.blocks[0] = Some(Arc::new(bytes));
        }
        (..16, _, _) => {
            for _ in 0..random.usize(1..5) {
                append(tx, header, state, random)?;
            }
            if random.u8(..3) == 0 {
                // Committed, but not in use: the next bytes overwrite it.
                let used = state.blocks[0].as_ref().map_or(BUFFER_BYTES, |buffer| buffer.len());
                let bytes = random.usize(..=300.min(BUFFER_BYTES - used));
                let block = word(tx, header, place(0));
                random.fill(tx.write_unused(block, used, bytes)?);
            }
            if random.u8(..3) == 0 {
                let mut inner = state.clone();
                let undone: Result<()> = tx.savepoint(|tx| {
                    append(tx, header, &mut inner, random)?;
                    Err(Error::Misuse { what: "undone on purpose" })
                });
                assert!(matches!(undone, Err(Error::Misuse { .. })), "{undone:?}");
                append(tx, header, state, random)?;
            }
        }
        _ => {}
    }
    if random.u8(..3) == 0 {
        let most = if random.bool() { 300 } else { 30_000 };
        let bytes = random.usize(1..most);
        let bytes = (0..bytes).map(|_| random.u8(..)).collect();
        set(tx, header, state, 2 + random.usize(..SLOTS), Some(bytes))?;
    }
    tx.update_u64(header, 0, state.commit)
}

/// Appends an entry to the buffer; a buffer without room for it is frozen before.
fn append(
    tx: &mut Transaction<'_>,
    header: u64,
    state: &mut State,
    random: &mut fastrand::Rng,
) -> Result<()> {
    let most = if random.u8(..3) == 0 { 7000 } else { 300 };
    let entry: Vec<u8> = (0..random.usize(1..most)).map(|_| random.u8(..)).collect();
    let used = state.blocks[0].as_ref().map_or(BUFFER_BYTES, |buffer| buffer.len());
    if used + entry.len() > BUFFER_BYTES {
        set(tx, header, state, 1, None)?;
        let old = [0, 8].map(|at| word(tx, header, place(0) + at));
        tx.update_u64(header, place(1), old[0])?;
        tx.update_u64(header, place(1) + 8, old[1])?;
        state.blocks[1] = state.blocks[0].take();
        let made = tx.reserve_held(BUFFER_BYTES as u64)?;
        tx.write(made, 0, FIRST_BYTES)?.fill(9);
        tx.update_u64(header, place(0), made)?;
        tx.update_u64(header, place(0) + 8, 0)?;
        state.blocks[0] = Some(Arc::default());
    }
    let Some(buffer) = &mut state.blocks[0] else { return Ok(()) };
    let block = word(tx, header, place(0));
    tx.write_unused(block, buffer.len(), entry.len())?.copy_from_slice(&entry);
    Arc::make_mut(buffer).extend(entry);
    tx.update_u64(header, place(0) + 8, buffer.len() as u64)
}

/// Puts another block, or none, into a slot; frees the previous one.
fn set(
    tx: &mut Transaction<'_>,
    header: u64,
    state: &mut State,
    index: usize,
    bytes: Option<Vec<u8>>,
) -> Result<()> {
    if state.blocks[index].is_some() {
        tx.free(word(tx, header, place(index)))?;
    }
    let block = match &bytes {
        None => 0,
        Some(bytes) => {
            let block = tx.reserve(bytes.len() as u64)?;
            tx.write(block, 0, bytes.len())?.copy_from_slice(bytes);
            block
        }
    };
    let len = bytes.as_ref().map_or(0, Vec::len) as u64;
    tx.update_u64(header, place(index), block)?;
    tx.update_u64(header, place(index) + 8, len)?;
    state.blocks[index] = bytes.map(Arc::new);
    Ok(())
}

/// Power cuts, deaths, and crashes within the recoveries from those.
fn try_all(flushing: Flushing, number: u64, (steps, step): (u64, usize), what: &str) {
    let disk = SimDisk::new(number);
    let states = User::run(&disk, flushing, number, steps);
    let frozen = states.iter().filter(|state| state.blocks[1].is_some()).count();
    assert!(frozen > 0 && frozen < states.len(), "buffers are frozen and freed: {frozen}");
    let mut tally = Tally::new();
    tally.power_cuts(&disk, step, 8, |crashed, promise| {
        verify(&crashed, flushing, &states, promise);
    });
    tally.deaths(&disk, 3 * step, |killed, promise| {
        verify(&killed, flushing, &states, promise);
    });
    let mut cursor = disk.cursor();
    for point in (cursor.point()..=disk.operation_count()).step_by(29 * step) {
        cursor.advance_to(point);
        let (promise, killed) = (Promise::at_power_cut(&disk, point), cursor.kill());
        drop(open(&killed, flushing));
        tally.cuts_within(&killed, 3, point, |crashed| {
            verify(&crashed.without_history(), flushing, &states, promise);
        });
    }
    tally.print(what);
}

/// Each sync of a checkpoint is left out once: of pages, of held extents, of the checkpoint itself.
#[test]
fn a_missing_sync_beside_held_buffers_is_noticed() {
    // This workload is known to need every call; others may not.
    let (flushing, number) = (Flushing::Auto, 89);
    let suite = |disk: &SimDisk| {
        let states = User::run(disk, flushing, number, 160);
        Tally::new().power_cuts(disk, 1, 6, |crashed, promise| {
            verify(&crashed, flushing, &states, promise);
        });
    };
    let is_tried = |site: &Site| site.file.ends_with("/journal/checkpoints/checkpoint.rs");
    let verdicts = mutation::verdicts(number, is_tried, suite);
    assert!(verdicts.len() >= 2, "{verdicts:?}");
    mutation::verify(&verdicts, |_| false);
}

/// An operation of the disk fails, and later the power.
#[test]
fn what_fails_beside_held_buffers_loses_nothing() {
    let (flushing, number, steps) = (Flushing::Auto, seed(83), 80);
    let sound = SimDisk::new(number);
    User::run(&sound, flushing, number, steps);
    let (mut tally, mut failed) = (Tally::new(), 0);
    for fault in (0..sound.operation_count()).step_by(3) {
        let disk = SimDisk::new(number);
        disk.fail(fault..fault + 1);
        let Ok(mut user) = User::create(&disk, flushing, number) else { continue };
        failed += u64::from((0..steps).any(|_| user.step().is_err()));
        tally.points += 1;
        let mut cursor = disk.cursor();
        cursor.advance_to(disk.operation_count());
        let promise = Promise::at_power_cut(&disk, cursor.point());
        for choice in cursor.choices(states_max(4), fault) {
            tally.state(&disk, fault, &choice, || {
                verify(&cursor.crash(&mut choice.clone()), flushing, &user.states, promise);
            });
        }
        tally.state(&disk, fault, &"killed", || {
            let promise = Promise::at_death(&disk, cursor.point());
            verify(&cursor.kill(), flushing, &user.states, promise);
        });
    }
    assert!(failed > 10, "{failed} operations ended the run");
    tally.print("buffers, failing operations");
}

#[test]
fn appends_to_buffers() {
    try_all(Flushing::Auto, seed(61), (220, 5), "buffers");
}

#[test]
fn appends_to_buffers_in_memory() {
    try_all(Flushing::Volatile, seed(67), (220, 9), "buffers, direct");
}
