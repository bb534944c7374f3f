//! Tests of the durability of each keyspace: what survives which failure, for every kind of write.

use std::sync::Arc;

use adamant_heap::durability::Durability::{self, Buffered, Deferred, Sync};
use adamant_sim::{Choice, Mark, SimDirectory, SimDisk, Tally};

use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::options::Options;
use crate::store::handle::Store;

const ENGINES: [Engine; 3] = [Engine::Bplus, Engine::Critbit, Engine::Lsm];

fn open(disk: &SimDisk, of_store: Durability) -> Store {
    let options = Options::new().durability(of_store).log_bytes_max(4 << 20).background(false);
    // Nothing but the commits themselves decides when the device has them.
    let options = options.deferred_ms_max(u64::MAX).deferred_bytes_max(u64::MAX);
    Store::open_directory(Arc::new(SimDirectory::root(disk)), options).unwrap()
}

/// The durability of the last commit, as far as the failures tell which it survives.
fn found(disk: &SimDisk, is_there: impl Fn(&Store) -> bool) -> Durability {
    let point = disk.operation_count();
    if is_there(&open(&disk.crash(point, &mut Choice::None), Sync)) {
        return Sync;
    }
    if is_there(&open(&disk.kill(point), Sync)) { Buffered } else { Deferred }
}

/// The value of the key `k` of a keyspace.
fn value(store: &Store, name: &str) -> Option<Vec<u8>> {
    let keyspace = store.open_stored(name).ok()?;
    keyspace.get("k").unwrap().map(|value| value.to_vec())
}

type Write = fn(&Keyspace) -> Result<()>;

/// Every way to change `k` through a handle, and whether it is there then.
const WRITES: [(&str, Write, bool); 9] = [
    ("put", |it| it.put("k", "1"), true),
    ("delete", |it| it.delete("k"), false),
    ("extend", |it| it.extend([("k", "2")]).map(drop), true),
    ("pop", |it| it.pop_first().map(drop), false),
    ("swap", |it| it.compare_and_swap("k", None::<&[u8]>, Some("3")).map(drop), true),
    ("delete_range", |it| it.delete_range("a"..), false),
    ("load", |it| it.load_sorted([("k", "4")]).map(drop), true),
    ("retain", |it| it.retain(.., |_, _| false).map(drop), false),
    ("insert", |it| it.insert("k", "5").map(drop), true),
];

#[test]
fn every_write_has_the_durability_of_its_keyspace_unless_the_handle_has_its_own() {
    for (engine, of_store) in ENGINES.into_iter().flat_map(|it| [(it, Sync), (it, Deferred)]) {
        for own in [None, Some(Sync), Some(Buffered), Some(Deferred)] {
            let disk = SimDisk::new(11);
            let store = open(&disk, of_store);
            let options = KeyspaceOptions::new().engine(engine).durability(own);
            let data = store.keyspace_with("data", options).unwrap();
            assert_eq!(data.durability(), own.unwrap_or(of_store));
            disk.begin_history();
            for (what, write, is_there) in WRITES {
                write(&data).unwrap();
                let found = found(&disk, |store| value(store, "data").is_some() == is_there);
                assert_eq!(found, own.unwrap_or(of_store), "{engine}, {own:?}: {what}");
                data.with_durability(Sync).settle().unwrap();
            }
            for call in [Sync, Buffered, Deferred] {
                let handle = data.with_durability(call);
                handle.put("k", format!("{call:?}")).unwrap();
                let wanted = format!("{call:?}").into_bytes();
                let found = found(&disk, |store| value(store, "data").as_ref() == Some(&wanted));
                assert_eq!((found, handle.durability()), (call, call));
                store.sync().unwrap();
            }
            data.clear().unwrap();
            assert_eq!(found(&disk, |it| value(it, "data").is_none()), own.unwrap_or(of_store));
        }
    }
}

/// The strongest of two, by the order of their names in the enumeration.
fn strongest(one: Durability, other: Durability) -> Durability {
    [Sync, Buffered, Deferred].into_iter().find(|it| [one, other].contains(it)).unwrap()
}

#[test]
fn a_commit_to_several_has_the_strongest_durability_unless_it_has_its_own() {
    const CHOICES: [Option<Durability>; 4] = [None, Some(Sync), Some(Buffered), Some(Deferred)];
    for (one, other) in CHOICES.into_iter().flat_map(|one| CHOICES.map(|other| (one, other))) {
        let disk = SimDisk::new(12);
        let of_store = Buffered;
        let store = open(&disk, of_store);
        let made = |name: &str, engine, own| {
            let options = KeyspaceOptions::new().engine(engine).durability(own);
            store.keyspace_with(name, options).unwrap()
        };
        let (a, b) = (made("a", Engine::Bplus, one), made("b", Engine::Lsm, other));
        let both = strongest(one.unwrap_or(of_store), other.unwrap_or(of_store));
        disk.begin_history();
        let mut number = 0_u32;
        let mut verify = |write: &dyn Fn(&[u8]) -> Result<()>, expected: Durability| {
            number += 1;
            let value_now = number.to_le_bytes();
            write(&value_now).unwrap();
            let is_there = |it: &Store| value(it, "a").is_some_and(|found| found == value_now);
            assert_eq!(found(&disk, is_there), expected, "{one:?}, {other:?}, write {number}");
            store.sync().unwrap();
        };
        let batch = |value: &[u8], with_both: bool, own: Option<Durability>| {
            let mut batch = store.batch();
            // What handles were given is theirs alone.
            batch.put(&a.with_durability(Deferred), "k", value)?;
            if with_both {
                batch.put(&b, "k", value)?;
            }
            if let Some(own) = own {
                batch.durability(own);
            }
            batch.commit()
        };
        let transaction = |value: &[u8], with_both: bool, own: Option<Durability>| {
            let mut transaction = store.begin()?;
            transaction.get(&b, "k")?;
            transaction.put(&a, "k", value)?;
            if with_both {
                transaction.put(&b, "k", value)?;
            }
            if let Some(own) = own {
                transaction.durability(own);
            }
            transaction.commit()
        };
        let alone = one.unwrap_or(of_store);
        verify(&|value| batch(value, true, None), both);
        verify(&|value| batch(value, false, None), alone);
        verify(&|value| transaction(value, true, None), both);
        // It reads the other one, which asks for nothing then.
        verify(&|value| transaction(value, false, None), alone);
        for own in [Sync, Buffered, Deferred] {
            verify(&|value| batch(value, true, Some(own)), own);
            verify(&|value| transaction(value, true, Some(own)), own);
        }
        // A move of one of them, with the value that the other one has.
        b.with_durability(Sync).put("k", "moved").unwrap();
        b.move_to("k", &a, "k").unwrap();
        assert_eq!(found(&disk, |it| value(it, "a") == Some(b"moved".to_vec())), both);
    }
}

#[test]
fn an_expiring_keyspace_has_it_with_its_deadlines() {
    for own in [Sync, Buffered, Deferred] {
        let disk = SimDisk::new(13);
        let store = open(&disk, Sync);
        let cache = store.expiring_with("cache", KeyspaceOptions::new().durability(own)).unwrap();
        disk.begin_history();
        let soon = Some(cache.after(std::time::Duration::from_secs(3_600)));
        cache.put("k", "1", soon).unwrap();
        assert_eq!(found(&disk, |it| value(it, "cache").is_some()), own);
        store.sync().unwrap();
        let mut transaction = store.begin().unwrap();
        cache.within(&mut transaction).put("k", "2", soon).unwrap();
        transaction.commit().unwrap();
        let is_two = |it: &Store| value(it, "cache").is_some_and(|it| it.ends_with(b"2"));
        assert_eq!(found(&disk, is_two), own, "deadlines ask for nothing of their own");
        store.sync().unwrap();
        let waiting = cache.with_durability(Sync);
        waiting.put("k", "3", soon).unwrap();
        assert_eq!(found(&disk, |it| value(it, "cache").unwrap().ends_with(b"3")), Sync);
    }
}

/// All handles go by what was recorded last, and so do those of later openings and of copies.
#[test]
fn it_is_recorded_and_given_up_again() {
    let disk = SimDisk::new(14);
    let store = open(&disk, Sync);
    let data = store.keyspace("data").unwrap();
    let give = |store: &Store, own: Option<Durability>| {
        store.keyspace_with("data", KeyspaceOptions::new().durability(own)).map(drop).unwrap();
    };
    give(&store, None);
    let recorded = |store: &Store| store.keyspaces().unwrap()[0].durability;
    assert_eq!((data.durability(), recorded(&store)), (Sync, None));
    let plain = |store: &Store| {
        let view = store.shared.view().unwrap();
        let entry = store.shared.catalogue().find(&view, "data").unwrap().unwrap();
        !entry.has_options()
    };
    assert!(plain(&store), "to have none is what no option says");
    for own in [Some(Deferred), Some(Buffered), None, Some(Sync)] {
        give(&store, own);
        assert_eq!((data.durability(), recorded(&store)), (own.unwrap_or(Sync), own));
    }
    give(&store, Some(Buffered));
    store.rename_keyspace("data", "moved").unwrap();
    store.convert_keyspace("moved", Engine::Lsm).unwrap();
    data.clear().unwrap();
    store.rename_keyspace("moved", "data").unwrap();
    let other = store.keyspace("another").unwrap();
    store.swap_keyspaces("data", "another").unwrap();
    assert_eq!((data.durability(), other.durability()), (Buffered, Sync), "it is the keyspace's");
    assert_eq!(store.keyspace("another").unwrap().durability(), Buffered);
    drop((data, other));
    store.close().unwrap();
    let store = open(&disk, Deferred);
    assert_eq!(store.keyspace("another").unwrap().durability(), Buffered);
    assert_eq!(store.keyspace("data").unwrap().durability(), Deferred);
}

/// After a power cut a keyspace has the durability of before or of after the commit that changed
/// it, and all of its entries.
#[test]
fn a_power_cut_leaves_the_durability_of_one_moment() {
    for engine in [Engine::Bplus, Engine::Lsm] {
        const CHOICES: [Option<Durability>; 5] =
            [None, Some(Deferred), Some(Buffered), None, Some(Sync)];
        let disk = SimDisk::new(15);
        let store = open(&disk, Sync);
        let options = KeyspaceOptions::new().engine(engine);
        let data = store.keyspace_with("data", options).unwrap();
        data.put("k", "1").unwrap();
        disk.begin_history();
        for (number, own) in CHOICES.iter().enumerate().skip(1) {
            Mark::Begun.put(&disk, number as u64);
            store.keyspace_with("data", options.durability(*own)).unwrap();
            Mark::Durable.put(&disk, number as u64);
        }
        let mut tally = Tally::new();
        tally.power_cuts(&disk, 1, 4, |disk, promise| {
            let store = open(&disk, Sync);
            let found = store.keyspaces().unwrap()[0].durability;
            let mut possible = (promise.least..=promise.most).map(|it| CHOICES[it as usize]);
            assert!(possible.any(|own| own == found), "{found:?}: {promise:?}");
            let data = store.keyspace_with("data", options.durability(Buffered)).unwrap();
            assert_eq!(data.get("k").unwrap(), Some("1".into()));
            assert!(store.check().unwrap().is_clean());
        });
        tally.print("store, durability of a keyspace");
    }
}
