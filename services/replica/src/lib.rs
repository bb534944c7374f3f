//! Adamant as the storage of a replica: the log and the state machine of [`openraft`].
//!
//! `docs/cluster.md` lists its guarantees and their limits. A [`Node`] is a directory with two
//! stores: one of the raft log, one of the state machine, which holds the users' keyspaces.
//!
//! - [`Node::log_store`] is openraft's `RaftLogStorage`: entries and votes are durable before it
//!   says so.
//! - [`Node::state_machine`] is its `RaftStateMachine`: a [`Request`] changes keyspaces, and the
//!   changes of a run of entries are one commit together with the number of the last of them. So no
//!   entry is applied twice or in half.
//! - A snapshot is a backup of the state machine's store, packed into one file. One that comes from
//!   another node becomes a store of its own beside the one in use; one record says which of them
//!   is current.
//! - [`Node::state`] serves reads. A linearizable read asks openraft first (`ensure_linearizable`).
//!
//! Communication between nodes is not included: users implement openraft's network.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use adamant_replica::{Change, Node, Request, Types};
//! use openraft::{Config, Raft, RaftNetworkFactory};
//!
//! # async fn start<N: RaftNetworkFactory<Types>>(network: N) -> Result<(), Box<dyn std::error::Error>> {
//! let node = Node::open("node-1.adamant", 1)?;
//! let config = Arc::new(Config::default().validate()?);
//! let raft = Raft::new(1, config, network, node.log_store(), node.state_machine()).await?;
//!
//! let (keyspace, key, value) = ("towns".into(), "Bern".into(), "134,000".into());
//! let request = Request::new([Change::Put { keyspace, key, value }])?;
//! raft.client_write(request).await?;
//!
//! raft.ensure_linearizable().await?;
//! assert_eq!(node.state().get("towns", "Bern")?, Some("134,000".into()));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod error;
mod layout;

mod request;
mod types;

mod record;

mod log;
mod state;

mod archive;
mod snapshots;

mod node;

mod blocking;
mod log_store;
mod state_machine;

#[cfg(test)]
mod tests;

pub use error::{Error, Result};
pub use log_store::LogStore;
pub use node::{Node, NodeOptions};
pub use request::{Change, REQUEST_BYTES_MAX, Refusal, Request, Response};
pub use state::State;
pub use state_machine::{SnapshotBuilder, StateMachine};
pub use types::Types;
