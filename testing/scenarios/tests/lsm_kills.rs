//! Repeated kills of a process that writes to keyspaces of all engines, two of them of lsm, at any
//! moment, with other options every time: nothing is lost.
//!
//! A child commits batches over all of these, removes a range or merges one of lsm now and then,
//! and records in a file of its own which commit it begins and which has returned: the expected
//! state. The parent kills it with SIGKILL after a random time, sometimes during recovery, opens
//! the store with new random options (sizes of memtables, tables, blocks, levels and blob files,
//! compression, caches, threads or none) and compares the content with a model: exactly the batches
//! 1 to n, in all keyspaces, where n is at least the last one that returned and at most the last
//! one that began. After a kill the system still has all writes, so this holds for `Sync` and for
//! `Buffered` commits; a `Deferred` one may be lost, but never in part and never before an earlier
//! one. Stores on files and on files that are memory take turns.
//!
//! Twenty kills by default. `ADAMANT_STRESS_SECONDS` and `ADAMANT_STRESS_SEED`, which `cargo xtask
//! stress lsm` sets, change what is tried.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use adamant::{
    Compression, Durability, Engine, Flushing, Keyspace, KeyspaceOptions, LevelCompression,
    LsmOptions, Options, Store,
};
use fastrand::Rng;

/// Names, engines and bytes of the longest values.
const KEYSPACES: [(&str, Engine, usize); 6] = [
    ("large", Engine::Lsm, 12_000),
    ("small", Engine::Lsm, 90),
    ("tree", Engine::Bplus, 400),
    ("btree", Engine::Btree, 400),
    ("critbit", Engine::Critbit, 400),
    ("redblack", Engine::Redblack, 400),
];
/// Keys of a keyspace: few, so that most changes overwrite or remove.
const KEY_COUNT: u32 = 1_500;
/// The key that each commit sets in each keyspace, so that half a commit would be noticed. It lies
/// below all others.
const LAST_KEY: &[u8] = b"commit that was last";
/// Kills of a short run.
const KILLS: u64 = 20;
/// Tmpfs, as most Linux systems have one: files there are memory.
const MEMORY: &str = "/dev/shm";

type Model = [BTreeMap<Vec<u8>, Vec<u8>>; KEYSPACES.len()];

/// One batch: keyspace, key, and its value, or `None` to remove it.
struct Commit {
    changes: Vec<(usize, Vec<u8>, Option<Vec<u8>>)>,
    durability: Durability,
    /// A range that an earlier commit of its own removes.
    removed: Option<Removal>,
    /// The keyspace that is merged after the batch has returned.
    merged: Option<usize>,
}

/// In one of the keyspaces of lsm, because it is one commit there.
struct Removal {
    keyspace: usize,
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl Removal {
    fn roll(random: &mut Rng) -> Self {
        let first = random.u32(..KEY_COUNT);
        let key = |number: u32| format!("key {number:05}").into_bytes();
        // Without an end it takes only the last keys, or there would soon be none.
        let end = random.bool().then(|| key(first + random.u32(1..60)));
        let start = if end.is_none() { key(KEY_COUNT - first % 60) } else { key(first) };
        Self { keyspace: random.usize(..2), start, end }
    }

    fn run(&self, keyspaces: &[Keyspace]) -> adamant::Result<()> {
        let keyspace = &keyspaces[self.keyspace];
        match &self.end {
            Some(end) => keyspace.delete_range(&self.start[..]..&end[..]),
            None => keyspace.delete_range(&self.start[..]..),
        }
    }

    fn holds(&self, key: &[u8]) -> bool {
        *key >= self.start[..] && self.end.as_ref().is_none_or(|end| *key < end[..])
    }
}

/// The batch with that number, from 1 on: the same for child and parent.
fn commit(seed: u64, number: u64) -> Commit {
    let mut random = Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut changes = Vec::new();
    for _ in 0..random.usize(..24) {
        let keyspace = random.usize(..KEYSPACES.len());
        let key = format!("key {:05}", random.u32(..KEY_COUNT)).into_bytes();
        let bytes_max = if random.u8(..8) == 0 { KEYSPACES[keyspace].2 } else { 90 };
        let mut value = vec![0; random.usize(..bytes_max)];
        // Half of a value is noise: neither LZ4 nor a wrong reader gets it right by chance.
        let half = value.len() / 2;
        random.fill(&mut value[half..]);
        changes.push((keyspace, key, (random.u8(..5) > 0).then_some(value)));
    }
    for keyspace in 0..KEYSPACES.len() {
        changes.push((keyspace, LAST_KEY.to_vec(), Some(number.to_string().into_bytes())));
    }
    let durability = match random.u8(..8) {
        0..4 => Durability::Buffered,
        4 => Durability::Deferred,
        _ => Durability::Sync,
    };
    let merged = (random.u16(..400) == 0).then(|| random.usize(..2));
    let removed = (random.u8(..6) == 0).then(|| Removal::roll(&mut random));
    Commit { changes, durability, removed, merged }
}

/// Random options for an opening.
fn roll(random: &mut Rng) -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = random.u64(4 << 10..200 << 10);
    lsm.table_bytes_max = random.u64(4 << 10..100 << 10);
    lsm.block_bytes = random.usize(512..8 << 10);
    lsm.filter_bits_per_key = random.u8(1..16);
    lsm.hash_index = random.bool();
    let some = [Compression::None, Compression::Lz4, Compression::zstd()];
    let mut any = || some[random.usize(..some.len())];
    lsm.compression = LevelCompression::from([any(), any()]).bottommost(any());
    lsm.level0_tables_max = random.usize(1..6);
    lsm.base_bytes_min = random.u64(8 << 10..400 << 10);
    lsm.level_ratio = random.u64(2..11);
    lsm.blob_bytes_min = (random.u8(..4) > 0).then(|| random.u32(64..6_000));
    lsm.blob_file_bytes_max = random.u64(8 << 10..200 << 10);
    lsm.blob_stale_percent_max = random.u8(1..90);
    Options::default()
        .flushing(Flushing::Volatile)
        .background(random.u8(..4) > 0)
        .log_bytes_max(random.u64(1 << 20..8 << 20))
        .cache_bytes_max(random.u64(..1 << 20))
        .open_files_max(random.usize(4..64))
        .lsm(lsm)
}

fn open(path: &Path, options: Options) -> (Store, Vec<Keyspace>) {
    let store = Store::open_with(path, options).expect("open the store");
    let keyspace = |(name, engine, _)| {
        store.keyspace_with(name, KeyspaceOptions::new().engine(engine)).expect("a keyspace")
    };
    let keyspaces = KEYSPACES.map(keyspace).into();
    (store, keyspaces)
}

/// The number of the last commit that a keyspace has.
fn last_commit(keyspace: &Keyspace) -> u64 {
    let found = keyspace.get(LAST_KEY).expect("read the number");
    found.map_or(0, |text| String::from_utf8_lossy(&text).parse().expect("a number"))
}

/// The expected state: a word for the last commit that began, one for the last that returned. It
/// survives the kill of the process, like everything that was written to a file.
struct Notes(File);

impl Notes {
    const BEGUN: u64 = 0;
    const RETURNED: u64 = 8;

    fn open(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        Self(options.open(path).expect("the notes"))
    }

    fn write(&self, at: u64, number: u64) {
        self.0.write_all_at(&number.to_le_bytes(), at).expect("write a note");
    }

    /// Zero before anything was recorded.
    fn read(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        match self.0.read_exact_at(&mut bytes, at) {
            Ok(()) => u64::from_le_bytes(bytes),
            Err(_) => 0,
        }
    }
}

/// Commits until it is killed.
fn child(trial: &Trial, seed: u64, round: u64) {
    let mut random = Rng::with_seed(seed ^ round);
    let notes = Notes::open(&trial.notes());
    let (store, keyspaces) = open(&trial.store(), roll(&mut random));
    for number in last_commit(&keyspaces[0]) + 1.. {
        let Commit { changes, durability, removed, merged } = commit(seed, number);
        notes.write(Notes::BEGUN, number);
        if let Some(removed) = removed {
            removed.run(&keyspaces).expect("remove a range");
        }
        let mut batch = store.batch();
        for (keyspace, key, value) in changes {
            let keyspace = &keyspaces[keyspace];
            match value {
                Some(value) => batch.put(keyspace, key, value).expect("put"),
                None => batch.delete(keyspace, key).expect("delete"),
            }
        }
        batch.durability(durability);
        batch.commit().expect("commit");
        if durability != Durability::Deferred {
            notes.write(Notes::RETURNED, number);
        }
        if let Some(merged) = merged {
            keyspaces[merged].compact().expect("merge");
        }
    }
}

/// A store that is killed repeatedly.
struct Trial {
    folder: PathBuf,
    medium: &'static str,
    model: Model,
    last: u64,
}

impl Trial {
    fn new(folder: &Path, medium: &'static str) -> Self {
        Self { folder: folder.into(), medium, model: Model::default(), last: 0 }
    }

    fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    fn notes(&self) -> PathBuf {
        self.folder.join("notes")
    }

    /// Starts the child and kills it after a while, counted from its start, or from its first
    /// commit.
    fn kill(&self, seed: u64, round: u64, random: &mut Rng) {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["killed_at_random_moments", "--exact", "--nocapture"])
            .env("ADAMANT_STRESS_FOLDER", &self.folder)
            .env("ADAMANT_STRESS_SEED", seed.to_string())
            .env("ADAMANT_STRESS_ROUND", round.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("start the child");
        // One in four hits the start of the process: its recovery, or before.
        let microseconds = if random.u8(..4) > 0 {
            let (notes, start) = (Notes::open(&self.notes()), Instant::now());
            let before = notes.read(Notes::BEGUN);
            while notes.read(Notes::BEGUN) == before {
                assert!(start.elapsed() < Duration::from_secs(60), "nothing in a minute");
                assert_eq!(child.try_wait().expect("the child"), None, "ended, seed {seed}");
                std::thread::sleep(Duration::from_micros(200));
            }
            random.u64(..600_000)
        } else {
            random.u64(..12_000)
        };
        std::thread::sleep(Duration::from_micros(microseconds));
        child.kill().expect("kill the child");
        let status = child.wait().expect("wait for the child");
        assert_eq!(status.code(), None, "ended by itself: {status}, round {round}, seed {seed}");
    }

    /// Advances the model to a commit.
    fn advance(&mut self, seed: u64, to: u64) {
        for number in self.last + 1..=to {
            let Commit { changes, removed, .. } = commit(seed, number);
            if let Some(removed) = removed {
                self.model[removed.keyspace].retain(|key, _| !removed.holds(key));
            }
            for (keyspace, key, value) in changes {
                match value {
                    Some(value) => self.model[keyspace].insert(key, value),
                    None => self.model[keyspace].remove(&key),
                };
            }
        }
        self.last = to;
    }

    /// Opens the store and compares all of it.
    fn verify(&mut self, seed: u64, round: u64, random: &mut Rng) {
        let (store, keyspaces) = open(&self.store(), roll(random));
        let there = last_commit(&keyspaces[0]);
        let notes = Notes::open(&self.notes());
        let (begun, returned) = (notes.read(Notes::BEGUN), notes.read(Notes::RETURNED));
        let context = format!("round {round}, {}, seed {seed}", self.medium);
        assert!(there >= self.last, "{there} commits there, {} before, {context}", self.last);
        assert!(
            (returned..=begun).contains(&there),
            "{there} commits there, {returned} returned, {begun} began, {context}"
        );
        self.advance(seed, there);
        // The next commit's range may be removed already, but not in part.
        if let Some(removed) = commit(seed, there + 1).removed.filter(|_| begun > there) {
            let (keyspace, model) =
                (&keyspaces[removed.keyspace], &mut self.model[removed.keyspace]);
            let mut within = model.keys().filter(|key| removed.holds(key));
            if within.any(|key| !keyspace.contains(key).expect("look")) {
                model.retain(|key, _| !removed.holds(key));
            }
        }
        for (keyspace, model) in keyspaces.iter().zip(&self.model) {
            compare(keyspace, model, &format!("{:?}, {context}", keyspace.name()));
        }
        let report = store.check().expect("check the store");
        assert!(report.is_clean(), "{:?}, {context}", report.findings);
        store.close().expect("close the store");
    }
}

/// Compares all entries in both directions, all by their keys, and absent keys.
fn compare(keyspace: &Keyspace, model: &BTreeMap<Vec<u8>, Vec<u8>>, context: &str) {
    let is_same = |entry: adamant::Result<(adamant::Slice, adamant::Slice)>, expected| {
        let (key, value) = entry.expect("read an entry");
        let (expected_key, expected_value): (&Vec<u8>, &Vec<u8>) = expected;
        let found = String::from_utf8_lossy(&key).into_owned();
        assert_eq!(found, String::from_utf8_lossy(expected_key), "{context}");
        assert!(value[..] == expected_value[..], "the value of {found}, {context}");
    };
    let mut upwards = keyspace.iter();
    for expected in model {
        is_same(upwards.next().expect(context), expected);
    }
    assert!(upwards.next().is_none(), "{context}");
    let mut downwards = keyspace.iter().rev();
    for expected in model.iter().rev() {
        is_same(downwards.next().expect(context), expected);
    }
    assert!(downwards.next().is_none(), "{context}");
    for number in 0..KEY_COUNT {
        let key = format!("key {number:05}").into_bytes();
        let found = keyspace.get(&key).expect("get");
        assert!(found.as_deref() == model.get(&key).map(|it| &it[..]), "{number}, {context}");
    }
    assert_eq!(keyspace.len().expect("count"), model.len() as u64, "{context}");
}

fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn killed_at_random_moments() {
    let seed = number_of("ADAMANT_STRESS_SEED").unwrap_or(20_261_122);
    if let Some(folder) = std::env::var_os("ADAMANT_STRESS_FOLDER") {
        let round = number_of("ADAMANT_STRESS_ROUND").expect("a round");
        return child(&Trial::new(Path::new(&folder), ""), seed, round);
    }
    let seconds = number_of("ADAMANT_STRESS_SECONDS").map(Duration::from_secs);
    let (mut random, start) = (Rng::with_seed(seed), Instant::now());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut trials = vec![Trial::new(folder.path(), "on files")];
    let memory = Path::new(MEMORY).is_dir().then(|| tempfile::tempdir_in(MEMORY));
    let memory = memory.map(|folder| folder.expect("a temporary folder"));
    trials.extend(memory.iter().map(|folder| Trial::new(folder.path(), "in memory")));
    let (mut rounds, mut kills) = (0, vec![0; trials.len()]);
    while seconds.map_or(rounds < KILLS, |seconds| start.elapsed() < seconds) {
        rounds += 1;
        let turn = rounds as usize % trials.len();
        let trial = &mut trials[turn];
        trial.kill(seed, rounds, &mut random);
        trial.verify(seed, rounds, &mut random);
        kills[turn] += 1;
    }
    for (trial, kills) in trials.iter().zip(kills) {
        println!("proof\tkills\tall engines {}\t{kills}\t0", trial.medium);
        println!("{}: {} commits, none of those that returned was lost", trial.medium, trial.last);
        // Otherwise nothing was tried.
        assert!(trial.last > 0 || seconds.is_some_and(|seconds| seconds.as_secs() < 10));
    }
    println!("{rounds} kills in {:.1} s; seed {seed}", start.elapsed().as_secs_f64());
}
