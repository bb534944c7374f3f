//! Tests of the whole crate by its own parts.

mod kinds;
mod renames;
mod serializability;
