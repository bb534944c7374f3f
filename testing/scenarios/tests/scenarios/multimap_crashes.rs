//! Multimaps on a disk that crashes and on one that is full: after every power cut the pairs are
//! those of a promised commit, and what a full disk refuses changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use adamant::{Engine, KeyspaceKind, KeyspaceOptions, Multimap, Store};
use adamant_scenarios::crashes::{assert_clean, open};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, Promise, SimDisk, Tally};

type Key = Vec<u8>;
type Value = (u8, Vec<u8>);
type Content = BTreeMap<Key, BTreeSet<Value>>;
type Map = Multimap<Key, Value>;

/// The name of the multimap, and its pairs.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    name: &'static str,
    content: Content,
}

fn map_of(store: &Store, name: &str, engine: Engine) -> Map {
    let options = KeyspaceOptions::new().engine(engine);
    store.multimap_with(name, options).unwrap().typed().unwrap()
}

fn content(map: &Map) -> Content {
    let mut content = Content::new();
    for pair in map.iter() {
        let (key, value) = pair.unwrap();
        assert!(content.entry(key).or_default().insert(value), "each pair once");
    }
    let keys: Vec<Key> = map.keys(..).map(Result::unwrap).collect();
    assert!(keys.iter().eq(content.keys()), "the keys of the pairs");
    content
}

/// Short keys with zeros, and values up to some hundred bytes.
fn some_pair(random: &mut fastrand::Rng) -> (Key, Value) {
    let key = vec![[0, 1, 255][random.usize(..3)]; random.usize(..3)];
    (key, (random.u8(..4), vec![b'v'; random.usize(..3) * 150]))
}

/// One commit of one or several changes.
fn change(
    store: &Store,
    map: &Map,
    random: &mut fastrand::Rng,
    content: &mut Content,
) -> adamant::Result<()> {
    let mut changed = content.clone();
    let (key, value) = some_pair(random);
    let values = changed.entry(key.clone()).or_default();
    match random.u8(..8) {
        0..3 => assert_eq!(map.insert(&key, &value)?, values.insert(value)),
        3 => assert_eq!(map.remove(&key, &value)?, values.remove(&value)),
        4 => assert_eq!(map.remove_all(&key)?, std::mem::take(values).len() as u64),
        5 => {
            let mut batch = store.batch();
            for _ in 0..6 {
                let (key, value) = some_pair(random);
                map.put_into(&mut batch, &key, &value)?;
                changed.entry(key).or_default().insert(value);
            }
            batch.commit()?;
        }
        _ => {
            let some: Vec<_> = (0..4).map(|_| some_pair(random)).collect();
            store.transaction(|tx| {
                let mut map = map.within(tx);
                map.remove_all(&key)?;
                some.iter().try_for_each(|(key, value)| map.insert(key, value).map(drop))
            })?;
            changed.remove(&key);
            for (key, value) in some {
                changed.entry(key).or_default().insert(value);
            }
        }
    }
    changed.retain(|_, values| !values.is_empty());
    *content = changed;
    Ok(())
}

fn run(disk: &SimDisk, engine: Engine, seed: u64) -> Vec<Model> {
    let mut random = fastrand::Rng::with_seed(seed);
    let store = open(disk).unwrap();
    let mut models = vec![Model { name: "map", content: Content::new() }];
    for commit in 1..80 {
        let mut model = models[commit - 1].clone();
        Mark::Begun.put(disk, commit as u64);
        match commit % 40 {
            1 => drop(map_of(&store, model.name, engine)),
            15 | 30 => {
                let new_name = if model.name == "map" { "moved" } else { "map" };
                store.rename_keyspace(model.name, new_name).unwrap();
                model.name = new_name;
            }
            25 => {
                map_of(&store, model.name, engine).clear().unwrap();
                model.content.clear();
            }
            39 => {
                assert!(store.drop_keyspace(model.name).unwrap());
                model.content.clear();
            }
            _ => {
                let map = map_of(&store, model.name, engine);
                change(&store, &map, &mut random, &mut model.content).unwrap();
            }
        }
        Mark::Durable.put(disk, commit as u64);
        models.push(model);
    }
    models
}

fn verify(disk: &SimDisk, engine: Engine, models: &[Model], promise: Promise) {
    let store = open(disk).unwrap();
    assert_clean(&store);
    let may_be = &models[promise.least as usize..=promise.most as usize];
    let kept = store.keyspaces().unwrap();
    assert!(kept.iter().all(|info| info.kind == KeyspaceKind::Multimap), "{kept:?}");
    let Some(info) = kept.first() else {
        assert!(may_be.iter().any(|model| model.content.is_empty()), "{promise:?}: nothing");
        return;
    };
    assert_eq!(kept.len(), 1, "{kept:?}");
    let map = map_of(&store, &info.name, engine);
    let found = content(&map);
    let is_found = |model: &Model| model.name == info.name && model.content == found;
    assert!(may_be.iter().any(is_found), "{promise:?}: {}: {found:?}", info.name);
    assert!(map.insert(&vec![b'n'], &(9, Vec::new())).unwrap());
}

#[test]
fn pairs_are_those_of_a_promised_commit() {
    let mut tally = Tally::new();
    for (number, engine) in [Engine::Bplus, Engine::Lsm].into_iter().enumerate() {
        let seed = seed(100 + number as u64);
        let disk = SimDisk::new(seed);
        let models = run(&disk, engine, seed);
        tally
            .power_cuts(&disk, 3, 2, |crashed, promise| verify(&crashed, engine, &models, promise));
    }
    tally.print("multimaps");
}

#[test]
fn a_full_disk_refuses_pairs_and_loses_none() {
    for (number, engine) in [Engine::Bplus, Engine::Lsm].into_iter().enumerate() {
        let seed = seed(200 + number as u64);
        println!("{engine}, seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new(seed);
        let store = open(&disk).unwrap();
        let map = map_of(&store, "map", engine);
        disk.set_space_bytes(Some(disk.space_used_bytes() + (1 << 20)));
        // Longer values than those of the other test, until nothing more goes in.
        let (mut content, mut refused) = (Content::new(), 0);
        for number in 0_u32.. {
            let pair = (vec![number as u8 % 50], (0, number.to_le_bytes().repeat(2_000)));
            match map.insert(&pair.0, &pair.1) {
                Ok(is_new) => assert!(content.entry(pair.0).or_default().insert(pair.1) && is_new),
                Err(error) => {
                    assert!(error.is_out_of_space(), "{error}");
                    refused += 1;
                    break;
                }
            }
        }
        for _ in 0..50 {
            match change(&store, &map, &mut random, &mut content) {
                Ok(()) => {}
                Err(error) => {
                    assert!(error.is_out_of_space(), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0, "the disk was never full");
        assert_eq!(self::content(&map), content);
        // What is removed gives its room back.
        for key in content.keys() {
            assert!(map.remove_all(key).unwrap() > 0);
        }
        assert!(map.is_empty().unwrap());
        assert_clean(&store);
        drop((map, store));
        let map = map_of(&open(&disk).unwrap(), "map", engine);
        assert!(map.insert(&vec![1], &(1, Vec::new())).unwrap());
    }
}
