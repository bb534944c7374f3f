//! Tests of expiring keyspaces against a model with a clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adamant_medium::memory::MemoryDirectory;
use adamant_slice::Slice;

use super::{Deadline, Expiring};
use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::kind::KeyspaceKind;
use crate::limits::KEY_BYTES_MAX;
use crate::options::Options;
use crate::store::handle::Store;

/// Values and deadlines, by key.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// A store whose entries expire by the clocks of the tests alone.
pub(super) fn quiet() -> Store {
    let directory = Arc::new(MemoryDirectory::new());
    Store::open_directory(directory, Options::new().sweep_expired(false)).unwrap()
}

struct Place {
    store: Store,
    all: Expiring,
    now: Arc<AtomicU64>,
    model: Model,
}

impl Place {
    fn new(engine: Engine) -> Self {
        let store = quiet();
        let now = Arc::new(AtomicU64::new(1_000));
        let clock = Arc::clone(&now);
        let options = KeyspaceOptions::new().engine(engine);
        let all = store.expiring_with("all", options).unwrap();
        let all = all.with_clock(move || clock.load(Ordering::Relaxed));
        Self { store, all, now, model: Model::new() }
    }

    fn is_living(&self, deadline: Option<u64>) -> bool {
        deadline.is_none_or(|deadline| deadline > self.now.load(Ordering::Relaxed))
    }

    fn get(&self, key: &[u8]) -> Option<(Vec<u8>, Option<u64>)> {
        self.model.get(key).filter(|(_, deadline)| self.is_living(*deadline)).cloned()
    }

    /// Compares all reads with the model; checks that each deadline has its row and that there is
    /// no other.
    fn compare(&self, what: &str) {
        let living: Vec<_> = self.model.iter().filter(|(_, v)| self.is_living(v.1)).collect();
        let found: Vec<_> = self.all.iter().map(Result::unwrap).collect();
        assert_eq!(found.len(), living.len(), "{what}");
        for ((key, value, deadline), (expected, (of, ends))) in found.iter().zip(&living) {
            assert_eq!((&key[..], &value[..]), (&expected[..], &of[..]), "{what}");
            assert_eq!(deadline.map(Deadline::millis), *ends, "{what}");
        }
        assert!(
            self.all.iter().rev().map(|e| e.unwrap().0).eq(found.iter().rev().map(|e| e.0.clone()))
        );
        assert_eq!(self.all.len().unwrap(), living.len() as u64, "{what}");
        assert_eq!(self.all.is_empty().unwrap(), living.is_empty(), "{what}");
        let rows = self.all.deadlines.iter().map(|row| row.unwrap().0.to_vec());
        let stored = self.all.entries.iter().map(Result::unwrap);
        let mut expected: Vec<Vec<u8>> = stored
            .filter(|(_, stored)| stored[..8] != [0; 8])
            .map(|(key, stored)| [&stored[..8], &key[..]].concat())
            .collect();
        expected.sort();
        assert!(rows.eq(expected), "{what}: rows");
    }

    fn insert_reserved(&self, key: &[u8], value: &[u8], end: Option<Deadline>) -> Result<bool> {
        let mut room = self.all.reserve(value.len())?;
        room.copy_from_slice(value);
        self.store.exclusive(|tx| self.all.within(tx).insert_reserved(key, room, end))
    }

    fn pop(&mut self, is_first: bool) {
        let mut living = self.model.iter().filter(|(_, value)| self.is_living(value.1));
        let expected = if is_first { living.next() } else { living.next_back() };
        let expected = expected.map(|(key, (value, ends))| (key.clone(), value.clone(), *ends));
        let popped = if is_first { self.all.pop_first() } else { self.all.pop_last() }.unwrap();
        let popped = popped
            .map(|(key, value, ends)| (key.to_vec(), value.to_vec(), ends.map(Deadline::millis)));
        assert_eq!(popped, expected);
        expected.map(|(key, ..)| self.model.remove(&key));
    }

    /// Keeps what has no deadline, of the keys from one on.
    fn retain(&mut self, number: u8) {
        let from = [b'k', number];
        let is_gone = |key: &[u8], ends: Option<u64>| {
            *key >= from[..] && self.is_living(ends) && ends.is_some() && key[1].is_multiple_of(3)
        };
        let gone: Vec<_> = self.model.iter().filter(|(key, value)| is_gone(key, value.1)).collect();
        let gone: Vec<Vec<u8>> = gone.into_iter().map(|(key, _)| key.clone()).collect();
        let keeps = |key: &[u8], _: &[u8], ends: Option<Deadline>| {
            ends.is_none() || !key[1].is_multiple_of(3)
        };
        assert_eq!(self.all.retain(&from[..].., keeps).unwrap(), gone.len() as u64);
        gone.iter().for_each(|key| drop(self.model.remove(key)));
    }

    fn change(&mut self, random: &mut fastrand::Rng) {
        let number = random.u8(0..40);
        let key = if number == 0 { Vec::new() } else { vec![b'k', number] };
        let now = self.now.load(Ordering::Relaxed);
        let deadline = random.bool().then(|| now + random.u64(0..50));
        let before = self.get(&key);
        let ends = deadline.map(Deadline::from_millis);
        match random.u8(0..14) {
            12 => self.pop(random.bool()),
            13 => self.retain(random.u8(1..40)),
            0..5 => {
                let bytes = if random.u8(0..8) == 0 { 5_000 } else { 0 } + random.usize(0..40);
                let value = vec![random.u8(..); bytes];
                let replaced = match random.u8(0..3) {
                    0 => self.all.insert(&key, &value, ends),
                    1 => self.insert_reserved(&key, &value, ends),
                    _ => self.all.put(&key, &value, ends).map(|()| before.is_some()),
                };
                assert_eq!(replaced.unwrap(), before.is_some());
                self.model.insert(key, (value, deadline));
            }
            5 => {
                let taken = self.all.take(&key).unwrap();
                assert_eq!(taken.map(|v| v.to_vec()), before.map(|(value, _)| value));
                self.model.remove(&key);
            }
            6 => {
                let removed = match random.bool() {
                    true => self.all.remove(&key),
                    false => self.all.delete(&key).map(|()| before.is_some()),
                };
                assert_eq!(removed.unwrap(), before.is_some());
                self.model.remove(&key);
            }
            7..9 => {
                assert_eq!(self.all.set_deadline(&key, ends).unwrap(), before.is_some());
                if let Some((value, _)) = before {
                    self.model.insert(key, (value, deadline));
                }
            }
            9 => {
                let over = |v: &(Vec<u8>, Option<u64>)| v.1.is_some_and(|ends| ends <= now);
                let entries_max = random.usize(1..9);
                let removed = self.all.remove_expired(entries_max).unwrap();
                assert!(removed as usize <= entries_max);
                if (removed as usize) < entries_max {
                    self.model.retain(|_, value| !over(value));
                    assert_eq!(self.all.entries.len().unwrap(), self.model.len() as u64);
                }
            }
            10 => {
                self.now.fetch_add(random.u64(0..30), Ordering::Relaxed);
            }
            _ => {
                let found = self.all.get_with_deadline(&key).unwrap();
                let found = found.map(|(value, ends)| (value.to_vec(), ends.map(Deadline::millis)));
                assert_eq!(found, before);
                assert_eq!(self.all.contains(&key).unwrap(), before.is_some());
            }
        }
    }
}

#[test]
fn entries_are_there_until_they_end() {
    for engine in [Engine::Bplus, Engine::Critbit, Engine::Lsm] {
        let seed = 31;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut place = Place::new(engine);
        for round in 0..1_500 {
            place.change(&mut random);
            if round % 20 == 0 {
                place.compare(&format!("{engine:?}, seed {seed}, round {round}"));
            }
        }
        place.now.store(u64::MAX, Ordering::Relaxed);
        place.model.retain(|_, (_, deadline)| deadline.is_none());
        place.all.remove_expired(usize::MAX).unwrap();
        place.compare("at the end of time");
        assert_eq!(place.all.next_deadline().unwrap(), None);
    }
}

#[test]
fn a_transaction_sees_one_time_and_its_own_writes() {
    let place = Place::new(Engine::Bplus);
    let (all, end) = (&place.all, Some(place.all.after(Duration::from_millis(5))));
    all.insert("a", "1", end).unwrap();
    let made = place.store.transaction(|tx| {
        let mut all = all.within(tx);
        place.now.store(1_005, Ordering::Relaxed);
        assert_eq!(all.get("a")?, Some("1".into()), "it began before");
        assert!(all.insert("a", "2", None)?);
        assert!(!all.insert("b", "3", end)?);
        assert_eq!(all.iter().count(), 2);
        assert_eq!(all.next_deadline()?, end, "that of b; a has none any more");
        assert!(all.set_deadline("b", None)? && all.remove("b")?);
        assert_eq!(all.next_deadline()?, None);
        assert!(!all.set_deadline("c", None)?);
        all.range("a"..="a").next_back().transpose()
    });
    assert_eq!(made.unwrap(), Some(("a".into(), "2".into(), None)));
    assert_eq!(all.next_deadline().unwrap(), None);

    // A write that replaces an entry has read it.
    let mut late = place.store.begin().unwrap();
    all.within(&mut late).insert("a", "late", None).unwrap();
    all.insert("a", "3", end).unwrap();
    assert!(late.commit().unwrap_err().is_conflict());
    assert_eq!(all.get("a").unwrap(), None, "it ended before it was written");
}

#[test]
fn what_is_no_keyspace_of_such_entries_is_refused() {
    let store = quiet();
    let plain = store.keyspace("plain").unwrap();
    plain.insert("k", "v").unwrap();
    let error = store.expiring("plain").unwrap_err();
    assert!(matches!(&error, Error::NotExpiring { name } if name == "plain"), "{error}");
    assert!(store.open_keyspace("plain.deadlines").is_err(), "nothing was made");
    // An empty keyspace still has its kind.
    plain.clear().unwrap();
    assert!(matches!(store.expiring("plain"), Err(Error::NotExpiring { .. })));
    assert!(store.drop_keyspace("plain").unwrap());
    let all = store.expiring("plain").unwrap();
    // Bytes that no public function writes.
    let plain = Keyspace::new(&store.shared, Arc::clone(&all.entries.state));
    plain.insert("short", "7 bytes").unwrap();
    plain.insert("long", "8 bytes..").unwrap();
    assert!(matches!(all.get("short").unwrap_err(), Error::Encoding { .. }));
    assert!(all.contains("short").is_err() && all.remove("short").is_err());
    assert_eq!(all.iter().filter(Result::is_err).count(), 1);

    let long = vec![7; KEY_BYTES_MAX - 7];
    let error = all.insert(&long, "", None).unwrap_err();
    assert!(matches!(error, Error::KeyTooLong { bytes_max: 65_527, .. }), "{error}");
    all.insert(&long[1..], "", Some(all.after(Duration::MAX))).unwrap();
    assert!(all.contains(&long[1..]).unwrap());
}

#[test]
fn a_keyspace_that_was_half_dropped_begins_anew() {
    let store = quiet();
    let all = store.expiring("all").unwrap().with_clock(|| 1_000);
    all.insert("a", "1", Some(Deadline::from_millis(2_000))).unwrap();
    // As left by a version that dropped one keyspace after the other.
    Keyspace::new(&store.shared, Arc::clone(&all.entries.state)).clear().unwrap();
    let all = store.expiring("all").unwrap().with_clock(|| 3_000);
    assert_eq!((all.len().unwrap(), all.iter().count()), (0, 0));
    // The same key, with a deadline of its own.
    all.insert("a", "2", Some(Deadline::from_millis(4_000))).unwrap();
    assert_eq!(all.len().unwrap(), 1);
    assert_eq!(all.remove_expired(10).unwrap(), 0, "only a row was left");
    assert_eq!(all.get("a").unwrap(), Some("2".into()));
    assert_eq!(all.next_deadline().unwrap(), Some(Deadline::from_millis(4_000)));
    assert!(store.drop_expiring("all").unwrap() && !store.drop_expiring("all").unwrap());
    assert!(store.keyspaces().unwrap().is_empty());
}

/// The kind was checked before the commit, so that a keyspace which took the name meanwhile was
/// dropped.
#[test]
fn the_kind_is_asked_within_the_commit_that_drops() {
    let store = quiet();
    store.keyspace("plain").unwrap().insert("key", "value").unwrap();
    // As if the names were exchanged between the check and the commit.
    let expected = Some(KeyspaceKind::Expiring);
    let error = store.shared.drop_keyspace("plain", expected).unwrap_err();
    assert!(matches!(&error, Error::NotExpiring { name } if name == "plain"), "{error}");
    assert_eq!(store.open_keyspace("plain").unwrap().len().unwrap(), 1);
}

/// A read visits in both halves what has changed, and nothing that is kept for older snapshots.
#[test]
fn what_is_kept_for_an_older_snapshot_costs_a_newer_one_nothing() {
    const ENTRIES: u32 = 4_000;
    let Place { store, all, .. } = Place::new(Engine::Bplus);
    let other = store.expiring("other").unwrap();
    let late = Some(Deadline::from_millis(1 << 40));
    let fill = |keyspace: &Expiring, keys: std::ops::Range<u32>| {
        let mut transaction = store.begin().unwrap();
        for key in keys {
            keyspace.within(&mut transaction).insert(format!("{key:06}"), "v", late).unwrap();
        }
        transaction.commit().unwrap();
    };
    fill(&all, 0..ENTRIES + 1);
    let older = store.snapshot().unwrap();
    let mut transaction = store.begin().unwrap();
    for key in 0..ENTRIES {
        assert!(all.within(&mut transaction).remove(format!("{key:06}")).unwrap());
    }
    transaction.commit().unwrap();
    let walked = || store.stats().unwrap().commits.versions_walked;
    let before = walked();
    let mut transaction = store.begin().unwrap();
    assert_eq!(all.within(&mut transaction).iter().count(), 1);
    assert_eq!(all.within(&mut transaction).next_deadline().unwrap(), late);
    assert_eq!(all.within(&mut transaction).remove_expired(10).unwrap(), 0);
    other.within(&mut transaction).insert("k", "v", late).unwrap();
    transaction.commit().unwrap();
    let newer = store.snapshot().unwrap();
    assert_eq!((all.at(&newer).iter().count(), all.at(&newer).len().unwrap()), (1, 1));
    assert_eq!(walked() - before, 0, "nothing has changed since they began");

    fill(&all, 0..10);
    assert_eq!(all.at(&newer).iter().count(), 1);
    assert!(walked() - before <= 8 * 10, "{} of 10 that changed", walked() - before);
    assert_eq!(all.at(&older).len().unwrap(), u64::from(ENTRIES) + 1);
}

#[test]
fn expired_entries_are_read_by_no_handle() {
    let store = quiet();
    for (name, engine) in [("tree", Engine::Bplus), ("lsm", Engine::Lsm)] {
        let options = KeyspaceOptions::new().engine(engine);
        let entries = store.expiring_with(name, options).unwrap().with_clock(|| 10);
        for number in 0..100_u64 {
            // Of each ten the first, the fourth and so on have expired.
            let deadline = (number % 10 % 3 == 0).then_some(Deadline::from_millis(10));
            entries.put(format!("{number:02}"), number.to_string(), deadline).unwrap();
        }
        let keys: Vec<String> = (0..110).map(|number| format!("{number:02}")).collect();
        let expected: Vec<Option<Slice>> =
            keys.iter().map(|key| entries.get(key).unwrap()).collect();
        assert_eq!(expected.iter().flatten().count(), 60);
        let before = store.snapshot().unwrap();
        let seen = entries.at(&before);
        let ends = [("01", "1"), ("98", "98")].map(|(key, value)| (key.into(), value.into(), None));
        let [first, last] = ends.map(Some);
        let mut transaction = store.begin().unwrap();
        let mut within = entries.within(&mut transaction);
        assert_eq!(entries.multi_get(&keys).unwrap(), expected);
        assert_eq!(seen.multi_get(&keys).unwrap(), expected);
        assert_eq!(within.multi_get(&keys).unwrap(), expected);
        for (key, value) in keys.iter().zip(&expected) {
            assert_eq!(entries.get_with(key, |value| value.into()).unwrap(), *value);
            assert_eq!(seen.get_with(key, |value| value.into()).unwrap(), *value);
            assert_eq!(within.get_with(key, |value| value.into()).unwrap(), *value);
            assert_eq!(seen.contains(key).unwrap(), value.is_some());
            assert_eq!(within.contains(key).unwrap(), value.is_some());
        }
        assert_eq!(
            (entries.first().unwrap(), entries.last().unwrap()),
            (first.clone(), last.clone())
        );
        assert_eq!((seen.first().unwrap(), seen.last().unwrap()), (first.clone(), last.clone()));
        assert_eq!((within.first().unwrap(), within.last().unwrap()), (first, last));
        assert_eq!((seen.prefix("3").count(), within.prefix("3").count()), (6, 6));
        assert_eq!((within.len().unwrap(), seen.len().unwrap()), (60, 60));
        within.delete_range("10".."20").unwrap();
        assert!(!within.is_empty().unwrap());
        transaction.commit().unwrap();
        entries.delete_range("90"..).unwrap();
        assert_eq!((entries.len().unwrap(), seen.len().unwrap()), (48, 60));
        // One that lives, one that has expired, one that was never there.
        let is_new = ["01", "00", "new"].map(|key| entries.insert_unique(key, "", None).unwrap());
        assert_eq!((is_new, entries.len().unwrap()), ([false, true, true], 50));
    }
}
