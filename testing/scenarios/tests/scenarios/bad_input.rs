//! Bad input: paths that are no store, and damaged stores. Each gives an error with its reason, and
//! none gives wrong data.

use std::fs;
use std::path::{Path, PathBuf};

use adamant::{Durability, Error, Options, Result, Store};
use adamant_scenarios::files::copy_directory;
use tempfile::TempDir;

/// Opens a store and reads all of it; findings are errors, too.
fn open_and_look(path: &Path) -> Result<Vec<String>> {
    let store = Store::open_with(path, Options::new().create(false))?;
    let report = store.check()?;
    Ok(report.findings.iter().map(ToString::to_string).collect())
}

fn refused(path: &Path) -> String {
    let error = open_and_look(path).expect_err("opening should fail");
    let text = error.to_string();
    assert!(text.len() > 20 && text.contains(' '), "not a sentence: {text}");
    text
}

/// A closed store with 300 entries, all of them in the pool file.
fn closed_store() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    let keyspace = store.keyspace("main").unwrap();
    let mut batch = store.batch();
    for number in 0..300 {
        batch.put(&keyspace, format!("key-{number:03}"), marker(number)).unwrap();
    }
    batch.commit().unwrap();
    store.close().unwrap();
    (directory, path)
}

/// Values that can be found in a file.
fn marker(number: u32) -> String {
    format!("<marker {number:03}>").repeat(8)
}

/// The files of a store as after the death of its process: the store is open and none of its
/// commits is in the pool file yet.
fn store_with_a_log_tail() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store"), directory.path().join("copy"));
    let store = Store::open_with(&path, Options::new().background(false)).unwrap();
    let keyspace = store.keyspace("main").unwrap();
    for number in 0..20 {
        keyspace.insert(format!("key-{number:03}"), marker(number)).unwrap();
    }
    copy_directory(&path, &copy);
    store.close().unwrap();
    (directory, copy)
}

/// The first offset of these bytes in a file, which must contain them.
fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    let first = bytes.windows(wanted.len()).position(|window| window == wanted);
    first.unwrap_or_else(|| panic!("{:?} is not in the file", String::from_utf8_lossy(wanted)))
}

fn change(path: &Path, work: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    work(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn log_files(store: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(store.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_path_that_is_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("letter.txt");
    fs::write(&path, "Dear reader").unwrap();
    for options in [Options::new(), Options::new().create(false)] {
        let error = Store::open_with(&path, options).unwrap_err();
        assert!(matches!(error, Error::NotAStore { .. }), "{error}");
        assert!(error.to_string().contains("letter.txt"), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "Dear reader");
}

#[test]
fn a_directory_of_another_program() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter.txt"), "Dear reader").unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::NotAStore { .. }), "{error}");
    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was added");
}

#[test]
fn a_path_whose_parent_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let error = Store::open(directory.path().join("no/such")).unwrap_err();
    assert!(error.to_string().contains("no/such"), "{error}");
}

#[test]
fn a_pool_that_is_empty_or_of_another_program() {
    for content in [&b""[..], b"\x7fELF", &[0; 70_000], &[0xff; 70_000]] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("pool"), content).unwrap();
        refused(directory.path());
    }
}

#[test]
fn a_pool_that_was_cut_off() {
    let (_directory, path) = closed_store();
    let whole = fs::read(path.join("pool")).unwrap();
    for bytes in [1, 59, 60, 4_095, 4_096, 8_192, 12_288, 65_536, 400_000, whole.len() / 2] {
        fs::write(path.join("pool"), &whole[..bytes]).unwrap();
        refused(&path);
    }
    fs::write(path.join("pool"), &whole).unwrap();
    assert_eq!(open_and_look(&path).unwrap(), [""; 0]);
}

#[test]
fn a_pool_of_a_newer_version() {
    let (_directory, path) = closed_store();
    // Version at byte 8, mandatory feature mask at byte 32, checksum at byte 56.
    for at in [8, 32] {
        let before = fs::read(path.join("pool")).unwrap();
        change(&path.join("pool"), |bytes| {
            bytes[at] |= 0x40;
            let sum = adamant_wire::checksum::crc32c(0, &bytes[..56]);
            bytes[56..60].copy_from_slice(&sum.to_le_bytes());
        });
        let text = refused(&path);
        assert!(text.contains("newer") || text.contains("version"), "{text}");
        fs::write(path.join("pool"), before).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_the_header() {
    let (_directory, path) = closed_store();
    let whole = fs::read(path.join("pool")).unwrap();
    for bit in (0..60 * 8).step_by(7) {
        change(&path.join("pool"), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        refused(&path);
        fs::write(path.join("pool"), &whole).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_a_page_is_found_by_a_check() {
    let (_directory, path) = closed_store();
    let whole = fs::read(path.join("pool")).unwrap();
    let descriptors = adamant_heap::layout::file_offset(adamant_heap::layout::TABLE_BASE) as usize;
    // Root page and class table, kinds and bitmaps of runs, values, and a free page.
    let root = adamant_heap::layout::file_offset(0) as usize;
    let value = find(&whole, marker(7).as_bytes());
    let places = [root + 3, root + 30, root + 4_099, descriptors + 16, descriptors + 20, value];
    for at in places {
        change(&path.join("pool"), |bytes| bytes[at] ^= 0x10);
        match open_and_look(&path) {
            Ok(findings) => assert!(!findings.is_empty(), "byte {at} was not found"),
            Err(error) => assert!(error.to_string().contains("pool"), "{error}"),
        }
        fs::write(path.join("pool"), &whole).unwrap();
    }
}

/// A plain get trusts its page; with the option no read does.
#[test]
fn a_flipped_bit_in_a_value_is_found_at_first_touch() {
    let (_directory, path) = closed_store();
    change(&path.join("pool"), |bytes| {
        let at = find(bytes, marker(7).as_bytes());
        bytes[at + 9] ^= 0x10;
    });
    let store = Store::open_with(&path, Options::new().verify_first_touch(true)).unwrap();
    let keyspace = store.open_keyspace("main").unwrap();
    let error = keyspace.get("key-007").unwrap_err();
    assert!(error.to_string().contains("pool is damaged at byte"), "{error}");
    assert!(keyspace.iter().any(|entry| entry.is_err()));
}

#[test]
fn a_log_tail_is_recovered() {
    let (_directory, path) = store_with_a_log_tail();
    let store = Store::open(&path).unwrap();
    assert!(!store.recovery().was_closed);
    assert_eq!(store.recovery().records, 26, "one for head, keyspace, each entry, and 4 runs");
    let keyspace = store.open_keyspace("main").unwrap();
    assert_eq!(keyspace.len().unwrap(), 20);
    assert!(store.check().unwrap().is_clean());
    assert_eq!(keyspace.get("key-019").unwrap(), Some(marker(19).into()));
}

/// A bit flips in a record whose commit was durable. Ending the log there would silently lose
/// acknowledged commits, so it is an error with the file and the place.
#[test]
fn a_flipped_bit_in_a_durable_part_of_the_log() {
    let (_directory, path) = store_with_a_log_tail();
    let mut tried = 0;
    for number in [0, 5, 12, 17] {
        for file in log_files(&path) {
            let whole = fs::read(&file).unwrap();
            let wanted = marker(number);
            if !whole.windows(wanted.len()).any(|window| window == wanted.as_bytes()) {
                continue;
            }
            tried += 1;
            change(&file, |bytes| {
                let at = find(bytes, wanted.as_bytes());
                bytes[at + 5] ^= 4;
            });
            let text = refused(&path);
            assert!(text.contains("log") && text.contains("damaged"), "{text}");
            fs::write(&file, whole).unwrap();
        }
    }
    assert_eq!(tried, 4, "each of the markers is in one log file");
    assert_eq!(open_and_look(&path).unwrap(), [""; 0]);
}

/// A power cut may tear the end of the log: what was not known to be durable is dropped, everything
/// before it is there.
#[test]
fn a_torn_end_of_the_log() {
    let (_directory, path) = store_with_a_log_tail();
    for file in log_files(&path) {
        change(&file, |bytes| {
            let wanted = marker(19);
            if bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes()) {
                let at = find(bytes, wanted.as_bytes());
                bytes[at + 5] ^= 4;
            }
        });
    }
    assert_eq!(open_and_look(&path).unwrap(), [""; 0]);
    let store = Store::open(&path).unwrap();
    let keyspace = store.open_keyspace("main").unwrap();
    assert_eq!(keyspace.len().unwrap(), 19);
    assert_eq!(keyspace.get("key-018").unwrap(), Some(marker(18).into()));
}

/// Random bytes overwritten anywhere: an error, a finding, or the correct data; never wrong data, a
/// hang or a crash of the process.
#[test]
fn random_damage_never_gives_wrong_data() {
    let (directory, path) = closed_store();
    let saved = directory.path().join("saved");
    copy_directory(&path, &saved);
    let whole = fs::read(path.join("pool")).unwrap();
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        change(&path.join("pool"), |bytes| {
            for _ in 0..random.usize(1..4) {
                bytes[used[random.usize(0..used.len())]] ^= random.u8(1..);
            }
        });
        if let Ok(store) = Store::open(&path) {
            let is_clean = store.check().is_ok_and(|report| report.is_clean());
            let entries: Result<Vec<_>> =
                store.open_keyspace("main").and_then(|keyspace| keyspace.iter().collect());
            if is_clean {
                let entries = entries.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                assert_eq!(entries.len(), 300, "seed {seed}");
                for (number, (key, value)) in (0..).zip(entries) {
                    assert_eq!(key, format!("key-{number:03}"), "seed {seed}");
                    assert_eq!(value, marker(number), "seed {seed}");
                }
            }
        }
        fs::remove_dir_all(&path).unwrap();
        copy_directory(&saved, &path);
    }
}

#[test]
fn a_directory_that_may_only_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, path) = closed_store();
    let set = |mode| {
        for part in [path.join("pool"), path.join("lock"), path.join("log"), path.clone()] {
            fs::set_permissions(part, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o555);
    let is_privileged = fs::write(path.join("probe"), "").is_ok();
    if is_privileged {
        set(0o755);
        eprintln!("skipped: permissions do not stop this user");
        return;
    }
    let text = refused(&path);
    set(0o755);
    assert!(text.contains("store"), "{text} should name the path");
    assert_eq!(open_and_look(&path).unwrap(), [""; 0]);
}

/// Commits with every durability are in the copy of a store whose process did not end: the
/// operating system has the `Buffered` ones.
#[test]
fn buffered_commits_survive_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store"), directory.path().join("copy"));
    let store = Store::open_with(&path, Options::new().background(false)).unwrap();
    let keyspace = store.keyspace("main").unwrap().with_durability(Durability::Buffered);
    for number in 0..50 {
        keyspace.insert(format!("{number}"), "v").unwrap();
    }
    copy_directory(&path, &copy);
    let copied = Store::open(&copy).unwrap();
    assert_eq!(copied.open_keyspace("main").unwrap().len().unwrap(), 50);
}
