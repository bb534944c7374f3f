//! The same tests over every engine and every place that a store can be in.
//!
//! A scenario is a function over a [`Place`]; it panics when the store does not behave. They are
//! grouped by what they ask for: `point` single entries, `order` ranges and iterators, `lend` scans
//! that copy nothing, `lazy` keys alone and values read later, `batch` atomic changes, `moves` values
//! that move, `removals` ranges that go, `reserved` values written where they will lie, `load` bulk
//! loads, `keyspaces` the catalogue, `engines` what keeps entries, `snapshots` what stays as it was,
//! `transactions` what happens as one, `validation` when it does not, `reentrance` closures under the
//! lock, `persistence` what reopening finds, `limits` what is refused, `empty_key` that key,
//! `threads` readers beside a writer, and `model` random work against a `BTreeMap`. `crashes` has
//! whole stores in use on the simulator's disk, for crash tests and campaigns, `fuzz` what the
//! fuzzer does. `files` is for tests that work on the files of a store.
//!
//! `point`, `order`, `batch`, `removals`, `keyspaces`, `transactions`, `limits` and `threads` ask for nothing
//! that a store on objects does not have: its tests (`remote/tests/scenarios.rs`) compile these files for
//! it, under the name of this crate's store.
#![forbid(unsafe_code)]

pub mod files;
pub mod place;

pub mod batch;
pub mod empty_key;
pub mod engines;
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
pub mod reentrance;
pub mod removals;
pub mod reserved;
pub mod snapshots;
pub mod threads;
pub mod transactions;
pub mod validation;

pub mod crashes;
pub mod fuzz;

pub use place::{Disk, Kept, Mapped, Memory, Place, Tiny};
