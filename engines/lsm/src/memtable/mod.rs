//! Memtables: what was written and is in no table yet.
//!
//! ```text
//! buffer      on the heap: entries in the order in which they came; what is recovered
//! skip list   in memory: keys in order, and where in the buffer their values lie
//! ```

mod words;

mod skip_list;

mod buffer;

mod piece;

mod table;

pub(crate) use buffer::{Said, create as create_buffer, open as open_buffer};
pub(crate) use buffer::{blocks as buffer_blocks, destroy as destroy_buffer};
pub(crate) use table::{Memtable, Undo};
