//! Bounded memory: page eviction, page copies for checkpoints, huge pages. Used by the heap.

pub(crate) mod copier;
pub(crate) mod huge;
pub(crate) mod evictor;
