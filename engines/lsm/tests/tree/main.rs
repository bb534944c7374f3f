//! The tree: on a heap, with files beside it.

mod crashes;
mod damage;
mod faults;
mod loads;
mod model;
mod store;
mod threads;
