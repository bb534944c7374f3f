//! Types of keyspaces, on a disk that crashes: recording them is a commit like any other.

use std::collections::BTreeMap;

use adamant::{Engine, Keyspace, Result};
use adamant_scenarios::crashes::{assert_clean, open};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, Promise, SimDisk, Tally};

/// The types of each keyspace.
type Model = BTreeMap<String, Option<String>>;

fn typed(keyspace: &Keyspace, number: usize) -> Result<&'static str> {
    match number % 2 {
        0 => keyspace.retype::<String, u32>().map(|_| "keys String, values u32"),
        _ => keyspace.retype::<u64, [u8; 3]>().map(|_| "keys u64, values [u8; 3]"),
    }
}

fn run(disk: &SimDisk) -> Vec<Model> {
    let store = open(disk).unwrap();
    let mut models = vec![Model::new()];
    for commit in 1..60 {
        let mut model = models[commit - 1].clone();
        let name = ["a", "b"][commit / 6 % 2];
        Mark::Begun.put(disk, commit as u64);
        match commit % 6 {
            1 if !model.contains_key(name) => {
                store.create_keyspace(name).unwrap();
                model.insert(name.into(), None);
            }
            2 => {
                let first = store.open_keyspace(name).unwrap().typed::<u8, ()>();
                if model[name].is_none() {
                    first.unwrap();
                    model.insert(name.into(), Some("keys u8, values ()".into()));
                }
            }
            3 => {
                let types = typed(&store.open_keyspace(name).unwrap(), commit / 7).unwrap();
                model.insert(name.into(), Some(types.into()));
            }
            4 => {
                store.convert_keyspace(name, Engine::ALL[commit / 6 % Engine::ALL.len()]).unwrap();
            }
            5 if model.len() == 2 => {
                store.swap_keyspaces("a", "b").unwrap();
                let [a, b] = ["a", "b"].map(|name| model[name].clone());
                model.extend([("a".to_owned(), b), ("b".to_owned(), a)]);
            }
            _ if commit % 24 == 0 => {
                store.drop_keyspace(name).unwrap();
                model.remove(name);
            }
            _ => {}
        }
        Mark::Durable.put(disk, commit as u64);
        models.push(model);
    }
    models
}

fn verify(disk: &SimDisk, models: &[Model], promise: Promise) {
    let store = open(disk).unwrap();
    assert_clean(&store);
    let all = store.keyspaces().unwrap().into_iter();
    let found: Model =
        all.map(|info| (info.name, info.types.map(|types| types.to_string()))).collect();
    let may_be = &models[promise.least as usize..=promise.most as usize];
    assert!(may_be.contains(&found), "{promise:?}: {found:?}");
}

#[test]
fn the_types_of_a_keyspace_are_whole_or_not_there() {
    let mut tally = Tally::new();
    let disk = SimDisk::new(seed(1));
    let models = run(&disk);
    assert!(models.iter().flat_map(BTreeMap::values).flatten().count() > 60);
    tally.power_cuts(&disk, 3, 2, |crashed, promise| verify(&crashed, &models, promise));
    tally.print("types");
}
