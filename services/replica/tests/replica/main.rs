//! The storage of a replica by openraft's own suite, by kills, by damage, and in clusters.
#![forbid(unsafe_code)]

#[path = "../shared/link.rs"]
mod link;
#[path = "../shared/nodes.rs"]
mod nodes;

mod router;
mod support;

// The longest, and so the first.
mod acceptance;
mod cluster;
mod damage;
mod kills;
mod log_model;
mod requests;
mod snapshots;
