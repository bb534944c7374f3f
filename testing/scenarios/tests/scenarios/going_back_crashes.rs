//! Going back on a disk that crashes, fails and fills up: whatever is left, no number of the feed
//! of changes is that of two commits, and the savepoints show what they did.

use std::sync::Arc;

use adamant::{Directory, Engine, Error, KeyspaceOptions, Slice, Store, go_back_in};
use adamant_scenarios::crashes::{Setup, assert_clean};
use adamant_sim::tally::{seed, states_max};
use adamant_sim::{Call, Choice, Fault, SimDirectory, SimDisk, Tally};

const ENGINES: [Engine; 2] = [Engine::Bplus, Engine::Lsm];

fn root(disk: &SimDisk) -> Arc<dyn Directory> {
    Arc::new(SimDirectory::root(disk))
}

/// The entries of both keyspaces.
type Content = [Vec<(Slice, Slice)>; 2];

fn content_of(store: &Store) -> Content {
    ENGINES.map(|engine| {
        let keyspace = store.open_keyspace(engine.name()).unwrap();
        keyspace.iter().map(|entry| entry.unwrap()).collect()
    })
}

/// A closed store with savepoints, and what was known of it.
struct Prepared {
    disk: SimDisk,
    setup: Setup,
    /// By name of the savepoint: the entries, and the number of the last change, while changes were
    /// recorded.
    moments: Vec<(&'static str, Content, Option<u64>)>,
    /// The same as it was closed.
    last: (Content, Option<u64>),
    /// The highest number that was given.
    number_max: u64,
}

fn prepared(number: u64) -> Prepared {
    let disk = SimDisk::new(seed(number));
    let setup = if number.is_multiple_of(2) { Setup::default() } else { Setup::ENCRYPTED };
    let store = setup.open(&disk).unwrap();
    let mut random = fastrand::Rng::with_seed(seed(number));
    let mut write = |commits: usize| {
        for number in 0..commits {
            let engine = ENGINES[number % 2];
            let options = KeyspaceOptions::new().engine(engine);
            let keyspace = store.keyspace_with(engine.name(), options).unwrap();
            let key = [random.u8(..40)];
            keyspace.put(key, vec![random.u8(..); random.usize(..300)]).unwrap();
        }
    };
    let (mut moments, mut number_max) = (Vec::new(), 0);
    let mut note = |name: &'static str| {
        let last = store.last_change().ok();
        number_max = number_max.max(last.unwrap_or(0));
        store.create_savepoint(name).unwrap();
        moments.push((name, content_of(&store), last));
    };
    write(20);
    note("without changes");
    store.record_changes(Some(1 << 20)).unwrap();
    write(20);
    note("one");
    write(20);
    store.shrink().unwrap();
    note("two");
    write(20);
    let last = store.last_change().unwrap();
    if number % 4 > 1 {
        // What was given cannot be read any more.
        store.record_changes(None).unwrap();
    }
    write(3);
    let last_change = store.last_change().ok();
    let number_max = last_change.unwrap_or(last).max(number_max);
    let last = (content_of(&store), last_change);
    store.close().unwrap();
    Prepared { disk, setup, moments, last, number_max }
}

impl Prepared {
    fn copy(&self) -> SimDisk {
        self.disk.crash(self.disk.operation_count(), &mut Choice::All)
    }

    /// Opens what is left of going back to a savepoint, and goes on; whether it is there.
    fn verify(&self, disk: &SimDisk, to: &str) -> bool {
        let store = self.setup.open(disk).unwrap();
        let content = content_of(&store);
        let (_, new, at_savepoint) = self.moments.iter().find(|it| it.0 == to).unwrap();
        let is_new = content == *new;
        assert!(is_new || content == self.last.0, "neither moment");
        assert_clean(&store);
        let last_change = if is_new { at_savepoint } else { &self.last.1 };
        match (store.last_change(), last_change) {
            (Ok(found), Some(last)) => {
                assert!(if is_new { found > self.number_max } else { found == *last });
            }
            (Err(Error::ChangesNotRecorded), None) => {}
            (found, expected) => panic!("{found:?}, {expected:?}"),
        }
        let savepoints = || {
            for (name, content, _) in &self.moments {
                let savepoint = store.open_savepoint(name).unwrap();
                assert!(content_of(&savepoint) == *content, "{name}");
                assert_clean(&savepoint);
            }
        };
        savepoints();
        store.keyspace("new").unwrap().put("key", vec![7; 5000]).unwrap();
        if let Some(last) = *last_change {
            let number = store.own_change().unwrap();
            assert!(number > if is_new { self.number_max } else { last });
            for seen in 0..=self.number_max {
                let found = store.changes(seen).map(|mut all| all.try_next().unwrap());
                match found {
                    Ok(found) => assert!(seen <= last && found.is_some(), "{seen}"),
                    Err(Error::ChangesUnknown { .. }) => assert!(seen > last, "{seen}"),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        store.shrink().unwrap();
        savepoints();
        is_new
    }
}

#[test]
fn a_crash_leaves_numbers_of_one_history() {
    let (mut tally, mut found) = (Tally::new(), [0; 2]);
    for (number, to) in [(300, "one"), (301, "without changes"), (302, "two"), (303, "one")] {
        let prepared = prepared(number);
        let disk = prepared.copy();
        disk.begin_history();
        go_back_in(root(&disk), to, prepared.setup.options()).unwrap();
        let done = disk.operation_count();
        assert!(prepared.verify(&disk.crash(done, &mut Choice::None), to));
        let mut cursor = disk.cursor();
        for point in cursor.point()..=done {
            cursor.advance_to(point);
            if cursor.is_covered() {
                continue;
            }
            tally.points += 1;
            for choice in cursor.choices(states_max(2), point) {
                tally.state(&disk, point, &choice, || {
                    let crashed = cursor.crash(&mut choice.clone()).without_history();
                    found[usize::from(prepared.verify(&crashed, to))] += 1;
                });
            }
        }
    }
    tally.print("going back with changes");
    assert!(found.iter().all(|count| *count > 5), "{found:?}");
}

/// The next process that opens the store ends the checkpoints of a pool that was exchanged, maybe
/// not durably: a power cut there must not bring that one back.
#[test]
fn a_power_cut_behind_a_killed_process_leaves_a_pool() {
    let (mut tally, mut found) = (Tally::new(), [0; 2]);
    for (number, to) in [(307, "one"), (308, "two")] {
        let prepared = prepared(number);
        let disk = match number {
            307 => prepared.copy(),
            // The new pool is renamed over the old one.
            _ => prepared.copy().without_exchange(),
        };
        disk.begin_history();
        go_back_in(root(&disk), to, prepared.setup.options()).unwrap();
        let done = disk.operation_count();
        for point in done - 8..=done {
            let killed = disk.kill(point);
            drop(prepared.setup.open(&killed).unwrap());
            tally.cuts_within(&killed, states_max(3), point, |crashed| {
                found[usize::from(prepared.verify(&crashed.without_history(), to))] += 1;
            });
        }
    }
    tally.print("going back, killed");
    assert!(found.iter().all(|count| *count > 5), "{found:?}");
}

#[test]
fn numbers_on_disks_that_fail_and_fill_up() {
    let mut failed = [0; 3];
    for (number, to) in [(304, "one"), (305, "two"), (306, "without changes")] {
        let prepared = prepared(number);
        let whole = prepared.copy();
        let back = |disk: &SimDisk| go_back_in(root(disk), to, prepared.setup.options());
        back(&whole).unwrap();
        for (index, fault) in [Fault::Device, Fault::Full].into_iter().enumerate() {
            for call in Call::ALL {
                let step = (whole.call_count(call) as usize / 10).max(1);
                for at in (1..=whole.call_count(call)).step_by(step) {
                    let disk = prepared.copy();
                    disk.fail_call(call, at, fault);
                    let done = back(&disk).is_ok();
                    failed[index] += u64::from(!done);
                    disk.repair();
                    let crashed = disk.crash(disk.operation_count(), &mut Choice::random(at));
                    for disk in [crashed, disk] {
                        assert!(prepared.verify(&disk, to) || !done);
                    }
                }
            }
        }
        let (before, after) = (prepared.copy().space_used_bytes(), whole.space_used_bytes());
        for space in (before..after + (1 << 20)).step_by(128 << 10) {
            let disk = prepared.copy();
            disk.set_space_bytes(Some(space));
            let done = back(&disk);
            let is_full = done.as_ref().is_err_and(Error::is_out_of_space);
            assert!(done.is_ok() || is_full, "{done:?}");
            failed[2] += u64::from(is_full);
            disk.set_space_bytes(None);
            assert!(prepared.verify(&disk, to) || is_full);
        }
    }
    println!("going back: {failed:?} failed");
    assert!(failed.iter().all(|count| *count > 5), "{failed:?}");
}
