//! A scripted user of a store: the same seed does the same.

use std::sync::Arc;

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, Result, Store};
use adamant_sim::{Mark, SimDisk};

use crate::model::{Content, open};

/// Keyspaces that come and go.
const NAMES: [&str; 4] = ["first", "second", "..", "/"];
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

/// A change of one entry; no value removes it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) name: String,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

/// The engine that keeps the keyspace of a name: all of them take part.
fn engine_of(name: &str) -> Engine {
    match name {
        "second" => Engine::Btree,
        ".." => Engine::Critbit,
        "/" => Engine::Redblack,
        _ => Engine::Bplus,
    }
}

/// What becomes one commit.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Create(&'static str),
    Drop(&'static str),
    Convert(&'static str, Engine),
    Single(Change),
    Take { name: String, key: Vec<u8> },
    Batch(Vec<Change>),
}

impl Plan {
    /// The content after it.
    pub(crate) fn applied(&self, content: &Content) -> Content {
        let mut content = content.clone();
        match self {
            Plan::Create(name) => {
                content.keyspaces.insert((*name).into(), Arc::default());
            }
            Plan::Drop(name) => {
                content.keyspaces.remove(*name);
            }
            Plan::Convert(..) => {}
            Plan::Take { name, key } => {
                content.map(name).remove(key.as_slice());
            }
            Plan::Single(change) => apply(&mut content, change),
            Plan::Batch(changes) => changes.iter().for_each(|change| apply(&mut content, change)),
        }
        content
    }

    /// Makes it a commit of a store that holds `before`, and checks what the calls return.
    pub(crate) fn run(
        &self,
        store: &Store,
        before: &Content,
        durability: Durability,
    ) -> Result<()> {
        let had = |name: &str, key: &[u8]| before.keyspaces[name].get(key);
        let keyspace = |name: &str| -> Result<Keyspace> {
            Ok(store.open_keyspace(name)?.with_durability(durability))
        };
        match self {
            Plan::Create(name) => {
                store.create_keyspace_with(name, KeyspaceOptions::new().engine(engine_of(name)))?;
            }
            Plan::Convert(name, engine) => {
                store.convert_keyspace(name, *engine)?;
            }
            Plan::Drop(name) => assert!(store.drop_keyspace(name)?, "{name:?} exists"),
            Plan::Take { name, key } => {
                let taken = keyspace(name)?.take(key)?;
                assert_eq!(taken.as_deref(), had(name, key).map(Arc::as_ref));
            }
            Plan::Single(Change { name, key, value: Some(value) }) => {
                let replaced = keyspace(name)?.insert(key, value)?;
                assert_eq!(replaced, had(name, key).is_some());
            }
            Plan::Single(Change { name, key, value: None }) => {
                assert_eq!(keyspace(name)?.remove(key)?, had(name, key).is_some());
            }
            Plan::Batch(changes) => {
                let mut batch = store.batch();
                batch.durability(durability);
                let mut open: Vec<Keyspace> = Vec::new();
                for Change { name, key, value } in changes {
                    if !open.iter().any(|keyspace| keyspace.name() == name) {
                        open.push(store.open_keyspace(name)?);
                    }
                    let keyspace = open.iter().find(|keyspace| keyspace.name() == name);
                    let keyspace = keyspace.expect("it was just opened");
                    match value {
                        Some(value) => batch.insert(keyspace, key, value)?,
                        None => batch.remove(keyspace, key)?,
                    }
                }
                batch.commit()?;
            }
        }
        Ok(())
    }

    /// The durability that it has whatever was asked for.
    fn fixed_durability(&self) -> Option<Durability> {
        matches!(self, Plan::Create(_) | Plan::Drop(_) | Plan::Convert(..))
            .then_some(Durability::Sync)
    }
}

fn apply(content: &mut Content, change: &Change) {
    let map = content.map(&change.name);
    match &change.value {
        Some(value) => drop(map.insert(change.key.as_slice().into(), value.as_slice().into())),
        None => drop(map.remove(change.key.as_slice())),
    }
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
        match self.random.u8(..32) {
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
            _ => self.shrinkage(name),
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
