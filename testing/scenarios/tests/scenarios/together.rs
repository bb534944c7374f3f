//! Savepoints, merged values, multimaps and expiring entries in one store, over the engines bplus
//! and lsm: random work with reopenings, deaths of the process, power cuts, and going back and
//! forth. All work is durable when it returns, so what is left is exactly what was done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant::{
    Deadline, Directory, Durability, Engine, Expiring, Keyspace, KeyspaceOptions, Multimap,
    Options, Result, Store, go_back_in,
};
use adamant_scenarios::crashes::{Setup, assert_clean};
use adamant_sim::tally::seed;
use adamant_sim::{Choice, SimDirectory, SimDisk};

const ENGINES: [Engine; 2] = [Engine::Bplus, Engine::Lsm];

type Bytes = Vec<u8>;

/// What one engine has.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    sums: BTreeMap<Bytes, u64>,
    lists: BTreeMap<Bytes, Bytes>,
    pairs: BTreeSet<(Bytes, Bytes)>,
    /// With those that have ended.
    expiring: BTreeMap<Bytes, (Bytes, Option<u64>)>,
}

type Model = [Content; 2];

struct Handles {
    sums: Keyspace,
    lists: Keyspace,
    pairs: Multimap,
    expiring: Expiring,
}

/// A store on a disk, with its clock and its savepoints.
struct Run {
    disk: SimDisk,
    setup: Setup,
    clock: Arc<AtomicU64>,
    store: Store,
    model: Model,
    made: Vec<(String, Model)>,
}

fn name(engine: Engine, of: &str) -> String {
    format!("{} {of}", engine.name())
}

impl Run {
    fn options(&self) -> Options {
        let clock = Arc::clone(&self.clock);
        let options = self.setup.options().durability(Durability::Sync).sweep_expired(false);
        options.drop_expired_by(move || clock.load(Ordering::Relaxed))
    }

    fn root(&self) -> Arc<dyn Directory> {
        Arc::new(SimDirectory::root(&self.disk))
    }

    fn open(&mut self) {
        self.store = Store::open_directory(self.root(), self.options()).unwrap();
    }

    fn close(&self) {
        self.store.clone().close().unwrap();
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Those of a store that has the keyspaces; makes them if it is to be written.
    fn handles(&self, store: &Store, engine: Engine, makes: bool) -> Option<Handles> {
        let options = || KeyspaceOptions::new().engine(engine);
        let clock = Arc::clone(&self.clock);
        let open = || -> Result<Handles> {
            let of = |of| name(engine, of);
            Ok(match makes {
                true => Handles {
                    sums: store.keyspace_with(&of("sums"), options().merge_operator("add"))?,
                    lists: store.keyspace_with(&of("lists"), options().merge_operator("append"))?,
                    pairs: store.multimap_with(&of("pairs"), options())?,
                    expiring: store.expiring_with(&of("expiring"), options())?,
                },
                false => Handles {
                    sums: store.open_keyspace(&of("sums"))?,
                    lists: store.open_keyspace(&of("lists"))?,
                    pairs: store.open_multimap(&of("pairs"))?,
                    expiring: store.open_expiring(&of("expiring"))?,
                },
            })
        };
        let mut handles = open().ok()?;
        handles.expiring = handles.expiring.with_clock(move || clock.load(Ordering::Relaxed));
        Some(handles)
    }

    fn verify(&self, store: &Store, model: &Model, how: &str) {
        for (engine, content) in ENGINES.into_iter().zip(model) {
            let Some(handles) = self.handles(store, engine, false) else {
                assert_eq!(*content, Content::default(), "{how}: {engine:?} is not there");
                continue;
            };
            let bytes = |it: (adamant::Slice, adamant::Slice)| (it.0.to_vec(), it.1.to_vec());
            let all = |keyspace: &Keyspace| -> BTreeMap<Bytes, Bytes> {
                keyspace.iter().map(|entry| bytes(entry.unwrap())).collect()
            };
            let sums =
                content.sums.iter().map(|(key, sum)| (key.clone(), sum.to_le_bytes().into()));
            assert_eq!(all(&handles.sums), sums.collect(), "{how}: {engine:?}");
            assert_eq!(all(&handles.lists), content.lists, "{how}: {engine:?}");
            for (key, list) in content.lists.iter().step_by(5) {
                assert_eq!(handles.lists.get(key).unwrap().as_deref(), Some(&list[..]), "{how}");
            }
            let pairs: BTreeSet<_> = handles.pairs.iter().map(|it| it.unwrap()).collect();
            let pairs = pairs.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
            assert!(pairs.eq(content.pairs.iter().cloned()), "{how}: {engine:?}");
            let living = handles.expiring.iter().map(|it| it.unwrap());
            let living = living.map(|(key, value, _)| (key.to_vec(), value.to_vec()));
            let expected = content.expiring.iter();
            let expected = expected.filter(|(_, (_, end))| end.is_none_or(|end| end > self.now()));
            let expected = expected.map(|(key, (value, _))| (key.clone(), value.clone()));
            assert!(living.eq(expected), "{how}: {engine:?}");
        }
    }

    fn verify_all(&self, how: &str) {
        self.verify(&self.store, &self.model, how);
        assert_clean(&self.store);
        for (name, model) in &self.made {
            let savepoint = self.store.open_savepoint(name).unwrap();
            self.verify(&savepoint, model, &format!("{how}, savepoint {name}"));
            assert_clean(&savepoint);
        }
    }

    /// One commit, or some.
    fn change(&mut self, random: &mut fastrand::Rng) {
        let engine = random.usize(..2);
        let handles = self.handles(&self.store, ENGINES[engine], true).unwrap();
        let now = self.now();
        let content = &mut self.model[engine];
        let key = format!("{:02}", random.u32(..40)).into_bytes();
        match random.u32(..12) {
            0..3 => {
                // Together, as one commit.
                let mut batch = self.store.batch();
                let (sum, item) = (random.u64(..), vec![random.u8(..); random.usize(1..40)]);
                batch.merge(&handles.sums, &key, sum.to_le_bytes()).unwrap();
                batch.merge(&handles.lists, &key, &item).unwrap();
                handles.pairs.put_into(&mut batch, &key[..], &item[..]).unwrap();
                batch.commit().unwrap();
                let found = content.sums.entry(key.clone()).or_default();
                *found = found.wrapping_add(sum);
                content.lists.entry(key.clone()).or_default().extend(&item);
                content.pairs.insert((key, item));
            }
            3..5 => {
                let item = vec![random.u8(..); random.usize(1..100)];
                handles.lists.merge(&key, &item).unwrap();
                content.lists.entry(key).or_default().extend(&item);
            }
            5 => {
                handles.lists.delete(&key).unwrap();
                content.lists.remove(&key);
                handles.sums.put(&key, 5_u64.to_le_bytes()).unwrap();
                content.sums.insert(key, 5);
            }
            6 => {
                let end = format!("{:02}", random.u32(..40)).into_bytes();
                handles.lists.delete_range(&key[..]..&end[..]).unwrap();
                content.lists.retain(|it, _| *it < key || *it >= end);
            }
            7 => {
                handles.pairs.remove_all(&key[..]).unwrap();
                content.pairs.retain(|(it, _)| *it != key);
            }
            8..11 => {
                let value = vec![random.u8(..); random.usize(..120)];
                let end = random.bool().then(|| now + random.u64(1..40));
                handles.expiring.put(&key, &value, end.map(Deadline::from_millis)).unwrap();
                content.expiring.insert(key, (value, end));
            }
            _ => {
                handles.expiring.remove_expired(usize::MAX).unwrap();
                content.expiring.retain(|_, (_, end)| end.is_none_or(|end| end > now));
            }
        }
    }
}

#[test]
fn random_work_with_all_kinds_is_what_was_done() {
    let mut counts = [0_u32; 5];
    for number in 320..326 {
        let disk = SimDisk::new(seed(number));
        let setup = if number % 3 == 0 { Setup::ENCRYPTED } else { Setup::default() };
        let clock = Arc::new(AtomicU64::new(1000));
        let store = setup.open(&disk).unwrap();
        let (model, made) = (Model::default(), Vec::new());
        let mut run = Run { disk, setup, clock, store, model, made };
        run.close();
        run.open();
        let mut random = fastrand::Rng::with_seed(seed(number));
        for step in 0..300 {
            let how = format!("{number}, step {step}");
            match random.u32(..40) {
                0..2 if run.made.len() < 4 => {
                    run.store.create_savepoint(&how).unwrap();
                    run.made.push((how.clone(), run.model.clone()));
                }
                2 if !run.made.is_empty() => {
                    let (name, _) = run.made.swap_remove(random.usize(..run.made.len()));
                    assert!(run.store.delete_savepoint(&name).unwrap());
                    run.made.sort_by_key(|(name, _)| name.clone());
                    counts[0] += 1;
                }
                3 if !run.made.is_empty() => {
                    let (name, old) = run.made[random.usize(..run.made.len())].clone();
                    run.close();
                    go_back_in(run.root(), &name, run.options()).unwrap();
                    run.open();
                    run.model = old;
                    run.verify_all(&how);
                    counts[1] += 1;
                }
                4 => {
                    run.close();
                    run.open();
                }
                5..7 => {
                    let is_killed = random.bool();
                    let end = run.disk.operation_count();
                    run.disk = match is_killed {
                        true => run.disk.kill(end),
                        false => run.disk.crash(end, &mut Choice::random(step)),
                    };
                    run.open();
                    run.verify_all(&how);
                    counts[2 + usize::from(is_killed)] += 1;
                }
                7 => run.store.compact().unwrap(),
                8 => drop(run.store.shrink().unwrap()),
                9..12 => drop(run.clock.fetch_add(random.u64(1..30), Ordering::Relaxed)),
                _ => {
                    run.change(&mut random);
                    counts[4] += 1;
                }
            }
        }
        run.verify_all("at the end");
    }
    println!("deleted, back, cut, killed, changes: {counts:?}");
    assert!(counts.iter().all(|count| *count > 8), "{counts:?}");
}
