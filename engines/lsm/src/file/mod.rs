//! File handling that tables and blob files share: names, headers, writers and read-ahead. Used by
//! these two alone.

mod layout;

mod identity;

mod read_ahead;
mod writer;

pub(crate) use identity::{FileFormat, FileKind};
pub use identity::{Identity, file_name, number_of, owner_of};
pub(crate) use layout::FILE_HEADER_BYTES;
pub(crate) use read_ahead::ReadAhead;
pub(crate) use writer::FileWriter;
