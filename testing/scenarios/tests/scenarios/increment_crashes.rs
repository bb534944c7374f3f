//! Incremental backups on disks that crash, fill up and fail: an increment is whole under its name,
//! or not there, and no backup below it is ever touched.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use adamant::{Directory, ImageKind, Increment, Result, Store, increment_in};
use adamant_scenarios::crashes::{Content, Mix, Setup, Workload, assert_clean};
use adamant_sim::tally::{seed, states_max};
use adamant_sim::{Call, Choice, Fault, Hooked, SimDirectory, SimDisk, Tally};

/// Every other one is encrypted.
fn mix(number: u64) -> Mix {
    let setup = if number.is_multiple_of(2) { Setup::ENCRYPTED } else { Setup::default() };
    Mix { seed: seed(number), rare_one_in: 12, large_one_in: 15, setup, ..Mix::default() }
}

fn root(disk: &SimDisk) -> Arc<dyn Directory> {
    Arc::new(SimDirectory::root(disk))
}

/// A store, and a chain of backups of it on another disk: full `0`, and `1` on top of it.
struct Chain {
    workload: Workload,
    disk: SimDisk,
    /// What each backup holds.
    models: Vec<Content>,
}

fn chain(number: u64) -> Chain {
    let mut workload = Workload::create(&SimDisk::new(seed(number)), mix(number)).unwrap();
    let disk = SimDisk::new(seed(number));
    let mut models = Vec::new();
    for moment in 0..2 {
        (0..60).for_each(|_| workload.step().unwrap());
        if moment == 0 {
            let full = root(&disk).subdirectory("0").unwrap();
            workload.store().backup_into(&full).unwrap();
            root(&disk).sync().unwrap();
        } else {
            workload.store().backup_since_in(&root(&disk), "0", "1").unwrap();
        }
        models.push(workload.last().clone());
    }
    (0..40).for_each(|_| workload.step().unwrap());
    models.push(workload.last().clone());
    Chain { workload, disk, models }
}

fn open(disk: &SimDisk, name: &str) -> Result<Store> {
    // A full backup has a key file if its store has.
    let is_encrypted = root(disk).subdirectory("0")?.open("key")?.is_some();
    let setup = if is_encrypted { Setup::ENCRYPTED } else { Setup::default() };
    let options = setup.options().image(ImageKind::Filled).read_only(true);
    match name {
        "0" => Store::open_directory(root(disk).subdirectory(name)?, options),
        _ => Store::open_directory(increment_in(&root(disk), name, &options)?, options),
    }
}

/// Verifies chains with the same contents.
struct Verifier<'a> {
    models: &'a [Content],
    /// What was found right, by a hash of all that opening a backup can read. Crash states differ
    /// in the backup that was being made, hardly ever in those below it.
    right: BTreeSet<(usize, Vec<String>, Vec<u64>)>,
}

impl<'a> Verifier<'a> {
    fn new(models: &'a [Content]) -> Self {
        Self { models, right: BTreeSet::new() }
    }

    /// Panics unless the chain up to `1` is whole, and `2` is whole or not there; returns which.
    fn verify(&mut self, disk: &SimDisk) -> bool {
        let names = root(disk).list().unwrap();
        let has_made = names.iter().any(|name| name == "2");
        let mut digests = Vec::new();
        let chain = ["0", "1", "2"].into_iter().zip(self.models).take(2 + usize::from(has_made));
        for (number, (name, model)) in chain.enumerate() {
            digests.push(SimDirectory::root(disk).digest(name));
            if !self.right.insert((number, names.clone(), digests.clone())) {
                continue;
            }
            let store = open(disk, name).unwrap_or_else(|error| panic!("{name}: {error}"));
            model.verify(&store);
            assert_clean(&store);
        }
        has_made
    }

    /// What was left under the unfinished name is the next attempt's to remove.
    fn make_again(&mut self, store: &Store, disk: &SimDisk) {
        make(store, disk).unwrap();
        assert!(self.verify(disk));
        let names = root(disk).list().unwrap();
        assert_eq!(names, ["0", "1", "2"], "{names:?}");
    }
}

fn make(store: &Store, disk: &SimDisk) -> Result<Increment> {
    store.backup_since_in(&root(disk), "1", "2")
}

#[test]
fn a_crash_leaves_an_increment_whole_or_not_there() {
    let mut tally = Tally::new();
    for number in 80..82 {
        let Chain { workload, disk, models } = chain(number);
        disk.begin_history();
        make(workload.store(), &disk).unwrap();
        let made = disk.operation_count();
        let mut verifier = Verifier::new(&models);
        assert!(verifier.verify(&disk));
        assert!(verifier.verify(&disk.crash(made, &mut Choice::None)), "it is durable");
        let mut cursor = disk.cursor();
        let mut found = [0; 2];
        for point in cursor.point()..=made {
            cursor.advance_to(point);
            tally.points += 1;
            let killed = cursor.kill();
            let has_made = verifier.verify(&killed);
            if point % 8 == 0 && !has_made {
                verifier.make_again(workload.store(), &killed);
            }
            for choice in cursor.choices(states_max(3), point) {
                tally.state(&disk, point, &choice, || {
                    let crashed = cursor.crash(&mut choice.clone()).without_history();
                    let has_made = verifier.verify(&crashed);
                    found[usize::from(has_made)] += 1;
                    if point % 8 == 3 && !has_made {
                        verifier.make_again(workload.store(), &crashed);
                    }
                });
            }
        }
        assert!(found.iter().all(|count| *count > 0), "{found:?}");
    }
    tally.print("increments");
}

#[test]
fn each_call_that_fails_leaves_nothing() {
    let Chain { workload, disk, models } = chain(84);
    let copy = || disk.crash(disk.operation_count(), &mut Choice::All).without_history();
    let (mut verifier, mut failed) = (Verifier::new(&models), 0);
    for call in Call::ALL {
        let whole = copy();
        make(workload.store(), &whole).unwrap();
        // Reads and writes are many, and alike.
        let step = (whole.call_count(call) as usize / 40).max(1);
        for number in (1..=whole.call_count(call)).step_by(step) {
            for fault in [Fault::Device, Fault::Full] {
                let disk = copy();
                disk.fail_call(call, number, fault);
                let made = make(workload.store(), &disk);
                disk.repair();
                let Err(error) = made else {
                    assert!(verifier.verify(&disk));
                    continue;
                };
                failed += 1;
                assert_eq!(error.is_out_of_space(), fault == Fault::Full, "{error}");
                // The sync of the name alone may leave it.
                if !verifier.verify(&disk) {
                    verifier.make_again(workload.store(), &disk);
                }
            }
        }
    }
    assert!(failed > 50, "{failed}");
    // And the source goes on.
    workload.last().verify(workload.store());
}

#[test]
fn a_full_disk_takes_no_increment() {
    let Chain { workload, disk, models } = chain(85);
    let copy = || disk.crash(disk.operation_count(), &mut Choice::All).without_history();
    let (before, whole) = (disk.space_used_bytes(), copy());
    make(workload.store(), &whole).unwrap();
    let after = whole.space_used_bytes();
    let (mut verifier, mut refused) = (Verifier::new(&models), 0);
    for space in (before..after).step_by(4096) {
        let disk = copy();
        disk.set_space_bytes(Some(space));
        let error = make(workload.store(), &disk).unwrap_err();
        assert!(error.is_out_of_space(), "{error}");
        assert_eq!(root(&disk).list().unwrap(), ["0", "1"]);
        assert!(!verifier.verify(&disk));
        disk.set_space_bytes(None);
        if refused % 8 == 0 {
            verifier.make_again(workload.store(), &disk);
        }
        refused += 1;
    }
    assert!(refused > 5, "{refused}");
}

/// Commits between any two writes of an increment: it shows one of them, and all of that one.
#[test]
fn an_increment_is_some_commit_of_those_made_meanwhile() {
    let mut later = 0;
    for number in 86..92 {
        let Chain { mut workload, disk, .. } = chain(number);
        let (store, first) = (workload.store().clone(), workload.models.len() - 1);
        // A backup waits for the one that is made.
        workload.mix.rare_one_in = 0;
        let workload = Arc::new(Mutex::new(workload));
        let stepping = Arc::clone(&workload);
        let hooked: Arc<dyn Directory> = Arc::new(
            Hooked::new(SimDirectory::root(&disk), move |call, _| {
                if matches!(call, Call::Write | Call::Create) {
                    stepping.lock().unwrap().step().unwrap();
                }
                Ok(())
            })
            .within(),
        );
        store.backup_since_in(&hooked, "1", "2").unwrap();
        let made = open(&disk, "2").unwrap();
        assert_clean(&made);
        let (found, workload) = (Content::of(&made), workload.lock().unwrap());
        let commit = workload.models[first..].iter().position(|model| *model == found);
        later += commit.expect("it is none of the commits");
    }
    assert!(later > 10, "{later} commits came meanwhile");
}
