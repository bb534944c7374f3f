//! The tree: on a heap, with files beside it.

mod model;
mod store;
