//! The server, in this process and as a program, by clients of its own and by others.

#![forbid(unsafe_code)]

mod support;
mod certificates;
mod disk;
mod program;
mod web;

#[cfg(feature = "cluster")]
mod nodes;

mod abuse;
mod answers;
mod clients;
#[cfg(feature = "cluster")]
mod cluster;
mod differential;
mod exchange;
#[cfg(feature = "cluster")]
mod failover;
mod figures;
mod full;
mod kills;
mod large;
mod limits;
#[cfg(feature = "cluster")]
mod members;
mod page;
mod status;
mod tls;
mod transactions;
