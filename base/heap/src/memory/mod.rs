//! Memory that is bounded: pages that leave it, pages that a checkpoint copies, huge pages. Used by
//! the heap.

pub(crate) mod copier;
pub(crate) mod huge;
pub(crate) mod evictor;
