//! Memory by address: reserved regions, mapped pieces, huge pages, cache lines.

pub(crate) mod tmpfs;
pub mod region;
pub mod huge;
pub mod persist;
pub(crate) mod lines;
pub(crate) mod window;
