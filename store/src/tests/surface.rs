//! The methods that all handles share: each of them does what a map does.

use std::collections::BTreeMap;
use std::ops::Bound;

use adamant_lsm::Compression;
use adamant_slice::Slice;
use adamant_trees::Moved;

use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;
use crate::transaction::shared::TransactionAccess;
use crate::typed::{TypedKeyspace, TypedTransaction};
use crate::value_compression::ValueCompression;

type Model = BTreeMap<u16, String>;
type Typed = TypedKeyspace<u16, String>;

/// A tree, a tree of compressed values, and an LSM tree; each in a store of its own.
fn options() -> [KeyspaceOptions; 3] {
    let values = ValueCompression::from(Compression::Lz4).with_bytes_min(20);
    let plain = KeyspaceOptions::new();
    [plain, plain.value_compression(values), plain.engine(Engine::Lsm)]
}

fn some_value(random: &mut fastrand::Rng) -> String {
    // Inline, compressed, borrowed.
    let repeats = [0, 1, 10, 1_000][random.usize(..4)];
    format!("{} text", random.u8(..)).repeat(repeats)
}

fn some_range(random: &mut fastrand::Rng) -> (Bound<u16>, Bound<u16>) {
    let (one, other) = (random.u16(..60), random.u16(..60));
    let upper = if random.bool() { Bound::Unbounded } else { Bound::Excluded(one.max(other) + 1) };
    (Bound::Included(one.min(other)), upper)
}

fn all(keyspace: &Typed) -> Model {
    keyspace.iter().collect::<Result<_>>().unwrap()
}

/// What a move does to models; `to` is another model or the same.
fn move_in(
    models: &mut [Model; 2],
    (from, key): (usize, u16),
    (to, new_key): (usize, u16),
) -> Moved {
    let Some(value) = models[from].get(&key).cloned() else { return Moved::Absent };
    if (from, key) == (to, new_key) {
        return Moved::Placed;
    }
    models[from].remove(&key);
    match models[to].insert(new_key, value) {
        Some(_) => Moved::Replaced,
        None => Moved::Placed,
    }
}

fn swap_in(
    models: &mut [Model; 2],
    (one, key): (usize, u16),
    (other, other_key): (usize, u16),
) -> bool {
    let found = (models[one].get(&key).cloned(), models[other].get(&other_key).cloned());
    let (Some(value), Some(other_value)) = found else { return false };
    models[one].insert(key, other_value);
    models[other].insert(other_key, value);
    true
}

fn move_range_in(models: &mut [Model; 2], range: (Bound<u16>, Bound<u16>)) -> (u64, u64) {
    let keys: Vec<u16> = models[0].range(range).map(|(key, _)| *key).collect();
    let moved = keys.iter().map(|key| move_in(models, (0, *key), (1, *key)));
    (keys.len() as u64, moved.filter(|moved| *moved == Moved::Replaced).count() as u64)
}

/// One call in a transaction, through one of two views, compared with the models.
fn step<T: TransactionAccess>(
    views: &mut [TypedTransaction<'_, u16, String, T>; 2],
    keyspaces: &[Typed; 2],
    models: &mut [Model; 2],
    random: &mut fastrand::Rng,
) -> Result<()> {
    let (at, key, new_key) = (random.usize(..2), random.u16(..60), random.u16(..60));
    let to = random.usize(..2);
    let (view, value) = (&mut views[at], some_value(random));
    match random.u8(..16) {
        0 => assert_eq!(view.insert(&key, &value)?, models[at].insert(key, value).is_some()),
        1 => {
            let is_new = !models[at].contains_key(&key);
            assert_eq!(view.insert_unique(&key, &value)?, is_new);
            models[at].entry(key).or_insert(value);
        }
        2 => assert_eq!(view.remove(&key)?, models[at].remove(&key).is_some()),
        3 => assert_eq!(view.take(&key)?, models[at].remove(&key)),
        4 => {
            let range = some_range(random);
            if random.u8(..4) == 0 {
                view.delete_range(range)?;
                models[at].retain(|key, _| !std::ops::RangeBounds::contains(&range, key));
            }
        }
        5 => {
            let moved = view.move_to(&key, &keyspaces[to], &new_key)?;
            assert_eq!(moved, move_in(models, (at, key), (to, new_key)));
        }
        6 => {
            let moved = view.rename(&key, &new_key)?;
            assert_eq!(moved, move_in(models, (at, key), (at, new_key)));
        }
        7 => {
            let are_swapped = view.swap(&key, &keyspaces[to], &new_key)?;
            assert_eq!(are_swapped, swap_in(models, (at, key), (to, new_key)));
        }
        8 if random.u8(..4) == 0 => {
            let range = some_range(random);
            let moved = views[0].move_range(range, &keyspaces[1])?;
            assert_eq!((moved.moved, moved.replaced), move_range_in(models, range));
        }
        9 => assert_eq!(view.len()?, models[at].len() as u64),
        10 => assert_eq!(view.is_empty()?, models[at].is_empty()),
        11 => {
            let keys: Vec<u16> = (0..random.usize(..150)).map(|_| random.u16(..70)).collect();
            let expected: Vec<_> = keys.iter().map(|key| models[at].get(key).cloned()).collect();
            assert_eq!(view.multi_get(&keys)?, expected);
        }
        12 => {
            let read = view.get_with(&key, |bytes| bytes.to_vec())?;
            assert_eq!(read.as_deref(), models[at].get(&key).map(String::as_bytes));
            assert_eq!(view.contains(&key)?, models[at].contains_key(&key));
        }
        13 => {
            let owned = |(key, value): (&u16, &String)| (*key, value.clone());
            assert_eq!(view.first()?, models[at].first_key_value().map(owned));
            assert_eq!(view.last()?, models[at].last_key_value().map(owned));
        }
        14 => assert_eq!(view.pop_first()?, models[at].pop_first()),
        15 if random.u8(..10) == 0 => {
            view.clear()?;
            models[at].clear();
        }
        _ => {
            view.put(&key, &value)?;
            models[at].insert(key, value);
        }
    }
    Ok(())
}

fn opened(store: &Store, options: KeyspaceOptions) -> [Typed; 2] {
    ["one", "two"].map(|name| store.keyspace_with(name, options).unwrap().typed().unwrap())
}

#[test]
fn two_views_of_one_transaction_are_two_maps() {
    for (number, options) in (0..).zip(options()) {
        let (store, random) = (Store::in_memory().unwrap(), &mut fastrand::Rng::with_seed(number));
        let keyspaces = opened(&store, options);
        let mut models = [Model::new(), Model::new()];
        for round in 0..40 {
            let before = models.clone();
            let mut transaction = store.begin().unwrap();
            {
                let shared = transaction.share();
                let mut views =
                    keyspaces.each_ref().map(|keyspace| keyspace.within_shared(&shared));
                for _ in 0..random.usize(..60) {
                    step(&mut views, &keyspaces, &mut models, random).unwrap();
                }
                for (view, model) in views.iter().zip(&models) {
                    let range = some_range(random);
                    let keys: Result<Vec<u16>> = view.range(range).keys().rev().collect();
                    let expected: Vec<u16> =
                        model.range(range).rev().map(|(key, _)| *key).collect();
                    assert_eq!(keys.unwrap(), expected, "options {number}, round {round}");
                    assert_eq!(view.iter().collect::<Result<Model>>().unwrap(), *model);
                }
            }
            if random.u8(..4) == 0 {
                models = before;
            } else {
                transaction.commit().unwrap();
            }
            for (keyspace, model) in keyspaces.iter().zip(&models) {
                assert_eq!(all(keyspace), *model, "options {number}, round {round}");
            }
        }
        assert!(store.check().unwrap().findings.is_empty());
    }
}

#[test]
fn an_iterator_of_a_shared_transaction_sees_what_is_written_meanwhile() {
    for options in options() {
        let store = Store::in_memory().unwrap();
        let [one, two] = opened(&store, options);
        one.extend((0..50).map(|key| (key, "text"))).unwrap();
        let copied = store.transaction(|tx| {
            let tx = tx.share();
            let (mut from, mut to) = (one.within_shared(&tx), two.within_shared(&tx));
            let mut iterator = from.iter();
            while let Some((key, value)) = iterator.next().transpose()? {
                to.put(&key, &value)?;
                from.delete(&(key + 1))?;
            }
            to.len()
        });
        assert_eq!(copied.unwrap(), 25);
        assert_eq!((one.len().unwrap(), two.len().unwrap()), (25, 25));
    }
}

#[test]
fn a_view_within_a_closure_of_another_is_refused() {
    let store = Store::in_memory().unwrap();
    let [one, two] = opened(&store, KeyspaceOptions::new());
    one.put(&1, "text").unwrap();
    let mut transaction = store.begin().unwrap();
    let shared = transaction.share();
    let (mut from, mut to) = (one.within_shared(&shared), two.within_shared(&shared));
    let within = from.get_with(&1, |_| to.put(&1, "text")).unwrap();
    assert!(matches!(within, Some(Err(Error::Reentrant))));
    assert!(matches!(
        from.get_with(&1, |_| two.within_shared(&shared).iter().next()),
        Ok(Some(Some(Err(Error::Reentrant))))
    ));
    to.put(&2, "text").unwrap();
    transaction.commit().unwrap();
    assert_eq!(two.len().unwrap(), 1);
}

/// Whether a transaction conflicts that reads in some way, if another commit changes a key.
fn conflicts(
    options: KeyspaceOptions,
    read: impl FnOnce(&mut Transaction, &Keyspace) -> Result<()>,
    change: impl FnOnce(&Keyspace) -> Result<()>,
) -> bool {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace_with("main", options).unwrap();
    keyspace.extend([("a", "1"), ("m", "2"), ("z", "3")]).unwrap();
    let mut transaction = store.begin().unwrap();
    read(&mut transaction, &keyspace).unwrap();
    transaction.put(&keyspace, "written", "").unwrap();
    change(&keyspace).unwrap();
    transaction.commit().is_err_and(|error| error.is_conflict())
}

#[test]
fn what_a_transaction_read_conflicts_and_nothing_else() {
    type Read = fn(&mut Transaction, &Keyspace) -> Result<()>;
    let (near, far): (Read, Read) = (
        |tx, keyspace| tx.delete_range(keyspace, "l".."n"),
        |tx, keyspace| tx.len(keyspace).map(drop),
    );
    let some: Read = |tx, keyspace| tx.multi_get(keyspace, ["m", "none"]).map(drop);
    let lent: Read = |tx, keyspace| tx.get_with(keyspace, "m", |_| ()).map(drop);
    let moved: Read = |tx, keyspace| tx.rename(keyspace, "m", "none").map(drop);
    for options in options() {
        for (read, of_m, of_none, of_b) in [
            (near, true, false, false),
            (far, true, true, true),
            (some, true, true, false),
            (lent, true, false, false),
            (moved, true, true, false),
        ] {
            assert_eq!(conflicts(options, read, |keyspace| keyspace.put("m", "")), of_m);
            assert_eq!(conflicts(options, read, |keyspace| keyspace.put("none", "")), of_none);
            assert_eq!(conflicts(options, read, |keyspace| keyspace.put("b", "")), of_b);
        }
    }
}

#[test]
fn many_keys_are_read_as_each_alone() {
    for (number, options) in (0..).zip(options()) {
        let (store, random) = (Store::in_memory().unwrap(), &mut fastrand::Rng::with_seed(number));
        let keyspace = store.keyspace_with("main", options).unwrap();
        for key in 0..300_u16 {
            keyspace.put(key.to_string(), some_value(random)).unwrap();
        }
        let before = store.snapshot().unwrap();
        for _ in 0..200 {
            let key = random.u16(..400).to_string();
            match random.bool() {
                true => keyspace.put(key, some_value(random)).unwrap(),
                false => keyspace.delete(key).unwrap(),
            }
        }
        for count in [0, 1, 63, 64, 65, 500] {
            let keys: Vec<_> = (0..count).map(|_| random.u16(..450).to_string()).collect();
            let alone = |read: &dyn Fn(&[u8]) -> Result<Option<Slice>>| -> Vec<_> {
                keys.iter().map(|key| read(key.as_bytes()).unwrap()).collect()
            };
            assert_eq!(keyspace.multi_get(&keys).unwrap(), alone(&|key| keyspace.get(key)));
            assert_eq!(
                before.multi_get(&keyspace, &keys).unwrap(),
                alone(&|key| before.get(&keyspace, key))
            );
        }
        let other = Store::in_memory().unwrap().keyspace("main").unwrap();
        assert!(matches!(before.multi_get(&other, ["a"]), Err(Error::OtherStore { .. })));
        store.drop_keyspace("main").unwrap();
        assert!(keyspace.multi_get(["a"]).is_err());
    }
}

#[test]
fn typed_keyspaces_are_maps() {
    for (number, options) in (0..).zip(options()) {
        let (store, random) = (Store::in_memory().unwrap(), &mut fastrand::Rng::with_seed(number));
        let keyspaces = opened(&store, options);
        let mut models = [Model::new(), Model::new()];
        let entries = (0..40_u16).map(|key| (key, some_value(random))).collect::<Model>();
        assert_eq!(keyspaces[0].load_sorted(&entries).unwrap().entries, 40);
        models[0] = entries;
        for _ in 0..400 {
            let (at, key, new_key) = (random.usize(..2), random.u16(..60), random.u16(..60));
            let (to, value) = (random.usize(..2), some_value(random));
            let (keyspace, found) = (&keyspaces[at], models[at].get(&key).cloned());
            match random.u8(..8) {
                0 => {
                    let is_new = keyspace.insert_unique(&key, &value).unwrap();
                    assert_eq!(is_new, found.is_none());
                    models[at].entry(key).or_insert(value);
                }
                1 => {
                    let expected = if random.bool() { found.clone() } else { Some(value.clone()) };
                    let swapped = keyspace.compare_and_swap(&key, expected.as_ref(), Some("new"));
                    if expected == found {
                        assert_eq!(swapped.unwrap(), Ok(()));
                        models[at].insert(key, "new".into());
                    } else {
                        assert_eq!(swapped.unwrap(), Err(found));
                    }
                }
                2 => {
                    let twice = |value: Option<&String>| value.map(|value| format!("{value}2"));
                    assert_eq!(keyspace.fetch_update(&key, twice).unwrap(), found);
                    found.map(|value| models[at].insert(key, value + "2"));
                }
                3 => {
                    let set = |_: Option<&String>| Some(value.clone());
                    assert_eq!(keyspace.update_fetch(&key, set).unwrap(), Some(value.clone()));
                    models[at].insert(key, value);
                }
                4 => {
                    let moved = keyspace.move_to(&key, &keyspaces[to], &new_key).unwrap();
                    assert_eq!(moved, move_in(&mut models, (at, key), (to, new_key)));
                }
                5 => {
                    let are_swapped = keyspace.swap(&key, &keyspaces[to], &new_key).unwrap();
                    assert_eq!(are_swapped, swap_in(&mut models, (at, key), (to, new_key)));
                }
                6 if random.u8(..8) == 0 => {
                    let range = some_range(random);
                    let moved = keyspaces[0].move_range(range, &keyspaces[1]).unwrap();
                    assert_eq!((moved.moved, moved.replaced), move_range_in(&mut models, range));
                }
                _ => {
                    let entries = [(key, value.clone()), (new_key, value)];
                    keyspace.extend(entries.clone()).unwrap();
                    models[at].extend(entries);
                }
            }
        }
        assert_eq!(keyspaces.each_ref().map(all), models);
        typed_snapshots_are_maps(&store, &keyspaces[0], &models[0]);
    }
}

/// A snapshot sees what a keyspace held before it was cleared.
fn typed_snapshots_are_maps(store: &Store, keyspace: &Typed, model: &Model) {
    let before = store.snapshot().unwrap();
    keyspace.clear().unwrap();
    assert!(keyspace.is_empty().unwrap());
    let seen = keyspace.at(&before);
    let owned = |(key, value): (&u16, &String)| (*key, value.clone());
    assert_eq!(seen.first().unwrap(), model.first_key_value().map(owned));
    assert_eq!(seen.last().unwrap(), model.last_key_value().map(owned));
    let keys: Vec<u16> = (0..70).collect();
    let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
    assert_eq!(seen.multi_get(&keys).unwrap(), expected);
    assert!(keys.iter().all(|key| seen.contains(key).unwrap() == model.contains_key(key)));
    for key in &keys {
        let read = seen.get_with(key, |bytes| bytes.to_vec()).unwrap();
        assert_eq!(read.as_deref(), model.get(key).map(String::as_bytes));
    }
}
