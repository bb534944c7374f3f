//! Verbs that look at a store, its heap and its trees.

pub(crate) mod stat;
pub(crate) mod check;
pub(crate) mod heap_map;
pub(crate) mod heap;
pub(crate) mod lsm_map;
pub(crate) mod lsm;
