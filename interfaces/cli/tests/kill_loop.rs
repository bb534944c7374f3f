//! A process that commits is killed at any moment, again and again, and nothing is lost.
//!
//! A child commits batches to one store and prints the number of each when its commit has
//! returned. The parent kills it with SIGKILL after a random time, sometimes while it still
//! recovers from the kill before, opens the store and compares all that is there with a model:
//! it must be exactly the batches 1 to n for some n, and n at least what was acknowledged. A kill
//! leaves what the system has, so this holds for `Sync` and for `Buffered` commits; a `Deferred`
//! one may be lost, but never in part and never before an earlier one.
//!
//! `ADAMANT_KILL_ROUNDS` (default 50) and `ADAMANT_KILL_SEED` change what is tried.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use adamant::{Durability, Keyspace, Options, Store};

const KEYSPACES: [&str; 2] = ["left", "right"];
/// Keys of a keyspace: few, so that most changes overwrite or remove.
const KEY_COUNT: u32 = 400;
/// Small, so that the log is recycled many times in a round.
const LOG_BYTES_MAX: u64 = 1 << 20;

type Model = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

/// One batch: which keyspace, which key, and its value or none to remove it.
struct Commit {
    changes: Vec<(usize, Vec<u8>, Option<Vec<u8>>)>,
    durability: Durability,
}

/// The batch of that number, from 1 on: the same for child and parent.
fn commit(seed: u64, number: u64) -> Commit {
    let mut random = fastrand::Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let change = |random: &mut fastrand::Rng| {
        let key = format!("key {:05}", random.u32(..KEY_COUNT)).into_bytes();
        let bytes = match random.u8(..40) {
            0 => random.usize(10_000..60_000),
            1..10 => random.usize(200..3_000),
            _ => random.usize(..120),
        };
        let value = random.u8(..4) > 0;
        (random.usize(..2), key, value.then(|| vec![random.u8(..); bytes]))
    };
    let mut changes: Vec<_> = (0..random.usize(..8)).map(|_| change(&mut random)).collect();
    // Each batch changes both keyspaces, so that half of one would be seen.
    for keyspace in [0, 1] {
        changes.push((keyspace, b"last commit".to_vec(), Some(number.to_string().into_bytes())));
    }
    let durability = match random.u8(..8) {
        0..4 => Durability::Buffered,
        4 => Durability::Deferred,
        _ => Durability::Sync,
    };
    Commit { changes, durability }
}

fn open(path: &Path) -> (Store, [Keyspace; 2]) {
    let options = Options::default().log_bytes_max(LOG_BYTES_MAX);
    let store = Store::open_with(path, options).expect("open the store");
    let keyspaces = KEYSPACES.map(|name| store.keyspace(name).expect("open a keyspace"));
    (store, keyspaces)
}

/// The number of the last commit that is there.
fn last_commit(keyspace: &Keyspace) -> u64 {
    let found = keyspace.get("last commit").expect("read the number");
    found.map_or(0, |text| String::from_utf8_lossy(text.as_ref()).parse().expect("a number"))
}

/// Commits until it is killed.
fn child(path: &Path, seed: u64) {
    let (store, keyspaces) = open(path);
    let mut stdout = std::io::stdout();
    for number in last_commit(&keyspaces[0]) + 1.. {
        let Commit { changes, durability } = commit(seed, number);
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
        if !matches!(durability, Durability::Deferred) {
            writeln!(stdout, "acknowledged {number}").expect("tell the parent");
        }
    }
}

/// Starts the child, kills it after `delay`, counted from its start or from its first commit;
/// the last commit that it acknowledged.
fn kill_after(path: &Path, seed: u64, delay: Duration, from_first_commit: bool) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["kill_loop", "--exact", "--nocapture"])
        .env("ADAMANT_KILL_CHILD", path)
        .env("ADAMANT_KILL_SEED", seed.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start the child");
    let mut reader = BufReader::new(child.stdout.take().expect("its output"));
    let mut acknowledged = None;
    let mut line = String::new();
    let mut next = |acknowledged: &mut Option<u64>| {
        line.clear();
        let bytes = reader.read_line(&mut line).expect("read its output");
        if let Some(number) =
            line.strip_suffix('\n').and_then(|it| it.strip_prefix("acknowledged "))
        {
            *acknowledged = Some(number.parse().expect("a number"));
        }
        bytes > 0
    };
    while from_first_commit && acknowledged.is_none() {
        assert!(next(&mut acknowledged), "the child ended before its first commit");
    }
    std::thread::sleep(delay);
    child.kill().expect("kill the child");
    // What is still in the pipe was acknowledged before the kill.
    while next(&mut acknowledged) {}
    let status = child.wait().expect("wait for the child");
    assert_eq!(status.code(), None, "the child ended by itself: {status}");
    acknowledged
}

/// Brings the model from commit `from` to commit `to`.
fn advance(model: &mut Model, seed: u64, from: u64, to: u64) {
    for number in from + 1..=to {
        for (keyspace, key, value) in commit(seed, number).changes {
            match value {
                Some(value) => model[keyspace].insert(key, value),
                None => model[keyspace].remove(&key),
            };
        }
    }
}

fn compare(keyspace: &Keyspace, model: &BTreeMap<Vec<u8>, Vec<u8>>, context: &str) {
    let mut expected = model.iter();
    for entry in keyspace.iter() {
        let (key, value) = entry.expect("read an entry");
        let (expected_key, expected_value) = expected.next().expect(context);
        let found = String::from_utf8_lossy(key.as_ref()).into_owned();
        assert_eq!(found, String::from_utf8_lossy(expected_key), "{context}");
        assert!(value.as_ref() == &expected_value[..], "the value of {found}, {context}");
    }
    assert_eq!(expected.next(), None, "{context}");
    assert_eq!(keyspace.len().expect("count"), model.len() as u64, "{context}");
}

#[test]
fn kill_loop() {
    let number_of = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>());
    let number_of = |name: &str| number_of(name).map(|number| number.expect("a number"));
    let seed = number_of("ADAMANT_KILL_SEED").unwrap_or(20_261_121);
    if let Some(path) = std::env::var_os("ADAMANT_KILL_CHILD") {
        return child(Path::new(&path), seed);
    }
    let rounds = number_of("ADAMANT_KILL_ROUNDS").unwrap_or(50);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::default();
    let (mut last, mut beyond, mut early) = (0, 0, 0);
    for round in 1..=rounds {
        // One round in four hits the start of the process: its recovery, or before.
        let from_first_commit = random.u8(..4) > 0;
        let microseconds =
            if from_first_commit { random.u64(..150_000) } else { random.u64(..8_000) };
        let delay = Duration::from_micros(microseconds);
        let acknowledged = kill_after(&path, seed, delay, from_first_commit);
        let (store, keyspaces) = open(&path);
        let there = last_commit(&keyspaces[0]);
        let context = format!("round {round}, seed {seed}, {there} commits there, {last} before");
        assert!(there >= acknowledged.unwrap_or(last), "{acknowledged:?} acknowledged, {context}");
        advance(&mut model, seed, last, there);
        for (keyspace, model) in keyspaces.iter().zip(&model) {
            compare(keyspace, model, &context);
        }
        let report = store.check().expect("check the store");
        assert!(report.is_clean(), "{:?}, {context}", report.findings);
        store.close().expect("close the store");
        beyond += there - acknowledged.unwrap_or(last).min(there);
        early += u64::from(acknowledged.is_none());
        last = there;
    }
    println!(
        "{rounds} kills, {early} of them before the first commit of a round; {last} commits, \
         {beyond} of them there without having been acknowledged; none lost; seed {seed}"
    );
}
