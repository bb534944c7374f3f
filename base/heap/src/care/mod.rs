//! Whole-heap maintenance: backup, shrinking, and the leak scan, as calls of the heap.

pub(crate) mod shrink;
pub(crate) mod backup;
pub(crate) mod leaks;
