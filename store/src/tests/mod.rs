//! Tests of the whole crate that use its internals.

mod kinds;
mod pops;
mod renames;
mod serializability;
