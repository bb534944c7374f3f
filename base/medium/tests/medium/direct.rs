//! Direct access: shared mappings show the file's bytes, flushes and fences are counted, and media
//! that are not durable memory are refused.

use std::path::Path;
use std::sync::Arc;

use adamant_medium::address::persist::{Flushing, PersistCounts};
use adamant_medium::address::region::Region;
use adamant_medium::bare::Bare;
use adamant_medium::error::Error;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File};
use adamant_medium::system::os::OsDirectory;

const PAGE: u64 = 4096;

/// Bytes of a region that a test mapped.
fn bytes(region: &Region, offset: u64, len: usize) -> Vec<u8> {
    // SAFETY: the tests stay within the range that they mapped.
    let start = unsafe { region.base().as_ptr().add(offset as usize) };
    // SAFETY: as above; no thread writes meanwhile.
    unsafe { std::slice::from_raw_parts(start, len) }.to_vec()
}

fn shared(file: &Arc<dyn File>, pages: u64, file_offset: u64) -> Region {
    let region = Region::reserve(1 << 21, 1).expect("a small one");
    // SAFETY: the region is new.
    unsafe { file.map_shared(&region, 0, file_offset, pages * PAGE) }.expect("is direct");
    region
}

fn maps_and_copies(directory: &dyn Directory, how: Flushing) {
    let file = directory.create("file").expect("new");
    file.allocate(0, 4 * PAGE).expect("room");
    file.write_at(b"before", 2 * PAGE).expect("writes");
    let region = shared(&file, 3, PAGE);
    assert_eq!(bytes(&region, PAGE, 6), b"before", "written before it was mapped");
    file.write_at(b"behind", 2 * PAGE).expect("writes");
    assert_eq!(bytes(&region, PAGE, 6), b"behind", "written behind the mapping");
    let persist = directory.persist(how, "file").expect("asked").expect("is direct");
    let mut random = fastrand::Rng::with_seed(3);
    for len in [0, 1, 63, 64, 65, 200, 1023, 1024, 1025, 4096, 8000] {
        for at in [0, 1, 17, 64, 100] {
            let data: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            // SAFETY: mapped above, and no reference into it exists.
            unsafe { persist.copy(&region, at, &data) };
            persist.fence();
            let mut found = vec![0; len];
            file.read_at(&mut found, PAGE + at).expect("reads");
            assert_eq!(found, data, "{len} bytes at {at}");
        }
    }
}

#[test]
fn a_shared_mapping_is_the_file() {
    for how in [Flushing::Volatile, Flushing::None] {
        maps_and_copies(&MemoryDirectory::new(), how);
    }
}

#[test]
fn tmpfs_is_a_medium_only_when_asked_for() {
    // Most Linux systems have a tmpfs there; elsewhere this tests nothing.
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let place = tempfile::tempdir_in("/dev/shm").expect("can be written");
    let directory = OsDirectory::open(place.path()).expect("exists");
    let refused = directory.persist(Flushing::Auto, "pool");
    assert!(refused.expect("asked").is_none());
    maps_and_copies(&directory, Flushing::Volatile);
}

#[test]
fn a_page_cache_is_no_medium() {
    // The sources lie on a disk; a checkout on tmpfs or on DAX tests nothing here.
    let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("can be written");
    let directory = OsDirectory::open(place.path()).expect("exists");
    for how in [Flushing::Volatile, Flushing::None] {
        let persist = directory.persist(how, "file").expect("asked");
        let same = directory.persist(Flushing::Auto, "file").expect("asked");
        assert_eq!(persist.is_some(), same.is_some(), "a disk is none, whatever is asked");
    }
    let files = std::fs::read_dir(place.path()).expect("exists").count();
    assert_eq!(files, 0, "the trial leaves nothing behind");
}

#[test]
fn beyond_the_end_of_the_file_is_an_error() {
    let directory = MemoryDirectory::new();
    let file = directory.create("file").expect("new");
    file.allocate(0, PAGE).expect("room");
    let region = Region::reserve(1 << 21, 1).expect("a small one");
    // SAFETY: the region is new.
    let mapped = unsafe { file.map_shared(&region, 0, 0, 2 * PAGE) };
    assert!(matches!(mapped, Err(Error::Truncated { .. })), "{mapped:?}");
}

#[test]
fn lines_and_fences_are_counted() {
    let directory = MemoryDirectory::new();
    let file = directory.create("file").expect("new");
    file.allocate(0, PAGE).expect("room");
    let region = shared(&file, 1, 0);
    let persist = directory.persist(Flushing::Volatile, "file").expect("asked").expect("is direct");
    assert_ne!(persist.instruction(), "none");
    persist.flush(&region, 0, 0);
    assert_eq!(persist.counts(), PersistCounts::default());
    persist.flush(&region, 60, 8);
    persist.fence();
    assert_eq!(persist.counts(), PersistCounts { lines: 2, fences: 1 });
    // SAFETY: mapped above, and no reference into it exists.
    unsafe { persist.copy(&region, 1, &[7; 2000]) };
    assert_eq!(persist.counts(), PersistCounts { lines: 34, fences: 1 });
    let silent = directory.persist(Flushing::None, "file").expect("asked").expect("is direct");
    silent.flush(&region, 60, 8);
    silent.fence();
    assert_eq!(silent.counts(), PersistCounts { lines: 0, fences: 1 });
    assert_eq!(silent.instruction(), "none");
}

#[test]
#[should_panic(expected = "beyond a region")]
fn a_flush_beyond_the_region_is_refused() {
    let region = Region::reserve(1 << 21, 1).expect("a small one");
    let persist = MemoryDirectory::new()
        .persist(Flushing::Volatile, "file")
        .expect("asked")
        .expect("is direct");
    persist.flush(&region, region.bytes(), 1);
}

#[test]
fn bare_memory_has_no_name_and_ends_where_it_was_asked_to() {
    const MEMORY: &str = "/dev/shm";
    if !Path::new(MEMORY).is_dir() {
        return;
    }
    let place = tempfile::tempdir_in(MEMORY).unwrap();
    let directory = OsDirectory::open(place.path()).unwrap();
    let mut bare = Bare::create(&directory, 5000, Flushing::Volatile).unwrap();
    assert_eq!(directory.list().unwrap(), Vec::<String>::new());
    bare.back(0, 8192).unwrap();
    for at in [0, 4090, 8192 - 1100] {
        bare.store(at, &[at as u8; 1100]);
        bare.fence();
    }
    let beyond = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        bare.store(8192 - 63, &[1; 64]);
    }));
    assert!(beyond.is_err(), "a store beyond the end is refused");
}
