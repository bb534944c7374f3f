//! The heap's own locks: the image latch with its reader slots, the writer queue and a spin lock.
//! Used by the image, the allocator and transactions. See `docs/internals/locks.md`.

pub(crate) mod spin;
pub(crate) mod thread;
pub(crate) mod reader_slots;
pub(crate) mod image_latch;
pub(crate) mod writer_queue;
