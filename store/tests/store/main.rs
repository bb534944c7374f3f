//! Tests of the store, as one program: it is compiled and linked once. Tests that need a process of
//! their own are beside it.

mod attempts;
mod backup;
mod backup_lsm;
mod clear;
mod compact;
mod doors;
mod exclusive;
mod kinds;
mod lent;
mod load;
mod lsm;
mod lsm_options;
mod lsm_options_random;
mod objects;
mod pieces;
mod read_only;
mod rename;
mod types;
mod waiting;
