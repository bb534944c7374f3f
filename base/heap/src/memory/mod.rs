//! Bounded memory: page eviction, page copies for checkpoints, huge pages. The heap uses it.

pub(crate) mod copier;
pub(crate) mod huge;
pub(crate) mod evictor;
