//! Folders of persistent savepoints that are not what they were: of another store, old, or not to
//! be read. A savepoint shows its moment then, or an error; and the store goes on.

use std::path::Path;

use adamant::{Durability, Error, Options, SavepointState, Store};

fn options() -> Options {
    Options::new().durability(Durability::Buffered).log_bytes_max(4 << 20)
}

fn open(path: &Path) -> Store {
    Store::open_with(path, options()).unwrap()
}

fn fill(store: &Store, byte: u8) {
    let data = store.keyspace("data").unwrap();
    data.extend((0..500).map(|number| (format!("{number:05}"), vec![byte; 300]))).unwrap();
}

/// The byte that all values have.
#[track_caller]
fn byte_of(store: &Store) -> Result<u8, Error> {
    let mut found = None;
    for entry in store.open_keyspace("data")?.iter() {
        let (_, value) = entry?;
        let first = *found.get_or_insert(value[0]);
        assert!(value == [first; 300][..], "of one moment");
    }
    Ok(found.expect("entries"))
}

fn states(store: &Store) -> Vec<SavepointState> {
    store.savepoints().unwrap().into_iter().map(|savepoint| savepoint.state).collect()
}

#[test]
fn savepoints_of_another_store_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| directory.path().join(name));
    for (byte, path) in (1..).zip(&paths) {
        let store = open(path);
        fill(&store, byte);
        store.create_savepoint("one").unwrap();
        fill(&store, byte + 10);
        store.close().unwrap();
    }
    let [one, two] = [0, 1].map(|index| paths[index].join("savepoints"));
    let between = directory.path().join("between");
    for (from, to) in [(&one, &between), (&two, &one), (&between, &two)] {
        std::fs::rename(from, to).unwrap();
    }
    for (byte, path) in (11..).zip(&paths) {
        let gone_back = adamant::go_back_with(path, "one", options());
        assert!(matches!(gone_back, Err(Error::UnknownSavepoint { .. })), "{gone_back:?}");
        let store = open(path);
        assert_eq!(byte_of(&store).unwrap(), byte);
        assert!(store.open_savepoint("one").is_err());
        assert_eq!(states(&store), [SavepointState::Damaged]);
        // One of its own beside it.
        store.create_savepoint("own").unwrap();
        fill(&store, 30);
        assert_eq!(byte_of(&store.open_savepoint("own").unwrap()).unwrap(), byte);
        let name = store.savepoints().unwrap()[0].name.clone();
        assert!(store.delete_savepoint(&name).unwrap());
        assert_eq!(states(&store), [SavepointState::Whole]);
        assert_eq!(byte_of(&store.open_savepoint("own").unwrap()).unwrap(), byte);
    }
}

/// A file that the system cannot read: here, because it is a folder.
#[test]
fn a_file_that_cannot_be_read_does_not_stop_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let hidden = directory.path().join("hidden");
    let store = open(&path);
    fill(&store, 1);
    store.create_savepoint("one").unwrap();
    fill(&store, 2);
    store.close().unwrap();
    let files = || {
        let files = path.join("savepoints").read_dir().unwrap();
        files.map(|file| file.unwrap().path()).collect::<std::collections::BTreeSet<_>>()
    };
    let count = files().len();
    assert!(count >= 2, "a savepoint and its pages");
    for (byte, number) in (3..).zip(0..count) {
        let file = files().into_iter().nth(number).unwrap();
        std::fs::rename(&file, &hidden).unwrap();
        std::fs::create_dir(&file).unwrap();
        let store = open(&path);
        assert!(store.open_savepoint("one").is_err());
        assert_eq!(states(&store).len(), 1);
        fill(&store, byte);
        store.shrink().unwrap();
        assert_eq!(byte_of(&store).unwrap(), byte);
        store.close().unwrap();
        // It can be read again, and nothing of it was lost meanwhile.
        let mut names = path.join("savepoints").read_dir().unwrap().map(|it| it.unwrap().path());
        // The newest file of pages got another name.
        let name = names.find(|name| name.is_dir()).unwrap();
        std::fs::remove_dir(&name).unwrap();
        std::fs::rename(&hidden, &name).unwrap();
        let store = open(&path);
        assert_eq!(byte_of(&store.open_savepoint("one").unwrap()).unwrap(), 1);
        store.close().unwrap();
    }
}

/// The only savepoint of a closed store, as its file.
fn only_savepoint(path: &Path) -> std::path::PathBuf {
    let mut files = path.join("savepoints").read_dir().unwrap().map(|it| it.unwrap().path());
    files.find(|file| file.extension().is_some_and(|it| it == "savepoint")).unwrap()
}

/// One that cannot be read has no name that could be taken: it is told from another one of that
/// name when it can be read again.
#[test]
fn two_savepoints_of_one_name_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    fill(&store, 1);
    store.create_savepoint("one").unwrap();
    fill(&store, 2);
    store.close().unwrap();
    let file = only_savepoint(&path);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 4096]).unwrap();

    let store = open(&path);
    assert_eq!(states(&store), [SavepointState::Damaged]);
    let findings = store.check().unwrap().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].to_string().contains("this savepoint cannot be read"), "{findings:?}");
    store.create_savepoint("one").unwrap();
    fill(&store, 3);
    store.close().unwrap();
    std::fs::write(&file, &bytes).unwrap();

    let store = open(&path);
    assert!(store.check().unwrap().is_clean());
    assert_eq!(states(&store), [SavepointState::Whole; 2]);
    let names: Vec<String> = store.savepoints().unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, [file.file_name().unwrap().to_str().unwrap(), "one"]);
    for (name, byte) in names.iter().zip(1..) {
        assert_eq!(byte_of(&store.open_savepoint(name).unwrap()).unwrap(), byte);
    }
    assert!(store.delete_savepoint("one").unwrap());
    store.close().unwrap();
    // Its own name again, as it is the only one.
    adamant::go_back_with(&path, "one", options()).unwrap();
    assert_eq!(byte_of(&open(&path)).unwrap(), 1);
}

/// What a later format needs to have kept is not known, so the store is not written; reading it,
/// and the other savepoints, takes nothing from it.
#[test]
fn a_savepoint_of_a_later_format_is_not_written_past() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    fill(&store, 1);
    store.create_savepoint("one").unwrap();
    store.close().unwrap();
    let file = only_savepoint(&path);
    let store = open(&path);
    fill(&store, 2);
    store.create_savepoint("two").unwrap();
    fill(&store, 3);
    store.close().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let mut later = bytes.clone();
    later[8] += 1;
    let checksum = adamant_wire::checksum::crc32c(0, &later[..76]);
    later[76..80].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&file, &later).unwrap();

    for error in [
        Store::open_with(&path, options()).unwrap_err(),
        adamant::go_back_with(&path, "two", options()).unwrap_err(),
    ] {
        assert!(error.is_unsupported(), "{error}");
        assert!(error.to_string().contains("open the store for reading only"), "{error}");
    }
    let store = Store::open_read_only(&path).unwrap();
    assert_eq!(byte_of(&store).unwrap(), 3);
    assert_eq!(states(&store), [SavepointState::Damaged, SavepointState::Whole]);
    assert_eq!(byte_of(&store.open_savepoint("two").unwrap()).unwrap(), 2);
    let findings = store.check().unwrap().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].to_string().contains("found format 2"), "{findings:?}");
    let copy = directory.path().join("copy");
    store.backup(&copy).unwrap();
    assert_eq!(byte_of(&open(&copy)).unwrap(), 3);
    drop(store);
    std::fs::write(&file, &bytes).unwrap();
    let store = open(&path);
    assert_eq!(byte_of(&store.open_savepoint("one").unwrap()).unwrap(), 1);
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    for entry in from.read_dir().unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The folder as it was earlier, or later, than the rest of the store, and none.
#[test]
fn a_folder_of_another_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let folder = path.join("savepoints");
    let mut random = fastrand::Rng::with_seed(1);
    let [mut right, mut refused] = [0; 2];
    let store = open(&path);
    fill(&store, 1);
    store.close().unwrap();
    let saved = |step: usize| directory.path().join(format!("{step}"));
    let mut made: Vec<(String, u8)> = Vec::new();
    for step in 1..40_usize {
        let store = open(&path);
        if step % 3 == 1 {
            let name = format!("{step}");
            made.push((name.clone(), byte_of(&store).unwrap()));
            store.create_savepoint(&name).unwrap();
            copy(&folder, &saved(step));
        }
        // Some pages, so that each savepoint lacks others.
        let data = store.keyspace("data").unwrap();
        let byte = step as u8 + 1;
        match step % 2 {
            0 => fill(&store, byte),
            _ => data.put("00000", [byte_of(&store).unwrap(); 300]).unwrap(),
        }
        store.shrink().unwrap();
        store.close().unwrap();
        if step % 3 != 1 {
            copy(&folder, &saved(step));
        }
        if step > 4 && random.bool() {
            copy(&saved(random.usize(step / 2..step)), &folder);
        }
        let store = open(&path);
        let last = byte_of(&store).unwrap();
        for savepoint in store.savepoints().unwrap() {
            let (_, byte) = made.iter().find(|(name, _)| *name == savepoint.name).unwrap();
            match store.open_savepoint(&savepoint.name).and_then(|one| byte_of(&one)) {
                Ok(found) => {
                    assert_eq!(found, *byte, "step {step}: {}", savepoint.name);
                    right += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert_eq!(byte_of(&store).unwrap(), last);
        assert!(store.check().unwrap().is_clean(), "step {step}");
        store.close().unwrap();
    }
    println!("folders of another time: {right} savepoints right, {refused} refused");
    assert!(right > 20 && refused > 5, "{right} right, {refused} refused");
}
