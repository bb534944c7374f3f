//! Links of a chain that are missing, changed or something else, and targets that are none.

use std::fs;
use std::path::{Path, PathBuf};

use adamant::{Error, Store, restore};
use tempfile::TempDir;

use crate::backup_since::support::{Work, read, show};

/// A full backup `0` and increments `1`, `2`, `3`, each on the one before.
fn chain() -> (TempDir, Work, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().to_path_buf();
    let path = move |name: &str| base.join(name);
    let mut work = Work::new(&path("store"), 21);
    (0..60).for_each(|_| work.step());
    work.store().backup(path("0")).unwrap();
    for moment in 1..4 {
        (0..20).for_each(|_| work.step());
        let (parent, name) = ((moment - 1).to_string(), moment.to_string());
        work.store().backup_since(path(&parent), path(&name)).unwrap();
    }
    (folder, work, path)
}

/// All that needs the chain refuses it, with the same error; returns that.
fn refused(work: &Work, newest: &Path) -> Error {
    let folder = newest.parent().unwrap();
    let opened = Store::open_read_only(newest).unwrap_err();
    let restored = restore(newest, folder.join("restored")).unwrap_err();
    let made = work.store().backup_since(newest, folder.join("new")).unwrap_err();
    assert_eq!(opened.to_string(), restored.to_string());
    assert_eq!(opened.to_string(), made.to_string());
    for name in ["restored", "restored.restoring", "new", "new.backing-up"] {
        assert!(!folder.join(name).exists(), "{name}");
    }
    opened
}

#[test]
fn a_missing_link_is_refused_by_its_name() {
    for missing in ["0", "1", "2"] {
        let (_folder, work, path) = chain();
        fs::rename(path(missing), path("elsewhere")).unwrap();
        let error = refused(&work, &path("3"));
        let next = (missing.parse::<u32>().unwrap() + 1).to_string();
        match &error {
            Error::MissingLink { path: found, needed_by } => {
                assert_eq!(
                    (found.file_name(), needed_by.file_name()),
                    (path(missing).file_name(), path(&next).file_name())
                );
            }
            other => panic!("{other}"),
        }
        assert!(error.to_string().contains(path(missing).to_str().unwrap()), "{error}");
        fs::rename(path("elsewhere"), path(missing)).unwrap();
        show(&read(&path("3")), &work.models);
        fs::remove_dir_all(path(missing)).unwrap();
        fs::create_dir(path(missing)).unwrap();
        assert!(matches!(refused(&work, &path("3")), Error::WrongLink { .. }));
        fs::remove_dir(path(missing)).unwrap();
        fs::write(path(missing), "some file").unwrap();
        let error = refused(&work, &path("3"));
        assert!(matches!(&error, Error::WrongLink { found, .. } if found == "a file"), "{error}");
    }
}

#[test]
fn a_link_of_another_chain_is_refused() {
    let (_folder, work, path) = chain();
    let (_other_folder, _, other) = chain();
    for link in ["0", "1", "2"] {
        let kept = path("kept");
        fs::rename(path(link), &kept).unwrap();
        fs::rename(other(link), path(link)).unwrap();
        let error = refused(&work, &path("3"));
        assert!(matches!(error, Error::WrongLink { .. }), "{error}");
        assert!(error.is_unsupported() && !error.is_damaged(), "{error}");
        fs::remove_dir_all(path(link)).unwrap();
        fs::rename(kept, path(link)).unwrap();
    }
    // Their names exchanged.
    fs::rename(path("1"), path("kept")).unwrap();
    fs::rename(path("2"), path("1")).unwrap();
    fs::rename(path("kept"), path("2")).unwrap();
    assert!(matches!(refused(&work, &path("3")), Error::WrongLink { .. }));
}

#[test]
fn a_full_backup_that_was_written_is_refused() {
    let (_folder, work, path) = chain();
    let store = Store::open(path("0")).unwrap();
    let error = refused(&work, &path("3"));
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    store.keyspace("bplus").unwrap().put("one", "more").unwrap();
    store.close().unwrap();
    let error = refused(&work, &path("3"));
    assert!(matches!(error, Error::WrongLink { .. }), "{error}");
    assert!(error.to_string().contains(path("1").to_str().unwrap()), "{error}");
    // As a parent it is one of what it is now.
    work.store().backup_since(path("0"), path("again")).unwrap();
    show(&read(&path("again")), &work.models);
}

/// Readers change nothing, and a link may be read while its children are made and read.
#[test]
fn a_link_that_is_read_stays_one() {
    let (_folder, work, path) = chain();
    let readers = ["0", "1", "2"].map(|name| read(&path(name)));
    show(&read(&path("3")), &work.models);
    work.store().backup_since(path("3"), path("4")).unwrap();
    drop(readers);
    show(&Store::open_beside(path("4")).unwrap(), &work.models);
    // A store that was closed holds no link, even while handles of it are left.
    let store = read(&path("4"));
    let keyspace = store.open_keyspace("bplus").unwrap();
    assert!(matches!(Store::open(path("0")), Err(Error::Locked { .. })));
    store.close().unwrap();
    Store::open(path("0")).unwrap().close().unwrap();
    assert!(matches!(keyspace.get("a"), Err(Error::Closed)));
}

#[test]
fn an_increment_is_not_written() {
    let (_folder, work, path) = chain();
    let before = fs::read(path("2").join("increment")).unwrap();
    let error = Store::open(path("2")).unwrap_err();
    assert!(matches!(error, Error::Increment { .. }) && error.is_unsupported(), "{error}");
    assert!(error.to_string().contains("restore"), "{error}");
    for error in [adamant::compact(path("2")).map(drop), adamant::repair(path("2")).map(drop)] {
        assert!(matches!(error, Err(Error::Increment { .. })), "{error:?}");
    }
    assert_eq!(fs::read(path("2").join("increment")).unwrap(), before);
    show(&read(&path("3")), &work.models);
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn what_is_no_parent_is_refused() {
    let (_folder, work, path) = chain();
    let store = work.store();
    let since =
        |parent: &str, target: &str| store.backup_since(path(parent), path(target)).unwrap_err();
    fs::write(path("file"), "some file").unwrap();
    fs::create_dir(path("folder")).unwrap();
    for parent in ["file", "folder", "store"] {
        let error = since(parent, "new");
        assert!(matches!(error, Error::NotAParent { .. }), "{error}");
    }
    let read_only = read(&path("3"));
    let itself = read_only.backup_since(path("3"), path("new")).unwrap_err();
    assert!(matches!(itself, Error::NotAParent { .. }), "{itself}");
    assert!(matches!(since("nothing", "new"), Error::Missing { .. }));
    assert!(matches!(since("3", "folder/new"), Error::NotAParent { .. }));
    assert!(matches!(since("3", "2"), Error::TargetExists { .. }));
    assert!(matches!(since("3", "3"), Error::TargetExists { .. }));
    assert!(matches!(since("3", "file"), Error::TargetExists { .. }));
    assert!(matches!(since("3", "store/new"), Error::TargetInside { .. }));
    assert!(matches!(since("3", "nowhere/new"), Error::Missing { .. }));
    assert!(!path("new").exists() && !path("new.backing-up").exists());

    // What a killed one left is the next one's to remove.
    fs::create_dir_all(path("new.backing-up").join("tables")).unwrap();
    fs::write(path("new.backing-up").join("increment"), "a part").unwrap();
    let error = Store::open_read_only(path("new.backing-up")).unwrap_err();
    assert!(error.is_damaged(), "{error}");
    store.backup_since(path("3"), path("new")).unwrap();
    assert!(!path("new.backing-up").exists());
    show(&read(&path("new")), &work.models);
}

/// Paths that lead to the same place by another way.
#[test]
fn links_of_the_file_system_are_followed() {
    let (_folder, work, path) = chain();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(path("3"), path("newest")).unwrap();
        show(&read(&path("newest")), &work.models);
    }
    show(&read(&path("store/../3")), &work.models);
    work.store().backup_since(path("store/../3"), path("2/../4")).unwrap();
    show(&read(&path("4")), &work.models);
}
