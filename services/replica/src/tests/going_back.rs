//! A node with a store that has gone back to a savepoint.

use openraft::{CommittedLeaderId, EntryPayload};

use crate::node::Node;
use crate::request::{Change, Request};
use crate::types::{Entry, LogId};

fn entry(index: u64) -> Entry {
    let (keyspace, key) = ("data".to_owned(), index.to_le_bytes().to_vec());
    let request = Request::new([Change::Put { keyspace, key, value: vec![1] }]).unwrap();
    let log_id = LogId::new(CommittedLeaderId::new(1, 7), index);
    Entry { log_id, payload: EntryPayload::Normal(request) }
}

fn apply(node: &Node, indexes: std::ops::Range<u64>) {
    let entries: Vec<Entry> = indexes.map(entry).collect();
    node.log().append(&entries).unwrap();
    node.state().apply(&entries).unwrap();
}

/// Entries that the log still has are applied again; without them the node is damaged.
#[test]
fn a_state_machine_that_lacks_purged_entries_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node");
    let node = Node::open(&path, 7).unwrap();
    apply(&node, 0..5);
    node.close().unwrap();
    drop(node);
    let state = path.join("state-0001");
    let store = adamant::Store::open(&state).unwrap();
    store.create_savepoint("one").unwrap();
    store.close().unwrap();

    let node = Node::open(&path, 7).unwrap();
    apply(&node, 5..9);
    node.purge(entry(4).log_id).unwrap();
    node.close().unwrap();
    drop(node);
    adamant::go_back(&state, "one").unwrap();
    let node = Node::open(&path, 7).unwrap();
    assert_eq!(node.state().applied_index(), Some(4));
    let again = node.log().read(5, std::ops::Bound::Unbounded, None).unwrap();
    node.state().apply(&again).unwrap();
    node.purge(entry(6).log_id).unwrap();
    node.close().unwrap();
    drop(node);
    adamant::go_back(&state, "one").unwrap();
    let error = Node::open(&path, 7).unwrap_err();
    assert!(error.is_damaged(), "{error}");
    assert!(error.to_string().contains("entries up to 6"), "{error}");
}
