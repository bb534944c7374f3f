//! Node startup: opening, and joining the cluster.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adamant::Store;
use adamant_replica::{Node, Types};
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::address::Address;
use super::handshake::Secret;
use super::member::Member;
use super::network::Network;
use super::peers::Peers;
use super::{listen, reads};
use crate::commit::committer::Queue;
use crate::commit::ending::Ending;
use crate::commit::world::World;
use crate::error::{Error, Result};
use crate::options::{Cluster, ClusterStart};

/// Bytes of a snapshot chunk.
const CHUNK_BYTES: u64 = 1 << 20;
/// How long a node may take for a chunk, the last of which it installs.
const INSTALL_WAIT: Duration = Duration::from_secs(600);
/// Entries that are kept behind a snapshot, for nodes that are a little behind.
const KEPT_ENTRIES_MAX: u64 = 10_000;

/// An open node that does not take part yet.
pub(crate) struct Opened {
    node: Node,
    options: Cluster,
}

impl Opened {
    /// Opens the node at a path; creates it if there is none.
    ///
    /// # Errors
    /// [`Error::Cluster`].
    pub(crate) fn open(path: &Path, options: &Cluster) -> Result<Self> {
        let node = Node::open(path, options.node).map_err(|error| failed(&error))?;
        Ok(Self { node, options: options.clone() })
    }

    /// The applied state.
    pub(crate) fn store(&self) -> Store {
        self.node.state().store().clone()
    }

    /// Starts its membership, for as long as the runtime lives.
    ///
    /// # Errors
    /// [`Error::Listen`], [`Error::Cluster`].
    pub(crate) fn start(
        self,
        runtime: &Runtime,
        world: &Arc<World>,
        queue: &Arc<Queue>,
        ending: &Arc<Ending>,
    ) -> Result<Arc<Member>> {
        let Self { node, options } = self;
        let address = options.address;
        let listener = runtime.block_on(TcpListener::bind(address));
        let listener = listener.map_err(|error| Error::Listen { address, error })?;
        let directory_id = node.directory_id().map_err(|error| failed(&error))?;
        let address = Address { place: address.to_string(), directory_id };
        let peers = Arc::new(Peers::new(Secret::new(options.secret.as_deref())));
        let raft = runtime.block_on(raft(&node, &options, &peers, world, ending))?;
        let (reads, looks) = reads::channel();
        let member = Arc::new(Member {
            id: options.node,
            address,
            node,
            raft,
            peers,
            reads,
            patience: options.patience,
            runtime: runtime.handle().clone(),
            world: Arc::clone(world),
            queue: Arc::clone(queue),
            ending: Arc::clone(ending),
        });
        if options.start == ClusterStart::First {
            runtime.block_on(begin(&member))?;
        }
        runtime.spawn(listen::serve(listener, Arc::clone(&member)));
        let asking = Arc::clone(&member);
        runtime.spawn(looks.serve(move || {
            let member = Arc::clone(&asking);
            async move { member.ask_index().await }
        }));
        if let ClusterStart::Join(place) = options.start {
            let joining = Arc::clone(&member);
            runtime.spawn(async move {
                if let Err(words) = joining.join(&place).await {
                    let cause = format!("the cluster does not take the node: {words}");
                    joining.ending.begin(Some(cause));
                }
            });
        }
        Ok(member)
    }
}

async fn raft(
    node: &Node,
    options: &Cluster,
    peers: &Arc<Peers>,
    world: &Arc<World>,
    ending: &Arc<Ending>,
) -> Result<Raft<Types>> {
    let heartbeat = u64::try_from(options.heartbeat.as_millis()).unwrap_or(u64::MAX);
    let config = Config {
        cluster_name: "adamant".into(),
        heartbeat_interval: heartbeat,
        election_timeout_min: heartbeat * 2,
        election_timeout_max: heartbeat * 10 / 3,
        install_snapshot_timeout: u64::try_from(INSTALL_WAIT.as_millis()).unwrap_or(u64::MAX),
        snapshot_max_chunk_size: CHUNK_BYTES,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_entries),
        max_in_snapshot_log_to_keep: KEPT_ENTRIES_MAX.min(options.snapshot_entries),
        // A node that is further behind gets a snapshot.
        replication_lag_threshold: options.snapshot_entries,
        ..Config::default()
    };
    let config = config.validate().map_err(|error| failed(&error))?;
    // A snapshot brings another store.
    let (databases, ending) = (Arc::clone(&world.databases), Arc::clone(ending));
    node.on_installed(move |state| {
        if let Err(error) = databases.replace(state.store()) {
            ending.begin(Some(error.to_string()));
        }
    });
    let network = Network(Arc::clone(peers));
    let (log, machine) = (node.log_store(), node.state_machine());
    let raft = Raft::new(options.node, Arc::new(config), network, log, machine).await;
    raft.map_err(|error| failed(&error))
}

/// Creates a cluster of the node alone.
async fn begin(member: &Member) -> Result<()> {
    let is_member = member.raft.is_initialized().await.map_err(|error| failed(&error))?;
    if is_member {
        let cause = "the node is a part of a cluster already: leave --cluster-init out, which makes \
                     a new one, and with it a second truth where others of this cluster are left";
        return Err(Error::Cluster { cause: cause.into() });
    }
    let node = BasicNode::new(member.address.to_string());
    let members = BTreeMap::from([(member.id, node)]);
    member.raft.initialize(members).await.map_err(|error| failed(&error))
}

fn failed(error: &impl std::error::Error) -> Error {
    Error::Cluster { cause: error.to_string() }
}
