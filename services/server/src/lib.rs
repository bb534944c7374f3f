//! A server for Redis clients on an Adamant store: RESP2 and RESP3, strings, expiry, transactions.
//!
//! What it supports is in `docs/server.md`. [`Server::start`] is the whole interface; the program
//! `adamant-server` adds a command line.
//!
//! - A [`Server`] takes connections. Each is a task that parses all that came in one read as one
//!   unit.
//! - A unit that only reads runs on that task, and so does one that writes: the task with the
//!   commit lock runs all waiting units in one transaction and commits it once: group commit over
//!   connections.
//! - Replies to writes are sent when their commit is as durable as [`Options::durability`]
//!   requires.
//! - What clients can make the server hold is bounded: see [`Options`].
//! - A node of a cluster sends units that write to the leader, whose proposing thread makes one
//!   entry of the replicated log of all that wait; see `docs/cluster.md`.
#![forbid(unsafe_code)]
// Parts that only clusters need stay where they belong.
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

pub use adamant::{Durability, EncryptionKey, Engine};
pub use error::{Error, Result};
pub use options::{Cluster, ClusterStart, Options, Tls};
pub use server::Server;
