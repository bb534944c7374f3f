//! A scripted user of a store: the same seed does the same.

use std::sync::Arc;

use adamant::{Durability, Result, Store};
use adamant_sim::{Mark, SimDisk};

use crate::model::{Content, open};
use crate::plan::{Change, Move, Plan};

/// Keyspaces that come and go.
const NAMES: [&str; 5] = ["first", "second", "..", "/", "log"];
/// Bytes of a value too large for one frame of the log, by far.
const LARGE_BYTES: std::ops::Range<usize> = 1_100_000..1_500_000;
/// Keys that values so large have.
const LARGE_KEYS: [&str; 2] = ["large", "larger"];
/// Different numbers that keys are made of.
const KEYS: u64 = 600;

/// What kinds of steps a workload takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    /// One commit in so many writes a large value; 0: none does.
    pub(crate) large_one_in: u64,
    /// One step in so many is a sync, and one reopens the store; 0: none.
    pub(crate) upkeep_one_in: u64,
    /// The durabilities to choose from.
    pub(crate) durabilities: &'static [Durability],
}

/// A store in use, and what it should hold.
pub(crate) struct Workload {
    pub(crate) disk: SimDisk,
    /// None when closing or opening it failed.
    pub(crate) store: Option<Store>,
    /// By commit.
    pub(crate) models: Vec<Content>,
    /// Errors that the store survived.
    pub(crate) refused: u64,
    pub(crate) mix: Mix,
    random: fastrand::Rng,
}

impl Workload {
    /// Creates a store on an empty disk.
    pub(crate) fn create(disk: &SimDisk, mix: Mix) -> Result<Workload> {
        Ok(Workload {
            disk: disk.clone(),
            store: Some(open(disk)?),
            models: vec![Content::default()],
            refused: 0,
            mix,
            random: fastrand::Rng::with_seed(mix.seed),
        })
    }

    /// Creates a store, takes all steps, and returns what it should hold by commit.
    pub(crate) fn run(disk: &SimDisk, mix: Mix) -> Vec<Content> {
        let mut workload = Workload::create(disk, mix).unwrap();
        for _ in 0..mix.steps {
            workload.step().unwrap();
        }
        workload.last().verify(workload.store());
        workload.models
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    pub(crate) fn last(&self) -> &Content {
        self.models.last().expect("there is a model of the empty store")
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.last().keyspaces.contains_key(name)
    }

    fn put_durable(&self) {
        Mark::Durable.put(&self.disk, self.models.len() as u64 - 1);
    }

    /// Upkeep or a commit.
    pub(crate) fn step(&mut self) -> Result<()> {
        if self.one_in(self.mix.upkeep_one_in) {
            self.reopen()
        } else if self.one_in(self.mix.upkeep_one_in) {
            self.store().sync()?;
            self.put_durable();
            Ok(())
        } else {
            let durability = *self.random.choice(self.mix.durabilities).unwrap();
            let plan = self.plan();
            self.commit(&plan, durability)
        }
    }

    /// Closes the store and opens it again.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        let store = self.store.take().expect("the store is open");
        store.close()?;
        self.put_durable();
        self.store = Some(open(&self.disk)?);
        Ok(())
    }

    /// One commit. After an error it is undone, or the store is poisoned.
    pub(crate) fn commit(&mut self, plan: &Plan, durability: Durability) -> Result<()> {
        let commit = self.models.len() as u64;
        let model = plan.applied(self.last());
        Mark::Begun.put(&self.disk, commit);
        let done = plan.run(self.store(), self.last(), durability);
        match (&done, plan.fixed_durability().unwrap_or(durability)) {
            (Ok(()), Durability::Sync) => Mark::Durable.put(&self.disk, commit),
            (Ok(()), Durability::Buffered) => Mark::Buffered.put(&self.disk, commit),
            (Ok(()), Durability::Deferred) => {}
            (Err(error), _) if error.is_poisoned() && Content::of(self.store()) == model => {}
            (Err(_), _) => {
                self.refused += 1;
                self.last().verify(self.store());
                return done;
            }
        }
        self.models.push(model);
        done
    }

    /// Some commit that makes sense now.
    fn plan(&mut self) -> Plan {
        let missing: Vec<&'static str> = NAMES.into_iter().filter(|name| !self.has(name)).collect();
        if missing.len() == NAMES.len() || (!missing.is_empty() && self.one_in(10)) {
            return Plan::Create(missing[self.random.usize(..missing.len())]);
        }
        let name = self.some_name();
        if self.one_in(self.mix.large_one_in) {
            let mut value = vec![0; self.random.usize(LARGE_BYTES)];
            self.random.fill(&mut value);
            let key = LARGE_KEYS[self.random.usize(..LARGE_KEYS.len())].into();
            return Plan::Single(Change { name: name.into(), key, value: Some(value) });
        }
        match self.random.u8(..39) {
            0 => Plan::Drop(name),
            1..=11 => {
                let key = self.some_key();
                Plan::Single(Change { name: name.into(), key, value: Some(self.some_value()) })
            }
            12..=15 => Plan::Single(self.removal(name)),
            16 | 17 => Plan::Take { name: name.into(), key: self.removal(name).key },
            // Nothing changes: the same value once more, or a key that is not there.
            18 | 19 => Plan::Single(self.repetition(name)),
            20..=24 => {
                let count = self.random.usize(1..30);
                Plan::Batch((0..count).map(|_| self.some_change()).collect())
            }
            25..=29 => self.growth(name),
            30 | 31 => self.shrinkage(name),
            32..=34 => Plan::Moves(vec![self.some_move()]),
            35 | 36 => {
                Plan::Moves((0..self.random.usize(2..12)).map(|_| self.some_move()).collect())
            }
            _ => self.load(name),
        }
    }

    fn some_name(&mut self) -> &'static str {
        let present = NAMES.into_iter().filter(|name| self.has(name));
        let present: Vec<&'static str> = present.collect();
        present[self.random.usize(..present.len())]
    }

    fn some_change(&mut self) -> Change {
        let name = self.some_name();
        if self.random.u8(..4) == 0 {
            return self.removal(name);
        }
        let key = self.some_key();
        Change { name: name.into(), key, value: Some(self.some_value()) }
    }

    /// The removal of a key that may be there.
    fn removal(&mut self, name: &str) -> Change {
        let map = &self.models[self.models.len() - 1].keyspaces[name];
        let key = match map.len() {
            0 => key(self.random.u64(..KEYS)),
            len => map.keys().nth(self.random.usize(..len)).expect("one of them").to_vec(),
        };
        Change { name: name.into(), key, value: None }
    }

    /// A move or swap, mostly of something that is there.
    fn some_move(&mut self) -> Move {
        let (source, target) = (self.some_name(), self.some_name());
        let key = if self.random.bool() { self.removal(target).key } else { self.some_key() };
        Move {
            is_swap: self.random.u8(..3) == 0,
            source: (source.into(), self.removal(source).key),
            target: (target.into(), key),
        }
    }

    /// Entries in no order, some of them twice.
    fn load(&mut self, name: &str) -> Plan {
        let start = self.random.u64(..KEYS);
        let count = self.random.usize(1..200);
        let mut key = || key(start + self.random.u64(..300));
        let keys: Vec<Vec<u8>> = (0..count).map(|_| key()).collect();
        let entries = keys.into_iter().map(|key| (key, self.some_value())).collect();
        Plan::Load { name: name.into(), entries }
    }

    fn repetition(&mut self, name: &str) -> Change {
        let Change { name, key, .. } = self.removal(name);
        let value = self.last().keyspaces[&name].get(key.as_slice()).map(|value| value.to_vec());
        Change { name, key, value }
    }

    /// Many neighbours at once: leaves split.
    fn growth(&mut self, name: &str) -> Plan {
        let start = self.random.u64(..KEYS);
        let count = self.random.u64(20..120);
        let change = |number: u64| {
            let value = Some(self.some_value());
            Change { name: name.into(), key: key(start + number), value }
        };
        Plan::Batch((0..count).map(change).collect())
    }

    /// All keys of a range at once: leaves merge.
    fn shrinkage(&mut self, name: &str) -> Plan {
        let map = &self.models[self.models.len() - 1].keyspaces[name];
        let skipped = self.random.usize(..=map.len());
        let count = self.random.usize(10..250);
        let keys = map.keys().skip(skipped / 2).take(count);
        let change = |key: &Arc<[u8]>| Change { name: name.into(), key: key.to_vec(), value: None };
        Plan::Batch(keys.map(change).collect())
    }

    fn some_key(&mut self) -> Vec<u8> {
        key(self.random.u64(..KEYS))
    }

    fn some_value(&mut self) -> Vec<u8> {
        let bytes = match self.random.u8(..64) {
            0..=47 => self.random.usize(..40),
            48..=60 => self.random.usize(40..600),
            61 | 62 => self.random.usize(600..4_096),
            _ => self.random.usize(4_096..20_000),
        };
        let mut value = vec![0; bytes];
        self.random.fill(&mut value);
        value
    }

    fn one_in(&mut self, count: u64) -> bool {
        count > 0 && self.random.u64(..count) == 0
    }
}

/// Keys of several lengths, some with long starts in common.
pub(crate) fn key(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => format!("{number:x}").into_bytes(),
        1 => format!("key {number:05}").into_bytes(),
        _ => format!("a key that begins as many others do {number:05}").into_bytes(),
    }
}
