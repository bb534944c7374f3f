//! A server for Redis clients on an Adamant store: RESP2 and RESP3, strings, expiry, transactions.
//!
//! What it does and does not do is in `docs/server.md`. [`Server::start`] is all of it; the program
//! `adamant-server` has it behind options.
//!
//! - A [`Server`] takes connections. Each is a task that parses all that came in one read as one unit.
//! - A unit that only looks is done on that task, and so is one that writes: whose task has the turn runs all
//!   units that wait in one transaction and commits it once: group commit over connections.
//! - Replies to writes are sent when their commit is as durable as [`Options::durability`] asks for.
//! - What clients can make the server hold is bounded: see [`Options`].
//! - As a node of a cluster it gives units that write to the node that leads, whose proposing thread makes
//!   one entry of the replicated log of all that wait; see `docs/cluster.md`.
#![forbid(unsafe_code)]
// What only clusters need is where it belongs in any case.
#![cfg_attr(not(feature = "cluster"), allow(dead_code))]

mod error;
mod options;
mod protocol;
mod state;
mod commands;
mod commit;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
mod no_cluster;
mod serving;
mod http;
mod server;

#[cfg(feature = "cluster")]
use cluster::{Member, Opened};
#[cfg(not(feature = "cluster"))]
use no_cluster::{Member, Opened};

pub use adamant::{Durability, Engine};
pub use error::{Error, Result};
pub use options::{Cluster, ClusterStart, Options, Tls};
pub use server::Server;
