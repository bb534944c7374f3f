//! Copies of a whole heap, shrinking it, and what no root reaches: calls of the heap for its users.

pub(crate) mod shrink;
pub(crate) mod backup;
pub(crate) mod leaks;
