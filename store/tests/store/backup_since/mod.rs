//! Incremental backups: every kept moment of random work is what a model says.

mod damage;
mod links;
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use adamant::{Compression, Engine, Error, KeyspaceOptions, Store};

use crate::backup_since::support::{Work, bytes_of, read, show};

/// Moments of a chain.
const MOMENTS: u64 = 8;

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn every_moment_of_a_chain_can_be_read_and_restored() {
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: String| folder.path().join(name);
        let mut work = Work::new(&path("store".into()), seed);
        let mut moments = Vec::new();
        for moment in 0..MOMENTS {
            (0..40).for_each(|_| work.step());
            let target = path(format!("{moment}"));
            match moment {
                0 => work.store().backup(&target).unwrap(),
                // Every third one stands on the full backup, or on one that others stand on.
                _ => {
                    let parent = if moment % 3 == 0 { moment / 2 } else { moment - 1 };
                    let made = work.store().backup_since(path(format!("{parent}")), &target);
                    let made = made.unwrap();
                    assert_eq!(made.bytes, bytes_of(&target), "{made:?}");
                    assert!(made.files <= made.store_files && made.blocks <= made.pool_blocks);
                    assert!(!path(format!("{moment}.backing-up")).exists());
                }
            }
            moments.push(work.models.clone());
            if seed == 1 {
                work.reopen();
            }
        }
        // Whatever becomes of the store.
        drop(work);
        for (moment, models) in moments.iter().enumerate() {
            let backup = path(format!("{moment}"));
            let store = read(&backup);
            show(&store, models);
            assert!(store.check().unwrap().is_clean());
            let error = store.keyspace("bplus").and_then(|it| it.put("a", "b")).unwrap_err();
            assert!(error.is_read_only(), "{error}");
            store.close().unwrap();
            let restored = path(format!("restored {moment}"));
            adamant::restore(&backup, &restored).unwrap();
            let store = Store::open(&restored).unwrap();
            assert!(store.recovery().was_closed && store.check().unwrap().is_clean());
            show(&store, models);
        }
        // The newest links go first, and what stays is whole.
        for moment in (1..MOMENTS).rev() {
            std::fs::remove_dir_all(path(format!("{moment}"))).unwrap();
            show(&read(&path("0".into())), &moments[0]);
            show(&read(&path((moment / 2).to_string())), &moments[(moment / 2) as usize]);
        }
    }
}

#[test]
fn what_did_not_change_takes_no_space() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut work = Work::new(&path("store"), 7);
    (0..200).for_each(|_| work.step());
    work.store().backup(path("full")).unwrap();
    let full = bytes_of(&path("full"));
    let none = work.store().backup_since(path("full"), path("none")).unwrap();
    // Header, checkpoint, and pages that the copy of a copy has otherwise.
    assert!(none.blocks <= 4 && none.files == 0, "{none:?}");
    assert!(none.bytes < full / 20, "{none:?} of {full}");
    work.put("bplus", "one", "more");
    let one = work.store().backup_since(path("none"), path("one")).unwrap();
    assert!(one.blocks > 0 && one.blocks < 20 && one.files == 0, "{one:?}");

    // The whole store back to what it was costs no more than the way there.
    let merged = read(&path("one")).backup_since(path("full"), path("merged")).unwrap();
    assert!(merged.blocks < 30 && merged.files == 0, "{merged:?}");
    show(&read(&path("merged")), &work.models);
    // Removed between the two that one stands for.
    std::fs::remove_dir_all(path("none")).unwrap();
    show(&read(&path("merged")), &work.models);
    let error = Store::open_read_only(path("one")).unwrap_err();
    assert!(matches!(error, Error::MissingLink { .. }), "{error}");
}

#[test]
fn others_write_while_an_increment_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = |number: u64| folder.path().join(number.to_string());
    let store = Work::new(&folder.path().join("store"), 3).into_store();
    let keyspaces = support::keyspaces(&store);
    let (done, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let commit = |number: u64| {
        let mut batch = store.batch();
        for keyspace in &keyspaces {
            let value = vec![number as u8; 100 + (number % 700) as usize];
            batch.put(keyspace, format!("{:04}", number * 7919 % 1000), value).unwrap();
            batch.put(keyspace, "last", number.to_string()).unwrap();
        }
        batch.commit().unwrap();
    };
    (1..500).for_each(commit);
    done.store(499, Ordering::Release);
    store.backup(path(0)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let number = done.load(Ordering::Relaxed) + 1;
                commit(number);
                done.store(number, Ordering::Release);
            }
        });
        for moment in 1..6 {
            let before = done.load(Ordering::Acquire);
            let made = store.backup_since(path(moment - 1), path(moment)).unwrap();
            let after = done.load(Ordering::Acquire) + 1;
            let copy = read(&path(moment));
            assert!(copy.check().unwrap().is_clean(), "{made:?}");
            for name in support::NAMES {
                let keyspace = copy.open_keyspace(name).unwrap();
                let last = keyspace.get("last").unwrap().unwrap();
                let last: u64 = String::from_utf8(last.to_vec()).unwrap().parse().unwrap();
                assert!((before..=after).contains(&last), "{before} <= {last} <= {after}");
                for number in last.saturating_sub(999).max(1)..=last {
                    let found = keyspace.get(format!("{:04}", number * 7919 % 1000)).unwrap();
                    let expected = vec![number as u8; 100 + (number % 700) as usize];
                    assert_eq!(found.as_deref(), Some(&expected[..]), "{name} {number}");
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// What `adamant backup --since` does while a program has the store open.
#[test]
fn a_reader_beside_a_writer_makes_increments() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut work = Work::new(&path("store"), 5);
    (0..100).for_each(|_| work.step());
    Store::open_beside(path("store")).unwrap().backup(path("full")).unwrap();
    let before = work.models.clone();
    (0..30).for_each(|_| work.step());
    let reader = Store::open_beside(path("store")).unwrap();
    let models = work.models.clone();
    (0..30).for_each(|_| work.step());
    reader.backup_since(path("full"), path("one")).unwrap();
    work.store().backup_since(path("one"), path("two")).unwrap();
    let last = work.models.clone();
    drop(work);
    let closed = read(&path("store"));
    let made = closed.backup_since(path("two"), path("three")).unwrap();
    assert!(made.bytes > 0);
    for (name, models) in
        [("full", before), ("one", models), ("two", last.clone()), ("three", last)]
    {
        show(&read(&path(name)), &models);
        assert!(read(&path(name)).check().unwrap().is_clean());
    }
}

/// Two stores that were one: numbers of files are given twice, and what they hold differs.
#[test]
fn a_restored_store_goes_on_with_the_chain_of_the_lost_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut work = Work::new(&path("store"), 11);
    (0..60).for_each(|_| work.step());
    work.store().backup(path("full")).unwrap();
    let models = work.models.clone();
    (0..60).for_each(|_| work.step());
    work.store().backup_since(path("full"), path("late")).unwrap();
    adamant::restore(path("full"), path("restored")).unwrap();
    let mut other = Work::over(&path("restored"), 12, models);
    (0..60).for_each(|_| other.step());
    let made = other.store().backup_since(path("late"), path("other")).unwrap();
    assert!(made.files > 0, "{made:?}");
    show(&read(&path("late")), &work.models);
    show(&read(&path("other")), &other.models);
    assert!(read(&path("other")).check().unwrap().is_clean());

    // One of another store: right, and large.
    let foreign = Work::new(&path("foreign"), 13);
    foreign.store().backup_since(path("other"), path("of foreign")).unwrap();
    show(&read(&path("of foreign")), &foreign.models);
}

/// Twins that write tables of the same names and lengths, which hold different values.
#[test]
fn a_file_of_the_same_number_and_length_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let open =
        |name: &str| Store::open_with(path(name), support::options().background(false)).unwrap();
    let fill = |store: &Store, value: u8| {
        let plain = KeyspaceOptions::new().engine(Engine::Lsm).compression(Compression::None);
        let keyspace = store.keyspace_with("twins", plain).unwrap();
        for number in 0..500 {
            // The first table differs in its last block only.
            let fill = if number < 490 { 1 } else { value };
            keyspace.put(format!("{number:03}"), [fill; 100]).unwrap();
        }
        keyspace.compact().unwrap();
    };
    let show = |name: &str, value: u8| {
        let store = read(&path(name));
        assert!(store.check().unwrap().is_clean());
        let found = store.open_keyspace("twins").unwrap().get("499").unwrap();
        assert_eq!(found.as_deref(), Some(&[value; 100][..]), "{name}");
    };
    let one = open("store");
    fill(&one, 1);
    one.backup(path("full")).unwrap();
    adamant::restore(path("full"), path("twin")).unwrap();
    let two = open("twin");
    fill(&one, 2);
    fill(&two, 3);
    let tables = |name: &str| {
        let entries = std::fs::read_dir(path(name).join("tables")).unwrap();
        let table = |entry: std::fs::DirEntry| (entry.file_name(), entry.metadata().unwrap().len());
        let mut tables: Vec<_> = entries.map(|entry| table(entry.unwrap())).collect();
        tables.sort();
        tables
    };
    assert_eq!(tables("store"), tables("twin"), "or this test shows nothing");
    one.backup_since(path("full"), path("of one")).unwrap();
    let made = two.backup_since(path("of one"), path("of two")).unwrap();
    assert!(made.files > 0, "{made:?}");
    assert!(two.backup_since(path("of two"), path("again")).unwrap().files == 0);
    for (name, value) in [("full", 1), ("of one", 2), ("of two", 3), ("again", 3)] {
        show(name, value);
    }
}
