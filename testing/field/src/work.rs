//! Numbered batches over a keyspace of every engine, and what a store that has the first N of them
//! holds.
//!
//! Purpose: the process that writes and the one that verifies compute the same batch from a seed
//! and a number, so nothing but a number has to pass between them, over a serial line if need be.
//! Invariants: each batch sets `LAST_KEY` in each keyspace to its own number, so that half of one
//! is seen.
//! Thread safety: values, not shared.

use std::collections::BTreeMap;
use std::path::Path;

use adamant::{
    Compression, Durability, Engine, Flushing, Keyspace, KeyspaceOptions, LevelCompression,
    LsmOptions, Options, Slice, Store,
};
use fastrand::Rng;

/// Engines of the keyspaces, which have their names, and bytes of their longest values.
const KEYSPACES: [(Engine, usize); 5] = [
    (Engine::Bplus, 4_000),
    (Engine::Btree, 400),
    (Engine::Critbit, 400),
    (Engine::Redblack, 400),
    (Engine::Lsm, 9_000),
];
/// Keys of a keyspace: few, so that most changes overwrite or remove.
const KEY_COUNT: u32 = 500;
/// The key that each batch sets in each keyspace.
const LAST_KEY: &[u8] = b"last commit";

/// Where the stores of a campaign are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// On files.
    Disk,
    /// On persistent memory, which must be mapped so that stores need no sync.
    Memory,
    /// On a tmpfs, whose files are memory that is lost with the power.
    Tmpfs,
}

impl Ground {
    /// The name that the command line uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Memory => "memory",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// The one of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Disk, Self::Memory, Self::Tmpfs].into_iter().find(|it| it.name() == name)
    }
}

/// One batch: which keyspace, which key, and its value or none to remove it.
pub(crate) struct Commit {
    changes: Vec<(usize, Vec<u8>, Option<Vec<u8>>)>,
    /// What it waits for.
    pub(crate) durability: Durability,
    /// Whether the keyspace of the engine lsm is merged when it has returned.
    pub(crate) is_compacted: bool,
}

/// The batch of that number, from 1 on.
pub(crate) fn commit(seed: u64, number: u64) -> Commit {
    let mut random = Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut changes = Vec::new();
    for _ in 0..random.usize(..20) {
        let keyspace = random.usize(..KEYSPACES.len());
        let key = format!("key {:05}", random.u32(..KEY_COUNT)).into_bytes();
        let bytes_max = if random.u8(..8) == 0 { KEYSPACES[keyspace].1 } else { 90 };
        let mut value = vec![0; random.usize(..bytes_max)];
        // Half of a value is noise: a wrong reader does not get it right by chance.
        let half = value.len() / 2;
        random.fill(&mut value[half..]);
        changes.push((keyspace, key, (random.u8(..5) > 0).then_some(value)));
    }
    for keyspace in 0..KEYSPACES.len() {
        changes.push((keyspace, LAST_KEY.to_vec(), Some(number.to_string().into_bytes())));
    }
    let durability = match random.u8(..8) {
        0..3 => Durability::Buffered,
        3 => Durability::Deferred,
        _ => Durability::Sync,
    };
    Commit { changes, durability, is_compacted: random.u16(..300) == 0 }
}

/// How a store is opened this time: sizes small enough that files of all kinds come and go.
fn roll(random: &mut Rng, ground: Ground) -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = random.u64(8 << 10..200 << 10);
    lsm.table_bytes_max = random.u64(8 << 10..100 << 10);
    lsm.block_bytes = random.usize(512..8 << 10);
    let some = [Compression::None, Compression::Lz4, Compression::zstd()];
    let mut any = || some[random.usize(..some.len())];
    lsm.compression = LevelCompression::from(any()).bottommost(any());
    lsm.level0_tables_max = random.usize(1..6);
    lsm.base_bytes_min = random.u64(8 << 10..400 << 10);
    lsm.level_ratio = random.u64(2..11);
    lsm.blob_bytes_min = (random.u8(..4) > 0).then(|| random.u32(64..6_000));
    lsm.blob_file_bytes_max = random.u64(8 << 10..200 << 10);
    let flushing = match ground {
        Ground::Disk | Ground::Memory => Flushing::Auto,
        Ground::Tmpfs => Flushing::Volatile,
    };
    Options::default()
        .flushing(flushing)
        .background(random.u8(..4) > 0)
        .log_bytes_max(random.u64(1 << 20..8 << 20))
        .lsm(lsm)
}

/// Why a store was not verified, or not written to.
#[derive(Debug)]
pub(crate) enum Problem {
    /// It refused, in words: which call, and its error. That is its right when the system fails.
    Refused(String),
    /// It is not as it has to be.
    Wrong(String),
}

impl Problem {
    /// A refusal of the call that was to do this.
    pub(crate) fn refused(what: &str) -> impl Fn(adamant::Error) -> Self {
        move |error| Self::Refused(format!("{what}: {error}"))
    }
}

/// An open store and its keyspaces.
pub(crate) struct Field {
    store: Store,
    keyspaces: Vec<Keyspace>,
}

impl Field {
    /// Opens the store, with options rolled from `random`, and its keyspaces; makes what is
    /// missing.
    pub(crate) fn open(path: &Path, ground: Ground, random: &mut Rng) -> adamant::Result<Self> {
        let store = Store::open_with(path, roll(random, ground))?;
        let keyspace = |(engine, _): (Engine, usize)| {
            store.keyspace_with(engine.name(), KeyspaceOptions::new().engine(engine))
        };
        let keyspaces = KEYSPACES.into_iter().map(keyspace).collect::<Result<_, _>>()?;
        Ok(Self { store, keyspaces })
    }

    /// Commits a batch.
    pub(crate) fn apply(&self, commit: &Commit) -> adamant::Result<()> {
        let mut batch = self.store.batch();
        for (keyspace, key, value) in &commit.changes {
            match value {
                Some(value) => batch.put(&self.keyspaces[*keyspace], key, value)?,
                None => batch.delete(&self.keyspaces[*keyspace], key)?,
            }
        }
        batch.durability(commit.durability);
        batch.commit()
    }

    /// Compacts all keyspaces.
    pub(crate) fn compact(&self) -> adamant::Result<()> {
        self.keyspaces.iter().try_for_each(Keyspace::compact)
    }

    /// The number of the last batch that is there.
    fn last(&self) -> Result<u64, Problem> {
        let found = self.keyspaces[0].get(LAST_KEY).map_err(Problem::refused("the last batch"))?;
        let Some(text) = found else { return Ok(0) };
        let text = String::from_utf8_lossy(&text).into_owned();
        let wrong = |_| Problem::Wrong(format!("the last batch is no number but {text:?}"));
        text.parse().map_err(wrong)
    }

    /// Compares all of the store with the batches 1 to N, for the N that it has itself, and checks
    /// it. Returns N.
    ///
    /// # Errors
    /// What is not as it has to be, or could not be read.
    pub(crate) fn verify(&self, seed: u64) -> Result<u64, Problem> {
        let last = self.last()?;
        let mut model: [BTreeMap<Vec<u8>, Vec<u8>>; KEYSPACES.len()] = Default::default();
        for number in 1..=last {
            for (keyspace, key, value) in commit(seed, number).changes {
                match value {
                    Some(value) => model[keyspace].insert(key, value),
                    None => model[keyspace].remove(&key),
                };
            }
        }
        for (keyspace, model) in self.keyspaces.iter().zip(&model) {
            let at = |what| format!("keyspace {}, {last} batches: {what}", keyspace.name());
            compare(keyspace, model).map_err(|problem| match problem {
                Problem::Refused(what) => Problem::Refused(at(what)),
                Problem::Wrong(what) => Problem::Wrong(at(what)),
            })?;
        }
        let report = self.store.check().map_err(Problem::refused("the check"))?;
        if report.is_clean() {
            return Ok(last);
        }
        let found = format!("{last} batches, the check found {:?}", report.findings);
        // A check goes on where it cannot read, and lists that: it says nothing of the store, and
        // the next process, for which no call fails, has to find it whole.
        Err(if report.is_unread() { Problem::Refused(found) } else { Problem::Wrong(found) })
    }

    /// Closes the store.
    pub(crate) fn close(self) -> adamant::Result<()> {
        self.store.close()
    }
}

/// All entries in both directions, and all keys, also those that are not there, by themselves.
fn compare(keyspace: &Keyspace, model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), Problem> {
    let is_same = |entry: Option<adamant::Result<(Slice, Slice)>>,
                   expected: Option<(&Vec<u8>, &Vec<u8>)>| {
        let entry = entry.transpose().map_err(Problem::refused("a scan"))?;
        let found = entry.as_ref().map(|(key, value)| (&key[..], &value[..]));
        let expected = expected.map(|(key, value)| (&key[..], &value[..]));
        if found == expected { Ok(()) } else { Err(difference(found, expected)) }
    };
    let (mut upwards, mut downwards) = (keyspace.iter(), keyspace.iter().rev());
    for expected in model {
        is_same(upwards.next(), Some(expected))?;
    }
    is_same(upwards.next(), None)?;
    for expected in model.iter().rev() {
        is_same(downwards.next(), Some(expected))?;
    }
    is_same(downwards.next(), None)?;
    for number in 0..KEY_COUNT {
        let key = format!("key {number:05}").into_bytes();
        let found = keyspace.get(&key).map_err(Problem::refused("a get"))?;
        if found.as_deref() != model.get(&key).map(|value| &value[..]) {
            return Err(Problem::Wrong(format!("get of key {number:05} differs from the model")));
        }
    }
    let count = keyspace.len().map_err(Problem::refused("counting"))?;
    if count != model.len() as u64 {
        return Err(Problem::Wrong(format!("expected {} entries, found {count}", model.len())));
    }
    Ok(())
}

type Entry<'a> = (&'a [u8], &'a [u8]);

fn difference(found: Option<Entry<'_>>, expected: Option<Entry<'_>>) -> Problem {
    let words = |entry: Option<Entry<'_>>| match entry {
        Some((key, value)) => {
            format!("{:?} with {} bytes", String::from_utf8_lossy(key), value.len())
        }
        None => "no entry".to_owned(),
    };
    Problem::Wrong(format!("expected {}, found {}", words(expected), words(found)))
}
