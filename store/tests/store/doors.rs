//! Opening paths: any path works, and errors say what is there instead of a store.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use adamant::{
    Durability, Engine, Error, KeyspaceOptions, Options, Store, compact, repair, restore,
};
use adamant_medium::system::memory_limit::process_memory_bytes;

use crate::device_bytes;

fn fill(path: &Path, count: u32) {
    let store = Store::open(path).unwrap();
    let numbers = store.keyspace("numbers").unwrap().with_durability(Durability::Buffered);
    for number in 0..count {
        numbers.insert(format!("{number:08}"), [7; 100]).unwrap();
    }
    store.close().unwrap();
}

fn verify(path: &Path, count: u64) {
    let store = Store::open_read_only(path).unwrap();
    assert!(store.check().unwrap().is_clean());
    assert_eq!(store.open_keyspace("numbers").unwrap().len().unwrap(), count);
}

/// Such a store could be opened and checked, which advised to repair it; `repair`, `compact`,
/// `backup` and `restore` said that it was no store.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn a_path_that_is_no_text_is_a_path_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &[u8]| directory.path().join(OsStr::from_bytes(name));
    let path = at(b"caf\xe9");
    // A listing that loses bytes of names would take this for the same.
    fs::create_dir(at("caf\u{fffd}".as_bytes())).unwrap();
    fill(&path, 300);
    compact(&path).unwrap();
    verify(&path, 300);
    let (copy, again) = (at(b"copy\xff"), at(b"again\xfe"));
    Store::open(&path).unwrap().backup(&copy).unwrap();
    verify(&copy, 300);
    let taken = Store::open(&path).unwrap().backup(&copy).unwrap_err();
    assert!(matches!(&taken, Error::TargetExists { path } if *path == copy), "{taken}");
    restore(&copy, &again).unwrap();
    verify(&again, 300);
    assert_eq!(repair(&again).unwrap().damaged_path, None);
    // The head of the pool is lost, but not its contents, nor those of the log of a store that was
    // written to.
    fill(&again, 300);
    let mut bytes = fs::read(again.join("pool")).unwrap();
    bytes[20] ^= 1;
    fs::write(again.join("pool"), bytes).unwrap();
    let report = repair(&again).unwrap();
    assert_eq!(report.damaged_path, Some(at(b"again\xfe.damaged")));
    assert!(at(b"again\xfe.damaged").join("pool").is_file());
    verify(&again, 300);
}

/// "expected a pool header with checksum 0x4d23b8f8, found 0x4d23b8f8".
#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn no_error_says_that_something_is_what_was_expected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    fill(&path, 10);
    let pool = fs::read(path.join("pool")).unwrap();
    let number = |text: &str| {
        let start = text.find("0x")?;
        let digits = text[start + 2..].chars().take_while(char::is_ascii_hexdigit);
        Some(digits.collect::<String>())
    };
    let mut refused = 0;
    for offset in (0..72).chain(4096..4168).chain(8192..8264) {
        let mut bytes = pool.clone();
        bytes[offset] ^= 1;
        fs::write(path.join("pool"), bytes).unwrap();
        let Err(error) = Store::open_read_only(&path) else { continue };
        refused += 1;
        let words = error.to_string();
        let (_, words_from) = words.split_once("expected ").expect("it says what was expected");
        let (expected, found) = words_from.split_once("found ").expect("and what was found");
        assert!(number(expected).is_none_or(|it| Some(it) != number(found)), "{offset}: {words}");
        if offset < 8 {
            assert!(expected.contains("starts with") && !expected.contains("0x"), "{words}");
        }
    }
    assert!(refused >= 60, "{refused}");
}

/// Each error said that nothing is there, or the system's name for it.
#[test]
fn what_is_no_store_is_called_what_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in ["empty", "begun", "foreign"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("begun").join("lock"), "").unwrap();
    fs::write(at("foreign").join("notes"), "").unwrap();
    fs::write(at("file"), "").unwrap();
    symlink("nowhere", at("link")).unwrap();
    fill(&at("store"), 10);
    let store = Store::open(at("store")).unwrap();
    let says = |outcome: Result<(), Error>, words: &str| {
        let error = outcome.expect_err(words).to_string();
        assert!(error.contains(words), "expected {words:?}, found {error:?}");
    };
    let reads = |name: &str| Store::open_read_only(at(name)).map(|_| ());
    says(reads("empty"), "found an empty directory");
    says(reads("begun"), "did not come to its end");
    says(reads("foreign"), "a directory without one that holds notes");
    says(reads("file"), "found a file");
    says(reads("nothing"), "expected a store, found nothing");
    says(reads("link"), "a link to where nothing is");
    says(Store::open(at("link")).map(|_| ()), "a link to where nothing is");
    says(Store::open(at("missing/new")).map(|_| ()), "expected the folder");
    says(Store::open(at("file/new")).map(|_| ()), "found a file");
    says(store.backup(at("missing/copy")), "expected the folder");
    says(compact(at("link")).map(|_| ()), "a link to where nothing is");
    says(compact(at("file")).map(|_| ()), "found a file");
    says(repair(at("link")).map(|_| ()), "a link to where nothing is");
    says(repair(at("file")).map(|_| ()), "found a file");
    says(repair(at("nothing")).map(|_| ()), "expected a store, found nothing");
    says(restore(at("link"), at("new")), "a link to where nothing is");
    assert!(!at("nowhere").exists() && !at("missing").exists() && !at("new").exists());
    assert_eq!(fs::read_dir(at("empty")).unwrap().count(), 0, "it was only looked at");
}

/// The error for a truncated pool was "too short: expected 72 bytes at offset 4096", or that there
/// is no pool at all.
#[test]
fn a_pool_that_was_cut_is_called_that() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    for bytes in [0, 10, 100, 4096, 4100] {
        fill(&path, 10);
        let pool = fs::OpenOptions::new().write(true).open(path.join("pool")).unwrap();
        pool.set_len(bytes).unwrap();
        for error in [repair(&path).unwrap_err(), Store::open_read_only(&path).unwrap_err()] {
            let words = error.to_string();
            assert!(words.contains("was cut") && words.contains("restore a backup"), "{words}");
        }
        fs::remove_dir_all(&path).unwrap();
    }
}

/// The bytes of tables and blob files were left out.
#[test]
fn a_compaction_says_what_all_files_take() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    let lsm = KeyspaceOptions::new().engine(Engine::Lsm);
    let entries = store.keyspace_with("entries", lsm).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut value = || -> Vec<u8> { (0..1000).map(|_| random.u8(..)).collect() };
    entries.load_sorted((0..3_000_u32).map(|number| (format!("{number:08}"), value()))).unwrap();
    store.close().unwrap();
    let files = |folder: &str| -> u64 {
        let listed = fs::read_dir(path.join(folder)).into_iter().flatten();
        listed.map(|file| device_bytes(file.unwrap().path())).sum()
    };
    let beside = || files("tables") + files("blobs");
    let before = beside();
    let compacted = compact(&path).unwrap();
    assert!(before > 2 << 20 && beside() > 2 << 20);
    assert!(compacted.bytes_before > before, "{compacted:?}");
    assert!(compacted.bytes_after > beside(), "{compacted:?}");
}

/// A regression: a store with data larger than memory was ended by the system.
#[test]
fn private_memory_has_a_bound_unless_none_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let open = |options| Store::open_with(directory.path().join("store"), options).unwrap();
    let bytes_max = open(Options::new()).stats().unwrap().heap.memory.bytes_max;
    let half = process_memory_bytes().map(|bytes| bytes / 2);
    assert_eq!(bytes_max, half.unwrap_or(u64::MAX));
    for bytes in [64 << 20, u64::MAX] {
        let store = open(Options::new().memory_bytes_max(bytes));
        assert_eq!(store.stats().unwrap().heap.memory.bytes_max, bytes);
    }
}
