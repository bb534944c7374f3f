//! Encrypted files: they hold what was written, as plain files do, and show nothing else.

mod torn;

use std::collections::HashSet;
use std::sync::Arc;

use adamant_medium::encrypted::directory::{EncryptedDirectory, KEY_NAME};
use adamant_medium::encrypted::key::EncryptionKey;
use adamant_medium::error::Error;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File};
use adamant_medium::system::os::OsDirectory;
use adamant_sim::{Choice, SimDirectory, SimDisk};

const PAGE_BYTES: u64 = 4096;

fn key(byte: u8) -> EncryptionKey {
    EncryptionKey::from_bytes(&[byte; 32])
}

fn encrypted(inner: &Arc<dyn Directory>) -> EncryptedDirectory {
    EncryptedDirectory::create(Arc::clone(inner), &key(1)).unwrap()
}

fn in_memory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

fn all_of(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn flip(file: &dyn File, at: u64) {
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[byte[0] ^ 4], at).unwrap();
}

#[test]
fn a_file_is_as_if_it_were_plain() {
    for once in [false, true] {
        for seed in 0..60 {
            let plain = in_memory();
            let plain_file = plain.create("file").unwrap();
            let inner = in_memory();
            let directory = encrypted(&inner);
            let file = match once {
                true => directory.create_once("file").unwrap(),
                false => directory.create("file").unwrap(),
            };
            let mut handles = [Arc::clone(&file), file];
            let mut rng = fastrand::Rng::with_seed(seed);
            for step in 0..120 {
                let handle = rng.usize(..2);
                let file = &handles[handle];
                let sizes = [1, 30, 456, 512, 4096, 5000, 70_000, 200_000];
                let bytes_max = *rng.choice(&sizes).unwrap();
                let (offset, len) = (rng.u64(..300_000), rng.u64(..bytes_max));
                let context = format!("seed {seed}, step {step}: {offset}, {len}");
                match rng.u32(..10) {
                    0..=4 => {
                        // Often behind what is there, as a log is written.
                        let end = plain_file.len().unwrap();
                        let offset = if rng.bool() { end } else { offset };
                        let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
                        plain_file.write_at(&bytes, offset).unwrap();
                        file.write_at(&bytes, offset).expect(&context);
                    }
                    5 => {
                        plain_file.allocate(offset, len).unwrap();
                        file.allocate(offset, len).expect(&context);
                    }
                    6 => {
                        plain_file.set_len(offset).unwrap();
                        file.set_len(offset).expect(&context);
                    }
                    7 => {
                        let pages =
                            (offset / PAGE_BYTES * PAGE_BYTES, len / PAGE_BYTES * PAGE_BYTES);
                        let end = plain_file.len().unwrap() / PAGE_BYTES * PAGE_BYTES;
                        if !once && pages.0 + pages.1 <= end {
                            plain_file.punch(pages.0, pages.1).unwrap();
                            file.punch(pages.0, pages.1).expect(&context);
                        }
                    }
                    8 => handles[handle] = directory.open("file").unwrap().unwrap(),
                    _ => {
                        let mut read = vec![1; len as usize];
                        let mut expected = vec![2; len as usize];
                        match plain_file.read_at(&mut expected, offset) {
                            Ok(()) => {
                                file.read_at(&mut read, offset).expect(&context);
                                assert_eq!(read, expected, "{context}");
                            }
                            Err(Error::Truncated { found_bytes, .. }) => {
                                let found = file.read_at(&mut read, offset);
                                let Err(Error::Truncated { found_bytes: found, .. }) = found else {
                                    panic!("{context}: {found:?}");
                                };
                                assert_eq!(found, found_bytes, "{context}");
                            }
                            Err(error) => panic!("{context}: {error}"),
                        }
                    }
                }
                assert_eq!(handles[0].len().unwrap(), plain_file.len().unwrap(), "{context}");
            }
            assert!(all_of(handles[1].as_ref()) == all_of(plain_file.as_ref()), "seed {seed}");
            // And by another process.
            let again = EncryptedDirectory::open(inner, &key(1)).unwrap().unwrap();
            let file = again.open("file").unwrap().unwrap();
            assert!(all_of(file.as_ref()) == all_of(plain_file.as_ref()), "seed {seed}");
        }
    }
}

#[test]
fn nothing_that_was_changed_is_shown() {
    for once in [false, true] {
        let inner = in_memory();
        let directory = encrypted(&inner);
        let file = match once {
            true => directory.create_once("file").unwrap(),
            false => directory.create("file").unwrap(),
        };
        let mut rng = fastrand::Rng::with_seed(7);
        let bytes: Vec<u8> = (0..20_000).map(|_| rng.u8(1..)).collect();
        file.write_at(&bytes, 0).unwrap();
        let raw = inner.open("file").unwrap().unwrap();
        for _ in 0..3000 {
            let at = rng.u64(..raw.len().unwrap());
            let mut byte = [0];
            raw.read_at(&mut byte, at).unwrap();
            raw.write_at(&[byte[0] ^ (1 << rng.u32(..8))], at).unwrap();
            // Of the head there are two.
            let is_unused = (0..8192).contains(&at);
            match directory.open("file").map(Option::unwrap) {
                Ok(file) => {
                    let mut read = vec![0; bytes.len()];
                    let found = file.read_at(&mut read, 0);
                    assert_eq!(found.is_ok(), is_unused, "byte {at}");
                    file.read_with_lost_at(&mut read, 0).unwrap();
                    let lost = read.iter().zip(&bytes).filter(|(one, other)| one != other).count();
                    assert_eq!(lost == 0, is_unused, "byte {at}");
                    let unit = if once { 4064 } else { 456 };
                    assert!(lost <= unit, "one unit is lost by byte {at}, not {lost} bytes");
                    assert!(
                        read.iter().zip(&bytes).all(|(one, other)| one == other || *one == 0xFF),
                        "byte {at}"
                    );
                }
                Err(error) => panic!("byte {at}: {error}"),
            }
            raw.write_at(&byte, at).unwrap();
        }
        assert!(all_of(directory.open("file").unwrap().unwrap().as_ref()) == bytes);
    }
}

#[test]
fn a_file_without_either_head_is_damaged() {
    let inner = in_memory();
    let directory = encrypted(&inner);
    directory.create("file").unwrap().write_at(b"secret", 0).unwrap();
    let raw = inner.open("file").unwrap().unwrap();
    flip(raw.as_ref(), 40);
    assert_eq!(all_of(directory.open("file").unwrap().unwrap().as_ref()), b"secret");
    flip(raw.as_ref(), 4096 + 60);
    assert!(matches!(directory.open("file"), Err(Error::NotAuthentic { offset: 0, .. })));
}

#[test]
fn a_sector_that_is_moved_or_of_another_file_is_not_shown() {
    let inner = in_memory();
    let directory = encrypted(&inner);
    for name in ["one", "two"] {
        directory.create(name).unwrap().write_at(&[7; 8192], 0).unwrap();
    }
    let raw = |name: &str| inner.open(name).unwrap().unwrap();
    let mut sector = [0; 512];
    for (from, source, target) in [("one", 0, 3), ("two", 3, 3), ("two", 0, 0)] {
        let mut kept = [0; 512];
        raw(from).read_at(&mut sector, 8192 + source * 512).unwrap();
        raw("one").read_at(&mut kept, 8192 + target * 512).unwrap();
        raw("one").write_at(&sector, 8192 + target * 512).unwrap();
        let read = directory.open("one").unwrap().unwrap().read_at(&mut [0; 8192], 0);
        assert!(matches!(read, Err(Error::NotAuthentic { .. })), "{from} {source} {target}");
        raw("one").write_at(&kept, 8192 + target * 512).unwrap();
    }
    // A whole file has what it had under the other name: what names files has to tell them apart.
    inner.rename("one", "two").unwrap();
    assert_eq!(all_of(directory.open("two").unwrap().unwrap().as_ref()), [7; 8192]);
}

#[test]
fn files_show_nothing_of_what_they_hold() {
    let inner = in_memory();
    let directory = encrypted(&inner);
    let text = b"the quick brown fox jumps over the lazy dog, again and again";
    let file = directory.create("file").unwrap();
    for number in 0..200 {
        file.write_at(text, number * text.len() as u64).unwrap();
    }
    let raw = all_of(inner.open("file").unwrap().unwrap().as_ref());
    assert!(!raw.windows(8).any(|window| text.windows(8).any(|part| part == window)));
    // The same bytes at the same place are other bytes each time.
    file.write_at(text, 0).unwrap();
    let again = all_of(inner.open("file").unwrap().unwrap().as_ref());
    assert_ne!(raw[8192..8704], again[8192..8704]);
    assert_eq!(raw[8704..], again[8704..]);
}

/// The nonces of the units that a file has; of those that were never written it is zeros.
fn nonces_of(inner: &dyn Directory, name: &str) -> Vec<[u8; 12]> {
    let raw = all_of(inner.open(name).unwrap().unwrap().as_ref());
    raw[8192..].chunks(512).map(|unit| unit[..12].try_into().unwrap()).collect()
}

/// Whatever is written how often, by one process after the other and by two at the same time.
#[test]
fn no_nonce_is_used_twice() {
    let inner = in_memory();
    let names = ["one", "two"];
    let first = encrypted(&inner);
    for name in names {
        first.create(name).unwrap();
    }
    let mut openings = vec![first];
    let mut used = HashSet::new();
    let mut last = [Vec::new(), Vec::new()];
    for round in 0..40 {
        if round % 5 == 0 {
            // As copies of a store that are opened and written: they have one data key.
            openings.push(EncryptedDirectory::open(Arc::clone(&inner), &key(1)).unwrap().unwrap());
        }
        for directory in &openings {
            for (name, last) in names.iter().zip(&mut last) {
                let file = directory.open(name).unwrap().unwrap();
                file.write_at(&[7; 3000], round / 10 * 1000).unwrap();
                let now = nonces_of(inner.as_ref(), name);
                last.resize(now.len(), [0; 12]);
                for (unit, (now, last)) in now.iter().zip(&*last).enumerate() {
                    let is_new = now == last || used.insert(*now);
                    assert!(is_new, "round {round}, unit {unit} of {name}: {now:?} again");
                }
                *last = now;
            }
        }
    }
    assert!(used.len() > 1000, "{}", used.len());
}

/// A linked file is one file: it must not be where another key is to open it.
#[test]
fn a_file_is_linked_to_where_its_key_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| -> Arc<dyn Directory> {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        Arc::new(OsDirectory::open(folder.path().join(name)).unwrap())
    };
    let directory = encrypted(&at("store"));
    directory.create_once("file").unwrap().write_at(b"secret", 0).unwrap();
    let plain = at("plain");
    assert!(directory.link("file", plain.as_ref()).unwrap_err().is_unsupported());
    let other = encrypted(&at("other"));
    assert!(directory.link("file", &other).unwrap_err().is_unsupported());
    assert!(plain.list().unwrap().is_empty() && other.list().unwrap().is_empty());
    let alike = directory.create_alike(at("alike")).unwrap();
    directory.link("file", &alike).unwrap();
    assert_eq!(all_of(alike.open("file").unwrap().unwrap().as_ref()), b"secret");
}

/// A power cut left two files without a durable byte: not even their heads tell them apart.
#[test]
fn files_without_heads_are_not_the_same_file() {
    let inner = in_memory();
    let directory = encrypted(&inner);
    let [one, other] = ["one", "other"].map(|name| {
        inner.create(name).unwrap();
        directory.open(name).unwrap().unwrap()
    });
    one.write_at(b"secret", 0).unwrap();
    other.write_at(b"!", 3).unwrap();
    assert_eq!(all_of(other.as_ref()), b"\0\0\0!");
    assert_eq!(all_of(one.as_ref()), b"secret");
}

/// The unit in which the last write ended is remembered, and may be gone since.
#[test]
fn a_hole_holds_nothing_of_what_was_written_last() {
    let inner = in_memory();
    let file = encrypted(&inner).create("file").unwrap();
    file.write_at(&[7; 20_000], 0).unwrap();
    file.write_at(&[8; 100], 4096).unwrap();
    file.punch(4096, 4096).unwrap();
    file.write_at(&[9; 10], 4096 + 200).unwrap();
    let mut read = [1; 300];
    file.read_at(&mut read, 4096).unwrap();
    assert_eq!(read, *[&[0; 200][..], &[9; 10], &[0; 90]].concat());
}

#[test]
fn only_its_key_opens_a_store_and_another_can_take_its_place() {
    let inner = in_memory();
    assert!(EncryptedDirectory::open(Arc::clone(&inner), &key(1)).unwrap().is_none());
    encrypted(&inner).create("file").unwrap().write_at(b"secret", 0).unwrap();
    let open = |byte| EncryptedDirectory::open(Arc::clone(&inner), &key(byte));
    assert!(matches!(open(2), Err(Error::WrongKey { .. })));
    open(1).unwrap().unwrap().replace_key(&key(2)).unwrap();
    assert!(matches!(open(1), Err(Error::WrongKey { .. })));
    let directory = open(2).unwrap().unwrap();
    assert_eq!(all_of(directory.open("file").unwrap().unwrap().as_ref()), b"secret");
    // A file of a store with another data key.
    let other = in_memory();
    encrypted(&other).create("file").unwrap();
    let raw = all_of(other.open("file").unwrap().unwrap().as_ref());
    inner.create("foreign").unwrap().write_at(&raw, 0).unwrap();
    assert!(matches!(directory.open("foreign"), Err(Error::NotAuthentic { .. })));
}

#[test]
fn either_record_of_the_key_file_opens_the_store() {
    let inner = in_memory();
    drop(encrypted(&inner));
    let raw = inner.open(KEY_NAME).unwrap().unwrap();
    let open = || EncryptedDirectory::open(Arc::clone(&inner), &key(1));
    for start in [0, 4096] {
        for at in (start..start + 96).chain([4095]) {
            flip(raw.as_ref(), at);
            assert!(open().unwrap().is_some(), "byte {at}");
            flip(raw.as_ref(), at);
        }
    }
    flip(raw.as_ref(), 20);
    flip(raw.as_ref(), 4096 + 70);
    assert!(matches!(open(), Err(Error::NotAuthentic { .. })));
}

#[test]
fn a_power_cut_leaves_each_byte_old_or_new() {
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let inner: Arc<dyn Directory> = Arc::new(SimDirectory::root(&disk));
        let directory = encrypted(&inner);
        let file = directory.create("file").unwrap();
        let durable: Vec<u8> = (0..9000).map(|_| rng.u8(1..)).collect();
        file.write_at(&durable, 0).unwrap();
        file.sync().unwrap();
        directory.sync().unwrap();
        let mut versions = vec![durable];
        for _ in 0..6 {
            let mut bytes = versions[versions.len() - 1].clone();
            let (start, len) = (rng.usize(..bytes.len()), rng.usize(1..900));
            let end = bytes.len().min(start + len);
            bytes[start..end].fill_with(|| rng.u8(1..));
            file.write_at(&bytes[start..end], start as u64).unwrap();
            versions.push(bytes);
        }
        for _ in 0..10 {
            let after = disk.crash(disk.operation_count(), &mut Choice::random(rng.u64(..)));
            let inner: Arc<dyn Directory> = Arc::new(SimDirectory::root(&after));
            let directory = EncryptedDirectory::open(inner, &key(1)).unwrap().unwrap();
            let read = all_of(directory.open("file").unwrap().unwrap().as_ref());
            for (at, byte) in read.iter().enumerate() {
                assert!(
                    versions.iter().any(|version| version[at] == *byte),
                    "seed {seed}, byte {at}"
                );
            }
        }
    }
}

#[test]
fn a_key_is_read_from_files_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let text = format!("\n  {}\r\n", key(7).to_text().as_str());
    for good in [text.as_bytes(), &[7; 32]] {
        std::fs::write(&path, good).unwrap();
        assert_eq!(EncryptionKey::read(&path).unwrap(), key(7));
    }
    for bad in [&b""[..], b"secret", &[7; 33], &[b'7'; 63], &[b'g'; 64], &[b'7'; 5000]] {
        std::fs::write(&path, bad).unwrap();
        let Err(Error::Io { source, .. }) = EncryptionKey::read(&path) else { panic!("a key") };
        assert_eq!(source.kind(), std::io::ErrorKind::InvalidData);
    }
    assert!(EncryptionKey::read(folder.path()).is_err());
}

#[cfg(unix)]
#[test]
fn a_command_that_fails_is_said_without_what_it_is() {
    let failing = EncryptionKey::from_command("echo sealed >&2; echo 07; exit 3".as_ref());
    let words = failing.unwrap_err().to_string();
    assert!(words.contains("exit status: 3: sealed") && !words.contains("07"), "{words}");
    let no_key = EncryptionKey::from_command("echo hunter2".as_ref()).unwrap_err().to_string();
    assert!(no_key.contains("found 8 bytes") && !no_key.contains("hunter2"), "{no_key}");
}

#[test]
fn a_key_file_is_not_written_over() {
    let inner = in_memory();
    let directory = encrypted(&inner);
    directory.create("file").unwrap().write_at(b"secret", 0).unwrap();
    let other = encrypted(&in_memory());
    assert!(EncryptedDirectory::create(Arc::clone(&inner), &key(2)).is_err());
    assert!(other.create_alike(Arc::clone(&inner)).is_err());
    let again = EncryptedDirectory::open(inner, &key(1)).unwrap().unwrap();
    assert_eq!(all_of(again.open("file").unwrap().unwrap().as_ref()), b"secret");
}

#[test]
fn what_has_its_own_checksum_is_written_over_lost_bytes() {
    let inner = in_memory();
    let directory = encrypted(&inner);
    let file = directory.create("file").unwrap();
    file.write_at(&[7; 1000], 0).unwrap();
    flip(inner.open("file").unwrap().unwrap().as_ref(), 8192 + 100);
    let file = directory.open("file").unwrap().unwrap();
    assert!(matches!(file.write_at(&[8; 10], 20), Err(Error::NotAuthentic { .. })));
    file.append_at(&[8; 10], 20).unwrap();
    let mut read = [0; 1000];
    file.read_at(&mut read, 0).unwrap();
    let lost = |range: &[u8]| range.iter().all(|byte| *byte == 0xFF);
    assert!(lost(&read[..20]) && lost(&read[30..456]), "the rest of the unit");
    assert!(read[20..30] == [8; 10] && read[456..] == [7; 544]);
}

#[test]
fn a_file_is_cut_to_whole_units_after_a_power_cut() {
    let inner = in_memory();
    let directory = encrypted(&inner);
    let file = directory.create("file").unwrap();
    file.write_at(&[5; 100], 0).unwrap();
    let raw = inner.open("file").unwrap().unwrap();
    let mut old = [0; 512];
    raw.read_at(&mut old, 8192).unwrap();
    file.write_at(&[6; 1000], 100).unwrap();
    // The sector that was there is the old one, those behind it are new.
    raw.write_at(&old, 8192).unwrap();
    let file = EncryptedDirectory::open(inner, &key(1)).unwrap().unwrap().open("file").unwrap();
    let file = file.unwrap();
    assert_eq!(file.len().unwrap(), 1100);
    file.set_len(456).unwrap();
    assert_eq!(file.len().unwrap(), 456);
    assert_eq!(all_of(file.as_ref()), [&[5; 100][..], &[0; 356]].concat());
}

#[test]
fn messages_show_no_plain_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let inner: Arc<dyn Directory> = Arc::new(OsDirectory::open(folder.path()).unwrap());
    let file = encrypted(&inner).create("file").unwrap();
    file.write_at(&[83; 12], 0).unwrap();
    let words = format!("{file:?}");
    assert!(!words.contains("83, 83") && words.contains("Unit"), "{words}");
}
