//! Typed objects in a heap, and how data structures read and write it. Public: called by users of
//! the crate and by the engines.

pub(crate) mod persistent;
pub(crate) mod array;
pub(crate) mod any_ptr;
pub mod access;
pub mod typed;
pub(crate) mod directory;
