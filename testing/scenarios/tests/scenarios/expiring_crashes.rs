//! Expiring entries on a disk that crashes: after every power cut each entry with a deadline has
//! the row that removes it, and the content is that of a promised commit.

use std::collections::BTreeMap;

use adamant::expiring::{Deadline, Expiring};
use adamant::{Engine, KeyspaceKind, KeyspaceOptions, Store};
use adamant_scenarios::crashes::{assert_clean, open};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, Promise, SimDisk, Tally};

/// Values and deadlines, by key.
type Content = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// The name of the keyspace of expiring entries, and its content; the other name is a plain
/// keyspace's.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    names: [&'static str; 2],
    content: Content,
}

/// With a clock that stands still.
fn all_at(store: &Store, name: &str, engine: Engine, now: u64) -> Expiring {
    let options = KeyspaceOptions::new().engine(engine);
    store.expiring_with(name, options).unwrap().with_clock(move || now)
}

fn content(all: &Expiring) -> Content {
    let entries = all.iter().map(|entry| entry.unwrap());
    entries
        .map(|(key, value, ends)| (key.to_vec(), (value.to_vec(), ends.map(|e| e.millis()))))
        .collect()
}

fn run(disk: &SimDisk, engine: Engine, seed: u64) -> Vec<Model> {
    let mut random = fastrand::Rng::with_seed(seed);
    let store = open(disk).unwrap();
    let mut models = vec![Model { names: ["all", "plain"], content: Content::new() }];
    for commit in 1..70 {
        let mut model = models[commit - 1].clone();
        let now = commit as u64 * 10;
        Mark::Begun.put(disk, commit as u64);
        let [name, plain] = model.names;
        match commit % 30 {
            1 => {
                drop(all_at(&store, name, engine, now));
                store.keyspace(plain).unwrap().insert("plain", "as it is").unwrap();
            }
            29 => {
                assert!(store.drop_keyspace(name).unwrap());
                assert!(store.drop_keyspace(plain).unwrap());
                model.content.clear();
            }
            0 => {}
            9 | 14 => {
                let mut free = ["all", "away", "plain"].into_iter();
                let new_name = free.find(|free| !model.names.contains(free)).unwrap();
                store.rename_keyspace(name, new_name).unwrap();
                model.names[0] = new_name;
            }
            12 | 22 => {
                store.swap_keyspaces(name, plain).unwrap();
                model.names = [plain, name];
            }
            25 => {
                all_at(&store, name, engine, now).clear().map(|()| model.content.clear()).unwrap()
            }
            _ => {
                let all = all_at(&store, name, engine, now);
                change(&all, &mut random, (commit as u8, now), &mut model.content);
            }
        }
        Mark::Durable.put(disk, commit as u64);
        models.push(model);
    }
    models
}

fn change(
    all: &Expiring,
    random: &mut fastrand::Rng,
    (commit, now): (u8, u64),
    model: &mut Content,
) {
    let number = random.u8(0..12);
    let key = if number == 0 { Vec::new() } else { vec![b'k', number] };
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
            let value = vec![commit; random.usize(0..60)];
            all.insert(&key, &value, ends).unwrap();
            model.insert(key, (value, deadline));
        }
    }
}

fn verify(disk: &SimDisk, engine: Engine, models: &[Model], promise: Promise) {
    let store = open(disk).unwrap();
    assert_clean(&store);
    let kept = store.keyspaces().unwrap();
    let of_kind = |kind| kept.iter().filter(move |info| info.kind == kind).map(|info| &*info.name);
    let names: Vec<&str> = of_kind(KeyspaceKind::Expiring).collect();
    let rows: Vec<&str> = of_kind(KeyspaceKind::Deadlines).collect();
    let expected: Vec<String> = names.iter().map(|name| format!("{name}.deadlines")).collect();
    assert_eq!(rows, expected, "{promise:?}: one half without the other");
    let may_be = &models[promise.least as usize..=promise.most as usize];
    let Some(name) = names.first() else {
        assert!(may_be.iter().any(|model| model.content.is_empty()), "{promise:?}: nothing");
        return;
    };
    for plain in of_kind(KeyspaceKind::Plain) {
        let value = store.keyspace(plain).unwrap().get("plain").unwrap();
        assert!(value.is_none_or(|value| &value[..] == b"as it is"));
    }
    // The models include expired entries that were not removed yet.
    let all = all_at(&store, name, engine, 0);
    let found = content(&all);
    let is_found = |model: &Model| model.names[0] == *name && model.content == found;
    assert!(may_be.iter().any(is_found), "{promise:?}: {name}: {found:?}");
    assert_eq!(all.len().unwrap(), found.len() as u64);

    let late = all_at(&store, name, engine, u64::MAX);
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
        tally
            .power_cuts(&disk, 3, 2, |crashed, promise| verify(&crashed, engine, &models, promise));
    }
    tally.print("entries that end");
}
