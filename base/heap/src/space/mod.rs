//! The block allocator: runs, extents, reservations, and borrowed or pinned blocks. Used by
//! transactions and the heap.

pub(crate) mod block_bits;
pub(crate) mod shard;
pub(crate) mod runs;
pub(crate) mod arena;
pub(crate) mod state;
pub(crate) mod changes;
pub(crate) mod reservation;
pub(crate) mod batch;
pub(crate) mod borrowed;
pub(crate) mod allocator;
pub(crate) mod ahead;
pub(crate) mod thread_cache;
pub(crate) mod blocks;
pub(crate) mod pin;
pub(crate) mod reclaim;
pub(crate) mod allocated;
