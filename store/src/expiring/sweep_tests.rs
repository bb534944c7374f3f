//! Tests of the background sweep: its step against a model, and the thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adamant_sim::tally::seed;
use adamant_sim::{Mark, SimDirectory, SimDisk, Tally};

use super::Deadline;
use super::keyspace::Expiring;
use super::sweep::{STEP_ENTRIES_MAX, Step, step, sweep};
use super::tests::quiet;
use crate::common::change::Change;
use crate::common::keyspace_options::KeyspaceOptions;
use crate::common::sweeper::{Sweeper, SweptPair};
use crate::engine::tree::Engine;
use crate::error::Error;
use crate::keyspace::handle::Keyspace;
use crate::options::Options;
use crate::store::handle::Store;

/// Deadlines by key.
type Model = BTreeMap<u32, Option<u64>>;

fn pair_of(all: &Expiring) -> SweptPair {
    let (entries, deadlines) = (Arc::clone(&all.entries.state), Arc::clone(&all.deadlines.state));
    SweptPair { entries, deadlines }
}

fn at(millis: u64) -> Option<Deadline> {
    Some(Deadline::from_millis(millis))
}

fn filled(store: &Store, engine: Engine, random: &mut fastrand::Rng) -> (Expiring, Model) {
    let options = KeyspaceOptions::new().engine(engine);
    let all = store.expiring_with("all", options).unwrap().with_clock(|| 0);
    let mut model = Model::new();
    let mut transaction = store.begin().unwrap();
    for _ in 0..600 {
        let (key, ends) = (random.u32(..400), random.u8(..4).ne(&0).then(|| random.u64(1..100)));
        let value = vec![7; random.usize(..40)];
        let deadline = ends.map(Deadline::from_millis);
        all.within(&mut transaction).put(key.to_le_bytes(), value, deadline).unwrap();
        model.insert(key, ends);
    }
    transaction.commit().unwrap();
    (all, model)
}

/// Compares the stored entries, expired ones too, with the model.
fn compare(all: &Expiring, model: &Model, what: &str) {
    let found = all.with_clock(|| 0).iter().map(|entry| {
        let (key, _, ends) = entry.unwrap();
        (u32::from_le_bytes(key[..].try_into().unwrap()), ends.map(Deadline::millis))
    });
    assert_eq!(found.collect::<Model>(), *model, "{what}");
    let rows = model.values().flatten().count() as u64;
    assert_eq!(all.keyspaces().1.len().unwrap(), rows, "{what}: rows");
}

#[test]
fn steps_are_bounded_and_remove_what_has_expired_and_nothing_else() {
    for (number, engine) in [Engine::Bplus, Engine::Lsm, Engine::Critbit].into_iter().enumerate() {
        let seed = seed(number as u64);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let store = quiet();
        let (all, mut model) = filled(&store, engine, &mut random);
        let (before, all_before) = (store.snapshot().unwrap(), model.clone());
        let pair = pair_of(&all);
        for now in [0, 10, 11, 50, 99, u64::MAX] {
            let (mut removed, mut steps) = (0, 0);
            let next = loop {
                let left = all.keyspaces().1.len().unwrap();
                let commits = store.stats().unwrap().heap.journal.last_sequence;
                match step(store.shared.open_store(), &pair, now, 7).unwrap() {
                    Step::Removed(rows) => {
                        assert!((1..=7).contains(&rows), "{rows}");
                        assert_eq!(left - all.keyspaces().1.len().unwrap(), rows as u64);
                        let after = store.stats().unwrap().heap.journal.last_sequence;
                        assert_eq!(after - commits, 1, "one commit");
                        (removed, steps) = (removed + rows, steps + 1);
                    }
                    Step::Nothing(next) => break next,
                    Step::Busy => panic!("nobody else writes"),
                }
                assert!(store.try_begin_exclusive().unwrap().is_some(), "writers go on");
            };
            let old = model.len();
            model.retain(|_, ends| ends.is_none_or(|ends| ends > now));
            assert_eq!((removed, steps), (old - model.len(), (old - model.len()).div_ceil(7)));
            assert_eq!(next.map(Deadline::millis), model.values().flatten().min().copied());
            compare(&all, &model, &format!("{engine:?}, {now}"));
        }
        let seen = all.at(&before);
        assert_eq!(seen.iter().count(), all_before.len(), "the snapshot has all of them");
        assert!(store.check().unwrap().is_clean());
    }
}

#[test]
fn an_entry_that_got_another_deadline_stays_and_rows_without_entries_go() {
    let store = quiet();
    let all = store.expiring("all").unwrap().with_clock(|| 0);
    all.put("later", "1", at(10)).unwrap();
    all.put("later", "2", at(500)).unwrap();
    all.put("ever", "3", at(10)).unwrap();
    all.set_deadline("ever", None).unwrap();
    // As a crash during a drop leaves them.
    let deadlines = Keyspace::new(&store.shared, Arc::clone(&all.deadlines.state));
    for key in ["later", "gone"] {
        deadlines.put([&[0; 7], &[9][..], key.as_bytes()].concat(), "").unwrap();
    }
    let stepped = step(store.shared.open_store(), &pair_of(&all), 100, 10).unwrap();
    assert_eq!((stepped, all.len().unwrap()), (Step::Removed(2), 2));
    let stepped = step(store.shared.open_store(), &pair_of(&all), 100, 10).unwrap();
    assert_eq!(stepped, Step::Nothing(at(500)));
    let stepped = step(store.shared.open_store(), &pair_of(&all), 500, 10).unwrap();
    assert_eq!((stepped, all.len().unwrap()), (Step::Removed(1), 1));
}

#[test]
fn a_step_waits_for_no_writer_for_long() {
    let store = quiet();
    let all = store.expiring("all").unwrap().with_clock(|| 0);
    all.put("a", "1", at(10)).unwrap();
    let only = store.begin_exclusive().unwrap();
    let stepped = std::thread::scope(|scope| {
        let sweeps = || step(store.shared.open_store(), &pair_of(&all), 100, 10).unwrap();
        scope.spawn(sweeps).join().unwrap()
    });
    assert_eq!((stepped, all.len().unwrap()), (Step::Busy, 1));
    drop(only);
    let stepped = step(store.shared.open_store(), &pair_of(&all), 100, 10).unwrap();
    assert_eq!((stepped, all.len().unwrap()), (Step::Removed(1), 0));
}

/// Between the look without the write permit and the one under it, another writer gives the entry a
/// later deadline.
#[test]
fn an_entry_that_gets_another_deadline_between_two_looks_stays() {
    let store = quiet();
    let all = store.expiring("all").unwrap().with_clock(|| 0);
    for attempt in 1.. {
        all.put("a", "1", at(10)).unwrap();
        let mut only = store.begin_exclusive().unwrap();
        let stepped = std::thread::scope(|scope| {
            let sweeps = || step(store.shared.open_store(), &pair_of(&all), 100, 10).unwrap();
            let sweeping = scope.spawn(sweeps);
            // So that its first look has found the entry, and it waits for the permit.
            std::thread::sleep(Duration::from_millis(attempt % 50));
            all.within(&mut only).set_deadline("a", at(500)).unwrap();
            only.commit().unwrap();
            sweeping.join().unwrap()
        });
        assert_eq!(all.get_with_deadline("a").unwrap(), Some(("1".into(), at(500))));
        match stepped {
            // The second look found nothing.
            Step::Removed(0) => break,
            // It looked too late, or waited for too long.
            _ => assert!(attempt < 2_000, "never in time, but {stepped:?}"),
        }
    }
}

#[test]
fn keyspaces_that_are_renamed_are_swept_and_dropped_or_damaged_ones_harm_no_other() {
    let store = quiet();
    let all: Vec<Expiring> = ["damaged", "dropped", "made again", "named"]
        .iter()
        .map(|name| store.expiring(name).unwrap().with_clock(|| 0))
        .collect();
    all.iter().for_each(|all| all.put("a", "1", at(10)).unwrap());
    let sweeper = Arc::new(Sweeper::default());
    for all in &all {
        sweeper.note(pair_of(all));
    }
    let damaged = Keyspace::new(&store.shared, Arc::clone(&all[0].deadlines.state));
    damaged.put([0], "").unwrap();
    store.drop_expiring("dropped").unwrap();
    store.drop_expiring("made again").unwrap();
    let again = store.expiring("made again").unwrap().with_clock(|| 0);
    again.put("b", "2", at(10)).unwrap();
    store.rename_keyspace("named", "other").unwrap();
    let mut failures = BTreeMap::new();
    let wait = sweep(store.shared.open_store(), &sweeper, &mut failures);
    assert!(wait >= Duration::from_secs(1), "nothing is due: {wait:?}");
    let kept = [&all[0], &all[3]].map(|all| all.entries.len().unwrap());
    assert_eq!(kept, [1, 0], "that of the damaged one, and none of the renamed one");
    assert!(failures.keys().eq([&all[0].entries.state.id]), "it is tried again later");
    assert_eq!(sweeper.pairs().len(), 2, "what is not there any more is forgotten");
    assert_eq!(again.len().unwrap(), 1, "nobody has opened this one here");
    sweeper.note(pair_of(&again));
    sweep(store.shared.open_store(), &sweeper, &mut failures);
    assert_eq!(again.len().unwrap(), 0);
}

#[test]
fn the_feed_has_what_was_swept_as_deletes() {
    let store = quiet();
    store.record_changes(Some(1 << 20)).unwrap();
    let all = store.expiring("all").unwrap().with_clock(|| 0);
    (0..10_u8).for_each(|key| all.put([key], "", at(10 + u64::from(key))).unwrap());
    let last = store.changes_info().unwrap().last;
    step(store.shared.open_store(), &pair_of(&all), 14, 100).unwrap();
    let commit = store.changes(last).unwrap().try_next().unwrap().unwrap();
    let deleted = commit.changes.iter().map(|change| match change {
        Change::Removed { keyspace, key } if &*keyspace.name == "all" => key[0],
        other => panic!("{other:?}"),
    });
    assert_eq!(deleted.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

/// After every power cut in the middle of a sweep each entry has its row, none that lives is gone,
/// and the next sweep removes the rest.
#[test]
fn a_power_cut_in_a_sweep_loses_nothing_that_lives() {
    let mut tally = Tally::new();
    for (number, engine) in [Engine::Bplus, Engine::Lsm].into_iter().enumerate() {
        let seed = seed(number as u64);
        let disk = SimDisk::new(seed);
        let open = |disk: &SimDisk| {
            let options = Options::new().log_bytes_max(4 << 20).background(false);
            Store::open_directory(Arc::new(SimDirectory::root(disk)), options).unwrap()
        };
        let store = open(&disk);
        let (all, model) = filled(&store, engine, &mut fastrand::Rng::with_seed(seed));
        disk.begin_history();
        for number in 1..=8 {
            Mark::Begun.put(&disk, number);
            assert_eq!(
                step(store.shared.open_store(), &pair_of(&all), 60, 10).unwrap(),
                Step::Removed(10)
            );
            if number % 3 == 0 {
                store.sync().unwrap();
                Mark::Durable.put(&disk, number);
            }
        }
        drop((all, store));
        let mut ends: Vec<_> = model.iter().map(|(key, ends)| (*ends, key)).collect();
        ends.retain(|(ends, _)| ends.is_some());
        // In the order of the rows.
        ends.sort_by_key(|(ends, key)| (*ends, key.to_le_bytes()));
        tally.power_cuts(&disk, 1, 4, |disk, promise| {
            let store = open(&disk);
            let all = store.open_expiring("all").unwrap().with_clock(|| 0);
            assert!(store.check().unwrap().is_clean());
            let removed = model.len() - all.iter().count();
            assert!(removed % 10 == 0, "{removed}: a part of a step");
            let steps = removed as u64 / 10;
            assert!((promise.least..=promise.most).contains(&steps), "{steps}: {promise:?}");
            let mut left = model.clone();
            ends[..removed].iter().for_each(|(_, key)| assert!(left.remove(key).is_some()));
            compare(&all, &left, &format!("{promise:?}"));
            while step(store.shared.open_store(), &pair_of(&all), 60, 50).unwrap()
                != Step::Nothing(
                    left.values()
                        .flatten()
                        .filter(|ends| **ends > 60)
                        .min()
                        .map(|ends| Deadline::from_millis(*ends)),
                )
            {}
            left.retain(|_, ends| ends.is_none_or(|ends| ends > 60));
            compare(&all, &left, "swept after the cut");
        });
    }
    tally.print("sweep of expired entries");
}

/// A device that takes no more bytes: what has expired goes, since that needs none.
#[test]
fn a_full_disk_is_swept() {
    for engine in [Engine::Bplus, Engine::Lsm] {
        let disk = SimDisk::new(7);
        let options = Options::new().log_bytes_max(4 << 20).background(false);
        let store = Store::open_directory(Arc::new(SimDirectory::root(&disk)), options).unwrap();
        let options = KeyspaceOptions::new().engine(engine);
        let all = store.expiring_with("all", options).unwrap().with_clock(|| 0);
        disk.set_space_bytes(Some(disk.space_used_bytes() + (1 << 20)));
        let mut number = 0_u32;
        let error = loop {
            match all.put(number.to_le_bytes(), [7; 1000], at(10)) {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
        };
        assert!(error.is_out_of_space(), "{error}");
        let sweeper = Arc::new(Sweeper::default());
        sweeper.note(pair_of(&all));
        let mut failures = BTreeMap::new();
        sweep(store.shared.open_store(), &sweeper, &mut failures);
        assert!(failures.is_empty(), "{engine:?}");
        assert_eq!(all.keyspaces().1.len().unwrap(), 0, "{engine:?}: {number}");
        all.put("again", "1", None).unwrap();
        assert!(store.check().unwrap().is_clean());
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_thread_removes_what_expires_also_in_keyspaces_opened_later() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("store")).unwrap();
    assert!(!store.shared.sweeper().has_thread(), "there is nothing to sweep");
    for name in ["one", "other"] {
        let all = store.expiring(name).unwrap();
        assert!(store.shared.sweeper().has_thread());
        all.put("stays", "1", None).unwrap();
        let soon = all.after(Duration::from_millis(30));
        let mut transaction = store.begin().unwrap();
        // More than one step.
        for key in 0..3 * STEP_ENTRIES_MAX as u32 / 2 {
            all.within(&mut transaction).put(key.to_le_bytes(), "2", Some(soon)).unwrap();
        }
        transaction.commit().unwrap();
        let (entries, deadlines) = all.keyspaces();
        wait_until(name, || deadlines.is_empty().unwrap());
        assert_eq!(entries.len().unwrap(), 1);
    }
    store.close().unwrap();
}

/// The thread had a handle: the store stayed open, and locked, until its step had ended.
#[test]
fn a_store_is_closed_by_its_last_handle_in_the_middle_of_a_sweep() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut left = Vec::new();
    for round in 0..20_u32 {
        let store = Store::open_with(&path, Options::new().sweep_expired(false)).unwrap();
        let all = store.expiring("all").unwrap();
        let mut transaction = store.begin().unwrap();
        for key in 0..5_000_u32 {
            all.within(&mut transaction).put(key.to_le_bytes(), "2", at(10)).unwrap();
        }
        transaction.commit().unwrap();
        drop((all, store));
        let store = Store::open(&path).unwrap();
        let all = store.expiring("all").unwrap();
        if round % 2 == 0 {
            wait_until("a step", || all.keyspaces().1.len().unwrap() < 5_000);
        }
        left.push(all.keyspaces().1.len().unwrap());
        drop(all);
        if round % 4 < 2 { drop(store) } else { store.close().unwrap() }
    }
    assert!(left.iter().any(|rows| *rows > 0), "never in the middle");
    println!("rows left at closing: {left:?}");
}

#[test]
fn stores_without_the_option_and_readers_have_no_thread() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let switches = [Options::new().sweep_expired(false), Options::new().background(false)];
    for options in switches.into_iter().chain([Options::new().read_only(true)]) {
        let store = Store::open_with(&path, options.clone()).unwrap();
        let opened = match options.read_only {
            true => store.open_expiring("all"),
            false => store.expiring("all"),
        };
        opened.unwrap();
        assert!(!store.shared.sweeper().has_thread());
        assert!(!matches!(store.close(), Err(Error::Closed)));
    }
}
