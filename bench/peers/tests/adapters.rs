//! Every adapter does what the trait says, compared with a map.

use std::collections::BTreeMap;

use adamant_bench::harness::engine::{Direction, Setup};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;
use adamant_peers::peer::Peer;
use adamant_peers::run::roster::{ENTRIES, Task, with_engine};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const SEED: u64 = 7;
const STEPS: u32 = 400;

struct CompareWithMap;

impl Task for CompareWithMap {
    type Output = ();

    fn run<P: Peer>(self) -> Result<()> {
        if !P::KEEPS_CONTENTS {
            return Ok(());
        }
        for &durability in P::DURABILITIES {
            let directory = tempfile::tempdir()?;
            let store = directory.path().join("store");
            let setup = Setup { durability, log_bytes_max: 16 << 20 };
            let mut engine = P::open(&store, setup)?;
            let mut model = Model::new();
            let mut random = fastrand::Rng::with_seed(SEED);
            for _ in 0..STEPS {
                step(&engine, &mut model, &mut random)?;
            }
            compare(&engine, &model)?;
            engine.sync()?;
            engine = engine.reopen(&store, setup)?;
            compare(&engine, &model)?;
            engine.close()?;
            let space = P::space(&store)?;
            assert_eq!(space.is_some(), P::IS_PERSISTENT, "{}", P::NAME);
            assert!(space.is_none_or(|space| space.data_bytes + space.log_bytes > 0));
        }
        Ok(())
    }
}

/// A key of 1 to 3 letters, so that keys meet.
fn any_key(random: &mut fastrand::Rng) -> Key {
    let letters: Vec<u8> = (0..random.usize(1..4)).map(|_| random.u8(b'a'..b'f')).collect();
    Key::new(&letters)
}

fn step<P: Peer>(engine: &P, model: &mut Model, random: &mut fastrand::Rng) -> Result<()> {
    let keys: Vec<Key> = (0..random.usize(1..5)).map(|_| any_key(random)).collect();
    let value = vec![random.u8(..); random.usize(0..300)];
    match random.u8(..3) {
        0 => {
            engine.put(&keys[0], &value)?;
            model.insert(keys[0].to_vec(), value);
        }
        1 => {
            let entries: Vec<(Key, &[u8])> = keys.iter().map(|key| (*key, &value[..])).collect();
            engine.put_batch(&entries)?;
            model.extend(keys.iter().map(|key| (key.to_vec(), value.clone())));
        }
        _ => {
            engine.remove_batch(&keys)?;
            keys.iter().for_each(|key| {
                model.remove(&key[..]);
            });
        }
    }
    Ok(())
}

fn compare<P: Peer>(engine: &P, model: &Model) -> Result<()> {
    let name = P::NAME;
    assert_eq!(engine.count()?, model.len() as u64, "{name}, seed {SEED}");
    let mut owned: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let count = engine.scan_owned(&mut |key, value| owned.push((key.into(), value.into())))?;
    assert_eq!(owned, expected_scan(model, None, Direction::Ascending, usize::MAX), "{name}");
    assert_eq!(count, owned.len() as u64, "{name}");
    let mut random = fastrand::Rng::with_seed(SEED + 1);
    for _ in 0..50 {
        let key = any_key(&mut random);
        let expected = model.get(&key[..]);
        let found = engine.get(&key)?;
        assert_eq!(
            found.as_ref().map(AsRef::as_ref),
            expected.map(Vec::as_slice),
            "{name} {key:?}"
        );
        let mut seen = None;
        let is_there = engine.get_with(&key, &mut |value| seen = Some(value.to_vec()))?;
        assert_eq!((is_there, seen.as_ref()), (expected.is_some(), expected), "{name} {key:?}");
        let from = random.bool().then_some(&key);
        let directions = [Direction::Ascending, Direction::Descending];
        for (direction, limit) in directions
            .into_iter()
            .flat_map(|direction| [(direction, 1), (direction, 5), (direction, 1_000)])
        {
            let mut scanned: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut visit = |key: &[u8], value: &[u8]| scanned.push((key.into(), value.into()));
            let count = engine.scan(from, direction, limit, &mut visit)?;
            let expected = expected_scan(model, from, direction, limit as usize);
            assert_eq!(scanned, expected, "{name}, seed {SEED}, from {from:?}, {direction:?}");
            assert_eq!(count, expected.len() as u64, "{name}");
        }
    }
    Ok(())
}

fn expected_scan(
    model: &Model,
    from: Option<&Key>,
    direction: Direction,
    limit: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = model.iter().map(|(key, value)| (key.clone(), value.clone()));
    match direction {
        Direction::Ascending => {
            all.filter(|(key, _)| from.is_none_or(|from| key[..] >= from[..])).take(limit).collect()
        }
        Direction::Descending => {
            let below = all.filter(|(key, _)| from.is_none_or(|from| key[..] <= from[..]));
            below.rev().take(limit).collect()
        }
    }
}

#[test]
fn every_adapter_agrees_with_a_map() {
    for entry in ENTRIES {
        with_engine(entry.name, CompareWithMap).unwrap_or_else(|e| panic!("{}: {e}", entry.name));
    }
}
