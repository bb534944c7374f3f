//! Power cuts of a node, at every few operations.
//!
//! Everything acknowledged is there; the applied state is exactly that of the entries up to its
//! number; the log has all later entries; and a snapshot is installed as a whole, or not at all.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use adamant::{Directory, Engine, KeyspaceOptions, Options};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, Promise, SimDirectory, SimDisk, Tally};
use openraft::{CommittedLeaderId, EntryPayload};

use crate::error::{Error, Result};
use crate::node::{Node, NodeOptions};
use crate::request::{Change, Request};
use crate::types::{Entry, LogId, Vote};

const NODE: &str = "node";
const NODE_ID: u64 = 7;
const KEYSPACE: &str = "data";
const LAST: &str = "last";
const TABLES: &str = "tables";

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> NodeOptions {
    let options = Options::new().log_bytes_max(4 << 20).background(false);
    NodeOptions::new().log(options.clone()).state(options)
}

fn open(disk: &SimDisk, snapshots: &Path) -> Result<Node> {
    let root: Arc<dyn Directory> = Arc::new(SimDirectory::root(disk));
    Node::open_in(&root, NODE, snapshots.into(), NODE_ID, options())
}

fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(CommittedLeaderId::new(term, NODE_ID), index)
}

/// An entry that puts one key, removes another, and records its number in another keyspace.
fn entry(term: u64, index: u64) -> Entry {
    let (key, other) = keys(index);
    let changes = [
        Change::Put { keyspace: KEYSPACE.into(), key, value: value(index) },
        Change::Delete { keyspace: KEYSPACE.into(), key: other },
        Change::Put { keyspace: LAST.into(), key: LAST.into(), value: value(index) },
    ];
    let request = Request::new(changes).unwrap();
    Entry { log_id: log_id(term, index), payload: EntryPayload::Normal(request) }
}

fn keys(index: u64) -> (Vec<u8>, Vec<u8>) {
    (vec![1 + (index % 5) as u8], vec![1 + (index * 3 % 7) as u8])
}

fn value(index: u64) -> Vec<u8> {
    index.to_string().repeat(20).into_bytes()
}

/// The content after the entries up to a number.
fn content_at(applied: Option<u64>) -> Content {
    let mut content = Content::new();
    for index in 0..applied.map_or(0, |applied| applied + 1) {
        let (key, other) = keys(index);
        content.insert(key, value(index));
        content.remove(&other);
    }
    content
}

/// Verifies the state; returns how far it is.
fn verify_state(node: &Node) -> Option<u64> {
    let state = node.state();
    let applied = state.applied_index();
    let mut content = Content::new();
    for pair in state.range(KEYSPACE, ..).unwrap() {
        let (key, value) = pair.unwrap();
        content.insert(key.to_vec(), value.to_vec());
    }
    assert_eq!(content, content_at(applied), "applied {applied:?}");
    let last = state.get(LAST, LAST).unwrap();
    assert_eq!(last.as_deref(), applied.map(value).as_deref());
    applied
}

/// A step of a node's history.
#[derive(Clone, Copy, Debug)]
enum Step {
    Vote(u64),
    /// This many entries after the last one, of a term.
    Append(u64, u64),
    /// All entries from this one on are removed.
    Truncate(u64),
    /// Entries up to this one are applied.
    Apply(u64),
    Purge(u64),
}

const STEPS: [Step; 16] = [
    Step::Vote(1),
    Step::Append(1, 3),
    Step::Append(1, 5),
    Step::Apply(2),
    Step::Apply(5),
    Step::Vote(2),
    Step::Truncate(6),
    Step::Append(2, 4),
    Step::Purge(4),
    Step::Apply(8),
    Step::Append(2, 6),
    Step::Apply(11),
    Step::Purge(9),
    Step::Vote(3),
    Step::Truncate(14),
    Step::Append(3, 3),
];

/// The expected state after some of the steps.
#[derive(Clone, Debug, Default)]
struct Model {
    term: u64,
    /// Terms of all entries that ever existed, by index.
    terms: Vec<u64>,
    applied: Option<u64>,
    purged: Option<u64>,
}

impl Model {
    fn after(steps: &[Step]) -> Self {
        let mut model = Self::default();
        for &step in steps {
            match step {
                Step::Vote(term) => model.term = term,
                Step::Append(term, count) => model.terms.extend((0..count).map(|_| term)),
                Step::Truncate(index) => model.terms.truncate(index as usize),
                Step::Apply(index) => model.applied = Some(index),
                Step::Purge(index) => model.purged = Some(index),
            }
        }
        model
    }
}

fn run(node: &Node, model: &Model, step: Step) {
    let log = node.log();
    let entry_at = |index: u64| entry(model.terms[index as usize], index);
    match step {
        Step::Vote(term) => log.save_vote(&Vote::new(term, NODE_ID)).unwrap(),
        Step::Append(term, count) => {
            let first = model.terms.len() as u64;
            let entries: Vec<_> = (first..first + count).map(|index| entry(term, index)).collect();
            log.append(&entries).unwrap();
        }
        Step::Truncate(index) => log.truncate(index).unwrap(),
        Step::Apply(last) => {
            let first = model.applied.map_or(0, |applied| applied + 1);
            let entries: Vec<_> = (first..=last).map(entry_at).collect();
            log.save_committed(Some(entries[entries.len() - 1].log_id)).unwrap();
            node.state().apply(&entries).unwrap();
        }
        Step::Purge(index) => node.purge(entry_at(index).log_id).unwrap(),
    }
}

/// Whether the log is that of the first steps, except for a purge that was not made durable.
fn log_fits(node: &Node, model: &Model) -> bool {
    let log = node.log();
    let purged = log.purged().unwrap().map(|purged| purged.index);
    if purged > model.purged
        || log.vote().unwrap().map_or(0, |vote| vote.leader_id.term) != model.term
    {
        return false;
    }
    let first = purged.map_or(0, |purged| purged + 1);
    let found = log.read(0, Bound::Unbounded, None).unwrap();
    let expected = (first..model.terms.len() as u64).map(|at| entry(model.terms[at as usize], at));
    found.into_iter().eq(expected)
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_and_nothing_is_applied_in_half() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(seed(1));
    open(&disk, folder.path()).unwrap().close().unwrap();
    disk.begin_history();
    let node = open(&disk, folder.path()).unwrap();
    for (number, &step) in (1..).zip(&STEPS) {
        Mark::Begun.put(&disk, number);
        run(&node, &Model::after(&STEPS[..number as usize - 1]), step);
        match step {
            Step::Apply(_) | Step::Purge(_) => Mark::Buffered.put(&disk, number),
            _ => Mark::Durable.put(&disk, number),
        }
    }
    drop(node);
    let verify = |disk: SimDisk, promise: Promise| {
        let disk = disk.without_history();
        let node = open(&disk, folder.path()).unwrap();
        let mut models = (promise.least..=promise.most).map(|n| Model::after(&STEPS[..n as usize]));
        assert!(models.any(|model| log_fits(&node, &model)), "{promise:?}");
        let applied = verify_state(&node);
        assert!(applied <= Model::after(&STEPS[..promise.most as usize]).applied);
        // The next entries are in the log.
        let purged = node.log().purged().unwrap().map(|purged| purged.index);
        assert!(purged <= applied, "purged up to {purged:?}, applied up to {applied:?}");
        if let Some(committed) = node.log().committed().unwrap() {
            let start = applied.map_or(0, |applied| applied + 1);
            let rest = node.log().read(start, Bound::Included(committed.index), None).unwrap();
            assert_eq!(rest.len() as u64, (committed.index + 1).saturating_sub(start));
            node.state().apply(&rest).unwrap();
            verify_state(&node);
        }
    };
    let mut tally = Tally::new();
    tally.power_cuts(&disk, 1, 6, verify);
    tally.deaths(&disk, 2, verify);
    tally.print("a node");
}

#[test]
fn a_node_is_created_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(seed(2));
    let node = open(&disk, folder.path()).unwrap();
    Mark::Durable.put(&disk, 0);
    node.log().save_vote(&Vote::new(1, NODE_ID)).unwrap();
    Mark::Durable.put(&disk, 1);
    drop(node);
    let verify = |disk: SimDisk, promise: Promise| {
        let disk = disk.without_history();
        let node = open(&disk, folder.path()).unwrap();
        let is_voted = node.log().vote().unwrap().is_some();
        assert!(is_voted || promise.least == 0);
        assert_eq!(verify_state(&node), None);
        node.state().apply(&[entry(1, 0)]).unwrap();
        assert_eq!(verify_state(&node), Some(0));
    };
    let mut tally = Tally::new();
    tally.power_cuts(&disk, 1, 6, verify);
    tally.deaths(&disk, 3, verify);
    tally.print("a new node");
}

fn lsm() -> KeyspaceOptions {
    KeyspaceOptions::new().engine(Engine::Lsm)
}

#[test]
fn a_snapshot_is_installed_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let entries = |indexes: Range<u64>| Vec::from_iter(indexes.map(|index| entry(1, index)));
    let ahead = open(&SimDisk::new(seed(3)).without_history(), &path("ahead")).unwrap();
    ahead.state().apply(&entries(0..21)).unwrap();
    // No request makes such a keyspace yet, but it has files of its own.
    let tables = ahead.state().store().keyspace_with(TABLES, lsm()).unwrap();
    tables.put(LAST, value(20)).unwrap();
    tables.compact().unwrap();
    let (meta, _) = ahead.build_snapshot().unwrap();

    let disk = SimDisk::new(seed(4));
    let node = open(&disk, &path("behind")).unwrap();
    node.log().append(&entries(0..12)).unwrap();
    node.state().apply(&entries(0..10)).unwrap();
    node.close().unwrap();
    drop(node);
    disk.begin_history();
    let node = open(&disk, &path("behind")).unwrap();
    Mark::Begun.put(&disk, 1);
    let (_, snapshot) = ahead.current_snapshot().unwrap().unwrap();
    // openraft 0.9 asks for this before the snapshot is installed.
    node.purge(log_id(1, 20)).unwrap();
    node.install_snapshot(&meta, snapshot).unwrap();
    Mark::Durable.put(&disk, 1);
    node.log().append(&entries(21..23)).unwrap();
    // Later entries go to the new one.
    node.state().apply(&entries(21..23)).unwrap();
    node.state().sync().unwrap();
    Mark::Durable.put(&disk, 2);
    drop(node);

    let verify = |disk: SimDisk, promise: Promise| {
        let disk = disk.without_history();
        let node = open(&disk, &path("verified")).unwrap();
        let applied = verify_state(&node).unwrap();
        if applied > 9 {
            assert_eq!(node.state().get(TABLES, LAST).unwrap().as_deref(), Some(&value(20)[..]));
        }
        match promise.least {
            0 => assert!([9, 20].contains(&applied), "{applied}"),
            1 => assert!([20, 22].contains(&applied), "{applied}"),
            _ => assert_eq!(applied, 22),
        }
        let purged = node.log().purged().unwrap();
        assert_eq!(purged, (applied > 9).then(|| log_id(1, 20)), "applied {applied}");
        let first = if applied > 9 { 21 } else { 0 };
        let found = node.log().read(0, Bound::Unbounded, None).unwrap();
        assert_eq!(found, entries(first..first + found.len() as u64));
        assert!(found.len() >= if applied > 9 { 0 } else { 12 });
        assert!(promise.least < 2 || found.len() == 2);
        let root: Arc<dyn Directory> = Arc::new(SimDirectory::root(&disk));
        let names = root.subdirectory(NODE).unwrap().list().unwrap();
        assert_eq!(names.len(), 2, "the log and one state machine: {names:?}");
        node.state().apply(&[entry(1, applied + 1)]).unwrap();
        verify_state(&node);
    };
    let mut tally = Tally::new();
    tally.power_cuts(&disk, 1, 6, verify);
    tally.deaths(&disk, 2, verify);
    tally.print("an installed snapshot");
}

/// A node with one entry, whose log is purged up to 20 already, and a thread that writes entry 21.
fn node_that_waits(snapshots: &Path) -> (SimDisk, Node, JoinHandle<Result<()>>) {
    let disk = SimDisk::new(seed(5)).without_history();
    let node = open(&disk, snapshots).unwrap();
    node.log().append(&[entry(1, 0)]).unwrap();
    node.purge(log_id(1, 20)).unwrap();
    let appending = thread::spawn({
        let node = node.clone();
        move || node.log().append(&[entry(1, 21)])
    });
    (disk, node, appending)
}

#[test]
fn an_entry_behind_a_snapshot_is_written_when_that_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let ahead = SimDisk::new(seed(3)).without_history();
    let ahead = open(&ahead, &folder.path().join("ahead")).unwrap();
    ahead.state().apply(&Vec::from_iter((0..21).map(|index| entry(1, index)))).unwrap();
    let (meta, snapshot) = ahead.build_snapshot().unwrap();
    let (disk, node, appending) = node_that_waits(&folder.path().join("behind"));
    node.install_snapshot(&meta, snapshot).unwrap();
    appending.join().unwrap().unwrap();
    node.close().unwrap();
    drop(node);
    let node = open(&disk, &folder.path().join("behind")).unwrap();
    assert_eq!(verify_state(&node), Some(20));
    assert_eq!(node.log().read(0, Bound::Unbounded, None).unwrap(), [entry(1, 21)]);
}

#[test]
fn an_entry_behind_a_snapshot_that_cannot_be_installed_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, node, appending) = node_that_waits(folder.path());
    let (meta, _) = node.build_snapshot().unwrap();
    let empty = node.receive_snapshot().unwrap();
    assert!(matches!(node.install_snapshot(&meta, empty), Err(Error::Snapshot { .. })));
    let error = appending.join().unwrap().unwrap_err();
    assert!(matches!(error, Error::NotInstalled { entry: 21 }), "{error}");
    // As it was before.
    node.close().unwrap();
    drop(node);
    let node = open(&disk, folder.path()).unwrap();
    assert_eq!(node.log().purged().unwrap(), None);
    assert_eq!(node.log().read(0, Bound::Unbounded, None).unwrap(), [entry(1, 0)]);
}
