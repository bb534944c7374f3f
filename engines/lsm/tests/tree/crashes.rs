//! A tree on a disk that loses power, and in processes that die, at any moment. The recovered state
//! is a prefix of the commits that includes every durable one; all listed files are there, and no
//! others.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use adamant_heap::{Directory, Durability};
use adamant_lsm::{Error, Lsm, NEWEST, number_of};
use adamant_sim::mutation::{verdicts, verify as check_verdicts};
use adamant_sim::site::{Kind, Site};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, Promise, SimDirectory, SimDisk, Tally};

use crate::store::{Model, Store, open_on};

/// The root that holds the number of the last commit.
const COMMIT: usize = 3;

/// A scripted user: the same seed gives the same history.
struct User {
    disk: SimDisk,
    store: Store,
    /// By commit.
    models: Vec<Model>,
    random: fastrand::Rng,
}

impl User {
    fn new(disk: &SimDisk, number: u64) -> Self {
        let store = open_on(disk).expect("created");
        Mark::Durable.put(disk, 0);
        let random = fastrand::Rng::with_seed(number);
        Self { disk: disk.clone(), store, models: vec![Model::new()], random }
    }

    fn run(disk: &SimDisk, number: u64, steps: u64) -> Vec<Model> {
        let mut user = Self::new(disk, number);
        for _ in 0..steps {
            user.step().expect("nothing fails");
        }
        user.models
    }

    fn last(&self) -> u64 {
        self.models.len() as u64 - 1
    }

    fn step(&mut self) -> Result<(), Error> {
        let (heap, tree) = (&self.store.heap, &self.store.tree);
        let seen = || Ok(self.store.context.sequences().visible());
        match self.random.u8(0..40) {
            0 => heap.checkpoint()?,
            1 => heap.sync()?,
            2 => {
                heap.close()?;
                Mark::Durable.put(&self.disk, self.last());
                self.store = open_on(&self.disk)?;
            }
            3..5 => return tree.rotate(heap),
            5..8 => return tree.flush(heap, &seen, &|_| Ok(())).map(drop),
            8..11 => return tree.compact_once(heap, &seen, &|_| Ok(())).map(drop),
            11 => return tree.reclaim(heap, &seen, &|_| Ok(())).map(drop),
            12 => return tree.compact_all(heap, &seen, &|_| Ok(())),
            13 => return self.replace(),
            14..17 => return self.load(),
            _ => return self.change(),
        }
        Mark::Durable.put(&self.disk, self.last());
        Ok(())
    }

    /// A commit: `work` makes the same change to the tree and to the model.
    fn commit(
        &mut self,
        work: impl FnOnce(
            &Arc<Lsm>,
            &mut adamant_heap::Transaction<'_>,
            &mut Model,
            &mut fastrand::Rng,
        ) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let number = self.last() + 1;
        let durability = [Durability::Sync, Durability::Buffered, Durability::Deferred];
        let durability = durability[self.random.usize(0..3)];
        let mut model = self.models[number as usize - 1].clone();
        let tree = Arc::clone(&self.store.tree);
        let random = &mut self.random;
        Mark::Begun.put(&self.disk, number);
        self.store.heap.transaction(durability, |transaction| {
            work(&tree, transaction, &mut model, random)?;
            transaction.set_root(COMMIT, number)?;
            Ok::<(), Error>(())
        })?;
        match durability {
            Durability::Sync => Mark::Durable.put(&self.disk, number),
            Durability::Buffered => Mark::Buffered.put(&self.disk, number),
            Durability::Deferred => {}
        }
        self.models.push(model);
        Ok(())
    }

    fn change(&mut self) -> Result<(), Error> {
        self.commit(|tree, transaction, model, random| {
            for _ in 0..random.usize(1..8) {
                let key = key(random);
                if random.u8(0..9) == 0 {
                    let end = [&key[..], b"5"].concat();
                    tree.remove_range(transaction, &key, &end)?;
                    model.retain(|found, _| *found < key || *found >= end);
                } else if random.u8(0..5) == 0 {
                    tree.write(transaction, [(&key[..], None)])?;
                    model.remove(&key);
                } else if random.u8(0..4) == 0 {
                    let operand = vec![random.u8(..); random.usize(0..9)];
                    tree.merge(transaction, [(&key[..], &operand[..])])?;
                    model.entry(key).or_default().extend(operand);
                } else {
                    let value = value(random);
                    tree.write(transaction, [(&key[..], Some(&value[..]))])?;
                    model.insert(key, value);
                }
                if random.u8(0..9) == 0 {
                    let undone = transaction.savepoint(|transaction| {
                        tree.write(transaction, [(&b"k"[..], Some(&[7; 200][..]))])?;
                        Err::<(), Error>(Error::KeyTooLong { bytes: 0, bytes_max: 0 })
                    });
                    assert!(undone.is_err());
                }
            }
            Ok(())
        })
    }

    /// Loads pairs where memtables have none.
    fn load(&mut self) -> Result<(), Error> {
        let start = self.random.u32(0..900);
        let pairs: Vec<_> = (start..start + self.random.u32(1..15))
            .map(|at| (format!("k{at:03}").into_bytes(), value(&mut self.random)))
            .collect();
        let Some(load) = self.store.tree.prepare_load(&pairs, 1)? else { return Ok(()) };
        self.commit(|_, transaction, model, _| {
            model.extend(pairs);
            load.commit(transaction)
        })
    }

    /// Destroys the tree, and creates another one in the same transaction.
    fn replace(&mut self) -> Result<(), Error> {
        let context = Arc::clone(&self.store.context);
        self.commit(|tree, transaction, model, _| {
            tree.destroy(transaction)?;
            let head = Lsm::create(transaction, &context)?;
            transaction.set_root(crate::store::TREE, head)?;
            model.clear();
            Ok(())
        })?;
        self.store.reopen_tree()?;
        self.store.context.delete_obsolete(&self.store.heap)
    }
}

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    match random.u32(0..1000) {
        ..5 => Vec::new(),
        number => format!("k{number:03}").into_bytes(),
    }
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = if random.u8(0..6) == 0 { random.usize(60..600) } else { random.usize(0..60) };
    (0..len).map(|_| random.u8(b'a'..b'e')).collect()
}

/// Names in a directory that belong to files of the tree.
fn names(directory: &dyn Directory, shelf: &str) -> BTreeSet<String> {
    let directory = directory.subdirectory(shelf).expect("a directory");
    let names = directory.list().expect("listed").into_iter();
    names.filter(|name| number_of(name).is_some()).collect()
}

/// Opens the disk, and panics unless it holds a promised commit and nothing else.
fn verify_disk(disk: &SimDisk, models: &[Model], promise: Promise) {
    let directory = SimDirectory::root(disk);
    let exists = directory.open("pool").unwrap().is_some();
    assert!(exists || !promise.created, "a store that was created is gone");
    let store = open_on(disk).unwrap_or_else(|error| panic!("recovery failed: {error}"));
    let commit = store.heap.view().unwrap().root(COMMIT);
    assert!((promise.least..=promise.most).contains(&commit), "commit {commit}, {promise:?}");
    verify(&store, &models[commit as usize], &format!("commit {commit}"));
    for shelf in ["tables", "blobs"] {
        for name in names(&directory, shelf) {
            let listed = number_of(&name)
                .is_some_and(|(number, is_finished)| is_finished && store.tree.has_file(number));
            assert!(listed, "{shelf}/{name} is nobody's");
        }
    }
}

/// Panics unless the tree has exactly this content, and all of its files and blocks are correct.
fn verify(store: &Store, model: &Model, of: &str) {
    for forward in [true, false] {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut found = store.scan(all, forward, NEWEST, 50).expect("all is readable");
        if !forward {
            found.reverse();
        }
        let expected = model.iter().map(|(key, value)| (key.clone(), value.clone()));
        assert!(found.into_iter().eq(expected), "{of}: other content, forward {forward}");
    }
    let report = store.check();
    assert!(report.is_clean(), "{of}: {:#?}", report.findings);
}

#[test]
fn crashes() {
    const SEED: u64 = 71;
    const STEPS: u64 = 150;
    /// One of so many points of the history is tried.
    const STEP: usize = 2;
    let disk = SimDisk::new(seed(SEED));
    let models = User::run(&disk, seed(SEED), STEPS);
    let mut tally = Tally::new();
    tally.power_cuts(&disk, STEP, 4, |crashed, promise| {
        verify_disk(&crashed.without_history(), &models, promise);
    });
    tally.deaths(&disk, 3 * STEP, |killed, promise| verify_disk(&killed, &models, promise));
    // Crashes during the recovery from the death of a process.
    let mut cursor = disk.cursor();
    for point in (cursor.point()..=disk.operation_count()).step_by(97 * STEP) {
        cursor.advance_to(point);
        let (promise, killed) = (Promise::at_power_cut(&disk, point), cursor.kill());
        drop(open_on(&killed));
        tally.cuts_within(&killed, 2, point, |crashed| {
            verify_disk(&crashed.without_history(), &models, promise);
        });
    }
    tally.print("tree");
    assert!(tally.states > 300, "few crashes of much work");
}

/// Commits, flushes and merges one after the other, and power cuts at all of their points.
fn suite(disk: &SimDisk) {
    let mut user = User::new(disk, 5);
    let seen = || Ok(user.store.context.sequences().visible());
    let mut model = Model::new();
    for round in 0..6_u8 {
        let number = u64::from(round) + 1;
        Mark::Begun.put(disk, number);
        let done = user.store.heap.transaction(Durability::Buffered, |transaction| {
            for at in 0..8_u8 {
                let (key, value) = ([at + round], vec![round; 20 + 30 * usize::from(at)]);
                user.store.tree.write(transaction, [(&key[..], Some(&value[..]))])?;
                model.insert(key.to_vec(), value);
            }
            transaction.set_root(COMMIT, number).map_err(Error::from)
        });
        done.unwrap();
        user.models.push(model.clone());
        user.store.tree.rotate(&user.store.heap).unwrap();
        user.store.tree.flush(&user.store.heap, &seen, &|_| Ok(())).unwrap();
        user.store.heap.sync().unwrap();
        Mark::Durable.put(disk, number);
        if round % 2 == 1 {
            user.store.tree.compact_all(&user.store.heap, &seen, &|_| Ok(())).unwrap();
        }
    }
    Tally::new().power_cuts(disk, 1, 8, |crashed, promise| {
        verify_disk(&crashed.without_history(), &user.models, promise);
    });
}

#[test]
fn a_sync_of_a_file_or_a_directory_that_is_left_out_is_noticed() {
    let is_ours = |site: &Site| site.file.contains("engines/lsm/src");
    let verdicts = verdicts(7, is_ours, suite);
    assert!(verdicts.len() >= 3, "files, and two directories: {verdicts:?}");
    // Orphans that come back are removed again.
    check_verdicts(&verdicts, |site| site.file.ends_with("/version/context.rs"));
}

/// Inputs of a merge that are removed before the commit that drops them is durable. The planted
/// fault is a sync of the heap that does nothing where it should wait for that commit.
#[test]
fn inputs_that_are_removed_too_early_are_noticed() {
    let run = |left_out: Option<Site>| {
        let disk = SimDisk::new(9);
        let mut user = User::new(&disk, 5);
        let mut model = Model::new();
        for round in 0..3_u8 {
            Mark::Begun.put(&disk, user.last() + 1);
            user.store
                .heap
                .transaction(Durability::Sync, |transaction| {
                    let (key, value) = ([round], [round; 40]);
                    user.store.tree.write(transaction, [(&key[..], Some(&value[..]))])?;
                    model.insert(key.to_vec(), value.to_vec());
                    Ok::<(), Error>(transaction.set_root(COMMIT, u64::from(round) + 1)?)
                })
                .unwrap();
            Mark::Durable.put(&disk, user.last() + 1);
            user.models.push(model.clone());
            let (heap, tree) = (&user.store.heap, &user.store.tree);
            let seen = || Ok(user.store.context.sequences().visible());
            tree.rotate(heap).unwrap();
            tree.flush(heap, &seen, &|_| Ok(())).unwrap();
            heap.sync().unwrap();
        }
        let (heap, tree) = (&user.store.heap, &user.store.tree);
        let seen = || Ok(user.store.context.sequences().visible());
        disk.disable(left_out);
        tree.compact_all(heap, &seen, &|_| Ok(())).unwrap();
        disk.disable(None);
        let verified = catch_unwind(AssertUnwindSafe(|| {
            Tally::new().power_cuts(&disk, 1, 8, |crashed, promise| {
                verify_disk(&crashed.without_history(), &user.models, promise);
            });
        }));
        (disk.sites(), verified.is_ok())
    };
    let (sites, is_sound) = run(None);
    assert!(is_sound, "nothing is left out");
    let of_log = sites
        .into_iter()
        .map(|(site, _)| site)
        .filter(|site| site.kind == Kind::Sync && site.file.contains("base/heap"));
    let noticed = of_log.filter(|site| !run(Some(*site)).1).count();
    assert!(noticed > 0, "files were removed before their commit was durable, and nobody noticed");
}
