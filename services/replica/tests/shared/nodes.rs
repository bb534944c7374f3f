//! Small nodes, and what is in them.

use std::collections::BTreeMap;
use std::path::Path;

use adamant::Options;
use adamant_replica::{Change, Node, NodeOptions, State};

pub(crate) type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// Logs of a size that tests fill.
pub(crate) fn options() -> NodeOptions {
    let options = Options::new().log_bytes_max(1 << 20);
    NodeOptions::new().log(options.clone()).state(options)
}

pub(crate) fn open(path: &Path, node_id: u64) -> Node {
    Node::open_with(path, node_id, options()).unwrap()
}

pub(crate) fn put(keyspace: &str, key: &str, value: impl Into<Vec<u8>>) -> Change {
    Change::Put { keyspace: keyspace.into(), key: key.into(), value: value.into() }
}

pub(crate) fn content_of(state: &State, keyspace: &str) -> Content {
    let pairs = state.range(keyspace, ..).unwrap();
    pairs.map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}
