//! The directory in memory behaves as the operating system's: every test here runs over both.

use std::sync::Arc;

use adamant_medium::address::region::Region;
use adamant_medium::error::Error;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File};
use adamant_medium::system::os::OsDirectory;

const PAGE_BYTES: u64 = 4096;

fn over_both(test: impl Fn(&dyn Directory)) {
    let folder = tempfile::tempdir().unwrap();
    test(&OsDirectory::open(folder.path()).unwrap());
    test(&MemoryDirectory::new());
}

fn read(file: &Arc<dyn File>, offset: u64, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0xee; bytes];
    file.read_at(&mut buffer, offset).unwrap();
    buffer
}

fn kind(error: Error) -> std::io::ErrorKind {
    match error {
        Error::Io { source, .. } | Error::OutOfSpace { source, .. } => source.kind(),
        other => panic!("expected a failure of the system, found {other:?}"),
    }
}

/// The bytes of a region's range.
fn region_bytes(region: &mut Region, offset: usize, bytes: usize) -> &mut [u8] {
    // SAFETY: the tests stay within the ranges that they committed or mapped.
    let start = unsafe { region.base().add(offset) };
    // SAFETY: as above, and they drop one reference before they take the next.
    unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) }
}

#[test]
fn files_hold_what_was_written() {
    over_both(|directory| {
        let file = directory.create("data").unwrap();
        assert!(file.is_empty().unwrap());
        file.write_at(b"hello", 0).unwrap();
        file.write_at(b"", 1 << 40).unwrap();
        assert_eq!(file.len().unwrap(), 5, "writing nothing grows nothing");
        file.write_at(b"p, w", 3).unwrap();
        assert_eq!(read(&file, 0, 7), b"help, w");
        file.sync().unwrap();
        let again = directory.open("data").unwrap().unwrap();
        assert_eq!(read(&again, 2, 3), b"lp,");
        assert_eq!(again.path(), directory.path().join("data"));
        assert!(directory.open("missing").unwrap().is_none());
    });
}

#[test]
fn holes_and_new_space_are_zero() {
    over_both(|directory| {
        let file = directory.create("data").unwrap();
        file.write_at(b"x", 10_000).unwrap();
        assert_eq!(read(&file, 0, 10_000), vec![0; 10_000]);
        file.set_len(5).unwrap();
        file.set_len(20_000).unwrap();
        assert_eq!(read(&file, 0, 20_000), vec![0; 20_000], "what was cut off stays away");
        file.write_at(b"kept", 100).unwrap();
        file.allocate(50, 30_000).unwrap();
        assert_eq!(file.len().unwrap(), 30_050);
        assert_eq!(read(&file, 100, 4), b"kept");
        assert_eq!(read(&file, 104, 29_946), vec![0; 29_946]);
        file.allocate(0, 10).unwrap();
        file.allocate(1 << 20, 0).unwrap();
        assert_eq!(file.len().unwrap(), 30_050, "an allocation never cuts");
        file.set_len(101).unwrap();
        file.set_len(104).unwrap();
        assert_eq!(read(&file, 100, 4), b"k\0\0\0");
    });
}

#[test]
fn reading_beyond_the_end_says_what_is_there() {
    over_both(|directory| {
        let file = directory.create("data").unwrap();
        file.write_at(&[7; 100], 0).unwrap();
        for (offset, expected, found) in [(90, 20, 10), (100, 1, 0), (5000, 3, 0)] {
            let mut buffer = vec![0; expected as usize];
            match file.read_at(&mut buffer, offset).unwrap_err() {
                Error::Truncated { path, offset: at, expected_bytes, found_bytes } => {
                    assert_eq!(path, directory.path().join("data"));
                    assert_eq!((at, expected_bytes, found_bytes), (offset, expected, found));
                }
                other => panic!("expected a truncated file, found {other:?}"),
            }
        }
        file.read_at(&mut [], 100).unwrap();
    });
}

#[test]
fn impossible_sizes_are_errors() {
    over_both(|directory| {
        let file = directory.create("data").unwrap();
        assert!(file.set_len(u64::MAX).is_err());
        assert!(file.allocate(u64::MAX - 5, 10).is_err());
        assert!(file.write_at(b"x", u64::MAX).is_err());
        assert_eq!(file.len().unwrap(), 0);
    });
}

#[test]
fn names_are_exchanged_and_directories_go_with_what_is_in_them() {
    over_both(|directory| {
        directory.create("file").unwrap();
        let inside = directory.subdirectory("directory").unwrap();
        inside.create("a").unwrap();
        inside.subdirectory("b").unwrap().create("c").unwrap();
        // Not every file system has a step for it.
        match directory.exchange("file", "directory") {
            Ok(()) => {
                assert!(directory.open("directory").unwrap().is_some());
                assert_eq!(directory.subdirectory("file").unwrap().list().unwrap(), ["a", "b"]);
                directory.exchange("file", "directory").unwrap();
            }
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
        assert!(directory.exchange("file", "missing").is_err());
        assert!(directory.remove_all("file").is_err(), "it is no directory");
        assert_eq!(
            kind(directory.remove_all("missing").unwrap_err()),
            std::io::ErrorKind::NotFound
        );
        // Windows removes no directory that is open.
        drop(inside);
        directory.remove_all("directory").unwrap();
        assert_eq!(directory.list().unwrap(), ["file"]);
    });
}

#[test]
fn names_come_and_go() {
    over_both(|directory| {
        directory.create("b").unwrap().write_at(b"b", 0).unwrap();
        let a = directory.create("a").unwrap();
        a.write_at(b"a", 0).unwrap();
        // Wine 8 replaces no file that is open.
        let a = Some(a).filter(|_| std::env::var_os("ADAMANT_WINE").is_none());
        assert_eq!(directory.list().unwrap(), ["a", "b"]);
        assert_eq!(kind(directory.create("a").unwrap_err()), std::io::ErrorKind::AlreadyExists);
        directory.rename("b", "a").unwrap();
        directory.sync().unwrap();
        assert_eq!(directory.list().unwrap(), ["a"]);
        assert_eq!(read(&directory.open("a").unwrap().unwrap(), 0, 1), b"b");
        if let Some(a) = a {
            assert_eq!(read(&a, 0, 1), b"a", "a replaced file lives on for who has it open");
        }
        directory.rename("a", "a").unwrap();
        directory.remove("a").unwrap();
        assert!(directory.list().unwrap().is_empty());
        assert_eq!(kind(directory.remove("a").unwrap_err()), std::io::ErrorKind::NotFound);
        assert_eq!(kind(directory.rename("a", "c").unwrap_err()), std::io::ErrorKind::NotFound);
    });
}

/// Something else may have a file open for a moment, which Wine does not replace then.
#[test]
#[cfg(windows)]
fn a_renaming_waits_for_what_has_the_name_open() {
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    ["a", "b"].into_iter().for_each(|name| drop(directory.create(name).unwrap()));
    let scanned = std::fs::File::open(folder.path().join("a")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(scanned);
        });
        directory.rename("b", "a").unwrap();
    });
    assert_eq!(directory.list().unwrap(), ["a"]);
}

#[test]
fn directories_within() {
    over_both(|directory| {
        let log = directory.subdirectory("log").unwrap();
        log.create("0001").unwrap().write_at(b"1", 0).unwrap();
        log.sync().unwrap();
        let again = directory.subdirectory("log").unwrap();
        assert_eq!(again.list().unwrap(), ["0001"]);
        assert_eq!(again.path(), directory.path().join("log"));
        assert_eq!(directory.list().unwrap(), ["log"]);
        assert_eq!(kind(directory.open("log").unwrap_err()), std::io::ErrorKind::IsADirectory);
        assert!(directory.remove("log").is_err());
        directory.create("file").unwrap();
        assert!(directory.subdirectory("file").is_err());
        assert!(directory.rename("file", "log").is_err());
        assert!(directory.rename("log", "file").is_err());
        if cfg!(windows) {
            // Which renames no directory that is open, and replaces none.
            return;
        }
        directory.subdirectory("empty").unwrap();
        assert!(directory.rename("empty", "log").is_err(), "the target is not empty");
        directory.rename("log", "empty").unwrap();
        assert_eq!(directory.list().unwrap(), ["empty", "file"]);
    });
}

#[test]
fn only_names_are_names() {
    over_both(|directory| {
        for name in ["", ".", "..", "a/b", "/", "a\0b"] {
            assert_eq!(kind(directory.create(name).unwrap_err()), std::io::ErrorKind::InvalidInput);
            assert!(directory.open(name).is_err());
            assert!(directory.rename(name, "x").is_err());
            assert!(directory.rename("x", name).is_err());
            assert!(directory.remove(name).is_err());
            assert!(directory.subdirectory(name).is_err());
            assert!(directory.lock(name).is_err());
        }
        assert!(directory.list().unwrap().is_empty());
    });
}

#[test]
fn a_private_image_never_reaches_the_file() {
    over_both(|directory| {
        let file = directory.create("pool").unwrap();
        let bytes: Vec<u8> = (0..3 * PAGE_BYTES).map(|n| (n / 256) as u8 + 1).collect();
        file.write_at(&bytes, 0).unwrap();
        let mut region = Region::reserve(1 << 30, 1 << 20).unwrap();
        let at = 5 * PAGE_BYTES;
        // SAFETY: no reference into the region exists.
        unsafe { file.map_private(&region, at, PAGE_BYTES, 2 * PAGE_BYTES) }.unwrap();
        let page = PAGE_BYTES as usize;
        assert_eq!(region_bytes(&mut region, at as usize, 2 * page), &bytes[page..]);
        region_bytes(&mut region, at as usize, 2 * page).fill(0xff);
        assert_eq!(read(&file, 0, 3 * page), bytes);
        file.sync().unwrap();
        drop(region);
        assert_eq!(read(&directory.open("pool").unwrap().unwrap(), 0, 3 * page), bytes);
    });
}

#[test]
fn an_image_needs_bytes_and_room() {
    over_both(|directory| {
        let file = directory.create("pool").unwrap();
        file.set_len(2 * PAGE_BYTES).unwrap();
        let region = Region::reserve(2 << 20, 2 << 20).unwrap();
        // SAFETY: no reference into the region exists, here and below.
        let short = unsafe { file.map_private(&region, 0, PAGE_BYTES, 2 * PAGE_BYTES) };
        assert!(matches!(short, Err(Error::Truncated { found_bytes: PAGE_BYTES, .. })));
        let end = region.bytes() - PAGE_BYTES;
        // SAFETY: as above.
        assert!(unsafe { file.map_private(&region, end, 0, 2 * PAGE_BYTES) }.is_err());
        // SAFETY: as above.
        unsafe { file.map_private(&region, 0, 0, 0) }.unwrap();
    });
}

#[test]
fn a_lock_is_for_one_handle() {
    over_both(|directory| {
        let lock = directory.lock("lock").unwrap();
        let me = format!("process {} (", std::process::id());
        match directory.lock("lock").unwrap_err() {
            Error::Locked { path, holder: Some(holder) } => {
                assert_eq!(path, directory.path().join("lock"));
                assert!(holder.starts_with(&me), "{holder}");
            }
            other => panic!("expected a lock held by us, found {other:?}"),
        }
        directory.lock("another").unwrap();
        drop(lock);
        directory.lock("lock").unwrap();
        assert_eq!(directory.list().unwrap(), ["another", "lock"]);
    });
}

#[test]
fn random_bytes_differ() {
    over_both(|directory| {
        let (mut one, mut two) = ([0; 1000], [0; 1000]);
        directory.random(&mut one).unwrap();
        directory.random(&mut two).unwrap();
        assert_ne!(one, two);
        assert_ne!(one[900..], [0; 100]);
    });
}

/// A file is a sequence of bytes with holes of zeros after any operations: both are compared with a
/// plain vector.
#[test]
fn files_are_vectors() {
    for seed in 0..20 {
        over_both(|directory| {
            let mut random = fastrand::Rng::with_seed(seed);
            let file = directory.create("data").unwrap();
            let mut model = Vec::new();
            for step in 0..200 {
                let offset = random.usize(..30_000);
                match random.u8(..4) {
                    0 => {
                        file.set_len(offset as u64).unwrap();
                        model.resize(offset, 0);
                    }
                    1 => {
                        let len = random.usize(1..9000);
                        file.allocate(offset as u64, len as u64).unwrap();
                        model.resize(model.len().max(offset + len), 0);
                    }
                    _ => {
                        let bytes = vec![random.u8(1..); random.usize(1..9000)];
                        file.write_at(&bytes, offset as u64).unwrap();
                        model.resize(model.len().max(offset + bytes.len()), 0);
                        model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                }
                assert_eq!(read(&file, 0, model.len()), model, "seed {seed}, step {step}");
                assert_eq!(file.len().unwrap(), model.len() as u64);
            }
            directory.remove("data").unwrap();
        });
    }
}

/// A regression: Linux takes any bytes as a name, but a listing dropped bytes that are no UTF-8, so
/// such a name could not be opened.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_text_are_names() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use adamant_medium::names::{name_of, text_of};

    let folder = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"caf\xe9");
    std::fs::write(folder.path().join(name), "coffee").unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    assert_eq!(directory.list().unwrap(), [text_of(name)]);
    let file = directory.open(&text_of(name)).unwrap().unwrap();
    assert_eq!((file.len().unwrap(), file.path()), (6, &*folder.path().join(name)));
    let other = text_of(OsStr::from_bytes(b"th\xe9")).into_owned();
    directory.rename(&text_of(name), &other).unwrap();
    let within = text_of(OsStr::from_bytes(b"\xff")).into_owned();
    let subdirectory = directory.subdirectory(&within).unwrap();
    assert_eq!(subdirectory.path(), folder.path().join(name_of(&within)));
    directory.exchange(&within, &other).or_else(|_| directory.rename(&other, "text")).unwrap();
    let there = [other.as_str(), &within, "text"].map(|name| folder.path().join(name_of(name)));
    assert!(there.iter().any(|path| path.is_dir()) && there.iter().any(|path| path.is_file()));
    let names = directory.list().unwrap();
    for (name, path) in names.iter().map(|name| (name, folder.path().join(name_of(name)))) {
        if path.is_dir() {
            directory.remove_all(name).unwrap();
        } else {
            directory.remove(name).unwrap();
        }
    }
    assert!(directory.list().unwrap().is_empty());
    // Neither a way out, nor a NUL.
    for name in ["a\u{0}2fb", "a\u{0}b", "\u{0}", "a\u{0}2e"] {
        assert_eq!(kind(directory.create(name).unwrap_err()), std::io::ErrorKind::InvalidInput);
    }
}
