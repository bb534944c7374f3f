//! Ordered maps on the persistent heap of Adamant.
//!
//! All trees keep their pairs in entry blocks of the same shape ([`slot`]) and implement the same
//! trait ([`tree::OrderedMap`]). A tree is named by the heap offset of its head block; the handle
//! holds nothing else, so that it can be copied and costs nothing to open.
#![forbid(unsafe_code)]

pub mod error;
pub mod slot;
pub mod tree;

pub mod bplus;

pub use bplus::{Bplus, Salvaged};
pub use error::{Error, Result};
pub use tree::{Cursor, Operation, OrderedMap, Pair, Report, Seek, Walk};
