//! Serializability tests: recorded histories of random transactions.
//!
//! Two checks. Transactions that one thread runs interleaved are committed in a known order: each
//! of them must have read what it would have read alone, at its commit. Those of several threads
//! are verified by their dependencies, which must have no cycle (A. Adya, "Weak Consistency",
//! 1999): each write reads the version that it replaces, so the order of versions is known. In
//! tests, commits of four operations are chunked by two (`chunked.rs`), so most of these are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adamant_heap::durability::Durability;
use adamant_medium::memory::MemoryDirectory;
use fastrand::Rng;

use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::keyspace::handle::Keyspace;
use crate::options::Options;
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;

/// Keys of a keyspace: few, so that transactions meet.
const KEYS: u8 = 24;
/// Transactions that are open at a time.
const OPEN: usize = 5;

type Map = BTreeMap<u8, u64>;

fn store() -> Store {
    let options = Options::new().durability(Durability::Deferred).background(false);
    Store::open_directory(Arc::new(MemoryDirectory::new()), options).expect("a store in memory")
}

/// A keyspace of each engine.
fn keyspaces(store: &Store) -> Vec<Keyspace> {
    let open = |engine: Engine| {
        let options = KeyspaceOptions::new().engine(engine);
        store.keyspace_with(engine.name(), options).expect("a keyspace")
    };
    Engine::ALL.into_iter().map(open).collect()
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("8 bytes"))
}

/// A step of a transaction, with what it saw.
#[derive(Debug)]
enum Step {
    Get {
        keyspace: usize,
        key: u8,
        found: Option<u64>,
    },
    /// The first entries of a range, from one of its ends, and whether there were no more.
    Range {
        keyspace: usize,
        low: u8,
        high: u8,
        up: bool,
        found: Vec<(u8, u64)>,
        ended: bool,
    },
    Write {
        keyspace: usize,
        key: u8,
        value: Option<u64>,
    },
}

/// A random step of an open transaction.
fn step(tx: &mut Transaction, all: &[Keyspace], random: &mut Rng, next: &mut u64) -> Step {
    let keyspace = random.usize(..all.len());
    let (handle, key) = (&all[keyspace], random.u8(..KEYS));
    match random.u8(..10) {
        0..4 => {
            let found = tx.get(handle, [key]).expect("a get").map(|value| number(&value));
            Step::Get { keyspace, key, found }
        }
        4..6 => {
            let (low, up) = (key, random.bool());
            let high = low + random.u8(1..10);
            let most = random.usize(1..12);
            let mut entries = tx.range(handle, [low]..[high]);
            let mut found = Vec::new();
            let mut ended = false;
            while found.len() < most {
                match if up { entries.next() } else { entries.next_back() } {
                    Some(entry) => {
                        let (key, value) = entry.expect("an entry");
                        found.push((key[0], number(&value)));
                    }
                    None => {
                        ended = true;
                        break;
                    }
                }
            }
            Step::Range { keyspace, low, high, up, found, ended }
        }
        6..9 => {
            *next += 1;
            tx.put(handle, [key], next.to_le_bytes()).expect("a put");
            Step::Write { keyspace, key, value: Some(*next) }
        }
        _ => {
            tx.delete(handle, [key]).expect("a remove");
            Step::Write { keyspace, key, value: None }
        }
    }
}

/// Replays a transaction alone on these maps, and applies its writes to them. `Err` says what it
/// had seen otherwise.
fn replay(steps: &[Step], maps: &mut [Map]) -> Result<(), String> {
    for step in steps {
        let is_same = match step {
            Step::Get { keyspace, key, found } => maps[*keyspace].get(key) == found.as_ref(),
            Step::Range { keyspace, low, high, up, found, ended } => {
                let range = maps[*keyspace].range(*low..*high).map(|(key, value)| (*key, *value));
                let most = if *ended { usize::MAX } else { found.len() };
                if *up {
                    range.take(most).eq(found.iter().copied())
                } else {
                    range.rev().take(most).eq(found.iter().copied())
                }
            }
            Step::Write { keyspace, key, value } => {
                match value {
                    Some(value) => maps[*keyspace].insert(*key, *value),
                    None => maps[*keyspace].remove(key),
                };
                true
            }
        };
        if !is_same {
            return Err(format!("{step:?} is not what was there: {maps:?}"));
        }
    }
    Ok(())
}

/// An open transaction, with the maps when it began.
struct Open {
    tx: Transaction,
    steps: Vec<Step>,
    before: Vec<Map>,
}

/// Runs so many transactions interleaved; returns how many committed and conflicted, or what was
/// not serializable.
fn interleaved(seed: u64, count: usize) -> Result<(usize, usize), String> {
    let mut random = Rng::with_seed(seed);
    let store = store();
    let all = keyspaces(&store);
    let mut maps = vec![Map::new(); all.len()];
    let (mut open, mut next) = (Vec::<Open>::new(), 0);
    let (mut committed, mut conflicted) = (0, 0);
    for _ in 0..count {
        while open.len() < OPEN {
            let tx = store.begin().expect("begins");
            open.push(Open { tx, steps: Vec::new(), before: maps.clone() });
        }
        for _ in 0..random.usize(1..20) {
            let Open { tx, steps, .. } = &mut open[random.usize(..OPEN)];
            steps.push(step(tx, &all, &mut random, &mut next));
        }
        let Open { tx, steps, mut before } = open.swap_remove(random.usize(..OPEN));
        let writes = steps.iter().any(|step| matches!(step, Step::Write { .. }));
        match tx.commit() {
            Ok(()) if writes => {
                committed += 1;
                replay(&steps, &mut maps).map_err(|what| format!("seed {seed}: {what}"))?;
            }
            // A read-only transaction counts as of when it began.
            Ok(()) => replay(&steps, &mut before).map_err(|what| format!("seed {seed}: {what}"))?,
            Err(error) if error.is_conflict() && writes => conflicted += 1,
            Err(error) => return Err(format!("seed {seed}: {error}")),
        }
    }
    drop(open);
    for (keyspace, map) in all.iter().zip(&maps) {
        let found = keyspace.iter().map(|entry| entry.expect("an entry"));
        let found = found.map(|(key, value)| (key[0], number(&value)));
        assert!(found.eq(map.iter().map(|(key, value)| (*key, *value))), "seed {seed}");
    }
    Ok((committed, conflicted))
}

/// Histories of a short run, and the transactions of each.
const HISTORIES: u64 = 50;
const HISTORY_TRANSACTIONS: usize = 2_500;

/// A number that an environment variable may set.
fn chosen(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// The default number of histories, or as many as fit in `ADAMANT_HISTORIES_SECONDS`, with seeds
/// from `ADAMANT_HISTORIES_SEED` on: `cargo xtask proof` sets both.
#[test]
fn what_each_transaction_read_is_there_at_its_commit() {
    let (mut committed, mut conflicted) = (0, 0);
    let (first, start) = (chosen("ADAMANT_HISTORIES_SEED").unwrap_or(0), Instant::now());
    let seconds = chosen("ADAMANT_HISTORIES_SECONDS").map(Duration::from_secs);
    let mut number = 0;
    while seconds.map_or(number < HISTORIES, |seconds| start.elapsed() < seconds) {
        let seed = first.wrapping_add(number);
        let counts = interleaved(seed, HISTORY_TRANSACTIONS);
        let counts = counts.unwrap_or_else(|what| panic!("{what}"));
        number += 1;
        committed += counts.0;
        conflicted += counts.1;
    }
    println!("proof\thistories\tall engines\t{number}\t0");
    println!(
        "serializability: {number} interleaved histories, {committed} commits, {conflicted} conflicts"
    );
    let least = number as usize * 400;
    assert!(committed > least && conflicted > least, "{committed} and {conflicted}");
}

/// A committed transaction of a thread: the versions that it read, and those that it wrote with the
/// ones that these replaced. A version is the number of its writer, 0 if there is none.
#[derive(Debug, Default)]
struct Committed {
    number: u64,
    reads: Vec<((usize, u8), u64)>,
    writes: Vec<((usize, u8), u64)>,
}

fn run_one(tx: &mut Transaction, all: &[Keyspace], random: &mut Rng, number_: u64) -> Committed {
    let mut made = Committed { number: number_, ..Committed::default() };
    for _ in 0..random.u8(1..5) {
        let keyspace = random.usize(..all.len());
        let (handle, key) = (&all[keyspace], random.u8(..KEYS));
        // There are more threads than processors: otherwise one would be done before the next
        // begins.
        std::thread::yield_now();
        if random.u8(..4) == 0 {
            let high = key + random.u8(1..8);
            let entries = tx.range(handle, [key]..[high]);
            let mut found: Map =
                entries.map(|e| e.expect("an entry")).map(|(k, v)| (k[0], number(&v))).collect();
            // Absent keys were read too.
            (key..high.min(KEYS)).for_each(|key| _ = found.entry(key).or_default());
            made.reads.extend(found.into_iter().map(|(key, version)| ((keyspace, key), version)));
        } else {
            let found = tx.get(handle, [key]).expect("a get").map_or(0, |value| number(&value));
            made.reads.push(((keyspace, key), found));
            if random.bool() && found != number_ {
                tx.put(handle, [key], number_.to_le_bytes()).expect("a put");
                made.writes.push(((keyspace, key), found));
            }
        }
    }
    // A read of its own write is no dependency.
    made.reads.retain(|(_, version)| *version != number_);
    made
}

/// Panics unless the transactions have a serial order.
fn verify(history: &[Committed], seed: u64) {
    let index: BTreeMap<u64, usize> =
        history.iter().enumerate().map(|(at, made)| (made.number, at)).collect();
    // The transaction that replaced a version of a key.
    let mut replaced = BTreeMap::new();
    for (at, made) in history.iter().enumerate() {
        for write in &made.writes {
            let other = replaced.insert(*write, at);
            assert!(other.is_none(), "seed {seed}: two replaced {write:?}: a write was lost");
        }
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); history.len()];
    let mut waits = vec![0_usize; history.len()];
    let mut edge = |from: usize, to: usize| {
        if from != to {
            after[from].push(to);
            waits[to] += 1;
        }
    };
    for (at, made) in history.iter().enumerate() {
        for read in made.reads.iter().chain(&made.writes) {
            if read.1 != 0 {
                edge(index[&read.1], at);
            }
            if let Some(&next) = replaced.get(read) {
                edge(at, next);
            }
        }
    }
    let mut ready: Vec<usize> = (0..history.len()).filter(|at| waits[*at] == 0).collect();
    let mut done = 0;
    while let Some(at) = ready.pop() {
        done += 1;
        for &next in &after[at] {
            waits[next] -= 1;
            if waits[next] == 0 {
                ready.push(next);
            }
        }
    }
    let stuck = history.len() - done;
    assert_eq!(stuck, 0, "seed {seed}: {stuck} transactions depend on each other in a circle");
}

#[test]
fn what_threads_commit_has_an_order() {
    let mut committed = 0;
    for seed in 0..8 {
        let store = store();
        let all = keyspaces(&store);
        let numbers = AtomicU64::new(0);
        let history: Vec<Committed> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (store, all, numbers) = (&store, &all, &numbers);
                    scope.spawn(move || {
                        let mut random = Rng::with_seed(seed * 100 + thread);
                        let mut made = Vec::new();
                        for _ in 0..800 {
                            let number = numbers.fetch_add(1, Ordering::Relaxed) + 1;
                            // One in four holds the writer lock, and never conflicts.
                            if random.u8(..4) == 0 {
                                let mut tx = store.begin_exclusive().expect("begins");
                                made.push(run_one(&mut tx, all, &mut random, number));
                                tx.commit().expect("commits");
                                continue;
                            }
                            let mut tx = store.begin().expect("begins");
                            let one = run_one(&mut tx, all, &mut random, number);
                            match tx.commit() {
                                // A read-only transaction is valid as of its beginning, and so it
                                // is here.
                                Ok(()) => made.push(one),
                                Err(error) => assert!(error.is_conflict(), "{error}"),
                            }
                        }
                        made
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        verify(&history, seed);
        committed += history.len();
    }
    println!("serializability: 8 histories of 4 threads, {committed} commits");
}
