//! Tables: sorted, immutable files of entries.

mod layout;

mod index;
mod meta;
mod ranges;

mod writer;

mod reader;

mod range;

pub use meta::{BlobReference, TableMeta};
pub use range::TableRange;
pub use reader::Table;
pub use writer::{TableOptions, TableWriter};
