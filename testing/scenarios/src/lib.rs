//! Scenarios: the same tests for every engine and every location of a store.
//!
//! A scenario is a function over a [`Place`]; it panics when the store misbehaves. They are grouped
//! by subject: `point` single entries, `order` ranges and iterators, `lend` zero-copy scans, `lazy`
//! keys alone and values read later, `batch` atomic changes, `moves` values that move, `removals`
//! removed ranges, `chosen` pops and removals by closures, `reserved` values in reserved room,
//! `load` bulk loads, `keyspaces` the catalogue, `engines` engines, `snapshots` snapshots,
//! `transactions` transactions, `validation` their conflicts, `reentrance` closures under the lock,
//! `persistence` reopening, `limits` refusals, `empty_key` that key, `threads` readers beside a
//! writer, and `model` random work against a `BTreeMap`. `crashes` has whole stores in use on the
//! simulator's disk, for crash tests and campaigns, `fuzz` the fuzz targets. `files` is for tests
//! that work on the files of a store.
//!
//! `point`, `order`, `batch`, `removals`, `keyspaces`, `transactions`, `limits` and `threads` need
//! only features that a store on objects has, too: its tests (`services/remote/tests/scenarios.rs`)
//! compile these files for it, under the name of this crate's store.
#![forbid(unsafe_code)]

pub mod files;
pub mod place;
mod writes;
pub mod empty_key;
pub mod engines;
pub mod keyspaces;
mod reads;
pub mod limits;
pub mod model;
pub mod persistence;
pub mod point;
mod concurrency;
pub mod crashes;
pub mod fuzz;

pub use concurrency::{reentrance, snapshots, threads, transactions, validation};
pub use place::{Disk, Kept, Mapped, Memory, Packed, Place, Tiny};
pub use reads::{lazy, lend, order};
pub use writes::{batch, chosen, load, moves, removals, reserved};
