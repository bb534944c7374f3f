//! Nodes of which something is missing, changed, or another's: each is an error that says so, and
//! nothing is lost by it.

use std::fs;
use std::path::Path;

use adamant::{Keyspace, Store};
use adamant_replica::{Error, Node};
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::{RaftLogReader, Vote};
use tempfile::TempDir;

use crate::support::{apply, entry, log_id, open, options, verify};

/// A node with 20 entries, of which 5 are purged and 12 applied; closed.
async fn node_on_disk() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node");
    let node = open(&path, 1);
    let mut log = node.log_store();
    log.save_vote(&Vote::new(1, 1)).await.unwrap();
    log.blocking_append((0..20).map(|index| entry(1, index))).await.unwrap();
    apply(&node, 0..12).await;
    log.purge(log_id(1, 4)).await.unwrap();
    node.close().unwrap();
    (folder, path)
}

fn open_error(path: &Path) -> Error {
    Node::open_with(path, 1, options()).unwrap_err()
}

/// Opens what damage was done to, and expects to be told.
fn expect_damage(path: &Path, words: &[&str]) {
    let error = open_error(path);
    assert!(error.is_damaged(), "{error:?}");
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} in: {text}");
}

fn change(path: &Path, store: &str, keyspace: &str, change: impl FnOnce(&Keyspace)) {
    let store = Store::open(path.join(store)).unwrap();
    change(&store.open_keyspace(keyspace).unwrap());
    store.close().unwrap();
}

fn flip(keyspace: &Keyspace, key: &[u8]) {
    let mut record = keyspace.get(key).unwrap().unwrap().to_vec();
    record[0] ^= 1;
    keyspace.put(key, record).unwrap();
}

#[tokio::test]
async fn a_store_that_is_missing_is_not_made_anew() {
    let (_folder, path) = node_on_disk().await;
    let aside = path.with_file_name("aside");
    for (name, words) in [("log", ["a store log"]), ("state-0001", ["a store state-0001"])] {
        fs::rename(path.join(name), &aside).unwrap();
        expect_damage(&path, &words);
        expect_damage(&path, &words);
        // An empty directory is none, either.
        fs::create_dir(path.join(name)).unwrap();
        expect_damage(&path, &["a store"]);
        fs::remove_dir_all(path.join(name)).unwrap();
        fs::rename(&aside, path.join(name)).unwrap();
    }
    assert_eq!(verify(&open(&path, 1)), Some(11));
}

#[tokio::test]
async fn records_that_are_missing_or_changed_are_named() {
    let meta = [("log", "meta"), ("state-0001", "\0replica")];
    let cases =
        [(meta[0], "identity"), (meta[0], "state"), (meta[1], "applied"), (meta[1], "membership")];
    for ((store, keyspace), key) in cases {
        let (_folder, path) = node_on_disk().await;
        change(&path, store, keyspace, |keyspace| flip(keyspace, key.as_bytes()));
        expect_damage(&path, &[key, "checksum"]);
        change(&path, store, keyspace, |keyspace| assert!(keyspace.remove(key).unwrap()));
        expect_damage(&path, &[key, "found none"]);
    }
    // These may be missing: then nothing was voted, or committed.
    for key in ["vote", "purged"] {
        let (_folder, path) = node_on_disk().await;
        change(&path, "log", "meta", |meta| flip(meta, key.as_bytes()));
        expect_damage(&path, &[key, "checksum"]);
    }
}

#[tokio::test]
async fn a_log_with_a_hole_is_not_opened_and_a_changed_entry_not_read() {
    let (_folder, path) = node_on_disk().await;
    let key = |index: u8| [0, 0, 0, 0, 0, 0, 0, index];
    change(&path, "log", "entries", |entries| flip(entries, &key(9)));
    let node = open(&path, 1);
    let mut log = node.log_store();
    assert_eq!(log.try_get_log_entries(5..9).await.unwrap().len(), 4);
    let error = log.try_get_log_entries(5..10).await.unwrap_err().to_string();
    assert!(error.contains("entry 9 of the raft log") && error.contains("checksum"), "{error}");
    node.close().unwrap();
    drop((node, log));

    change(&path, "log", "entries", |entries| assert!(entries.remove(key(9)).unwrap()));
    expect_damage(&path, &["15 entries from 5 to 19", "found 14"]);
    change(&path, "log", "entries", |entries| entries.delete_range(..key(10)).unwrap());
    expect_damage(&path, &["15 entries from 5 to 19", "the first of them 10"]);
    change(&path, "log", "entries", |entries| entries.put(b"short", b"").unwrap());
    expect_damage(&path, &["a key of 8 bytes"]);
}

#[tokio::test]
async fn what_is_no_node_or_another_one_stays_as_it_is() {
    let (folder, path) = node_on_disk().await;
    let error = Node::open_with(&path, 2, options()).unwrap_err();
    assert!(matches!(error, Error::OtherNode { expected: 2, found: 1, .. }), "{error}");
    assert!(matches!(open_error(&path.join("..")), Error::NotANode { .. }));

    let (store, file, empty) =
        (folder.path().join("store"), folder.path().join("file"), folder.path().join("empty"));
    Store::open(&store).unwrap().keyspace("towns").unwrap();
    fs::write(&file, "some other file").unwrap();
    fs::create_dir(&empty).unwrap();
    assert!(matches!(open_error(&store), Error::NotANode { .. }));
    assert!(matches!(open_error(&empty), Error::NotANode { .. }));
    assert!(matches!(open_error(&file), Error::Store(_)));
    assert!(Store::open(&store).unwrap().open_keyspace("towns").is_ok());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
}

#[tokio::test]
async fn a_node_is_opened_once() {
    let (_folder, path) = node_on_disk().await;
    let node = open(&path, 1);
    let error = open_error(&path);
    assert!(matches!(error, Error::Store(adamant::Error::Locked { .. })), "{error}");
    drop(node);
    assert_eq!(verify(&open(&path, 1)), Some(11));
}
