//! The log-structured merge tree of Adamant: data much larger than memory.
//!
//! An [`Entry`] is one version of one key. Writes go to a memtable, whose bytes lie on the heap and
//! are as durable as everything there. Full memtables are written to sorted, immutable files, the
//! tables, which the background merges with one another. Large values lie in files of their own,
//! which entries point into. [`Lsm`] is one such tree, [`TreeContext`] the state that all trees of
//! a store share.
//!
//! A tree has no journal of its own: its writes, and the list of its files, are changes of the
//! heap.
#![forbid(unsafe_code)]

pub mod error;
mod key;
mod merge_operator;
mod compaction_filter;
pub mod layout;
mod file;
pub mod compression;
mod block;
mod filter;
mod counters;
mod cache;
mod table;
mod blob;
mod level_compression;
mod options;
mod sequence;
mod sum;
mod head;
mod tombstones;
mod memtable;
mod version;
mod read;
mod compact;
mod tree;
mod inspect;

pub use blob::{Blob, BlobFile, BlobMeta, BlobOptions, BlobStream, BlobWriter, check_blob_file};
pub use cache::{BlockUse, Cache, CacheOptions};
pub use compaction_filter::{CompactionFilter, Verdict};
pub use compression::Compression;
pub use counters::Counters;
pub use error::{Error, Result};
pub use file::{Identity, file_name, number_of, owner_of};
pub use inspect::{
    BlobStats, LevelStats, LsmCheck, LsmChecking, LsmReport, LsmStats, MemtableStats,
};
pub use key::{
    BlobPointer, Entry, EntryKind, KEY_BYTES_MAX, Lookup, RangeTombstone, SEQUENCE_MAX,
    VALUE_BYTES_MAX, Version, check_key,
};
pub use level_compression::LevelCompression;
pub use memtable::{CopyLimits, LostRecords};
pub use merge_operator::{
    BuiltIn, MergeError, MergeOperator, NamedOperator, OPERAND_BYTES_MAX, built_in,
};
pub use options::{Options, TreeOptions};
pub use read::estimate::RangeEstimate;
pub use read::lookup::{Glance, MemtableLookup, TableLookup};
pub use read::scan::{Count, TableScan};
pub use sequence::Sequences;
pub use table::{
    BlobReference, Table, TableMeta, TableOptions, TableRange, TableStream, TableWriter,
    check_table,
};
pub use tree::load::Load;
pub use tree::{Lsm, NEWEST};
pub use version::context::{FileCounter, HeldFiles, TreeContext};
pub use version::later::{LaterValue, Scanned, ScannedBlob};
