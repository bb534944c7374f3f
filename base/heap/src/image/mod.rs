//! The image of the pool in memory: the pool file, page states, size classes and block locations.
//! Used by the log, the allocator and transactions.

pub(crate) mod kind;
pub(crate) mod class;
pub(crate) mod pool_file;
pub(crate) mod memory_bounds;
pub(crate) mod page_state;
pub(crate) mod before_images;
pub(crate) mod block_location;
pub(crate) mod mapping;
pub(crate) mod heap_root;
mod filled;
