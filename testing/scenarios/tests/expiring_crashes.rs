//! Entries that end, on a disk that crashes: after every power cut each entry that has a deadline has the
//! row that takes it away, and all is as it was after a commit that was promised.

use std::collections::BTreeMap;

use adamant::expiring::{Deadline, Expiring};
use adamant::{Engine, KeyspaceOptions, Store};
use adamant_scenarios::crashes::{assert_clean, open};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, Promise, SimDisk, Tally};

/// Values and when they end, by key.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// By a clock that stands still.
fn all_at(store: &Store, engine: Engine, now: u64) -> Expiring {
    let options = KeyspaceOptions::new().engine(engine);
    store.expiring_with("all", options).unwrap().with_clock(move || now)
}

fn content(all: &Expiring) -> Model {
    let entries = all.iter().map(|entry| entry.unwrap());
    entries
        .map(|(key, value, ends)| (key.to_vec(), (value.to_vec(), ends.map(|e| e.millis()))))
        .collect()
}

fn run(disk: &SimDisk, engine: Engine, seed: u64) -> Vec<Model> {
    let mut random = fastrand::Rng::with_seed(seed);
    let store = open(disk).unwrap();
    let mut models = vec![Model::new()];
    for commit in 1..70 {
        let mut model = models[commit - 1].clone();
        let now = commit as u64 * 10;
        Mark::Begun.put(disk, commit as u64);
        if commit % 30 == 0 {
            assert!(store.drop_expiring("all").unwrap());
            model.clear();
        } else {
            let all = all_at(&store, engine, now);
            let key = vec![b'k', random.u8(0..12)];
            let deadline = random.u8(0..4).ne(&0).then(|| now + random.u64(1..200));
            let ends = deadline.map(Deadline::from_millis);
            match random.u8(0..8) {
                0 => {
                    all.remove(&key).unwrap();
                    model.remove(&key);
                }
                1 => {
                    if all.set_deadline(&key, ends).unwrap() {
                        model.get_mut(&key).unwrap().1 = deadline;
                    }
                }
                2 => {
                    all.remove_expired(100).unwrap();
                    model.retain(|_, (_, deadline)| deadline.is_none_or(|ends| ends > now));
                }
                _ => {
                    let value = vec![commit as u8; random.usize(0..60)];
                    all.insert(&key, &value, ends).unwrap();
                    model.insert(key, (value, deadline));
                }
            }
        }
        Mark::Durable.put(disk, commit as u64);
        models.push(model);
    }
    models
}

fn judge(disk: &SimDisk, engine: Engine, models: &[Model], promise: Promise) {
    let store = open(disk).unwrap();
    // Entries that are over and were not taken away are in the models.
    let all = all_at(&store, engine, 0);
    let found = content(&all);
    let may_be = &models[promise.least as usize..=promise.most as usize];
    assert!(may_be.contains(&found), "{promise:?}: {found:?}");
    assert_eq!(all.len().unwrap(), found.len() as u64);

    let late = all_at(&store, engine, u64::MAX);
    let lasting = found.values().filter(|(_, deadline)| deadline.is_none()).count() as u64;
    assert_eq!(late.len().unwrap(), lasting);
    let ending = found.len() as u64 - lasting;
    assert_eq!(late.remove_expired(1000).unwrap(), ending, "each has its row");
    let (entries, deadlines) = late.keyspaces();
    assert_eq!((entries.len().unwrap(), deadlines.len().unwrap()), (lasting, 0));
    assert_clean(&store);
}

#[test]
fn no_deadline_is_without_its_entry_and_none_is_lost() {
    let mut tally = Tally::new();
    for (number, engine) in [Engine::Bplus, Engine::Lsm].into_iter().enumerate() {
        let seed = seed(number as u64);
        let disk = SimDisk::new(seed);
        let models = run(&disk, engine, seed);
        tally.power_cuts(&disk, 3, 2, |crashed, promise| judge(&crashed, engine, &models, promise));
    }
    tally.print("entries that end");
}
