//! Nodes of a cluster: members, failover, status.

#[cfg(feature = "cluster")]
pub(crate) mod processes;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
#[cfg(feature = "cluster")]
pub(crate) mod failover;
#[cfg(feature = "cluster")]
pub(crate) mod members;
