//! The storage of a replica by openraft's own suite, by kills, by damage, and in clusters.
#![forbid(unsafe_code)]

mod router;
mod support;

mod cluster;
mod damage;
mod kills;
mod log_model;
mod requests;
mod snapshots;
mod suite;
