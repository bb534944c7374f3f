//! A tree on a disk that fails once, at any operation, and on one that is full: reads go on, no
//! acknowledged change is lost, and the tree recovers with the disk.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant_heap::{Directory, Durability, Transaction, Write};
use adamant_lsm::{Error, NEWEST, number_of};
use adamant_sim::{Call, Choice, Fault, SimDirectory, SimDisk};
use adamant_slice::Slice;

use crate::store::{Model, Store, open_on};

/// A store and what it holds.
struct User {
    store: Store,
    model: Model,
}

impl User {
    /// A store with tables on two levels, blob files, and a memtable.
    fn new(disk: &SimDisk) -> Self {
        let mut user = Self { store: open_on(disk).unwrap(), model: Model::new() };
        for round in 0..3 {
            user.write(round).unwrap();
            user.flush().unwrap();
            if round == 1 {
                user.compact().unwrap();
            }
        }
        user.write(3).unwrap();
        user
    }

    fn seen(&self) -> impl Fn() -> Result<u64, Error> + use<> {
        let context = Arc::clone(&self.store.context);
        move || Ok(context.sequences().visible())
    }

    /// Some changes as one commit.
    fn write(&mut self, round: u8) -> Result<(), Error> {
        let mut model = self.model.clone();
        let tree = &self.store.tree;
        self.store.heap.transaction(Durability::Sync, |transaction| {
            for at in 0..30_u8 {
                let key = format!("k{:02}", (at * 7 + round * 5) % 60).into_bytes();
                if at % 5 == 4 {
                    tree.write(transaction, [(&key[..], None)])?;
                    model.remove(&key);
                } else {
                    let value = vec![round; 10 + 9 * usize::from(at)];
                    tree.write(transaction, [(&key[..], Some(&value[..]))])?;
                    model.insert(key, value);
                }
            }
            let (start, end) = (b"k10".to_vec(), b"k13".to_vec());
            tree.remove_range(transaction, &start, &end)?;
            model.retain(|key, _| *key < start || *key >= end);
            Ok::<(), Error>(())
        })?;
        self.model = model;
        Ok(())
    }

    /// `count` new entries as one commit: about 60 bytes each, all of them in tables.
    fn write_many(&mut self, count: u8) -> Result<(), Error> {
        let pairs: Vec<_> = (0..count).map(|at| (vec![b'm', at], vec![at; 50])).collect();
        self.store.heap.transaction(Durability::Sync, |transaction| {
            let changes = pairs.iter().map(|(key, value)| (&key[..], Some(&value[..])));
            self.store.tree.write(transaction, changes)
        })?;
        self.model.extend(pairs);
        Ok(())
    }

    fn flush(&self) -> Result<(), Error> {
        self.store.tree.rotate(&self.store.heap)?;
        self.store.tree.flush(&self.store.heap, &self.seen(), &|_| Ok(())).map(drop)
    }

    fn compact(&self) -> Result<(), Error> {
        self.store.tree.compact_all(&self.store.heap, &self.seen(), &|_| Ok(()))
    }

    fn load(&mut self) -> Result<(), Error> {
        let pairs: Vec<_> = (0..40_u8)
            .map(|at| (Slice::new(&[b'x', at]), Slice::new(&vec![at; 5 * usize::from(at)])))
            .collect();
        assert!(self.store.load(Durability::Sync, &pairs)?);
        self.model.extend(pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        Ok(())
    }

    /// All kinds of work, one after the other.
    fn work(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.load()?;
        self.write(4)?;
        self.flush()?;
        self.compact()?;
        self.write(5)
    }

    fn verify(&self, of: &str) {
        let found = self.content();
        assert!(found == self.model, "{of}: {} found, {}", found.len(), self.model.len());
    }

    fn content(&self) -> Model {
        let all = (Bound::Unbounded, Bound::Unbounded);
        self.store.scan(all, true, NEWEST, 50).expect("reads go on").into_iter().collect()
    }

    fn assert_is_clean(&self, of: &str) {
        let report = self.store.check();
        assert!(report.is_clean(), "{of}: {:#?}", report.findings);
    }
}

/// Files of the tree's directories that no tree lists.
fn orphans(disk: &SimDisk, store: &Store) -> BTreeSet<String> {
    let root = SimDirectory::root(disk);
    let names = ["tables", "blobs"].map(|shelf| root.subdirectory(shelf).unwrap().list().unwrap());
    let is_orphan = |name: &String| {
        let (number, is_finished) = number_of(name).expect("a file of the tree");
        !(is_finished && store.tree.has_file(number))
    };
    names.into_iter().flatten().filter(is_orphan).collect()
}

/// Whether the content is the old one, or also includes the next commit: a load, or changes.
fn may_follow(before: &Model, after: &Model) -> bool {
    let is_loaded = |model: &Model| model.keys().any(|key| key.starts_with(b"x"));
    if before == after || is_loaded(after) && !is_loaded(before) {
        return true;
    }
    (3..6).any(|round| {
        let disk = SimDisk::new(1).without_history();
        let mut other = User { store: open_on(&disk).unwrap(), model: before.clone() };
        other.write(round).is_ok() && other.model == *after
    })
}

/// Whether an error names a table or a blob file.
fn is_of_file(error: &impl ToString) -> bool {
    let text = error.to_string().replace('\\', "/");
    ["/tables/", "/blobs/"].iter().any(|shelf| text.contains(shelf))
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_space() {
    let before = {
        let disk = SimDisk::new(1).without_history();
        let _user = User::new(&disk);
        disk.space_used_bytes()
    };
    let (mut refused, mut of_files) = (0, 0);
    for bytes_max in (before..before + (1 << 20)).step_by(4 << 10) {
        let of = format!("{bytes_max} bytes, {before} used");
        let disk = SimDisk::new(1).without_history();
        let mut user = User::new(&disk);
        disk.set_space_bytes(Some(bytes_max));
        let Err(error) = user.work() else { break };
        assert!(error.is_out_of_space(), "{of}: {error}");
        refused += 1;
        of_files += u32::from(is_of_file(&error));
        user.verify(&of);
        disk.set_space_bytes(None);
        user.work().unwrap_or_else(|error| panic!("{of}, then there was space: {error}"));
        user.verify(&of);
        user.assert_is_clean(&of);
        user.store.context.delete_obsolete(&user.store.heap).unwrap();
        let orphans = orphans(&disk, &user.store);
        assert!(orphans.is_empty(), "{of}: {orphans:?}");
    }
    assert!(refused > 5 && of_files > 3, "{refused} refused, {of_files} of them files");
}

/// Takes all free blocks, so that the pool must grow for any other.
fn fill_heap(store: &Store) {
    for bytes in [64 << 10, 4 << 10, 512, 64, 16] {
        let reserve = || {
            store.heap.transaction(Durability::Buffered, |transaction| {
                transaction.reserve_zeroed(bytes).map(drop)
            })
        };
        let taken = (0..1 << 20).take_while(|_| reserve().is_ok()).count();
        assert!(taken < 1 << 20, "blocks of {bytes} bytes without end");
    }
}

#[test]
fn values_are_refused_while_a_flush_finds_no_space() {
    let (mut of_files, mut of_commits) = (0, 0);
    for spare_bytes in (0..2 << 20).step_by(4 << 10) {
        let disk = SimDisk::new(1).without_history();
        let mut user = User::new(&disk);
        user.store.tree.rotate(&user.store.heap).unwrap();
        disk.set_space_bytes(Some(disk.space_used_bytes()));
        fill_heap(&user.store);
        disk.set_space_bytes(Some(disk.space_used_bytes() + spare_bytes));
        let of = format!("{spare_bytes} bytes to spare");
        let Err(error) = user.flush() else { break };
        assert!(error.is_out_of_space(), "{of}: {error}");
        *if is_of_file(&error) { &mut of_files } else { &mut of_commits } += 1;
        assert!(user.store.tree.is_short(), "{of}: {error}");
        let refused = user.write(4).unwrap_err();
        assert!(refused.is_out_of_space(), "{of}: {refused}");
        user.verify(&of);
        disk.set_space_bytes(None);
        user.flush().unwrap();
        user.write(4).unwrap();
        user.verify(&of);
    }
    assert!(of_files > 0 && of_commits > 0, "{of_files} of files, {of_commits} of commits");
}

#[test]
fn an_operation_that_fails_leaves_what_was_there() {
    let disk = SimDisk::new(1);
    let mut user = User::new(&disk);
    let first = disk.operation_count();
    user.work().unwrap();
    let operations = disk.operation_count();
    let ours = ["tables", "blobs"].map(|shelf| {
        let at = disk.operation_count();
        SimDirectory::root(&disk).subdirectory(shelf).unwrap().sync().unwrap();
        disk.describe(at).expect("a sync")
    });
    let (mut went_on, mut reopened, mut unnoticed) = (0, 0, 0);
    for number in first..operations {
        let operation = disk.describe(number).expect("an operation");
        let is_of_files =
            ["sim/tables/", "sim/blobs/", "rename 0"].iter().any(|part| operation.contains(part))
                || ours.contains(&operation);
        let of = format!("operation {number}: {operation}");
        let disk = SimDisk::new(1);
        let mut user = User::new(&disk);
        disk.fail(number..number + 1);
        let outcome = user.work();
        disk.repair();
        if outcome.is_ok() {
            // Such as the removal of an unused file: an orphan.
            unnoticed += 1;
        } else if is_of_files {
            user.verify(&of);
        } else {
            // A commit that could not be written to the log is visible, though it was not
            // acknowledged.
            assert!(may_follow(&user.model, &user.content()), "{of}");
        }
        match user.work() {
            Ok(()) => went_on += 1,
            Err(error) => {
                // The heap accepts no commits after a log failure that leaves durability unknown.
                assert!(!is_of_files, "{of}: {error}");
                let before = user.model.clone();
                drop(user.store);
                user.store = open_on(&disk).unwrap();
                // Unacknowledged changes may be there: a load, or a commit of changes.
                user.model = user.content();
                assert!(may_follow(&before, &user.model), "{of}");
                user.work().unwrap();
                reopened += 1;
            }
        }
        user.verify(&of);
        user.assert_is_clean(&of);
        user.store.heap.close().unwrap();
        drop(user.store);
        user.store = open_on(&disk).unwrap();
        user.verify(&of);
        assert!(orphans(&disk, &user.store).is_empty(), "{of}");
    }
    println!("{went_on} went on, {reopened} reopened, {unnoticed} of all unnoticed");
    assert!(went_on > 20);
}

/// A table with range tombstones that cannot be read is opened when it is needed, and no sooner: by
/// reads of keys, by scans, and by counts. After a single failure it is opened again.
#[test]
fn what_could_not_be_read_at_opening_is_asked_later() {
    let disk = SimDisk::new(1);
    let mut user = User { store: open_on(&disk).unwrap(), model: Model::new() };
    let tree = |user: &User, work: &dyn Fn(&adamant_lsm::Lsm, &mut Transaction<'_>)| {
        let done = user.store.heap.transaction(Durability::Sync, |transaction| {
            work(&user.store.tree, transaction);
            Ok::<(), Error>(())
        });
        done.unwrap();
    };
    for number in 0..40_u8 {
        let key = [b'k', number];
        tree(&user, &|tree, tx| tree.write(tx, [(&key[..], Some(&key[..]))]).unwrap());
        if !(10..20).contains(&number) {
            user.model.insert(key.to_vec(), key.to_vec());
        }
    }
    user.flush().unwrap();
    user.compact().unwrap();
    tree(&user, &|tree, tx| tree.remove_range(tx, &[b'k', 10], &[b'k', 20]).unwrap());
    user.flush().unwrap();
    let mut failed = [0; 2];
    for number in 1.. {
        let mut was_touched = false;
        for (of, failed) in failed.iter_mut().enumerate() {
            user.store.reopen_tree().unwrap();
            let first = disk.call_count(Call::Read);
            disk.fail_call(Call::Read, first + number, Fault::Device);
            let found = if of == 0 {
                user.store.tree.count().finish().map(|count| assert_eq!(count, 30))
            } else {
                user.store.get(&[b'k', 15], NEWEST).map(|value| assert_eq!(value, None))
            };
            was_touched |= disk.call_count(Call::Read) >= first + number;
            *failed += u32::from(found.is_err());
            disk.repair();
            let of = format!("read {number} failed");
            assert_eq!(user.store.tree.count().finish().unwrap(), 30, "{of}");
            user.verify(&of);
            assert_eq!(user.store.get(&[b'k', 15], NEWEST).unwrap(), None, "{of}");
        }
        if !was_touched {
            break;
        }
    }
    assert!(failed.iter().all(|failed| *failed > 0), "{failed:?}: nobody looked at the table");
}

/// A merge names its tables one by one, and syncs their directory at its end. When a concurrent
/// flush's sync of the directory failed in between, the names of the merge were lost with those of
/// the flush, and looked durable: its own sync succeeded, its commit named the tables, its inputs
/// were removed, and a power cut took the tables.
#[test]
fn a_sync_that_fails_beside_a_merge_fails_the_merge() {
    let disk = SimDisk::new(3);
    let mut user = User::new(&disk);
    user.write_many(100).unwrap();
    user.flush().unwrap();
    let named_before = disk.call_count(Call::Rename);
    let is_first = AtomicBool::new(true);
    let beside = |_: u64| -> Result<(), Error> {
        if is_first.swap(false, Ordering::Relaxed) {
            assert!(disk.call_count(Call::Rename) > named_before, "it has named a table");
            let next = disk.call_count(Call::SyncDirectory) + 1;
            disk.fail_call(Call::SyncDirectory, next, Fault::Device);
            let (heap, tree) = (&user.store.heap, &user.store.tree);
            heap.transaction(Durability::Sync, |transaction| {
                tree.write(transaction, [(&b"beside"[..], Some(&[7; 50][..]))])
            })?;
            tree.rotate(heap)?;
            let flushed = tree.flush(heap, &user.seen(), &|_| Ok(()));
            assert!(flushed.is_err(), "its directory could not be synced");
            disk.repair();
        }
        Ok(())
    };
    let (heap, tree) = (&user.store.heap, &user.store.tree);
    let merged = tree.compact_all(heap, &user.seen(), &beside);
    user.model.insert(b"beside".to_vec(), vec![7; 50]);
    for number in 0..16 {
        let mut choice = if number == 0 { Choice::None } else { Choice::random(number) };
        let crashed = disk.crash(disk.operation_count(), &mut choice).without_history();
        let store = open_on(&crashed).unwrap();
        User { store, model: user.model.clone() }.verify(&format!("power cut {number}"));
    }
    assert!(merged.is_err(), "its names may be lost");
    user.verify("after the failed sync");
    user.compact().unwrap();
    user.verify("once more");
    user.assert_is_clean("once more");
}

#[test]
fn a_load_by_threads_of_which_one_finds_no_space_leaves_no_file() {
    let pairs: Vec<_> = (0..40_u8).map(|at| ([b'x', at], vec![at; 900])).collect();
    let (mut refused, mut is_done) = (0, false);
    for spare in (0..1 << 20).step_by(4 << 10) {
        let disk = SimDisk::new(1).without_history();
        let user = User::new(&disk);
        disk.set_space_bytes(Some(disk.space_used_bytes() + spare));
        let load = user.store.tree.prepare_load(&pairs, 3);
        is_done = load.as_ref().is_ok_and(Option::is_some);
        if let Err(error) = &load {
            assert!(error.is_out_of_space(), "{spare} bytes: {error}");
            refused += 1;
        }
        drop(load);
        let orphans = orphans(&disk, &user.store);
        assert!(orphans.is_empty(), "{spare} bytes: {orphans:?}");
        user.verify("a load that was not committed");
        if is_done {
            break;
        }
    }
    assert!(is_done && refused > 2, "{refused} loads found no space");
}
