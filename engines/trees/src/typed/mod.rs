//! Typed maps: keys and values of Rust types over the trees. Public, for users of the heap.

pub(crate) mod map;
pub(crate) mod bounds;
pub(crate) mod load;
pub(crate) mod moves;
pub(crate) mod trace;
