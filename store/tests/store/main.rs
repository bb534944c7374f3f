//! Tests of the store, as one program: it is compiled and linked once. Tests that need a process of
//! their own are beside it.

mod small;

mod attempts;
mod backup;
#[cfg(unix)]
mod backup_lsm;
mod backup_since;
mod beside;
mod changes;
mod clear;
mod compact;
mod compaction_filter;
#[cfg(unix)]
mod doors;
#[cfg(feature = "encryption")]
mod encryption;
mod exclusive;
mod figures;
mod going_back;
mod kinds;
mod lent;
mod load;
mod lsm;
mod lsm_options;
mod lsm_options_random;
mod multimaps;
mod merge;
mod objects;
mod pieces;
#[cfg(unix)]
mod read_only;
mod rename;
mod savepoints;
mod savepoint_files;
mod savepoint_folders;
mod savepoint_load;
mod types;
mod value_compression;
mod value_compression_random;
mod waiting;

/// Bytes that the file at a path takes of the device: it may have holes.
fn device_bytes(path: impl AsRef<std::path::Path>) -> u64 {
    let found = path.as_ref().metadata().expect("is there");
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::blocks(&found) * 512;
    #[cfg(not(unix))]
    return found.len();
}
