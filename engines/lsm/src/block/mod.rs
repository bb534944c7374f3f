//! Blocks: the units in which a table is read.
//!
//! A block is a header with a checksum, and a payload, which may be compressed. The payload of most
//! kinds of block is prefix-compressed entries: a key is stored without the bytes that it shares
//! with the key before it.

mod layout;

mod frame;

mod entry;

mod reader;

mod cursor;

mod stream;
mod writer;

pub(crate) use cursor::{Backward, Cursor, Forward};
pub(crate) use entry::{Malformed, Read, take_word};
pub(crate) use frame::{BlockHandle, Sealer, open, peek, read, read_bytes};
pub(crate) use layout::{BLOCK_HEADER_BYTES, BlockKind};
pub(crate) use reader::EntryBlock;
pub(crate) use stream::BlockStream;
pub(crate) use writer::EntriesWriter;
