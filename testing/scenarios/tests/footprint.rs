//! The size of an empty store on disk, and the time to create it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use adamant::Store;

/// Maximum bytes of a store without a keyspace.
const EMPTY_BYTES_MAX: u64 = 4 << 20;
/// Bytes of a block as `stat` counts them, on any file system.
const BLOCK_BYTES: u64 = 512;

/// Lengths of all files below a directory, and the bytes allocated for them.
fn sizes(path: &Path) -> (u64, u64) {
    let (mut len_bytes, mut allocated_bytes) = (0, 0);
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            let (len, allocated) = sizes(&entry.path());
            len_bytes += len;
            allocated_bytes += allocated;
        } else {
            len_bytes += metadata.len();
        }
        allocated_bytes += metadata.blocks() * BLOCK_BYTES;
    }
    (len_bytes, allocated_bytes)
}

fn assert_small(path: &Path, when: &str) {
    let (len_bytes, allocated_bytes) = sizes(path);
    println!("an empty store {when}: {len_bytes} bytes of files, {allocated_bytes} allocated");
    assert!(len_bytes <= EMPTY_BYTES_MAX, "{len_bytes} bytes of files {when}");
    assert!(allocated_bytes <= EMPTY_BYTES_MAX, "{allocated_bytes} bytes allocated {when}");
}

/// Times depend on the device and its other load: they are printed, not verified.
#[test]
fn an_empty_store_is_small() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let start = Instant::now();
    let store = Store::open(&path).unwrap();
    println!("created and opened in {:?}", start.elapsed());
    assert_small(&path, "just created");
    store.close().unwrap();
    assert_small(&path, "closed");
    let start = Instant::now();
    let store = Store::open(&path).unwrap();
    println!("opened in {:?}", start.elapsed());
    store.keyspace("default").unwrap().insert("key", "value").unwrap();
    assert_small(&path, "with one entry");
}
