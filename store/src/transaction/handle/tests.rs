//! Tests of reads within a transaction: what they see, and how many steps they take.

use std::collections::{BTreeMap, BTreeSet};

use super::Transaction;
use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::store::handle::Store;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn number(number: u32) -> [u8; 4] {
    number.swap_bytes().to_le_bytes()
}

fn filled(engine: Engine, entries: u32) -> (Store, Keyspace) {
    let store = Store::in_memory().unwrap();
    let all = store.keyspace_with("all", KeyspaceOptions::new().engine(engine)).unwrap();
    all.load_sorted((0..entries).map(|key| (number(key), b"v"))).unwrap();
    (store, all)
}

/// Steps that its iterators have made.
fn steps(transaction: &Transaction) -> u64 {
    transaction.tables.iter().map(|table| table.notes.borrow().steps).sum()
}

/// Takes all entries out by `next`, and counts the steps.
fn drain(
    entries: u32,
    next: impl Fn(&mut Transaction, &Keyspace) -> Result<Option<Vec<u8>>>,
) -> (u64, u64) {
    let (store, all) = filled(Engine::Bplus, entries);
    let mut transaction = store.begin().unwrap();
    for _ in 0..entries {
        let key = next(&mut transaction, &all).unwrap().expect("one is left");
        transaction.delete(&all, &key).unwrap();
    }
    assert_eq!(next(&mut transaction, &all).unwrap(), None);
    let table = &transaction.tables[0];
    assert!(table.notes.borrow().empty.len() <= 2, "they are one interval");
    let begun = table.notes.borrow().begun;
    let steps = steps(&transaction);
    transaction.commit().unwrap();
    assert!(all.is_empty().unwrap());
    (steps, begun)
}

fn key_of(
    entry: Option<Result<(adamant_slice::Slice, adamant_slice::Slice)>>,
) -> Result<Option<Vec<u8>>> {
    Ok(entry.transpose()?.map(|(key, _)| key.to_vec()))
}

#[test]
fn taking_out_what_is_at_an_end_costs_the_same_each_time() {
    const ENTRIES: u32 = 5_000;
    let ways: [(&str, (u64, u64)); 6] = [
        ("first", drain(ENTRIES, |tx, all| Ok(tx.first(all)?.map(|(key, _)| key.to_vec())))),
        ("last", drain(ENTRIES, |tx, all| Ok(tx.last(all)?.map(|(key, _)| key.to_vec())))),
        ("iter", drain(ENTRIES, |tx, all| key_of(tx.iter(all).next()))),
        ("back", drain(ENTRIES, |tx, all| key_of(tx.iter(all).next_back()))),
        ("range", drain(ENTRIES, |tx, all| key_of(tx.range(all, [0, 0]..).next()))),
        (
            "keys",
            drain(ENTRIES, |tx, all| {
                Ok(tx.iter(all).keys().next().transpose()?.map(|key| key.to_vec()))
            }),
        ),
    ];
    for (way, (steps, begun)) in ways {
        // Pairs reuse the pre-read entries.
        assert!(way == "keys" || begun <= 2, "{way}: {begun} times for {ENTRIES} entries");
        assert!(steps <= 3 * u64::from(ENTRIES) + 10, "{way}: {steps} steps for {ENTRIES} entries");
    }
}

#[test]
fn own_entries_and_holes_in_the_midst_are_passed_over_too() {
    const ENTRIES: u32 = 2_000;
    let (store, all) = filled(Engine::Bplus, 10);
    let mut transaction = store.begin().unwrap();
    for key in 0..ENTRIES {
        transaction.put(&all, number(key), "own").unwrap();
    }
    // A hole between the first and the last, which is scanned time and again.
    for key in 1..ENTRIES - 1 {
        transaction.delete(&all, number(key)).unwrap();
    }
    let before = steps(&transaction);
    for _ in 0..100 {
        assert_eq!(transaction.iter(&all).count(), 2);
        assert_eq!(transaction.iter(&all).rev().count(), 2);
    }
    let made = steps(&transaction) - before;
    assert!(made < 2 * u64::from(ENTRIES) + 200 * 8, "{made} steps");
    // From both ends at once: every entry once.
    let mut both = transaction.iter(&all);
    let ends = [both.next(), both.next_back(), both.next(), both.next_back()];
    let keys = ends.map(|entry| entry.map(|entry| entry.unwrap().0.to_vec()));
    let (low, high) = (number(0).to_vec(), number(ENTRIES - 1).to_vec());
    assert_eq!(keys, [Some(low), Some(high), None, None]);
}

/// Compares what a transaction sees with the model, by a random method.
fn look(tx: &mut Transaction, all: &Keyspace, model: &Model, random: &mut fastrand::Rng) {
    let bound = |random: &mut fastrand::Rng| vec![random.u8(..12); random.usize(1..3)];
    let (one, other) = (bound(random), bound(random));
    let (low, high) = (one.clone().min(other.clone()), one.max(other));
    let pair = |entry: Option<(adamant_slice::Slice, adamant_slice::Slice)>| {
        entry.map(|(key, value)| (key.to_vec(), value.to_vec()))
    };
    let cloned = |entry: Option<(&Vec<u8>, &Vec<u8>)>| entry.map(|(k, v)| (k.clone(), v.clone()));
    match random.u8(..5) {
        0 => assert_eq!(pair(tx.first(all).unwrap()), cloned(model.first_key_value())),
        1 => assert_eq!(pair(tx.last(all).unwrap()), cloned(model.last_key_value())),
        2 => assert_eq!(tx.get(all, &low).unwrap().as_deref(), model.get(&low).map(|v| &v[..])),
        _ => {
            let mut entries = tx.range(all, (&low[..])..(&high[..]));
            let mut expected = model.range(low..high);
            for _ in 0..random.usize(..30) {
                let is_up = random.u8(..4) > 0;
                let (found, model) = match is_up {
                    true => (entries.next(), expected.next()),
                    false => (entries.next_back(), expected.next_back()),
                };
                assert_eq!(pair(found.transpose().unwrap()), cloned(model));
            }
        }
    }
}

/// Pops at an end, among writes there, behind it and at the other end.
fn pop(tx: &mut Transaction, all: &Keyspace, model: &mut Model, random: &mut fastrand::Rng) {
    let is_first = random.bool();
    for _ in 0..random.usize(..20) {
        let is_first = is_first ^ (random.u8(..8) == 0);
        let (popped, expected) = match is_first {
            true => (tx.pop_first(all).unwrap(), model.pop_first()),
            false => (tx.pop_last(all).unwrap(), model.pop_last()),
        };
        assert_eq!(popped.map(|(key, value)| (key.to_vec(), value.to_vec())), expected);
        let key = vec![random.u8(..12); random.usize(1..3)];
        match random.u8(..12) {
            0 => {
                tx.put(all, &key, "own").unwrap();
                model.insert(key, b"own".to_vec());
            }
            1 => {
                tx.delete(all, &key).unwrap();
                model.remove(&key);
            }
            2 => assert_eq!(tx.get(all, &key).unwrap().as_deref(), model.get(&key).map(|v| &v[..])),
            _ => {}
        }
    }
}

/// Random changes of a transaction, savepoints included.
fn change(
    tx: &mut Transaction,
    all: &Keyspace,
    model: &mut Model,
    random: &mut fastrand::Rng,
    depth: u32,
) {
    for _ in 0..random.usize(..25) {
        let key = vec![random.u8(..12); random.usize(1..3)];
        match random.u8(..12) {
            0..3 => {
                let value = vec![random.u8(..); 3];
                tx.put(all, &key, &value).unwrap();
                model.insert(key, value);
            }
            3..5 => {
                tx.delete(all, &key).unwrap();
                model.remove(&key);
            }
            5 => {
                let (taken, had) = (tx.take(all, &key).unwrap(), model.remove(&key));
                assert_eq!(taken.as_deref(), had.as_deref());
            }
            6 | 7 => {
                while let Some((key, _)) = tx.first(all).unwrap() {
                    tx.delete(all, &key).unwrap();
                    assert_eq!(model.pop_first().map(|(key, _)| key), Some(key.to_vec()));
                    if random.u8(..3) == 0 {
                        break;
                    }
                }
            }
            8 => {
                if let Some((key, _)) = tx.last(all).unwrap() {
                    tx.delete(all, &key).unwrap();
                    assert_eq!(model.pop_last().map(|(key, _)| key), Some(key.to_vec()));
                }
            }
            10 => pop(tx, all, model, random),
            9 if depth < 3 => {
                let mut after = model.clone();
                let kept = tx.savepoint(|tx| {
                    change(tx, all, &mut after, random, depth + 1);
                    if random.bool() { Ok(()) } else { Err(()) }
                });
                if kept.is_ok() {
                    *model = after;
                }
            }
            _ => look(tx, all, model, random),
        }
    }
}

#[test]
fn a_transaction_sees_what_a_map_with_the_same_changes_holds() {
    for engine in [Engine::Bplus, Engine::Critbit, Engine::Lsm] {
        let store = Store::in_memory().unwrap();
        let all = store.keyspace_with("all", KeyspaceOptions::new().engine(engine)).unwrap();
        let mut model = Model::new();
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut transaction = store.begin().unwrap();
            let mut own = model.clone();
            for _ in 0..4 {
                change(&mut transaction, &all, &mut own, &mut random, 0);
            }
            let found: Vec<_> = transaction.iter(&all).map(|entry| entry.unwrap().0).collect();
            assert!(found.iter().map(|key| &key[..]).eq(own.keys().map(|key| &key[..])), "{seed}");
            // Mostly on the same start, else on what was committed.
            if random.u8(..3) == 0 {
                transaction.commit().unwrap();
                model = own;
            }
        }
    }
}

#[test]
fn what_was_popped_was_read() {
    let (store, all) = filled(Engine::Bplus, 100);
    for (changed, conflicts) in [(10, true), (49, true), (50, true), (51, false), (90, false)] {
        let mut transaction = store.begin().unwrap();
        for _ in 0..50 {
            let (key, _) = transaction.first(&all).unwrap().unwrap();
            transaction.delete(&all, key).unwrap();
        }
        // It has visited the 51st key and not returned it.
        transaction.first(&all).unwrap();
        all.insert(number(changed), "other").unwrap();
        let committed = transaction.commit();
        assert_eq!(matches!(committed, Err(Error::Conflict { .. })), conflicts, "{changed}");
        all.load_sorted((0..100).map(|key| (number(key), b"v"))).unwrap();
    }
}

/// No more than what was popped, in whatever way the pops ended.
#[test]
fn pops_read_what_they_return() {
    for is_first in [true, false] {
        for (changed, conflicts) in [(0, true), (10, true), (49, true), (50, false), (90, false)] {
            for ending in 0..3 {
                let (store, all) = filled(Engine::Bplus, 100);
                let from_end = |at: u32| number(if is_first { at } else { 99 - at });
                let mut transaction = store.begin().unwrap();
                for at in 0..50 {
                    let popped = match is_first {
                        true => transaction.pop_first(&all).unwrap(),
                        false => transaction.pop_last(&all).unwrap(),
                    };
                    assert_eq!(popped.unwrap().0, from_end(at));
                }
                match ending {
                    0 => {}
                    1 => transaction.put(&all, from_end(7), "again").unwrap(),
                    _ => assert_eq!(transaction.range(&all, number(70)..number(71)).count(), {
                        usize::from(is_first)
                    }),
                }
                all.put(from_end(changed), "other").unwrap();
                let committed = transaction.commit();
                let is_conflict = matches!(committed, Err(Error::Conflict { .. }));
                assert_eq!(is_conflict, conflicts, "{changed}, {is_first}, {ending}");
                let left = 50 + u64::from(ending == 1);
                assert_eq!(all.len().unwrap(), if conflicts { 100 } else { left });
            }
        }
    }
}

/// A pop after the first copies one entry and notes nothing.
#[test]
fn pops_in_a_row_are_one_walk() {
    let (store, all) = filled(Engine::Bplus, 5_000);
    let mut transaction = store.begin().unwrap();
    for at in 0..2_000 {
        assert_eq!(transaction.pop_first(&all).unwrap().unwrap().0, number(at));
    }
    assert!(steps(&transaction) <= 2, "{} steps", steps(&transaction));
    // Jobs that come in at the other end do not end it.
    for at in 2_000..4_000 {
        assert_eq!(transaction.pop_first(&all).unwrap().unwrap().0, number(at));
        transaction.put(&all, number(at + 10_000), "later").unwrap();
    }
    assert!(steps(&transaction) <= 2, "{} steps", steps(&transaction));
    assert_eq!(transaction.iter(&all).count(), 3_000);
    transaction.commit().unwrap();
    assert_eq!(all.len().unwrap(), 3_000);
}

#[test]
fn a_keyspace_of_another_store_is_an_error_that_comes_first() {
    let (store, _) = filled(Engine::Bplus, 1);
    let (_other, foreign) = filled(Engine::Bplus, 1);
    let mut transaction = store.begin().unwrap();
    let mut entries = transaction.iter(&foreign);
    assert!(matches!(entries.next(), Some(Err(Error::OtherStore { .. }))));
    assert!(entries.next().is_none() && entries.next_back().is_none());
    assert!(matches!(transaction.first(&foreign), Err(Error::OtherStore { .. })));
    let found = transaction.prefix(&foreign, "a").keys().next_back();
    assert!(matches!(found, Some(Err(Error::OtherStore { .. }))));
}

#[test]
fn what_is_kept_for_an_older_snapshot_costs_a_newer_one_nothing() {
    const ENTRIES: u32 = 20_000;
    let (store, all) = filled(Engine::Bplus, ENTRIES + 1);
    let other = store.keyspace("other").unwrap();
    let older = store.snapshot().unwrap();
    all.delete_range(..number(ENTRIES)).unwrap();
    let walked = || all.shared.versions().walked();
    let before = walked();
    let mut transaction = store.begin().unwrap();
    let (first, last) = (transaction.first(&all).unwrap(), transaction.last(&all).unwrap());
    assert!(first.is_some() && first == last);
    assert_eq!(transaction.iter(&all).count(), 1);
    transaction.put(&other, "k", "v").unwrap();
    transaction.commit().unwrap();
    assert_eq!(store.snapshot().unwrap().iter(&all).count(), 1);
    assert_eq!(walked() - before, 0, "nothing has changed since they began");

    // A walk visits only the versions that changed since; changes are seen and conflict.
    let newer = store.snapshot().unwrap();
    let mut late = store.begin().unwrap();
    assert_eq!(late.range(&all, number(5)..number(15)).count(), 0);
    for key in 0..50 {
        all.insert(number(key), "new").unwrap();
    }
    let before = walked();
    assert_eq!(newer.iter(&all).count(), 1);
    assert_eq!(newer.iter(&all).rev().count(), 1);
    late.put(&other, "k", "w").unwrap();
    assert!(late.commit().unwrap_err().is_conflict());
    // Some are visited twice, where a scan batch ends.
    assert!(walked() - before <= 4 * 50, "{} of 50", walked() - before);
    assert_eq!(older.iter(&all).count(), ENTRIES as usize + 1);
    assert_eq!(store.snapshot().unwrap().iter(&all).count(), 51);
}

/// A pre-read of an end holds the snapshot; at the commit it does not count as another reader.
#[test]
fn a_commit_keeps_no_old_values_for_its_own_transaction() {
    let reads: [fn(&mut Transaction, &Keyspace); 5] = [
        |tx, all| assert!(tx.first(all).unwrap().is_some()),
        |tx, all| assert!(tx.last(all).unwrap().is_some()),
        |tx, all| assert!(tx.pop_first(all).unwrap().is_some()),
        |tx, all| assert_eq!(tx.range(all, number(5)..).take(3).count(), 3),
        |tx, all| assert_eq!(tx.retain(all, .., |key, _| key[3] % 2 == 0).unwrap(), 10),
    ];
    for (case, read) in reads.into_iter().enumerate() {
        for writes in [1, 10] {
            let (store, all) = filled(Engine::Bplus, 20);
            let mut transaction = store.begin().unwrap();
            read(&mut transaction, &all);
            for key in 0..writes {
                transaction.put(&all, number(key), "new").unwrap();
            }
            transaction.commit().unwrap();
            assert_eq!(all.shared.versions().recorded(), 0, "read {case}, {writes} writes");
        }
    }
}

/// Versions found for one snapshot take memory, which counts as kept for it and goes with it.
#[test]
fn what_is_looked_up_for_a_snapshot_counts_as_kept_for_it() {
    const CHANGED: u32 = 1_000;
    let (store, all) = filled(Engine::Bplus, 20_000);
    let older = store.snapshot().unwrap();
    all.delete_range(..number(19_000)).unwrap();
    let newer = store.snapshot().unwrap();
    for key in 0..CHANGED {
        all.insert(number(key), "new").unwrap();
    }
    let bytes = || store.stats().unwrap().snapshots.bytes;
    let before = bytes();
    assert_eq!(newer.iter(&all).count(), 1_000);
    let looked_up = bytes() - before;
    assert!(looked_up >= u64::from(CHANGED) * 24, "{looked_up} bytes for {CHANGED} keys");
    drop(newer);
    assert!(bytes() <= before);
    drop(older);
    assert_eq!(bytes(), 0);
}

/// Pre-read entries match the model in whatever order the ends are requested.
#[test]
fn ends_that_are_asked_for_in_any_order_are_those_of_a_map() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (store, all) = filled(Engine::Bplus, 40);
        let mut transaction = store.begin().unwrap();
        let key = |random: &mut fastrand::Rng| number(random.u32(0..45)).to_vec();
        let mut models = vec![(0..40).map(|at| number(at).to_vec()).collect::<BTreeSet<_>>()];
        for _ in 0..300 {
            let (low, way, at_end) = (key(&mut random), random.u8(0..10), random.bool());
            let low = if random.bool() { number(3).to_vec() } else { low };
            let depth = models.len();
            let model = &mut models[depth - 1];
            match way {
                0 => {
                    transaction.put(&all, &low, "own").unwrap();
                    model.insert(low);
                }
                1 => {
                    transaction.delete(&all, &low).unwrap();
                    model.remove(&low);
                }
                2 if depth < 4 => {
                    transaction.set_savepoint();
                    let model = model.clone();
                    models.push(model);
                }
                3 if depth > 1 => {
                    transaction.undo_savepoint();
                    models.pop();
                }
                _ => {
                    let is_all = way < 7;
                    let low = if is_all { Vec::new() } else { low };
                    let mut left = model.range(low.clone()..);
                    let mut entries = match is_all {
                        true => transaction.iter(&all),
                        false => transaction.range(&all, &low[..]..),
                    };
                    let mut found = Vec::new();
                    for _ in 0..random.usize(1..4).min(random.usize(1..4)) {
                        let at_end = if way == 9 { random.bool() } else { at_end };
                        let (one, other) = match at_end {
                            true => (key_of(entries.next_back()).unwrap(), left.next_back()),
                            false => (key_of(entries.next()).unwrap(), left.next()),
                        };
                        assert_eq!(one.as_ref(), other, "seed {seed}");
                        found.extend(one);
                    }
                    if let Some(key) = found.first().filter(|_| random.bool()) {
                        transaction.delete(&all, key).unwrap();
                        model.remove(key);
                    }
                }
            }
        }
    }
}
