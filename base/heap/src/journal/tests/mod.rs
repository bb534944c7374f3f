//! Tests of the journal on a disk that can fail, fill up, stall and be cut off.

mod disk;
mod mirror;
mod model;
mod holds;
mod records;
mod recovery;
mod mixtures;
mod space;
mod commit;
mod beside;
mod batches;
mod copied;
mod forged;
