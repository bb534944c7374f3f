//! Committing for connections: one transaction for all that wait, and whether the server can.
//! Called by sessions, the cluster and connections.

pub(crate) mod tallies;
pub(crate) mod health;
pub(crate) mod standing;
pub(crate) mod world;
pub(crate) mod unit;
pub(crate) mod execute;
pub(crate) mod ending;
pub(crate) mod committer;
pub(crate) mod keeper;
