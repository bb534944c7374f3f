//! Memtables: the writes that are in no table yet.
//!
//! ```text
//! buffer      on the heap: entries in the order in which they came; what is recovered
//! index       in memory: keys in order, and where in the buffer their values lie
//! ```

mod rows;
mod arena;
mod index_entry;
mod key_filter;

mod index_nodes;
mod ordered_index;
mod gather;

mod record;

mod buffer;
mod salvage;

mod key_walk;
mod copied_entries;
mod emptied;

mod table;

pub(crate) use buffer::{
    BufferWalk, chunks as buffer_chunks, destroy as destroy_buffer, read_on as read_buffer_on,
};
pub(crate) use buffer::{create as create_buffer, forget_older, open as open_buffer};
#[cfg(test)]
pub(crate) use copied_entries::CopiedEntries;
pub(crate) use copied_entries::CopiedWalk;
pub use copied_entries::CopyLimits;
pub(crate) use key_walk::KeyWalk;
pub(crate) use record::Said;
pub use salvage::LostRecords;
pub(crate) use table::Memtable;
pub(crate) use table::change::Change;
pub(crate) use table::copies::Wanted;
