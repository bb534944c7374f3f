//! Blob files: large values that table entries point to. Called by flushes, merges and reads.

mod layout;

mod record;

mod writer;

mod reader;

mod stream;

pub use reader::BlobFile;
pub use stream::{Blob, BlobStream, check_blob_file};
pub use writer::{BlobMeta, BlobOptions, BlobWriter};
