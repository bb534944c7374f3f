//! Tables and blob files by themselves.

mod common;
mod blob;
mod cache;
mod damage;
mod faults;
mod format;
mod hostile;
mod started_syncs;
mod table_model;
mod table_ranges;
mod writer_refuses;
