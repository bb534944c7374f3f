//! Memory by address: reserved regions, mapped pieces, huge pages, cache lines. Used by files, and
//! by the heap's image.

pub(crate) mod tmpfs;
pub mod region;
pub mod huge;
pub mod persist;
pub(crate) mod lines;
pub(crate) mod window;
