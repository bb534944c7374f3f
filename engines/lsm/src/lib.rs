//! The log-structured merge tree of Adamant: data much larger than memory.
//!
//! An [`Entry`] is one version of one key. Entries that were written are kept in sorted, immutable
//! files, the tables; large values in files of their own, which entries point into.
#![forbid(unsafe_code)]

pub mod error;

mod key;

mod file;

mod block;

mod filter;

mod cache;

mod table;

mod blob;

pub use blob::{Blob, BlobFile, BlobMeta, BlobOptions, BlobStream, BlobWriter, check_blob_file};
pub use block::Compression;
pub use cache::{Cache, CacheOptions};
pub use error::{Error, Result};
pub use file::{Identity, file_name, number_of, owner_of};
pub use key::{
    BlobPointer, Entry, EntryKind, KEY_BYTES_MAX, Lookup, RangeTombstone, SEQUENCE_MAX,
    VALUE_BYTES_MAX, Version, check_key,
};
pub use table::{
    BlobReference, Table, TableMeta, TableOptions, TableRange, TableStream, TableWriter,
    check_table,
};
