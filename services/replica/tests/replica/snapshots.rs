//! Snapshots: built beside changes, installed twice, and those that are not what they should be.

use std::fs;
use std::path::Path;

use adamant_replica::{Node, Types};
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{RaftSnapshotBuilder, Snapshot};
use tokio::io::AsyncWriteExt;

use crate::support::{apply, entry, log_id, open, verify};

/// The stores of state machines of a node, and what is in the directory of its snapshots.
fn names(path: &Path) -> (Vec<String>, Vec<String>) {
    let list = |path: &Path| {
        let names = fs::read_dir(path).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != "log" && name != "snapshots").collect();
        names.sort();
        names
    };
    (list(path), list(&path.join("snapshots")))
}

async fn build(node: &Node) -> Snapshot<Types> {
    node.state_machine().get_snapshot_builder().await.build_snapshot().await.unwrap()
}

/// Sends a snapshot as openraft does, in chunks, or a beginning of it.
async fn send(bytes: &[u8], node: &Node, snapshot: &Snapshot<Types>) -> Result<(), String> {
    let mut machine = node.state_machine();
    let mut received = machine.begin_receiving_snapshot().await.unwrap();
    for chunk in bytes.chunks(100_000) {
        received.write_all(chunk).await.unwrap();
    }
    received.shutdown().await.unwrap();
    let installed = machine.install_snapshot(&snapshot.meta, received).await;
    installed.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_snapshot_installed_twice_is_the_same_state_and_leaves_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let (ahead, path) = (open(&folder.path().join("ahead"), 1), folder.path().join("behind"));
    apply(&ahead, 0..100).await;
    let snapshot = build(&ahead).await;
    let bytes = fs::read(folder.path().join("ahead/snapshots/current")).unwrap();
    apply(&ahead, 100..120).await;
    let mut behind = open(&path, 2);
    apply(&behind, 0..7).await;
    for number in 2..5 {
        // Who reads of the old one goes on reading of it.
        let before = behind.state();
        let applied = before.applied_index();
        send(&bytes, &behind, &snapshot).await.unwrap();
        assert_eq!(verify(&behind), Some(99));
        assert_eq!(before.applied_index(), applied);
        assert!(before.get("data", "key 001").is_ok());
        drop(before);
        let current = behind.state_machine().get_current_snapshot().await.unwrap().unwrap();
        assert_eq!(current.meta, snapshot.meta);
        if number == 3 {
            behind.close().unwrap();
            drop(behind);
            behind = open(&path, 2);
            assert_eq!(verify(&behind), Some(99));
        }
    }
    apply(&behind, 100..130).await;
    assert_eq!(verify(&behind), Some(129));
    behind.close().unwrap();
    drop(behind);
    let behind = open(&path, 2);
    assert_eq!(verify(&behind), Some(129));
    assert_eq!(names(&path), (vec!["state-0004".into()], vec!["current".into()]));
}

#[tokio::test]
async fn half_a_snapshot_and_another_ones_are_refused_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (ahead, path) = (open(&folder.path().join("ahead"), 1), folder.path().join("behind"));
    apply(&ahead, 0..50).await;
    let other = build(&ahead).await;
    apply(&ahead, 50..60).await;
    let snapshot = build(&ahead).await;
    let bytes = fs::read(folder.path().join("ahead/snapshots/current")).unwrap();
    let behind = open(&path, 2);
    apply(&behind, 0..7).await;
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    let bad = [
        (&bytes[..0], &snapshot, "the end of the file"),
        (&bytes[..bytes.len() / 2], &snapshot, "the end of the file"),
        (&bytes[..bytes.len() - 1], &snapshot, "the end of the file"),
        (&changed, &snapshot, "checksum"),
        (&bytes, &other, "last_log_id"),
        (b"something else altogether", &snapshot, "begins"),
    ];
    for (bytes, announced, words) in bad {
        let error = send(bytes, &behind, announced).await.unwrap_err();
        assert!(error.contains(words), "{words} in: {error}");
        assert_eq!(verify(&behind), Some(6));
        assert_eq!(names(&path), (vec!["state-0001".into()], vec![]));
    }
    apply(&behind, 7..9).await;
    send(&bytes, &behind, &snapshot).await.unwrap();
    assert_eq!(verify(&behind), Some(59));
}

/// A crash between the steps of an installation, by hand; `power_cuts` has them all.
#[tokio::test]
async fn what_interrupted_work_leaves_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node");
    let node = open(&path, 1);
    apply(&node, 0..9).await;
    build(&node).await;
    node.close().unwrap();
    drop(node);
    // Of the next state machine a store without a pool, of a copy and of the snapshots something.
    for name in ["state-0002/log", "building/tables"] {
        fs::create_dir_all(path.join(name)).unwrap();
        fs::write(path.join(name).join("0001"), "unfinished").unwrap();
    }
    for name in ["built", "installed", "received"] {
        fs::write(path.join("snapshots").join(name), "unfinished").unwrap();
    }
    // And a node whose creation was cut short.
    fs::create_dir_all(folder.path().join("new.creating/log")).unwrap();
    let node = open(&path, 1);
    assert_eq!(verify(&node), Some(8));
    assert_eq!(names(&path), (vec!["state-0001".into()], vec!["current".into()]));
    assert_eq!(verify(&open(&folder.path().join("new"), 2)), None);
    assert!(!folder.path().join("new.creating").exists());
}

#[tokio::test]
async fn a_snapshot_that_the_log_has_left_behind_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node");
    let node = open(&path, 1);
    let mut log = node.log_store();
    log.blocking_append((0..40).map(|index| entry(1, index))).await.unwrap();
    apply(&node, 0..20).await;
    build(&node).await;
    apply(&node, 20..40).await;
    let mut machine = node.state_machine();
    log.purge(log_id(1, 19)).await.unwrap();
    assert!(machine.get_current_snapshot().await.unwrap().is_some());
    log.purge(log_id(1, 20)).await.unwrap();
    assert!(machine.get_current_snapshot().await.unwrap().is_none());
    build(&node).await;
    let current = machine.get_current_snapshot().await.unwrap().unwrap();
    assert_eq!(current.meta.last_log_id, Some(log_id(1, 39)));
    // One that cannot be read is none, either.
    fs::write(path.join("snapshots/current"), "something else").unwrap();
    assert!(machine.get_current_snapshot().await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_are_built_while_entries_are_applied() {
    let folder = tempfile::tempdir().unwrap();
    let (ahead, behind) =
        (open(&folder.path().join("ahead"), 1), open(&folder.path().join("behind"), 2));
    let applying = tokio::spawn({
        let ahead = ahead.clone();
        async move {
            for index in 0..600 {
                apply(&ahead, index..index + 1).await;
            }
        }
    });
    for _ in 0..3 {
        let snapshot = build(&ahead).await;
        let last = snapshot.meta.last_log_id.map(|log_id| log_id.index);
        let bytes = fs::read(folder.path().join("ahead/snapshots/current")).unwrap();
        send(&bytes, &behind, &snapshot).await.unwrap();
        assert_eq!(verify(&behind), last);
    }
    applying.await.unwrap();
    assert_eq!(verify(&ahead), Some(599));
}
