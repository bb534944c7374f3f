//! What copies a whole heap, shrinks it, or finds what no root reaches: calls of the heap.

pub(crate) mod shrink;
pub(crate) mod backup;
pub(crate) mod leaks;
