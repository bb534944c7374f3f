//! The same tests over every engine and every place that a store can be in.
//!
//! A scenario is a function over a [`Place`]; it panics when the store does not behave. They are
//! grouped by what they ask for: `point` single entries, `order` ranges and iterators, `lend` scans
//! that copy nothing, `lazy` keys alone and values read later, `batch` atomic changes, `moves` values that move, `removals` ranges that go, `reserved` values written where they will lie, `load` bulk loads, `keyspaces`
//! the catalogue, `snapshots` what stays as it was, `transactions` what happens as one, `persistence`
//! what reopening finds, `limits` what is refused, `threads` readers beside a writer, and `model`
//! random work against a `BTreeMap`. `crashes` has whole stores in use on the
//! simulator's disk, for crash tests and campaigns, `fuzz` what the fuzzer does. `files` is for tests that work on the files of a store.
#![forbid(unsafe_code)]

pub mod files;
pub mod place;

pub mod batch;
pub mod keyspaces;
pub mod lazy;
pub mod lend;
pub mod limits;
pub mod load;
pub mod model;
pub mod moves;
pub mod order;
pub mod persistence;
pub mod point;
pub mod removals;
pub mod reserved;
pub mod snapshots;
pub mod threads;
pub mod transactions;

pub mod crashes;
pub mod fuzz;

pub use place::{Disk, Kept, Memory, Place, Tiny, Undo};
