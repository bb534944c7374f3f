//! Whole-heap maintenance: backup, readers in other processes, shrinking, savepoints, and the leak
//! scan: calls of the heap for its users.

pub(crate) mod shrink;
pub(crate) mod backup;
pub(crate) mod identity;
pub(crate) mod leaks;
pub(crate) mod readers;
mod new_pool;
pub(crate) mod savepoints;
