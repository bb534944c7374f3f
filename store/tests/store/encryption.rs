//! Encrypted stores: they show nothing without the key, and with it all that a plain one does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use adamant::{
    EncryptionKey, Engine, Error, KeyspaceOptions, LsmOptions, Options, Result, Store,
    compact_with, encrypt, rekey, repair_with, restore_with,
};
use adamant_medium::storage::Directory;
use adamant_medium::system::os::OsDirectory;
use adamant_sim::{Call, Choice, Fault, SimDirectory, SimDisk};
use tempfile::TempDir;

const ENTRIES: u32 = 300;

fn key(byte: u8) -> EncryptionKey {
    EncryptionKey::from_bytes(&[byte; 32])
}

/// Options with that key and memtables so small that there are tables and blob files; 0: without.
fn by(byte: u8) -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 8 << 10;
    lsm.blob_bytes_min = Some(200);
    let options = Options::new().lsm(lsm);
    if byte == 0 { options } else { options.encryption_key(key(byte)) }
}

fn secret(number: u32) -> Vec<u8> {
    format!("a secret of {number}; ").repeat(1 + number as usize % 30).into_bytes()
}

fn fill(store: &Store) {
    for engine in Engine::ALL {
        let options = KeyspaceOptions::new().engine(engine);
        let keyspace = store.keyspace_with(&format!("patients {engine}"), options).unwrap();
        for number in 0..ENTRIES {
            keyspace.put(format!("name {number:04}"), secret(number)).unwrap();
        }
    }
}

fn verify(store: &Store) {
    for engine in Engine::ALL {
        let keyspace = store.open_keyspace(&format!("patients {engine}")).unwrap();
        assert_eq!(keyspace.iter().count() as u32, ENTRIES);
        for number in 0..ENTRIES {
            let found = keyspace.get(format!("name {number:04}")).unwrap();
            assert_eq!(found.as_deref(), Some(&secret(number)[..]), "{number} in {engine}");
        }
    }
    assert!(store.check().unwrap().is_clean());
}

fn verify_at(path: &Path, byte: u8) {
    let store = Store::open_with(path, by(byte).create(false)).unwrap();
    verify(&store);
    store.close().unwrap();
}

/// A closed store that `key` encrypts, or that is plain for 0.
fn store_by(byte: u8) -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, by(byte)).unwrap();
    fill(&store);
    store.close().unwrap();
    (directory, path)
}

/// All files of a folder, with their bytes.
fn files_of(path: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// Whether a file shows a key, a value or the name of a keyspace.
fn shows_something(path: &Path) -> bool {
    let texts: [&[u8]; 3] = [b"secret of", b"name 0", b"patients"];
    files_of(path).iter().any(|(_, bytes)| {
        texts.iter().any(|text| bytes.windows(text.len()).any(|window| window == *text))
    })
}

#[test]
fn no_file_shows_what_it_holds() {
    let (_directory, path) = store_by(0);
    assert!(shows_something(&path), "otherwise this shows nothing");
    let (_directory, path) = store_by(1);
    assert!(fs::read_dir(path.join("tables")).unwrap().count() > 0);
    assert!(fs::read_dir(path.join("blobs")).unwrap().count() > 0);
    assert!(!shows_something(&path));
    verify_at(&path, 1);
}

#[test]
fn a_wrong_key_touches_nothing() {
    for byte in [0, 1] {
        let (_directory, path) = store_by(byte);
        let before = files_of(&path);
        let found = Store::open_with(&path, by(2)).map(drop);
        match byte {
            0 => assert!(matches!(found, Err(Error::NotEncrypted { .. })), "{found:?}"),
            _ => assert!(matches!(found, Err(Error::WrongKey { .. })), "{found:?}"),
        }
        if byte == 1 {
            for options in [by(0), by(0).read_only(true), by(0).beside_writer(true)] {
                let found = Store::open_with(&path, options).map(drop);
                assert!(matches!(found, Err(Error::KeyNeeded { .. })), "{found:?}");
            }
        }
        assert!(repair_with(&path, by(2)).is_err() && compact_with(&path, by(2)).is_err());
        assert!(files_of(&path) == before, "a file was changed");
        verify_at(&path, byte);
    }
    // A folder of something else gets no key file.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter"), "hello").unwrap();
    let found = Store::open_with(folder.path(), by(1)).map(drop);
    assert!(matches!(found, Err(Error::NotAStore { .. })), "{found:?}");
    assert_eq!(files_of(folder.path()).len(), 1);
}

#[test]
fn copies_are_encrypted_as_the_store_is() {
    let (directory, path) = store_by(1);
    let at = |name: &str| directory.path().join(name);
    let store = Store::open_with(&path, by(1)).unwrap();
    store.backup(at("full")).unwrap();
    store.backup_linked(at("linked")).unwrap();
    store.keyspace("patients bplus").unwrap().put("name 0000", "a secret of another").unwrap();
    let increment = store.backup_since(at("full"), at("increment")).unwrap();
    assert!(increment.files < increment.store_files, "files that did not change are not copied");
    let beside = Store::open_with(&path, by(1).beside_writer(true)).unwrap();
    let read = beside.open_keyspace("patients bplus").unwrap().get("name 0000").unwrap();
    assert_eq!(read.as_deref(), Some(&b"a secret of another"[..]));
    drop(beside);
    store.keyspace("patients bplus").unwrap().put("name 0000", secret(0)).unwrap();
    store.backup_since(at("increment"), at("second")).unwrap();
    store.close().unwrap();
    restore_with(at("full"), at("restored"), by(1)).unwrap();
    restore_with(at("second"), at("later"), by(1)).unwrap();
    for name in ["full", "linked", "restored", "later"] {
        assert!(!shows_something(&at(name)), "{name}");
        verify_at(&at(name), 1);
    }
    assert!(!shows_something(&at("increment")) && !shows_something(&at("second")));
    for options in [by(0), by(2)] {
        let found = Store::open_with(at("second"), options.read_only(true)).map(drop);
        let is_told = matches!(found, Err(Error::KeyNeeded { .. } | Error::WrongKey { .. }));
        assert!(is_told, "{found:?}");
    }
    assert!(restore_with(at("second"), at("no"), by(0)).is_err() && !at("no").exists());
}

#[test]
fn a_store_becomes_encrypted_gets_other_keys_and_becomes_plain() {
    let (_directory, path) = store_by(0);
    encrypt(&path, by(0), by(1)).unwrap();
    assert!(!shows_something(&path));
    verify_at(&path, 1);
    // The key is replaced, and no other file changes.
    let before = files_of(&path);
    rekey(&path, &key(1), &key(2)).unwrap();
    assert!(matches!(rekey(&path, &key(1), &key(3)), Err(Error::WrongKey { .. })));
    for (one, other) in before.iter().zip(&files_of(&path)) {
        assert!((one == other) != one.0.ends_with("key"), "{}", one.0.display());
    }
    let store = Store::open_with(&path, by(2)).unwrap();
    store.rekey(&key(3)).unwrap();
    let copy = path.with_extension("copy");
    store.backup(&copy).unwrap();
    store.close().unwrap();
    verify_at(&path, 3);
    verify_at(&copy, 3);
    // All files are made anew, with another data key.
    let identity = |path: &Path| fs::read(path.join("key")).unwrap()[16..32].to_vec();
    assert_eq!(identity(&copy), identity(&path));
    compact_with(&path, by(3)).unwrap();
    assert_ne!(identity(&copy), identity(&path));
    verify_at(&path, 3);
    encrypt(&path, by(3), by(0)).unwrap();
    assert!(!path.join("key").exists() && shows_something(&path));
    verify_at(&path, 0);
    let plain = Store::open_with(&path, by(0)).unwrap();
    assert!(matches!(plain.rekey(&key(1)), Err(Error::NotEncrypted { .. })));
}

#[test]
fn what_is_left_of_a_damaged_store_is_saved_encrypted() {
    let (_directory, path) = store_by(1);
    let pool = path.join("pool");
    let mut bytes = fs::read(&pool).unwrap();
    let written = |bytes: &[u8], at: usize| bytes[at..at + 512].iter().any(|byte| *byte != 0);
    let sectors = (8192 + (195 * 4096) / 8 * 9..bytes.len()).step_by(512);
    let sectors: Vec<usize> = sectors.filter(|at| written(&bytes, *at)).collect();
    for at in [sectors[sectors.len() / 2], sectors[sectors.len() / 3]] {
        bytes[at + 100] ^= 1;
    }
    fs::write(&pool, &bytes).unwrap();
    // It may be a page that opening or the walk of a check needs.
    match Store::open_with(&path, by(1)).and_then(|store| store.check()) {
        Ok(report) => assert!(!report.is_clean()),
        Err(error) => assert!(error.is_damaged(), "{error}"),
    }
    let report = repair_with(&path, by(1)).unwrap();
    assert!(!report.findings.is_empty() && report.damaged_path.is_some());
    assert!(!shows_something(&path));
    let store = Store::open_with(&path, by(1)).unwrap();
    assert!(store.check().unwrap().is_clean());
    let mut found = 0;
    for engine in Engine::ALL {
        let keyspace = store.open_keyspace(&format!("patients {engine}")).unwrap();
        for number in 0..ENTRIES {
            if let Some(value) = keyspace.get(format!("name {number:04}")).unwrap() {
                assert_eq!(value.as_ref(), &secret(number)[..]);
                found += 1;
            }
        }
    }
    let all = ENTRIES * Engine::ALL.len() as u32;
    assert!((all / 2..all).contains(&found), "{found} of {all}");
}

fn open_on(disk: &SimDisk, byte: u8) -> Result<Store> {
    Store::open_directory(Arc::new(SimDirectory::root(disk)), by(byte).background(false))
}

/// At every step of making a store and of replacing its key: one key opens it, and shows all.
#[test]
fn a_power_cut_leaves_one_key_that_opens_the_store() {
    let disk = SimDisk::new(1);
    let store = open_on(&disk, 1).unwrap();
    store.keyspace("patients").unwrap().put("name", "secret").unwrap();
    let made = disk.operation_count();
    store.rekey(&key(2)).unwrap();
    let done = disk.operation_count();
    let mut cursor = disk.cursor();
    for point in 0..=done {
        cursor.advance_to(point);
        let mut tried = BTreeSet::new();
        for seed in 0..20 {
            let after = cursor.crash(&mut Choice::random(seed));
            if !tried.insert(after.digest()) {
                continue;
            }
            let (old, new) = (open_on(&after, 1), open_on(&after, 2));
            let place = format!("point {point} of {made} and {done}, seed {seed}");
            let is_wrong = |found: &Result<Store>| matches!(found, Err(Error::WrongKey { .. }));
            // The new one finds the lock taken where the old one opened it.
            let store = match (old, new) {
                (Ok(old), _) => old,
                (Err(Error::WrongKey { .. }), Ok(new)) => new,
                other => panic!("{place}: {other:?}"),
            };
            if point >= made {
                let patients = store.open_keyspace("patients").unwrap();
                let found = patients.get("name").unwrap();
                assert_eq!(found.as_deref(), Some(&b"secret"[..]), "{place}");
            }
            drop(store);
            if point == done {
                assert!(is_wrong(&open_on(&after, 1)), "{place}");
            }
        }
    }
}

/// A sync that fails while a store is made: its name of the key file may look durable and not be.
/// What is committed after the next opening is there after a power cut.
#[test]
fn a_key_file_whose_name_was_not_synced_is_not_built_upon() {
    for number in 1.. {
        let disk = SimDisk::new(1);
        disk.fail_call(Call::SyncDirectory, number, Fault::Device);
        let made = open_on(&disk, 1);
        let was_met = disk.call_count(Call::SyncDirectory) >= number;
        disk.repair();
        println!("sync {number} of a directory: {made:?}");
        drop(made);
        let store = open_on(&disk, 1).unwrap();
        store.keyspace("patients").unwrap().put("name", "secret").unwrap();
        for seed in 0..20 {
            let after = disk.crash(disk.operation_count(), &mut Choice::random(seed));
            let store = open_on(&after, 1).unwrap_or_else(|error| panic!("{number}: {error}"));
            let found = store.open_keyspace("patients").unwrap().get("name").unwrap();
            assert_eq!(found.as_deref(), Some(&b"secret"[..]), "sync {number}, seed {seed}");
        }
        if !was_met {
            assert!(number > 2, "those of the key file and of the pool");
            break;
        }
    }
}

#[test]
fn a_copy_is_not_made_where_another_store_is() {
    let ((_one, path), (_two, encrypted), (_three, plain)) =
        (store_by(1), store_by(2), store_by(0));
    let store = Store::open_with(&path, by(1)).unwrap();
    for (other, byte) in [(&encrypted, 2), (&plain, 0)] {
        let target: Arc<dyn Directory> = Arc::new(OsDirectory::open(other).unwrap());
        let before = files_of(other);
        let copied = store.backup_into(&target);
        assert!(matches!(copied, Err(Error::TargetExists { .. })), "{copied:?}");
        assert!(files_of(other) == before, "a file was changed");
        verify_at(other, byte);
    }
}

#[test]
fn one_key_opens_an_increment_and_all_below_it() {
    let (directory, path) = store_by(1);
    let at = |name: &str| directory.path().join(name);
    let store = Store::open_with(&path, by(1)).unwrap();
    store.backup(at("before")).unwrap();
    store.rekey(&key(2)).unwrap();
    store.backup(at("after")).unwrap();
    // No key would open both.
    let made = store.backup_since(at("before"), at("none"));
    assert!(matches!(made, Err(Error::WrongKey { .. })), "{made:?}");
    store.backup_since(at("after"), at("increment")).unwrap();
    rekey(at("before"), &key(1), &key(2)).unwrap();
    store.backup_since(at("before"), at("other")).unwrap();
    for name in ["increment", "other"] {
        verify(&Store::open_with(at(name), by(2).read_only(true)).unwrap());
    }
}

#[test]
fn nothing_is_made_where_no_key_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter"), "hello").unwrap();
    let found = rekey(folder.path(), &key(1), &key(2));
    assert!(matches!(found, Err(Error::NotEncrypted { .. })), "{found:?}");
    assert_eq!(files_of(folder.path()).len(), 1);
}

/// What a damaged sector holds that no record names is of no interest, as in a store that is plain.
#[test]
fn a_log_is_written_over_damaged_sectors() {
    let (_directory, path) = store_by(1);
    for entry in fs::read_dir(path.join("log")).unwrap() {
        let log = entry.unwrap().path();
        let mut bytes = fs::read(&log).unwrap();
        bytes[8192..].iter_mut().step_by(512).for_each(|byte| *byte ^= 1);
        fs::write(&log, bytes).unwrap();
    }
    let store = Store::open_with(&path, by(1)).unwrap();
    let more = store.keyspace("more").unwrap();
    for number in 0..2000 {
        more.put(format!("{number:06}"), [7; 200]).unwrap();
    }
    store.close().unwrap();
    verify_at(&path, 1);
}

#[test]
fn what_no_program_encrypted_is_removed_as_any_leftover_is() {
    let (_directory, path) = store_by(1);
    let leftovers = [path.join("tables/0999.new"), path.join("log/new")];
    for left in &leftovers {
        fs::write(left, [9; 9000]).unwrap();
    }
    let foreign = path.join("tables/0998");
    fs::write(&foreign, [9; 9000]).unwrap();
    let store = Store::open_with(&path, by(1)).unwrap();
    verify(&store);
    let more = store.keyspace("more").unwrap();
    for number in 0..20_000 {
        more.put(format!("{number:06}"), [7; 400]).unwrap();
    }
    store.close().unwrap();
    assert!(leftovers.iter().all(|left| !left.exists()), "a leftover stayed");
    assert!(foreign.exists(), "it may be another store's");
}

/// Of a plain store that a power cut kept from being made.
#[test]
fn an_encrypted_store_is_made_where_a_plain_one_was_begun() {
    let disk = SimDisk::new(1);
    drop(open_on(&disk, 0).unwrap());
    for point in 0..=disk.operation_count() {
        for seed in 0..10 {
            let after = disk.crash(point, &mut Choice::random(seed));
            match open_on(&after, 1) {
                Ok(_) | Err(Error::NotEncrypted { .. }) => {}
                Err(error) => panic!("point {point}, seed {seed}: {error}"),
            }
        }
    }
}
