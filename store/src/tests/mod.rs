//! Tests of the whole crate that use its internals.

mod kinds;
mod renames;
mod serializability;
