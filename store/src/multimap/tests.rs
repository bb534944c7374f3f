//! Random work on multimaps against `BTreeMap<_, BTreeSet<_>>`, order, limits, and costs.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use adamant_slice::Slice;

use super::handle::Multimap;
use super::iterate::{DistinctKeys, FindRow};
use super::rows;
use super::within::MultimapTransaction;
use crate::bounds::{Direction, KeyRange};
use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::keyspace::snapshot::Snapshot;
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;
use crate::typed::Key;

type Bytes = Vec<u8>;
type Model<K = Bytes, V = Bytes> = BTreeMap<K, BTreeSet<V>>;
type Range<T> = (Bound<T>, Bound<T>);

/// Bytes that are short, often equal, and full of zeros and of what follows them in an encoding.
fn some_bytes(random: &mut fastrand::Rng) -> Bytes {
    (0..random.usize(..4)).map(|_| [0, 1, 254, 255, b'a'][random.usize(..5)]).collect()
}

fn some_range<T: Ord>(mut some: impl FnMut() -> T, random: &mut fastrand::Rng) -> Range<T> {
    let (one, other) = (some(), some());
    let (lower, upper) = if one <= other { (one, other) } else { (other, one) };
    let mut bound = |end| match random.u8(..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(end),
        _ => Bound::Excluded(end),
    };
    (bound(lower), bound(upper))
}

/// What a `BTreeSet` would panic about, and a range of a store is empty.
fn holds<T: Ord>(range: &Range<T>, item: &T) -> bool {
    RangeBounds::<T>::contains(range, item)
}

fn pairs<K: Ord + Clone, V: Ord + Clone>(model: &Model<K, V>) -> Vec<(K, V)> {
    let all = model.iter();
    all.flat_map(|(key, values)| values.iter().map(|value| (key.clone(), value.clone()))).collect()
}

/// Takes items from both ends in a random order, and puts them in theirs.
fn from_both_ends<T>(
    mut items: impl DoubleEndedIterator<Item = Result<T>>,
    random: &mut fastrand::Rng,
) -> Vec<T> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let (end, next) = match random.bool() {
            true => (&mut front, items.next()),
            false => (&mut back, items.next_back()),
        };
        let Some(item) = next else { break };
        end.push(item.unwrap());
    }
    front.extend(back.into_iter().rev());
    front
}

/// Compares all reads of a view with the model. A macro, since the views have the same methods,
/// and no trait.
macro_rules! compare {
    ($view:expr, $model:expr, $some_key:expr, $some_value:expr, $random:expr) => {{
        let (model, random) = ($model, &mut *$random);
        let key = $some_key(random);
        let value = $some_value(random);
        let none = BTreeSet::new();
        let values = model.get(&key).unwrap_or(&none);
        assert_eq!($view.contains(&key, &value).unwrap(), values.contains(&value));
        assert_eq!($view.contains_key(&key).unwrap(), !values.is_empty());
        assert_eq!($view.count(&key).unwrap(), values.len() as u64);
        assert_eq!($view.first_value(&key).unwrap().as_ref(), values.first());
        assert_eq!($view.last_value(&key).unwrap().as_ref(), values.last());
        assert!(from_both_ends($view.get(&key), random).iter().eq(values));
        let fork = &mut random.fork();
        let range = some_range(|| $some_value(fork), random);
        let found = from_both_ends($view.values_range(&key, range.clone()), random);
        assert!(found.iter().eq(values.iter().filter(|value| holds(&range, value))), "{range:?}");

        let all = pairs(model);
        assert_eq!($view.len().unwrap(), all.len() as u64);
        assert_eq!($view.is_empty().unwrap(), all.is_empty());
        assert_eq!($view.first().unwrap().as_ref(), all.first());
        assert_eq!($view.last().unwrap().as_ref(), all.last());
        assert_eq!(from_both_ends($view.iter(), random), all);
        assert!(from_both_ends($view.keys(..), random).iter().eq(model.keys()));
        let range = some_range(|| $some_key(fork), random);
        let found = from_both_ends($view.range(range.clone()), random);
        assert!(found.iter().eq(all.iter().filter(|(key, _)| holds(&range, key))), "{range:?}");
        let found = from_both_ends($view.keys(range.clone()), random);
        assert!(found.iter().eq(model.keys().filter(|key| holds(&range, key))), "{range:?}");
    }};
}

fn compare_prefix(map: &Multimap<Bytes, Bytes>, model: &Model, random: &mut fastrand::Rng) {
    let prefix = some_bytes(random);
    let found = from_both_ends(map.prefix(&prefix), random);
    let all = pairs(model);
    assert!(found.iter().eq(all.iter().filter(|(key, _)| key.starts_with(&prefix))), "{prefix:?}");
}

/// One write, by itself or in a batch, to the map and to its model.
fn write<K: Key + Ord + Clone + Debug, V: Key + Ord + Clone + Debug>(
    store: &Store,
    map: &Multimap<K, V>,
    model: &mut Model<K, V>,
    (key, value): (K, V),
    random: &mut fastrand::Rng,
) -> Result<()> {
    let values = model.entry(key.clone()).or_default();
    match random.u8(..16) {
        0..6 => assert_eq!(map.insert(&key, &value)?, values.insert(value)),
        6..8 => {
            map.put(&key, &value)?;
            values.insert(value);
        }
        8..10 => assert_eq!(map.remove(&key, &value)?, values.remove(&value)),
        10 => {
            map.delete(&key, &value)?;
            values.remove(&value);
        }
        11 => assert_eq!(map.remove_all(&key)?, std::mem::take(values).len() as u64),
        12..14 => {
            let mut batch = store.batch();
            map.put_into(&mut batch, &key, &value)?;
            match random.bool() {
                true => drop(values.insert(value)),
                false => {
                    map.delete_from(&mut batch, &key, &value)?;
                    values.remove(&value);
                }
            }
            batch.commit()?;
        }
        14 => {
            map.extend([(key.clone(), value.clone())])?;
            values.insert(value);
        }
        _ if random.u8(..20) == 0 => {
            map.clear()?;
            model.clear();
        }
        _ => {}
    }
    model.retain(|_, values| !values.is_empty());
    Ok(())
}

/// Some writes and reads in a transaction, which commits or not, alone or shared.
fn transact<K: Key + Ord + Clone + Debug, V: Key + Ord + Clone + Debug>(
    transaction: &mut Transaction,
    map: &Multimap<K, V>,
    model: &mut Model<K, V>,
    some: (impl Fn(&mut fastrand::Rng) -> K, impl Fn(&mut fastrand::Rng) -> V),
    random: &mut fastrand::Rng,
) {
    for _ in 0..random.usize(1..8) {
        let (key, value) = (some.0(random), some.1(random));
        let values = model.entry(key.clone()).or_default();
        let mut view = map.within(transaction);
        match random.u8(..6) {
            0..3 => assert_eq!(view.insert(&key, &value).unwrap(), values.insert(value)),
            3 => assert_eq!(view.remove(&key, &value).unwrap(), values.remove(&value)),
            4 => {
                let removed = view.remove_all(&key).unwrap();
                assert_eq!(removed, std::mem::take(values).len() as u64);
            }
            _ => {
                view.put(&key, &value).unwrap();
                view.delete(&key, &value).unwrap();
                values.remove(&value);
            }
        }
        model.retain(|_, values| !values.is_empty());
    }
    compare!(map.within(transaction), &*model, some.0, some.1, random);
    let shared = transaction.share();
    compare!(map.within_shared(&shared), &*model, some.0, some.1, random);
}

/// Random work on a multimap of some types, in a store of one engine.
fn work<K: Key + Ord + Clone + Debug, V: Key + Ord + Clone + Debug>(
    engine: Engine,
    seed: u64,
    some: (impl Fn(&mut fastrand::Rng) -> K, impl Fn(&mut fastrand::Rng) -> V),
    more: impl Fn(&Multimap<K, V>, &Model<K, V>, &mut fastrand::Rng),
) {
    println!("{engine}, seed {seed}");
    let random = &mut fastrand::Rng::with_seed(seed);
    let store = Store::in_memory().unwrap();
    let options = KeyspaceOptions::new().engine(engine);
    let map = store.multimap_with("map", options).unwrap().typed::<K, V>().unwrap();
    let mut model = Model::new();
    let mut snapshots: Vec<(Snapshot, Model<K, V>)> = Vec::new();
    for _ in 0..400 {
        let pair = (some.0(random), some.1(random));
        write(&store, &map, &mut model, pair, random).unwrap();
        match random.u8(..16) {
            0..4 => compare!(map, &model, some.0, some.1, random),
            4 => more(&map, &model, random),
            5 => {
                let mut transaction = store.begin().unwrap();
                let mut changed = model.clone();
                transact(&mut transaction, &map, &mut changed, (&some.0, &some.1), random);
                if random.bool() {
                    transaction.commit().unwrap();
                    model = changed;
                }
            }
            6 if snapshots.len() < 4 => {
                snapshots.push((store.snapshot().unwrap(), model.clone()));
            }
            7 if !snapshots.is_empty() => {
                let (snapshot, model) = snapshots.swap_remove(random.usize(..snapshots.len()));
                compare!(map.at(&snapshot), &model, some.0, some.1, random);
            }
            8 if engine == Engine::Lsm && random.bool() => {
                map.untyped().compact().unwrap();
            }
            _ => {}
        }
    }
    compare!(map, &model, some.0, some.1, random);
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn random_bytes_are_sorted_sets() {
    for seed in 0..3 {
        for engine in Engine::ALL {
            if seed > 0 && !matches!(engine, Engine::Bplus | Engine::Lsm) {
                continue;
            }
            work(engine, seed, (some_bytes, some_bytes), compare_prefix);
        }
    }
}

#[test]
fn random_pairs_of_other_types_sort_as_these_do() {
    let key = |random: &mut fastrand::Rng| (some_text(random), random.i16(-2..2));
    let value = |random: &mut fastrand::Rng| (Reverse(random.u32(..4)), some_text(random));
    work(Engine::Bplus, 7, (key, value), |map, model, random| {
        let text = some_text(random);
        let found = from_both_ends(map.prefix(&(&*text,)), random);
        let all = pairs(model);
        assert!(found.iter().eq(all.iter().filter(|((key, _), _)| *key == text)));
    });
    // Keys that end with the highest byte, behind which nothing is, and keys without bytes.
    let byte = |random: &mut fastrand::Rng| random.u8(252..);
    work(Engine::Lsm, 8, (byte, byte), |_, _, _| {});
    work(Engine::Bplus, 9, (byte, |_: &mut fastrand::Rng| [0_u8; 0]), |_, _, _| {});
    work(Engine::Bplus, 10, (|_: &mut fastrand::Rng| [0_u8; 0], byte), |_, _, _| {});
}

fn some_text(random: &mut fastrand::Rng) -> String {
    (0..random.usize(..3)).map(|_| ['\0', 'a', 'b', '\u{7f}'][random.usize(..4)]).collect()
}

#[test]
fn a_pair_has_as_many_bytes_as_a_key_and_an_error_says_so() {
    let store = Store::in_memory().unwrap();
    let map = store.multimap("map").unwrap();
    let (key, longest) = (vec![b'k'; 1_000], vec![b'v'; 65_535 - 1_002]);
    assert!(map.insert(&key, &longest).unwrap());
    let longer = vec![b'v'; longest.len() + 1];
    let refused = [
        map.insert(&key, &longer).err(),
        map.put(&key, &longer).err(),
        map.put_into(&mut store.batch(), &key, &longer).err(),
        map.within(&mut store.begin().unwrap()).insert(&key, &longer).err(),
        map.within(&mut store.begin().unwrap()).put(&key, &longer).err(),
        map.remove(&key, &longer).err(),
        map.delete(&key, &longer).err(),
        map.delete_from(&mut store.batch(), &key, &longer).err(),
        map.within(&mut store.begin().unwrap()).remove(&key, &longer).err(),
        map.within(&mut store.begin().unwrap()).delete(&key, &longer).err(),
        map.extend([(&key, &longer)]).err(),
        map.load_sorted([(&key, &longer)]).err(),
    ];
    for (number, error) in refused.into_iter().enumerate() {
        let error = error.expect("refused");
        let is_right = matches!(error, Error::PairTooLong { bytes: 65_536, bytes_max: 65_535 });
        assert!(is_right, "{number}: {error:?}");
        assert!(error.to_string().contains("together"), "{error}");
    }
    // Reads of what cannot be there find nothing.
    let beyond = vec![b'k'; 70_000];
    assert!(!map.contains(&key, &longer).unwrap());
    assert!(!map.contains_key(&beyond).unwrap() && map.get(&beyond).next().is_none());
    assert_eq!((map.count(&beyond).unwrap(), map.first_value(&beyond).unwrap()), (0, None));
    assert_eq!(map.remove_all(&beyond).unwrap(), 0);
    assert_eq!((map.values_range(&key, longer..).count(), map.len().unwrap()), (0, 1));
    // Of pairs that are loaded, those before one that is too long are there.
    let pairs = [("a", vec![0]), ("b", vec![0; 70_000]), ("c", vec![0])];
    assert!(matches!(map.load_sorted(pairs), Err(Error::PairTooLong { .. })));
    assert!(map.contains_key("a").unwrap() && !map.contains_key("c").unwrap());
}

#[test]
fn distinct_keys_cost_a_search_each_however_many_values_they_have() {
    let store = Store::in_memory().unwrap();
    let map = store.multimap("map").unwrap().typed::<u16, u32>().unwrap();
    map.load_sorted((0..10).flat_map(|key| (0..5_000).map(move |value| (key, value)))).unwrap();
    let searches = Cell::new(0);
    let mut counted = DistinctKeys::<_, u16>::new(
        Counted { rows: map.keys(..).into_rows(), searches: &searches },
        rows::of_keys::<u16>(&(..)),
        &map.rows,
    );
    assert_eq!(counted.by_ref().map(Result::unwrap).collect::<Vec<_>>(), Vec::from_iter(0..10));
    assert_eq!(searches.get(), 11, "one for each key, and one that finds the end");
}

struct Counted<'c, R> {
    rows: R,
    searches: &'c Cell<u32>,
}

impl<R: FindRow> FindRow for Counted<'_, R> {
    fn find_row(&mut self, range: KeyRange, direction: Direction) -> Result<Option<Slice>> {
        self.searches.set(self.searches.get() + 1);
        self.rows.find_row(range, direction)
    }
}

#[test]
fn rows_that_are_not_of_the_types_are_errors_that_are_passed() {
    let store = Store::in_memory().unwrap();
    let map = store.multimap("map").unwrap().typed::<u32, u32>().unwrap();
    map.extend([(1, 1), (3, 3)]).unwrap();
    // A key, and half a value.
    map.rows.put([0, 0, 0, 2, 0, 0], "").unwrap();
    // Half a key, at the end.
    map.rows.put([9, 9], "").unwrap();
    let found: Vec<_> = map.iter().map(Result::ok).collect();
    assert_eq!(found, [Some((1, 1)), None, Some((3, 3)), None]);
    let found: Vec<_> = map.keys(..).rev().map(Result::ok).collect();
    assert_eq!(found, [None, Some(3), Some(2), Some(1)]);
    let error = map.first_value(&2).unwrap_err();
    assert!(matches!(&error, Error::Encoding { keyspace, .. } if keyspace == "map"), "{error}");
    assert!(matches!(map.last(), Err(Error::Encoding { .. })));
    assert!(matches!(map.get(&2).next(), Some(Err(Error::Encoding { .. }))));
}

#[test]
fn a_transaction_conflicts_over_what_it_read_of_a_key() {
    let store = Store::in_memory().unwrap();
    let map = store.multimap("map").unwrap().typed::<String, u32>().unwrap();
    map.extend([("a", 1), ("b", 1)]).unwrap();
    type Read = fn(&mut MultimapTransaction<'_, String, u32>);
    let reads: [Read; 4] = [
        |view| assert_eq!(view.count("a").unwrap(), 1),
        |view| assert_eq!(view.get("a").count(), 1),
        |view| assert_eq!(view.remove_all("a").unwrap(), 1),
        |view| assert!(!view.contains("a", &2).unwrap()),
    ];
    for (number, read) in reads.into_iter().enumerate() {
        for (other, conflicts) in [("a", true), ("b", false)] {
            let mut transaction = store.begin().unwrap();
            let mut view = map.within(&mut transaction);
            read(&mut view);
            view.put("c", &1).unwrap();
            assert!(map.insert(other, &2).unwrap());
            let ended = transaction.commit();
            assert_eq!(ended.is_err(), conflicts, "{number}: {other}, {ended:?}");
            map.clear().unwrap();
            map.extend([("a", 1), ("b", 1)]).unwrap();
        }
    }
}
