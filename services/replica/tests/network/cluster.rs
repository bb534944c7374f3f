//! What hosts, clients and faults share: directories, who is up, and what was seen.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use adamant_replica::{Node, Types};
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::record::Record;
use crate::wire::host_of;

/// Between two signs of life of a leader, in simulated milliseconds as all times here.
const HEARTBEAT: u64 = 100;
/// Entries between two snapshots: few, so that who was away gets one.
const SNAPSHOT_ENTRIES: u64 = 20;

/// A node that is up.
#[derive(Clone)]
pub(crate) struct Up {
    pub(crate) node: Node,
    pub(crate) raft: Raft<Types>,
}

pub(crate) struct Cluster {
    folder: TempDir,
    count: u64,
    nodes: RefCell<BTreeMap<u64, Up>>,
    pub(crate) record: Record,
    /// Decides over what is not turmoil's.
    random: RefCell<fastrand::Rng>,
    /// How long a disk takes at most.
    pub(crate) disk_wait: Cell<u64>,
}

impl Cluster {
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            count,
            nodes: RefCell::default(),
            record: Record::default(),
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
            disk_wait: Cell::new(6),
        }
    }

    /// The numbers of all nodes.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> + use<> {
        1..=self.count
    }

    /// How many are most of them.
    pub(crate) fn majority(&self) -> u64 {
        self.count / 2 + 1
    }

    pub(crate) fn path(&self, node: u64) -> PathBuf {
        self.folder.path().join(host_of(node))
    }

    pub(crate) fn members(&self) -> BTreeMap<u64, BasicNode> {
        self.all().map(|node| (node, BasicNode::new(host_of(node)))).collect()
    }

    /// Another source of chance.
    pub(crate) fn random(&self) -> Arc<Mutex<fastrand::Rng>> {
        Arc::new(Mutex::new(self.random.borrow_mut().fork()))
    }

    /// How a node behaves from this start on. openraft draws the moment at which a node wants to
    /// lead from a chance that has no seed; the range that it gets has one moment.
    pub(crate) fn config(&self) -> Arc<Config> {
        let election = HEARTBEAT * 2 + self.random.borrow_mut().u64(50..350);
        let config = Config {
            heartbeat_interval: HEARTBEAT,
            election_timeout_min: election,
            election_timeout_max: election + 1,
            install_snapshot_timeout: 2000,
            snapshot_max_chunk_size: 100_000,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(SNAPSHOT_ENTRIES),
            max_in_snapshot_log_to_keep: SNAPSHOT_ENTRIES / 4,
            replication_lag_threshold: SNAPSHOT_ENTRIES,
            ..Config::default()
        };
        Arc::new(config.validate().unwrap())
    }

    pub(crate) fn up(&self, node: u64, up: Up) {
        self.nodes.borrow_mut().insert(node, up);
    }

    pub(crate) fn down(&self, node: u64) {
        self.nodes.borrow_mut().remove(&node);
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&BTreeMap<u64, Up>) -> T) -> T {
        work(&self.nodes.borrow())
    }

    /// The node that leads in the newest term of those that are up.
    pub(crate) fn leader(&self) -> Option<u64> {
        self.with(|nodes| {
            let leads = nodes.iter().filter_map(|(&id, up)| {
                let metrics = up.raft.metrics();
                let metrics = metrics.borrow();
                (metrics.current_leader == Some(id)).then_some((metrics.current_term, id))
            });
            leads.max().map(|(_, id)| id)
        })
    }

    /// What all nodes say of themselves.
    pub(crate) fn describe(&self) -> String {
        self.with(|nodes| {
            let say = |(id, up): (&u64, &Up)| format!("{id}: {}", *up.raft.metrics().borrow());
            nodes.iter().map(say).collect::<Vec<_>>().join("\n")
        })
    }

    /// The reason for which a node has stopped, if one has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.with(|nodes| {
            nodes.iter().find_map(|(id, up)| {
                let metrics = up.raft.metrics();
                let state = metrics.borrow().running_state.clone();
                let has_ended = metrics.has_changed().is_err();
                let cause = state.err().map(|fatal| fatal.to_string());
                let cause = cause.or(has_ended.then(|| "a panic".to_owned()));
                cause.map(|cause| format!("node {id} has stopped: {cause}"))
            })
        })
    }

    /// What nodes have got as a snapshot of another one: each state machine's store has the next
    /// number.
    pub(crate) fn installed(&self) -> u64 {
        let names = self.all().flat_map(|node| std::fs::read_dir(self.path(node)).unwrap());
        let numbers = names.filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_prefix("state-")?.parse::<u64>().ok()
        });
        numbers.map(|number| number - 1).sum()
    }

    /// Whether all nodes are up, and have applied all that is in the log of the one that leads.
    pub(crate) fn agrees(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        self.with(|nodes| {
            let last = nodes[&leader].raft.metrics().borrow().last_log_index;
            let applied = |up: &Up| up.raft.metrics().borrow().last_applied.map(|it| it.index);
            nodes.len() as u64 == self.count && nodes.values().all(|up| applied(up) == last)
        })
    }
}
