//! Tables: sorted, immutable files of entries. Written by compactions, read by versions.

mod layout;

mod index;
mod meta;
mod ranges;

mod writer;

mod pins;
mod reader;

mod in_row;
mod range;
mod estimate;
mod stream;

mod check;

pub use check::check_table;
pub use meta::{BlobReference, TableMeta};
pub use range::TableRange;
pub use reader::Table;
pub use stream::TableStream;
pub(crate) use writer::BLOCK_BYTES;
pub use writer::{TableOptions, TableWriter};
