//! Locks that are the heap's own: who reads the image, who has it alone, and who has the turn to
//! write. Used by the image, the allocator and transactions. See `docs/internals/locks.md`.

pub(crate) mod spin;
pub(crate) mod thread;
pub(crate) mod reader_slots;
pub(crate) mod image_latch;
pub(crate) mod writer_queue;
