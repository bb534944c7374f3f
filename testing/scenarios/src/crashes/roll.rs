//! Random steps of a workload: the same seed gives the same steps.

use std::sync::Arc;

use adamant::{Engine, Result};
use adamant_sim::SimDisk;

use crate::crashes::model::Content;
use crate::crashes::plan::{Change, Move, Plan};
use crate::crashes::workload::{Mix, Step, Workload};

/// Keyspaces that are created and dropped.
const NAMES: [&str; 5] = ["first", "second", "..", "/", "log"];
/// Bytes of a value far too large for one frame of the log.
const LARGE_BYTES: std::ops::Range<usize> = 1_100_000..1_500_000;
/// Keys of such values.
const LARGE_KEYS: [&str; 2] = ["large", "larger"];
/// Number of distinct key numbers.
const KEYS: u64 = 600;
/// Maximum entries of a removed range, so that they go in one commit.
const RANGE_ENTRIES_MAX: usize = 200;

impl Workload {
    /// Creates a store, takes all steps, and returns the expected content by commit.
    ///
    /// # Panics
    /// If anything fails.
    pub fn run(disk: &SimDisk, mix: Mix) -> Vec<Content> {
        let mut workload = Workload::create(disk, mix).unwrap();
        for _ in 0..mix.steps {
            workload.step().unwrap();
        }
        workload.last().verify(workload.store());
        workload.models
    }

    /// Takes the next step: maintenance or a commit.
    ///
    /// # Errors
    /// As [`Workload::take`].
    pub fn step(&mut self) -> Result<()> {
        let step = self.next_step();
        self.take(&step)
    }

    /// The next step.
    ///
    /// # Panics
    /// Never: there are durabilities.
    pub fn next_step(&mut self) -> Step {
        if self.one_in(self.mix.upkeep_one_in) {
            return Step::Reopen;
        }
        if self.one_in(self.mix.upkeep_one_in) {
            return Step::Sync;
        }
        let durability = *self.random.choice(self.mix.durabilities).unwrap();
        if self.one_in(self.mix.rare_one_in) && !self.last().keyspaces.is_empty() {
            return match self.random.u8(..10) {
                0 | 1 => Step::Snapshot,
                2 => Step::Shrink,
                3 => Step::Compact(self.some_name()),
                4 => Step::Backup,
                _ => Step::Commit(self.rare_plan(), durability),
            };
        }
        Step::Commit(self.plan(), durability)
    }

    /// A random commit that changes much at once.
    fn rare_plan(&mut self) -> Plan {
        let name = self.some_name();
        let unused: Vec<&'static str> = NAMES.into_iter().filter(|name| !self.has(name)).collect();
        if self.mix.setup.packs && self.one_in(4) {
            return Plan::Compress(name, self.random.u8(..));
        }
        match self.random.u8(..5) {
            0 => Plan::Convert(name, Engine::ALL[self.random.usize(..Engine::ALL.len())]),
            1 if !unused.is_empty() => {
                Plan::Rename(name, unused[self.random.usize(..unused.len())])
            }
            1 => Plan::Exchange(name, self.some_name()),
            2 => Plan::Clear(name),
            3 => self.some_retain(name),
            _ => self.range_removal(name),
        }
    }

    /// A random commit that makes sense now.
    fn plan(&mut self) -> Plan {
        let missing: Vec<&'static str> = NAMES.into_iter().filter(|name| !self.has(name)).collect();
        if missing.len() == NAMES.len() || (!missing.is_empty() && self.one_in(10)) {
            let name = missing[self.random.usize(..missing.len())];
            let setup = self.mix.setup;
            return Plan::Create(name, setup.engine_of(name), setup.values_of(name));
        }
        let name = self.some_name();
        if self.one_in(self.mix.large_one_in) {
            let mut value = vec![0; self.random.usize(LARGE_BYTES)];
            self.random.fill(&mut value);
            let key = LARGE_KEYS[self.random.usize(..LARGE_KEYS.len())].into();
            return Plan::Single(Change { name: name.into(), key, value: Some(value) });
        }
        match self.random.u8(..50) {
            0 => Plan::Drop(name),
            1..=11 => {
                let key = self.some_key();
                Plan::Single(Change { name: name.into(), key, value: Some(self.some_value()) })
            }
            12..=15 => Plan::Single(self.removal(name)),
            16 | 17 => Plan::Take { name: name.into(), key: self.removal(name).key },
            // No change: the same value again, or an absent key.
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
            37 | 38 => self.load(name),
            39..=41 => {
                let count = self.random.usize(1..8);
                Plan::Reserved((0..count).map(|_| self.some_reserved()).collect())
            }
            42..=47 => {
                let count = if self.random.bool() { 1 } else { self.random.usize(2..12) };
                Plan::Merge((0..count).map(|_| self.some_operand()).collect())
            }
            _ => self.range_removal(name),
        }
    }

    /// A short operand, mostly for a key that is there.
    fn some_operand(&mut self) -> Change {
        let name = self.some_name();
        let key = match self.random.u8(..4) {
            0 => self.some_key(),
            _ => self.removal(name).key,
        };
        let value = vec![self.random.u8(..); self.random.usize(..20)];
        Change { name: name.into(), key, value: Some(value) }
    }

    /// The removal of some of the entries from a key on.
    fn some_retain(&mut self, name: &str) -> Plan {
        Plan::Retain { name: name.into(), start: self.removal(name).key }
    }

    /// The removal of a range of some entries, or of all from a key on.
    fn range_removal(&mut self, name: &str) -> Plan {
        let keys: Vec<Vec<u8>> = self.models[self.models.len() - 1].keyspaces[name]
            .keys()
            .map(|key| key.to_vec())
            .collect();
        // At least one key: nothing is made durable for a range that can hold none.
        let count = self.random.usize(..RANGE_ENTRIES_MAX).min(keys.len().saturating_sub(1)) + 1;
        let is_open = self.random.bool();
        let skipped_max = keys.len().saturating_sub(count);
        let at = if is_open { skipped_max } else { self.random.usize(..=skipped_max) };
        let key_at = |at: usize| keys.get(at).cloned();
        let end = if is_open { None } else { Some(key_at(at + count).unwrap_or(vec![0xff])) };
        let start = key_at(at).unwrap_or(vec![0]);
        Plan::RemoveRange { name: name.into(), start, end }
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

    /// A change whose value is mostly so long that it stays in its reserved room.
    fn some_reserved(&mut self) -> Change {
        let mut change = self.some_change();
        if let Some(value) = &mut change.value
            && self.random.u8(..4) > 0
        {
            value.resize(self.random.usize(4_097..12_000), 7);
        }
        change
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

    /// A move or swap, mostly of an existing key.
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

    /// Many adjacent entries at once: leaves split.
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
        // What is compressed repeats itself.
        let random =
            if self.mix.setup.packs && self.random.u8(..4) > 0 { bytes / 4 } else { bytes };
        self.random.fill(&mut value[..random]);
        value
    }

    fn one_in(&mut self, count: u64) -> bool {
        count > 0 && self.random.u64(..count) == 0
    }
}

/// Keys of several lengths, some with long common prefixes; the first one is empty.
pub fn key(number: u64) -> Vec<u8> {
    match number % 3 {
        0 if number == 0 => Vec::new(),
        0 => format!("{number:x}").into_bytes(),
        1 => format!("key {number:05}").into_bytes(),
        _ => format!("a key that begins as many others do {number:05}").into_bytes(),
    }
}
