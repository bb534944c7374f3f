//! Tests of typed expiring keyspaces: each call against the keyspace of bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::memory::MemoryDirectory;

use super::{TypedExpiring, types_of};
use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::expiring::Deadline;
use crate::options::Options;
use crate::store::handle::Store;

type Typed = TypedExpiring<(i64, String), u32>;
type Model = BTreeMap<(i64, String), (u32, Option<u64>)>;
type Found = Vec<((i64, String), u32, Option<Deadline>)>;

fn open(directory: &Arc<MemoryDirectory>) -> Store {
    let options = Options::new().sweep_expired(false).background(false);
    Store::open_directory(directory.clone(), options).unwrap()
}

fn living(model: &Model, now: u64) -> Found {
    let living = model.iter().filter(|(_, (_, ends))| ends.is_none_or(|ends| ends > now));
    living
        .map(|(key, (value, ends))| (key.clone(), *value, ends.map(Deadline::from_millis)))
        .collect()
}

fn compare(store: &Store, all: &Typed, expected: &Found, what: &str) {
    let found =
        |entries: Vec<Result<_>>| entries.into_iter().map(Result::unwrap).collect::<Found>();
    let snapshot = store.snapshot().unwrap();
    let mut tx = store.begin().unwrap();
    let (seen, mut within) = (all.at(&snapshot), all.within(&mut tx));
    assert_eq!(found(all.iter().collect()), *expected, "{what}");
    assert_eq!(found(seen.iter().collect()), *expected, "{what}");
    assert_eq!(found(within.iter().collect()), *expected, "{what}");
    let backward: Found = expected.iter().rev().cloned().collect();
    assert_eq!(found(all.iter().rev().collect()), backward, "{what}");
    assert_eq!((all.first().unwrap(), all.last().unwrap()), ends(expected), "{what}");
    assert_eq!((seen.first().unwrap(), seen.last().unwrap()), ends(expected), "{what}");
    assert_eq!((within.first().unwrap(), within.last().unwrap()), ends(expected), "{what}");
    let (len, is_empty) = (expected.len() as u64, expected.is_empty());
    assert_eq!((all.len().unwrap(), seen.len().unwrap(), within.len().unwrap()), (len, len, len));
    let empty = [all.is_empty().unwrap(), seen.is_empty().unwrap(), within.is_empty().unwrap()];
    assert_eq!(empty, [is_empty; 3]);
    let of_one: Found = expected.iter().filter(|entry| entry.0.0 == -1).cloned().collect();
    assert_eq!(found(all.prefix(&(-1_i64,)).collect()), of_one, "{what}");
    assert_eq!(found(seen.prefix(&(-1_i64,)).collect()), of_one, "{what}");
    assert_eq!(found(within.prefix(&(-1_i64,)).collect()), of_one, "{what}");
    let (from, to) = ((-1_i64, String::new()), (0_i64, String::new()));
    assert_eq!(found(all.range(from.clone()..to.clone()).collect()), of_one);
    assert_eq!(found(seen.range(from.clone()..to.clone()).collect()), of_one);
    assert_eq!(found(within.range(from..to).collect()), of_one);
    for first in -2..2_i64 {
        let key = (first, "a".to_string());
        let value = expected.iter().find(|entry| entry.0 == key).map(|entry| (entry.1, entry.2));
        let plain = value.map(|value| value.0);
        assert_eq!(all.get_with_deadline(&key).unwrap(), value, "{what}");
        assert_eq!(seen.get_with_deadline(&key).unwrap(), value, "{what}");
        assert_eq!(within.get_with_deadline(&key).unwrap(), value, "{what}");
        assert_eq!([all.get(&key).unwrap(), seen.get(&key).unwrap()], [plain; 2], "{what}");
        assert_eq!(within.get(&key).unwrap(), plain, "{what}");
        let bytes = plain.map(|value| value.to_le_bytes().to_vec());
        assert_eq!(all.get_with(&key, <[u8]>::to_vec).unwrap(), bytes);
        assert_eq!(seen.get_with(&key, <[u8]>::to_vec).unwrap(), bytes);
        assert_eq!(within.get_with(&key, <[u8]>::to_vec).unwrap(), bytes);
        let is_there = [all.contains(&key).unwrap(), seen.contains(&key).unwrap()];
        assert_eq!(is_there, [plain.is_some(); 2]);
        assert_eq!(within.contains(&key).unwrap(), plain.is_some());
        let keys = || [key.clone(), (9, "none".to_string())];
        assert_eq!(all.multi_get(keys()).unwrap(), [plain, None]);
        assert_eq!(seen.multi_get(keys()).unwrap(), [plain, None]);
        assert_eq!(within.multi_get(keys()).unwrap(), [plain, None]);
    }
}

type Entry = Option<((i64, String), u32, Option<Deadline>)>;

fn ends(expected: &Found) -> (Entry, Entry) {
    (expected.first().cloned(), expected.last().cloned())
}

/// Each change by itself or within a transaction, chosen at random, against a model.
#[test]
fn each_call_does_what_that_of_bytes_does() {
    for (seed, engine) in [(1, Engine::Bplus), (2, Engine::Lsm), (3, Engine::Bplus)] {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let store = open(&Arc::new(MemoryDirectory::new()));
        let now = Arc::new(AtomicU64::new(100));
        let clock = Arc::clone(&now);
        let options = KeyspaceOptions::new().engine(engine);
        let all: Typed = store.expiring_with("all", options).unwrap().typed().unwrap();
        let all = all.with_clock(move || clock.load(Ordering::Relaxed));
        let mut model = Model::new();
        for step in 0..400 {
            let at = now.load(Ordering::Relaxed);
            let key = (random.i64(-2..2), ["a", "b", "c"][random.usize(..3)].to_string());
            let ends = random.u8(..4).ne(&0).then(|| at + random.u64(1..60));
            let (deadline, value) = (ends.map(Deadline::from_millis), random.u32(..));
            let was = living(&model, at).into_iter().find(|entry| entry.0 == key);
            let mut tx = store.begin().unwrap();
            let mut within = random.bool().then(|| all.within(&mut tx));
            macro_rules! call {
                ($name:ident($($argument:expr),*)) => {
                    match &mut within {
                        Some(within) => within.$name($($argument),*).unwrap(),
                        None => all.$name($($argument),*).unwrap(),
                    }
                };
            }
            let all_now = living(&model, at);
            match random.u8(..16) {
                0..5 => {
                    call!(put(&key, &value, deadline));
                    model.insert(key, (value, ends));
                }
                5 => {
                    assert_eq!(call!(insert(&key, &value, deadline)), was.is_some());
                    model.insert(key, (value, ends));
                }
                6 => {
                    let is_new = call!(insert_unique(&key, &value, deadline));
                    assert_eq!(is_new, was.is_none());
                    if is_new {
                        model.insert(key, (value, ends));
                    }
                }
                7 => {
                    call!(delete(&key));
                    model.remove(&key);
                }
                8 => {
                    assert_eq!(call!(remove(&key)), was.is_some());
                    model.remove(&key);
                }
                9 => {
                    assert_eq!(call!(take(&key)), was.map(|was| was.1));
                    model.remove(&key);
                }
                10 => {
                    assert_eq!(call!(set_deadline(&key, deadline)), was.is_some());
                    if let Some(was) = was {
                        model.insert(key, (was.1, ends));
                    }
                }
                11 => {
                    let over = model.len() - all_now.len();
                    assert_eq!(call!(remove_expired(100)), over as u64);
                    model.retain(|_, (_, ends)| ends.is_none_or(|ends| ends > at));
                }
                12 => {
                    let first = call!(pop_first());
                    assert_eq!(first, all_now.first().cloned());
                    first.map(|first| model.remove(&first.0));
                    let last = call!(pop_last());
                    let left = if all_now.len() > 1 { all_now.last().cloned() } else { None };
                    assert_eq!(last, left);
                    last.map(|last| model.remove(&last.0));
                }
                13 => {
                    let odd = |value: &u32| value % 2 == 1;
                    let kept = call!(retain(.., |_, value, _| !odd(value)));
                    let gone: Vec<_> = all_now.iter().filter(|entry| odd(&entry.1)).collect();
                    assert_eq!(kept, gone.len() as u64);
                    gone.iter().for_each(|entry| assert!(model.remove(&entry.0).is_some()));
                }
                14 => {
                    let lasts = |ends: Option<Deadline>| ends.is_none();
                    let taken = call!(extract_if(.., |_, _, ends| lasts(ends)));
                    let gone: Found =
                        all_now.iter().filter(|entry| lasts(entry.2)).cloned().collect();
                    assert_eq!(taken, gone);
                    gone.iter().for_each(|entry| assert!(model.remove(&entry.0).is_some()));
                }
                _ if step % 5 == 0 => {
                    call!(clear());
                    model.clear();
                }
                _ => {
                    call!(delete_range((-1, String::new())..(0, String::new())));
                    model.retain(|key, (_, ends)| {
                        key.0 != -1 || ends.is_some_and(|ends| ends <= at)
                    });
                }
            }
            let next = model.values().filter_map(|(_, ends)| *ends).min();
            assert_eq!(call!(next_deadline()).map(Deadline::millis), next, "step {step}");
            tx.commit().unwrap();
            compare(&store, &all, &living(&model, at), &format!("seed {seed}, step {step}"));
            now.fetch_add(random.u64(..8), Ordering::Relaxed);
        }
        assert!(store.check().unwrap().is_clean());
    }
}

#[test]
fn types_are_recorded_and_others_refused_also_after_it_was_opened_again() {
    let directory = Arc::new(MemoryDirectory::new());
    let store = open(&directory);
    let all = store.expiring("all").unwrap();
    all.typed::<u32, String>().unwrap().put(&7, "seven", None).unwrap();
    store.close().unwrap();
    let store = open(&directory);
    let all = store.open_expiring("all").unwrap();
    assert!(matches!(all.typed::<u32, u64>(), Err(Error::WrongTypes { .. })));
    assert!(matches!(all.typed::<u64, String>(), Err(Error::WrongTypes { .. })));
    let typed = all.typed::<u32, String>().unwrap();
    assert_eq!(typed.get(&7).unwrap(), Some("seven".to_string()));
    let infos = store.keyspaces().unwrap();
    let types: Vec<_> = infos.into_iter().map(|info| info.types).collect();
    assert_eq!(types, [Some(types_of::<u32, String>()), None], "deadlines have none");
    // An entry that was put as bytes and is not of the types.
    all.put(9_u32.swap_bytes().to_le_bytes(), [0xff], None).unwrap();
    assert!(matches!(typed.get(&9), Err(Error::Encoding { .. })));
    assert!(matches!(typed.retain(.., |_, _, _| false), Err(Error::Encoding { .. })));
    assert_eq!(typed.len().unwrap(), 2, "nothing was deleted");
    // Entries from before types were recorded are taken at their word.
    let old = store.expiring("old").unwrap();
    old.put("key", "1234", None).unwrap();
    assert!(old.typed::<String, u32>().is_ok() && old.typed::<String, [u8; 4]>().is_ok());
}
