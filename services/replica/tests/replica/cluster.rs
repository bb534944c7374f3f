//! Three nodes in one process: elections, a leader that goes, one that comes back to a log that is
//! gone, a restart of all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adamant_replica::{Node, Request, Response, Types};
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::link::Network;
use crate::router::Router;
use crate::support::{Content, content_of, open, put};

/// For anything to happen: machines may be slow, and busy.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks whether it has.
const PAUSE: Duration = Duration::from_millis(20);
const KEYSPACE: &str = "towns";

struct Cluster {
    folder: TempDir,
    config: Arc<Config>,
    router: Router,
    nodes: BTreeMap<u64, (Node, Raft<Types>)>,
    /// What was acknowledged.
    model: Content,
}

impl Cluster {
    async fn start_all() -> Self {
        let config = Config {
            // An append that waits for the device longer than that is sent again.
            heartbeat_interval: 300,
            election_timeout_min: 900,
            election_timeout_max: 1800,
            install_snapshot_timeout: 30_000,
            snapshot_max_chunk_size: 200_000,
            snapshot_policy: SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: 0,
            ..Config::default()
        };
        let mut cluster = Self {
            folder: tempfile::tempdir().unwrap(),
            config: Arc::new(config.validate().unwrap()),
            router: Router::default(),
            nodes: BTreeMap::new(),
            model: Content::new(),
        };
        for id in 1..=3 {
            cluster.start(id).await;
        }
        let members = (1..=3).map(|id| (id, BasicNode::new(format!("node {id}"))));
        let members: BTreeMap<u64, BasicNode> = members.collect();
        cluster.nodes[&1].1.initialize(members).await.unwrap();
        cluster
    }

    async fn start(&mut self, id: u64) {
        let node = open(&self.folder.path().join(format!("node-{id}")), id);
        let (log, machine) = (node.log_store(), node.state_machine());
        let raft =
            Raft::new(id, Arc::clone(&self.config), Network(self.router.clone()), log, machine);
        let raft = raft.await.unwrap();
        self.router.connect(id, raft.clone());
        self.nodes.insert(id, (node, raft));
    }

    async fn stop(&mut self, id: u64) {
        self.router.disconnect(id);
        let (node, raft) = self.nodes.remove(&id).unwrap();
        raft.shutdown().await.unwrap();
        node.close().unwrap();
    }

    /// A node that says that it leads, and may be wrong.
    fn leader(&self) -> Option<u64> {
        let is_leader = |(&id, (_, raft)): (&u64, &(Node, Raft<Types>))| {
            (raft.metrics().borrow().current_leader == Some(id)).then_some(id)
        };
        self.nodes.iter().find_map(is_leader)
    }

    /// Does something with the leader, whoever that is, until it is done.
    async fn with_leader<T>(
        &self,
        work: impl AsyncFn(&Node, &Raft<Types>) -> Option<T>,
    ) -> (u64, T) {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(id) = self.leader() {
                let (node, raft) = &self.nodes[&id];
                // A leader that has lost its followers answers nobody.
                if let Ok(Some(done)) = timeout(PATIENCE / 12, work(node, raft)).await {
                    return (id, done);
                }
            }
            sleep(PAUSE).await;
        }
        panic!("no leader did it: {:?}", self.metrics());
    }

    fn metrics(&self) -> Vec<String> {
        self.nodes.values().map(|(_, raft)| raft.metrics().borrow().to_string()).collect()
    }

    async fn write(&mut self, key: &str, value: &str) -> u64 {
        let request = Request::new([put(KEYSPACE, key, value)]).unwrap();
        let written = self.with_leader(async |_, raft| {
            let written = raft.client_write(request.clone()).await.ok()?;
            assert_eq!(written.data, Response::Done);
            Some(written.log_id.index)
        });
        let (_, index) = written.await;
        self.model.insert(key.into(), value.into());
        index
    }

    /// What was acknowledged is what a linearizable read finds.
    async fn read(&self, key: &str) {
        let (_, found) = self
            .with_leader(async |node, raft| {
                raft.ensure_linearizable().await.ok()?;
                Some(node.state().get(KEYSPACE, key).unwrap())
            })
            .await;
        assert_eq!(found.as_deref(), self.model.get(key.as_bytes()).map(Vec::as_slice), "{key}");
    }

    /// All nodes that are up have applied an entry, and have the same.
    async fn agree(&self, index: u64) {
        for (id, (node, raft)) in &self.nodes {
            let wait = raft.wait(Some(PATIENCE));
            wait.applied_index_at_least(Some(index), "to agree").await.unwrap();
            assert_eq!(content_of(&node.state(), KEYSPACE), self.model, "node {id}");
        }
    }

    /// Every node that is up makes a snapshot, and forgets its log up to an entry.
    async fn forget(&self, index: u64) {
        let deadline = Instant::now() + PATIENCE;
        for (_, raft) in self.nodes.values() {
            raft.trigger().snapshot().await.unwrap();
            let is_purged = || raft.metrics().borrow().purged.is_some_and(|it| it.index >= index);
            while !is_purged() {
                assert!(Instant::now() < deadline, "{:?}", self.metrics());
                // Not while entries up to that are on their way to somebody.
                raft.trigger().purge_log(index).await.unwrap();
                sleep(PAUSE).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_goes_on_without_its_leader_and_takes_it_back() {
    let mut cluster = Cluster::start_all().await;
    let mut last = 0;
    for number in 0..30 {
        last = cluster.write(&format!("town {number}"), &format!("{number} people")).await;
    }
    cluster.read("town 29").await;
    cluster.agree(last).await;

    // The leader goes; the others elect another one.
    let first = cluster.leader().unwrap_or(1);
    cluster.stop(first).await;
    for number in 20..50 {
        last = cluster.write(&format!("town {number}"), &format!("{number} people more")).await;
        cluster.read(&format!("town {number}")).await;
    }
    cluster.agree(last).await;

    // What it has missed is no log any more, so it gets a snapshot.
    cluster.forget(last).await;
    last = cluster.write("town 50", "0 people").await;
    cluster.start(first).await;
    cluster.agree(last).await;
    let installed = cluster.folder.path().join(format!("node-{first}/state-0002"));
    assert!(installed.is_dir(), "node {first} was to get a snapshot");
    // And it is a full member again: one of the others may go.
    let other = (1..=3).find(|&id| id != first && Some(id) == cluster.leader());
    let other = other.unwrap_or(1 + first % 3);
    cluster.stop(other).await;
    last = cluster.write("town 51", "1 person").await;
    cluster.read("town 51").await;
    cluster.agree(last).await;

    // All of them start from their disks.
    for id in cluster.nodes.keys().copied().collect::<Vec<_>>() {
        cluster.stop(id).await;
    }
    for id in 1..=3 {
        cluster.start(id).await;
    }
    for key in ["town 0", "town 19", "town 20", "town 50", "town 51"] {
        cluster.read(key).await;
    }
    last = cluster.write("town 52", "2 people").await;
    cluster.agree(last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_lead_says_who_does_and_reads_nothing_linearizable() {
    let mut cluster = Cluster::start_all().await;
    let last = cluster.write("Bern", "134,000").await;
    cluster.agree(last).await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "{:?}", cluster.metrics());
        sleep(PAUSE).await;
        let Some(leader) = cluster.leader() else { continue };
        let follower = &cluster.nodes[&(1 + leader % 3)];
        let request = Request::new([put(KEYSPACE, "Basel", "173,000")]).unwrap();
        let written = timeout(PATIENCE / 12, follower.1.client_write(request)).await;
        let read = timeout(PATIENCE / 12, follower.1.ensure_linearizable()).await;
        // Unless it became the leader meanwhile.
        if let (Ok(Err(written)), Ok(Err(read))) = (written, read) {
            assert!(written.forward_to_leader::<BasicNode>().is_some(), "{written}");
            assert!(read.forward_to_leader::<BasicNode>().is_some(), "{read}");
            // What it has may be old, and is there.
            assert_eq!(follower.0.state().get(KEYSPACE, "Bern").unwrap(), Some("134,000".into()));
            return;
        }
    }
}
