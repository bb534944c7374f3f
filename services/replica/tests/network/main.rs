//! Nodes on a simulated network that loses messages, holds them back and delivers them late, while
//! nodes crash and start again from their disks.
//!
//! Each node is a host of [`turmoil`] with a directory of its own, all in one thread. Simulated
//! time stands still while a store waits for its device: tokio lets a clock that is paused go on
//! only when no blocking call is left. So nothing here depends on how fast the machine is. The seed
//! that is printed decides over faults, clients, delays of messages and disks, and who wants to
//! lead when; in which order calls of stores that run at once come back it does not.
#![forbid(unsafe_code)]

#[path = "../shared/link.rs"]
mod link;
#[path = "../shared/nodes.rs"]
mod nodes;

mod record;
mod wire;

mod cluster;
mod disk;
mod host;

mod client;
mod fault;
mod run;

mod chaos;
mod partitions;
