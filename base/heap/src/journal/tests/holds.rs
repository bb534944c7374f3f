//! Held extents: their live bytes survive every crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;

use super::disk::Disk;
use super::model::{PAGES, create, open, options, small_log};
use crate::durability::Durability;
use crate::journal::{Journal, JournalOptions, JournalStats, RecordBuilder};
use crate::layout::{PAGE_BYTES, file_offset};

const DATA_BYTES: usize = (PAGES * PAGE_BYTES) as usize;
/// First page and number of pages of the extents that are reserved and freed.
const EXTENTS: [(u64, u64); 3] = [(8, 4), (12, 8), (20, 8)];

/// The data pages after a record, and the bytes of them that are live.
#[derive(Clone)]
struct State {
    data: Vec<u8>,
    matters: Vec<bool>,
}

/// The state of an extent.
#[derive(Clone, Copy)]
enum Use {
    Free,
    /// This many bytes of it are written.
    Filled(usize),
}

struct World {
    disk: Arc<Disk>,
    journal: Arc<Journal>,
    rng: Rng,
    states: Vec<State>,
    uses: [Use; EXTENTS.len()],
}

fn range(extent: usize) -> std::ops::Range<usize> {
    let (page, pages) = EXTENTS[extent];
    (page * PAGE_BYTES) as usize..((page + pages) * PAGE_BYTES) as usize
}

impl World {
    fn new(seed: u64, options: JournalOptions) -> World {
        let disk = Disk::new();
        let journal = Arc::new(create(&disk, options));
        let mut data = vec![0; DATA_BYTES];
        data[..PAGE_BYTES as usize].fill(7);
        let matters = (0..DATA_BYTES).map(|at| (0..3).all(|one| !range(one).contains(&at)));
        let states = vec![State { data, matters: matters.collect() }];
        let uses = [Use::Free; EXTENTS.len()];
        World { disk, journal, rng: Rng::with_seed(seed), states, uses }
    }

    fn last(&self) -> State {
        self.states[self.states.len() - 1].clone()
    }

    fn commit(&mut self, record: &RecordBuilder, state: State) -> u64 {
        let all = [Durability::Sync, Durability::Buffered, Durability::Deferred];
        let durability = all[self.rng.usize(..3)];
        self.journal.wait_for_space().expect("space");
        let sequence = self.journal.append(record).expect("append");
        self.states.push(state);
        assert_eq!(sequence + 1, self.states.len() as u64);
        self.journal.finish(sequence, durability).expect("finish");
        sequence
    }

    /// A record of some bytes.
    fn write(&mut self, state: &mut State, record: &mut RecordBuilder, at: usize, len: usize) {
        self.rng.fill(&mut state.data[at..at + len]);
        state.matters[at..at + len].fill(true);
        record.bytes(at as u64, &state.data[at..at + len]);
    }

    /// A record that frees an extent.
    fn free(&mut self, extent: usize) -> (RecordBuilder, State) {
        let (mut state, mut record) = (self.last(), RecordBuilder::new());
        self.write(&mut state, &mut record, 5000, 10);
        state.matters[range(extent)].fill(false);
        self.uses[extent] = Use::Free;
        (record, state)
    }

    fn step(&mut self) {
        let extent = self.rng.usize(..EXTENTS.len());
        let (page, pages) = EXTENTS[extent];
        let (mut state, mut record) = (self.last(), RecordBuilder::new());
        match (self.rng.u8(..12), self.uses[extent]) {
            (0..2, _) => self.checkpoint(),
            (2, _) if self.rng.u8(..4) == 0 => self.journal.checkpoint_held().expect("checkpoint"),
            (2, Use::Free) => {
                self.journal.holds().add(page, pages);
                self.journal.holds().cancel(page);
            }
            (2..5, _) => {
                let (at, len) = (self.rng.usize(4096..30_000), self.rng.usize(1..2000));
                self.write(&mut state, &mut record, at, len);
                self.commit(&record, state);
            }
            (_, Use::Free) => {
                // Its pages are free, and are reserved again.
                self.journal.holds().forget(|start, _| start == page);
                if self.rng.u8(..3) > 0 {
                    self.journal.holds().add(page, pages);
                }
                self.uses[extent] = Use::Filled(0);
            }
            (5..11, Use::Filled(used)) if used + 3000 < range(extent).len() => {
                let len = self.rng.usize(1..3000);
                self.write(&mut state, &mut record, range(extent).start + used, len);
                if self.rng.bool() {
                    let at = range(extent).start + self.rng.usize(..used + 1);
                    let len = self.rng.usize(1..100).min(range(extent).start + used + len - at);
                    self.write(&mut state, &mut record, at, len);
                }
                self.commit(&record, state);
                self.uses[extent] = Use::Filled(used + len);
            }
            (_, Use::Filled(_)) => {
                let (record, state) = self.free(extent);
                let sequence = self.commit(&record, state);
                self.journal.holds().free(page, sequence);
            }
        }
    }

    /// A checkpoint; sometimes an extent is freed while it is made, and the free is not durable
    /// then.
    fn checkpoint(&mut self) {
        let extent = self.rng.usize(..EXTENTS.len());
        let freed = Arc::new(AtomicU64::new(0));
        let is_filled = matches!(self.uses[extent], Use::Filled(_));
        let before = self.uses[extent];
        let made = (is_filled && self.rng.bool()).then(|| self.free(extent));
        let made = made.map(|(record, state)| {
            let (journal, freed) = (Arc::clone(&self.journal), Arc::clone(&freed));
            *self.journal.holds().meanwhile.0.lock() = Some(Box::new(move || {
                let sequence = journal.append(&record).expect("append");
                journal.holds().free(EXTENTS[extent].0, sequence);
                journal.holds().forget(|page, _| page == EXTENTS[extent].0);
                freed.store(sequence, Ordering::Relaxed);
            }));
            state
        });
        self.journal.checkpoint().expect("checkpoint");
        *self.journal.holds().meanwhile.0.lock() = None;
        match made {
            Some(state) if freed.load(Ordering::Relaxed) > 0 => self.states.push(state),
            // There was nothing to apply.
            _ => self.uses[extent] = before,
        }
    }

    /// The process dies: the bytes that it gave to the system are there, and no fewer than were
    /// durable.
    fn verify_crash(&self) {
        let copy = self.disk.copy();
        let durable = self.journal.stats().durable_sequence;
        let (journal, recovery) = open(&copy).expect("recovered");
        assert!(recovery.last_sequence >= durable, "{recovery:?}, {durable} was durable");
        self.verify(&copy, recovery.last_sequence);
        journal.verify(&mut |error| panic!("{error}")).expect("verified");
        journal.close().expect("closed");
    }

    /// A round of thousands, of which only the last state is kept: writes over the same bytes, and
    /// to an extent if there is one; every 50 rounds a checkpoint.
    fn go_round(&mut self, round: usize, extent: Option<usize>) -> JournalStats {
        let (mut state, mut record) = (self.last(), RecordBuilder::new());
        self.write(&mut state, &mut record, 8192, 8000);
        if let Some(extent) = extent {
            self.write(&mut state, &mut record, range(extent).start, 5000);
        }
        self.states.truncate(1);
        self.journal.wait_for_space().expect("space");
        let sequence = self.journal.append(&record).expect("append");
        self.journal.finish(sequence, Durability::Buffered).expect("finish");
        self.states[0] = state;
        if round.is_multiple_of(50) {
            self.journal.checkpoint().expect("checkpoint");
        }
        self.journal.stats()
    }

    /// The only state that is kept is there after a crash now, and after closing.
    fn verify_last(&self) {
        let copy = self.disk.copy();
        drop(open(&copy).expect("recovered"));
        self.verify(&copy, 0);
        self.journal.close().expect("closed");
        self.verify(&self.disk, 0);
    }

    fn verify(&self, disk: &Disk, sequence: u64) {
        let pool = disk.bytes("pool");
        let found = &pool[file_offset(0) as usize..][..DATA_BYTES];
        let state = &self.states[sequence as usize];
        let wrong = (0..DATA_BYTES).find(|at| state.matters[*at] && found[*at] != state.data[*at]);
        assert_eq!(wrong, None, "first wrong byte after record {sequence}");
    }
}

/// Some hundred steps, each followed by a crash.
fn run(seed: u64, held_bytes_max: u64) {
    let mut world = World::new(seed, JournalOptions { held_bytes_max, ..options() });
    let mut held_bytes = 0;
    for _ in 0..250 {
        world.step();
        held_bytes = held_bytes.max(world.journal.stats().log_held_bytes);
        world.verify_crash();
    }
    assert!(held_bytes > 0, "something is held");
    world.journal.close().expect("closed");
    world.verify(&world.disk, world.states.len() as u64 - 1);
    let (_, recovery) = open(&world.disk.copy()).expect("opened");
    assert!(recovery.was_closed);
}

#[test]
fn what_is_held_back_is_there_after_a_crash() {
    for seed in 0..4 {
        println!("seed {seed}");
        run(seed, u64::MAX);
        run(seed, 20_000);
    }
}

#[test]
fn what_is_freed_in_time_is_never_written_to_the_pool() {
    let mut world = World::new(1, options());
    let (page, pages) = EXTENTS[2];
    let journal = Arc::clone(&world.journal);
    journal.holds().add(page, pages);
    for round in 0..10 {
        let (mut state, mut record) = (world.last(), RecordBuilder::new());
        world.write(&mut state, &mut record, range(2).start + 3000 * round, 3000);
        world.write(&mut state, &mut record, 5000, 100);
        world.commit(&record, state);
        journal.checkpoint().expect("checkpoint");
        world.verify_crash();
    }
    let held = journal.stats();
    assert!((30_000..40_000).contains(&held.log_held_bytes), "{held:?}");
    assert_eq!(held.applied_sequence, held.last_sequence);
    let (record, state) = world.free(2);
    let sequence = world.commit(&record, state);
    journal.holds().free(page, sequence);
    journal.checkpoint().expect("checkpoint");
    assert_eq!(journal.stats().log_held_bytes, 0);
    let pool = world.disk.bytes("pool");
    let found = &pool[file_offset(0) as usize..][range(2)];
    assert!(found.iter().all(|byte| *byte == 0), "the third write");
    world.verify_crash();
}

/// A full log brings held extents into the pool, and continues.
#[test]
fn a_hold_does_not_keep_a_full_log_from_going_on() {
    for (held_bytes_max, is_disk_full) in [(1 << 20, false), (u64::MAX, false), (u64::MAX, true)] {
        let mut world = World::new(2, JournalOptions { held_bytes_max, ..small_log() });
        for (page, pages) in EXTENTS {
            world.journal.holds().add(page, pages);
        }
        let mut held_bytes = 0;
        if is_disk_full {
            world.disk.faults().free_bytes.store(0, Ordering::Relaxed);
        }
        for round in 0..3000 {
            let stats = world.go_round(round, (round % 100 == 0).then_some(round / 100 % 3));
            held_bytes = held_bytes.max(stats.log_held_bytes);
            assert!(stats.log_allocated_bytes <= 4 << 20, "{stats:?}");
        }
        assert!(held_bytes > 300_000 && held_bytes <= 2 << 20, "{held_bytes}");
        world.verify_last();
    }
}

/// Held extents come on top of the log's limit, up to twice as much; what they keep beyond that is
/// given up.
#[test]
fn the_log_is_longer_by_what_is_held() {
    const LIMIT: u64 = 4 << 20;
    for (others_bytes, held_most) in [(0, LIMIT / 2), (4 << 20, 7 << 20), (1 << 30, 10 << 20)] {
        let mut world = World::new(3, small_log());
        let (page, pages) = EXTENTS[0];
        world.journal.holds().add(page, pages);
        // Nothing is written to these, but there may be.
        world.journal.holds().add(1 << 20, others_bytes / PAGE_BYTES);
        let (mut held_bytes, mut allocated_bytes) = (0, 0);
        for round in 0..3000 {
            let stats = world.go_round(round, (round == 0).then_some(0));
            held_bytes = held_bytes.max(stats.log_held_bytes);
            allocated_bytes = allocated_bytes.max(stats.log_allocated_bytes);
        }
        // A checkpoint is made after 400 KB, so a hold is given up that much too late.
        assert!((held_most / 2..held_most + (1 << 20)).contains(&held_bytes), "{held_bytes}");
        let limit = LIMIT + (others_bytes + others_bytes / 4).min(2 * LIMIT) + (1 << 20);
        assert!(allocated_bytes <= limit, "{allocated_bytes} of {limit}");
        world.verify_last();
    }
}
