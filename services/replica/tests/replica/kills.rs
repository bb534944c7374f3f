//! A node is killed at any moment, again and again: between an append and what is applied of it,
//! while a snapshot is built or installed, while the log is purged.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use adamant_replica::Node;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{RaftLogReader, RaftSnapshotBuilder};

use crate::support::{apply, entry, log_id, open, verify};

const ROUNDS: u32 = 12;
const NAME: &str =
    "kills::a_node_that_is_killed_has_what_it_acknowledged_and_applies_nothing_twice";
const CHILD: &str = "ADAMANT_REPLICA_CHILD";

/// How far a node is: the next entry to append, and the next to apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Far {
    appended: u64,
    applied: u64,
}

async fn far(node: &Node) -> Far {
    let last = node.log_store().get_log_state().await.unwrap().last_log_id;
    let next = |index: Option<u64>| index.map_or(0, |index| index + 1);
    let applied = next(node.state().applied_index());
    Far { appended: next(last.map(|log_id| log_id.index)), applied }
}

/// Does what openraft does, until it is killed.
async fn child(path: &Path) {
    let node = open(path, 1);
    let mut random = fastrand::Rng::new();
    let (mut log, mut machine) = (node.log_store(), node.state_machine());
    let Far { mut appended, mut applied } = far(&node).await;
    let mut stdout = std::io::stdout();
    loop {
        let count = random.u64(1..6);
        let entries = (appended..appended + count).map(|index| entry(1, index));
        log.blocking_append(entries).await.unwrap();
        appended += count;
        writeln!(stdout, "appended {appended}").unwrap();
        let next = random.u64(applied..=appended);
        if next > applied {
            log.save_committed(Some(log_id(1, next - 1))).await.unwrap();
            apply(&node, applied..next).await;
            applied = next;
            writeln!(stdout, "applied {applied}").unwrap();
        }
        if random.u8(..20) == 0 {
            let mut builder = machine.get_snapshot_builder().await;
            let built = builder.build_snapshot().await.unwrap();
            if let Some(last) = built.meta.last_log_id {
                log.purge(last).await.unwrap();
            }
            machine.install_snapshot(&built.meta, built.snapshot).await.unwrap();
        }
    }
}

/// Lets a child go on for some time from its first line on; what it said last.
fn kill_after(path: &Path, delay: Duration) -> Far {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(CHILD, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut far = Far::default();
    let mut is_killed = false;
    // What is still in the pipe was said before the kill.
    while let Some(Ok(line)) = lines.next() {
        match line.split_once(' ') {
            Some(("appended", number)) => far.appended = number.parse().unwrap_or(far.appended),
            Some(("applied", number)) => far.applied = number.parse().unwrap_or(far.applied),
            _ => continue,
        }
        if !is_killed {
            std::thread::sleep(delay);
            child.kill().unwrap();
            is_killed = true;
        }
    }
    let status = child.wait().unwrap();
    assert!(is_killed && status.code().is_none(), "the child ended by itself: {status}");
    far
}

#[tokio::test]
async fn a_node_that_is_killed_has_what_it_acknowledged_and_applies_nothing_twice() {
    if let Some(path) = std::env::var_os(CHILD) {
        return child(Path::new(&path)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node");
    for round in 0..ROUNDS {
        let said = kill_after(&path, Duration::from_millis(u64::from(round * 37 % 200)));
        let node = open(&path, 1);
        let found = far(&node).await;
        assert!(found.appended >= said.appended, "round {round}: {said:?} said, {found:?} found");
        // A kill takes nothing of what was applied, though nobody waited for it.
        assert!(found.applied >= said.applied, "round {round}: {said:?} said, {found:?} found");
        assert_eq!(verify(&node).map_or(0, |applied| applied + 1), found.applied);
        // The rest is in the log, as when a node starts, and does what it should.
        let mut log = node.log_store();
        let rest = log.try_get_log_entries(found.applied..found.appended).await.unwrap();
        assert_eq!(rest.len() as u64, found.appended - found.applied, "round {round}: {found:?}");
        node.state_machine().apply(rest).await.unwrap();
        verify(&node);
        if round % 3 > 0 {
            node.close().unwrap();
        }
    }
}
