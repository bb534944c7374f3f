//! The log-structured merge tree of Adamant: data much larger than memory.
//!
//! An [`Entry`] is one version of one key. Entries that were written are kept in sorted, immutable
//! files, the tables; large values in files of their own, which entries point into.
#![forbid(unsafe_code)]

pub mod error;

mod key;

pub use error::{Error, Result};
pub use key::{
    BlobPointer, Entry, EntryKind, KEY_BYTES_MAX, RangeTombstone, SEQUENCE_MAX, VALUE_BYTES_MAX,
    Version, check_key,
};
