//! Going back to a savepoint: who kept a number, or a part of a store, never mixes two histories of
//! it: numbers go on, and what was seen of undone commits is refused.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use adamant::{Change, Directory, Error, Store};
use adamant_medium::memory::MemoryDirectory;

use crate::changes::recorded;
use crate::savepoint_files::copy;
use crate::savepoints::{Model, change, open, verify};
use crate::small::options;

fn back(store: Store, path: &Path, name: &str) -> Store {
    store.close().unwrap();
    adamant::go_back_with(path, name, options()).unwrap();
    open(path)
}

/// Makes a store with a savepoint, changes it, and closes it: what the savepoint has, and what the
/// store has.
fn changed_since(path: &Path, random: &mut fastrand::Rng) -> (Model, Model) {
    let (store, mut models) = (open(path), Model::default());
    (0..30).for_each(|_| change(&store, &mut models, random));
    store.create_savepoint("one").unwrap();
    let old = models.clone();
    (0..30).for_each(|_| change(&store, &mut models, random));
    store.close().unwrap();
    (old, models)
}

fn last_commit(store: &Store) -> u64 {
    store.stats().unwrap().heap.journal.last_sequence
}

/// A copy of a store that follows its feed from outside, and what it saw last.
struct Follower {
    models: Model,
    seen: u64,
}

impl Follower {
    /// Goes on with the feed; whether it could. `numbers` has all that it was given.
    fn follow(&mut self, store: &Store, numbers: &mut BTreeSet<u64>) -> Result<(), Error> {
        let mut changes = store.changes(self.seen)?;
        while let Some(commit) = changes.try_next()? {
            assert!(commit.number > self.seen);
            (self.seen, _) = (commit.number, numbers.insert(commit.number));
            for change in commit.changes {
                let model = match &*change.keyspace().name {
                    "bplus" => &mut self.models[0],
                    _ => &mut self.models[1],
                };
                match change {
                    Change::Put { key, value, .. } => drop(model.insert(key.into(), value.into())),
                    Change::Removed { key, .. } => drop(model.remove(&key[..])),
                    Change::Created { .. } => assert!(model.is_empty()),
                    Change::Dropped { .. } => model.clear(),
                    other => panic!("{other:?}"),
                }
            }
        }
        Ok(())
    }
}

/// What a savepoint has: the entries, and all that the number of the last change was until then.
#[derive(Clone, Default)]
struct Moment {
    models: Model,
    /// `None` while nothing is recorded.
    lineage: Option<BTreeSet<u64>>,
}

/// Followers of the feed that come and go, and look now and then, while the store goes back and
/// forth and recording ends and begins: each has what the store has, or is told that what it saw
/// was undone; and is told so only then.
#[test]
fn a_follower_of_the_feed_never_mixes_two_histories() {
    let (mut backs, mut refused, mut followed) = (0, 0, 0);
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let mut store = open(&path);
        let (mut now, mut made) = (Moment::default(), Vec::<(String, Moment)>::new());
        let (mut followers, mut numbers) = (Vec::<Follower>::new(), BTreeSet::new());
        let mut commit_max = 0;
        for step in 0..200 {
            let how = format!("seed {seed}, step {step}");
            match random.u32(..16) {
                0..2 if made.len() < 4 => {
                    store.create_savepoint(&how).unwrap();
                    made.push((how.clone(), now.clone()));
                }
                2 if !made.is_empty() => {
                    let (name, moment) = made[random.usize(..made.len())].clone();
                    store = back(store, &path, &name);
                    now = moment;
                    assert!(last_commit(&store) > commit_max, "{how}: a commit of its own");
                    verify(&store, &now.models, &how);
                    backs += 1;
                }
                3 if random.bool() => {
                    let begins = now.lineage.is_none();
                    store.record_changes(begins.then_some(64 << 20)).unwrap();
                    now.lineage = begins.then(BTreeSet::new);
                }
                4 => {
                    if store.drop_keyspace("bplus").unwrap() {
                        now.models[0].clear();
                    }
                }
                5..8 if now.lineage.is_some() => {
                    let seen = store.last_change().unwrap();
                    followers.push(Follower { models: now.models.clone(), seen });
                }
                8..12 if !followers.is_empty() => {
                    let at = random.usize(..followers.len());
                    let follower = &mut followers[at];
                    let is_known = now.lineage.as_ref().map(|all| all.contains(&follower.seen));
                    match (follower.follow(&store, &mut numbers), is_known) {
                        (Ok(()), Some(true)) => {
                            assert!(follower.models == now.models, "{how}");
                            followed += 1;
                        }
                        (Err(Error::ChangesUnknown { .. }), Some(false)) => {
                            followers.swap_remove(at);
                            refused += 1;
                        }
                        (Err(Error::ChangesNotRecorded), None) => {}
                        (other, is_known) => panic!("{how}: {other:?}, {is_known:?}"),
                    }
                }
                _ => {
                    let largest = numbers.last().copied().unwrap_or(0);
                    change(&store, &mut now.models, &mut random);
                    if now.lineage.is_some() {
                        let number = store.own_change().expect("it was recorded");
                        assert!(number > largest, "{how}: {number} was given before");
                        numbers.insert(number);
                    }
                }
            }
            commit_max = commit_max.max(last_commit(&store));
            if let Some(lineage) = &mut now.lineage {
                lineage.insert(store.last_change().unwrap());
            }
        }
        verify(&store, &now.models, "at the end");
    }
    assert!(backs > 20 && refused > 10 && followed > 30, "{backs}, {refused}, {followed}");
}

/// The reader that had seen everything is the one that a number alone would deceive.
#[test]
fn a_reader_of_all_changes_is_told_that_they_were_undone() {
    let (directory, store) = recorded(1 << 20);
    let path = directory.path().join("store");
    let towns = store.keyspace("towns").unwrap();
    towns.put("Bern", "1").unwrap();
    store.create_savepoint("one").unwrap();
    let at_savepoint = store.last_change().unwrap();
    towns.put("Bern", "2").unwrap();
    towns.put("Bern", "3").unwrap();
    let all = store.last_change().unwrap();
    store.create_savepoint("two").unwrap();
    drop(towns);

    let store = back(store, &path, "one");
    for seen in at_savepoint + 1..=all {
        let error = store.changes(seen).unwrap_err();
        assert!(matches!(error, Error::ChangesUnknown { after, .. } if after == seen), "{error}");
        assert!(error.to_string().contains("went back to a savepoint"), "{error}");
    }
    // What that has changed in the pool was kept for the savepoints.
    for name in ["one", "two"] {
        let savepoint = store.open_savepoint(name).unwrap();
        assert!(savepoint.check().unwrap().is_clean(), "{name}");
        assert_eq!(
            savepoint.last_change().unwrap(),
            if name == "one" { at_savepoint } else { all }
        );
    }
    let last = store.last_change().unwrap();
    assert!(last > all, "going back is one more");
    assert!(store.changes(last).unwrap().try_next().unwrap().is_none());
    store.keyspace("towns").unwrap().put("Bern", "4").unwrap();
    assert!(store.changes(all).is_err(), "also behind later commits");
    for seen in 0..=at_savepoint {
        let mut changes = store.changes(seen).unwrap();
        let mut found = Vec::new();
        while let Some(commit) = changes.try_next().unwrap() {
            found.push(commit.number);
        }
        let expected: Vec<_> = (seen + 1..=at_savepoint).chain([last + 1]).collect();
        assert_eq!(found, expected);
    }
}

/// Recording has ended when the store goes back, so nothing tells what was given.
#[test]
fn numbers_go_on_above_those_of_a_history_that_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut store = open(&path);
    store.create_savepoint("before").unwrap();
    store.record_changes(Some(1 << 20)).unwrap();
    store.keyspace("towns").unwrap().put("Bern", "1").unwrap();
    store.create_savepoint("one").unwrap();
    let at_savepoint = store.last_change().unwrap();
    for _ in 0..20 {
        store.keyspace("towns").unwrap().put("Bern", "2").unwrap();
    }
    let mut given: BTreeSet<u64> = (1..=store.last_change().unwrap()).collect();
    store.record_changes(None).unwrap();
    for (name, is_begun) in [("one", false), ("before", true), ("one", false), ("before", true)] {
        store = back(store, &path, name);
        if is_begun {
            store.record_changes(Some(1 << 20)).unwrap();
        }
        let begun = store.last_change().unwrap();
        for _ in 0..20 {
            store.keyspace("towns").unwrap().put("Bern", "3").unwrap();
            assert!(given.insert(store.own_change().unwrap()), "each number is given once");
        }
        for seen in given.range(..=begun) {
            let is_left = !is_begun && *seen <= at_savepoint;
            assert_eq!(store.changes(*seen).is_ok(), is_left, "{name}: {seen}");
        }
        store.record_changes(None).unwrap();
    }
}

/// A store that is made anew has few commits of its own, and the numbers of all that it ever gave:
/// in its history, or in one that had ended before.
#[test]
fn numbers_go_on_in_a_store_that_is_compacted() {
    for ends_before in [false, true] {
        let (directory, mut store) = recorded(1 << 20);
        let path = directory.path().join("store");
        let mut given = BTreeSet::new();
        for round in 0..3 {
            for _ in 0..40 {
                store.keyspace("towns").unwrap().put("Bern", "1").unwrap();
                assert!(given.insert(store.own_change().unwrap()), "each number is given once");
            }
            if ends_before {
                store.record_changes(None).unwrap();
            }
            let before = last_commit(&store);
            store.close().unwrap();
            adamant::compact_with(&path, options()).unwrap();
            store = open(&path);
            assert!(last_commit(&store) > before, "round {round}: the same store goes on");
            store.create_savepoint("compact").unwrap();
            if !ends_before {
                store.keyspace("towns").unwrap().put("Bern", "2").unwrap();
                assert!(given.insert(store.own_change().unwrap()), "each number is given once");
                store.record_changes(None).unwrap();
                store = back(store, &path, "compact");
            }
            store.delete_savepoint("compact").unwrap();
            store.record_changes(Some(1 << 20)).unwrap();
            if ends_before {
                let refused = store.changes(*given.last().unwrap());
                assert!(matches!(refused, Err(Error::ChangesUnknown { .. })), "round {round}");
            }
        }
    }
}

/// As in one that was compacted.
#[test]
fn numbers_go_on_in_a_store_that_is_repaired() {
    let [damaged, target]: [Arc<dyn Directory>; 2] =
        std::array::from_fn(|_| Arc::new(MemoryDirectory::new()) as Arc<dyn Directory>);
    let store = Store::open_directory(Arc::clone(&damaged), options()).unwrap();
    store.record_changes(Some(1 << 20)).unwrap();
    for _ in 0..40 {
        store.keyspace("towns").unwrap().put("Bern", "1").unwrap();
    }
    let (before, given) = (last_commit(&store), store.last_change().unwrap());
    store.close().unwrap();
    adamant::repair_into(&damaged, Arc::clone(&target), options()).unwrap();
    let store = Store::open_directory(target, options()).unwrap();
    assert_eq!(store.last_change().unwrap(), given, "the history was saved");
    assert!(last_commit(&store) > before, "its commits have larger numbers");
}

/// A reader that the writer has overtaken does not keep a store from going back. It has the old
/// pool, in which nothing would ever change.
#[test]
#[cfg_attr(windows, ignore = "files that are open stay there")]
fn an_overtaken_reader_finds_that_the_store_went_back() {
    for keeps_handle in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let mut random = fastrand::Rng::with_seed(7);
        let (old, models) = changed_since(&path, &mut random);
        let mut reader = Store::open_beside(&path).unwrap();
        let handle = keeps_handle.then(|| reader.open_keyspace("bplus").unwrap());
        let error = adamant::go_back_with(&path, "one", options()).unwrap_err();
        assert!(error.to_string().contains("other processes read this store"), "{error}");
        verify(&reader, &models, "beside a store that stayed");
        for file in path.join("readers").read_dir().unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|it| it == "place") {
                std::fs::remove_file(file).unwrap();
            }
        }
        adamant::go_back_with(&path, "one", options()).unwrap();
        assert!(reader.wait_for_change(std::time::Duration::ZERO).unwrap());
        assert!(reader.refresh().unwrap());
        verify(&reader, &old, "behind the going back");
        let store = open(&path);
        let mut models = old;
        (0..30).for_each(|_| change(&store, &mut models, &mut random));
        assert!(reader.refresh().unwrap());
        verify(&reader, &models, "behind later commits");
        drop(handle);
    }
}

/// The process that went back was ended between the exchange and the last step, which tells
/// overtaken readers; the next one that opens the store does.
#[test]
#[cfg_attr(windows, ignore = "no names are exchanged there")]
fn an_overtaken_reader_finds_what_a_killed_process_went_back_to() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("store"), directory.path().join("other"));
    let mut random = fastrand::Rng::with_seed(8);
    let (old, models) = changed_since(&path, &mut random);
    copy(&path, &other);
    adamant::go_back_with(&other, "one", options()).unwrap();
    let mut reader = Store::open_beside(&path).unwrap();
    verify(&reader, &models, "beside a store that stayed");
    // What the exchange leaves: both pools, and the pages that it kept.
    std::fs::rename(path.join("pool"), path.join("pool.new")).unwrap();
    std::fs::copy(other.join("pool"), path.join("pool")).unwrap();
    copy(&other.join("savepoints"), &path.join("savepoints"));
    let store = open(&path);
    assert!(!path.join("pool.new").exists());
    assert!(reader.refresh().unwrap());
    verify(&reader, &old, "behind the going back");
    let mut models = old;
    (0..30).for_each(|_| change(&store, &mut models, &mut random));
    assert!(reader.refresh().unwrap());
    verify(&reader, &models, "behind later commits");
}

/// Links of a chain of increments that were made before and after going back, and forward again:
/// each is the store at its moment.
#[test]
fn increments_across_a_going_back_are_right() {
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut store = open(&path("store"));
        let (mut models, mut made) = (Model::default(), Vec::<(String, Model)>::new());
        let mut links = vec![("link 0".to_owned(), Model::default())];
        store.backup(path("link 0")).unwrap();
        for step in 1..14 {
            (0..random.u32(..20)).for_each(|_| change(&store, &mut models, &mut random));
            if random.bool() {
                store.compact().unwrap();
            }
            match random.u32(..3) {
                0 => {
                    let name = format!("at {step}");
                    store.create_savepoint(&name).unwrap();
                    made.push((name, models.clone()));
                }
                1 if !made.is_empty() => {
                    let (name, old) = made[random.usize(..made.len())].clone();
                    store = back(store, &path("store"), &name);
                    models = old;
                }
                _ => {}
            }
            let (name, parent) = (format!("link {step}"), random.usize(..links.len()));
            store.backup_since(path(&links[parent].0), path(&name)).unwrap();
            links.push((name, models.clone()));
        }
        for (name, models) in &links {
            verify(&Store::open_read_only(path(name)).unwrap(), models, &format!("{seed}, {name}"));
            adamant::restore(path(name), path("restored")).unwrap();
            let restored = open(&path("restored"));
            verify(&restored, models, &format!("{seed}, {name}, restored"));
            drop(restored);
            std::fs::remove_dir_all(path("restored")).unwrap();
        }
    }
}
