//! Stores through memory and writes by calls yield the same bytes for every reader.

use std::sync::Arc;

use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File};
use adamant_medium::system::os::OsDirectory;

/// More than two windows, so that they move.
const FILE_BYTES: usize = (2 << 20) + 12_288;

fn backed(directory: &dyn Directory) -> Arc<dyn File> {
    let file = directory.create("log").unwrap();
    file.allocate(0, FILE_BYTES as u64).unwrap();
    file.write_at(&vec![0; FILE_BYTES], 0).unwrap();
    file.sync().unwrap();
    file
}

fn bytes(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn both_ways_agree(directory: &dyn Directory) {
    let file = backed(directory);
    let mut random = fastrand::Rng::with_seed(11);
    let mut model = vec![0; FILE_BYTES];
    for step in 0..2_000 {
        let len = random.usize(0..if step % 100 == 0 { FILE_BYTES / 2 } else { 600 });
        let at = random.usize(..=FILE_BYTES - len);
        let mut written = vec![0; len];
        random.fill(&mut written);
        model[at..at + len].copy_from_slice(&written);
        match random.u8(..4) {
            0 => file.write_at(&written, at as u64).unwrap(),
            _ => file.write_mapped_at(&written, at as u64).unwrap(),
        }
        let mut found = vec![0; len];
        file.read_at(&mut found, at as u64).unwrap();
        assert!(found == written, "step {step}: {len} bytes at {at}");
        if step % 200 == 0 {
            file.sync().unwrap();
        }
    }
    assert!(bytes(&*file) == model);
    // Another handle reads the same.
    assert!(bytes(&*directory.open("log").unwrap().unwrap()) == model);
}

#[test]
fn stores_and_writes_of_a_file_agree() {
    let path = tempfile::tempdir().unwrap();
    both_ways_agree(&OsDirectory::open(path.path()).unwrap());
}

#[test]
fn stores_and_writes_in_memory_agree() {
    both_ways_agree(&MemoryDirectory::new());
}

#[test]
fn beyond_the_end_a_store_is_a_write() {
    let path = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(path.path()).unwrap();
    let file = backed(&directory);
    // Half of it before the end; then far beyond.
    file.write_mapped_at(&[7; 100], FILE_BYTES as u64 - 50).unwrap();
    assert_eq!(file.len().unwrap(), FILE_BYTES as u64 + 50);
    file.write_mapped_at(&[8; 10], 2 * FILE_BYTES as u64).unwrap();
    let found = bytes(&*file);
    assert_eq!(found.len(), 2 * FILE_BYTES + 10);
    assert_eq!(found[FILE_BYTES - 50..FILE_BYTES + 50], [7; 100]);
    assert_eq!(found[2 * FILE_BYTES..], [8; 10]);
}

#[test]
fn a_file_that_was_cut_takes_stores_without_a_signal() {
    let path = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(path.path()).unwrap();
    let file = backed(&directory);
    file.write_mapped_at(&[7; 100], 8192).unwrap();
    file.set_len(4096).unwrap();
    file.write_mapped_at(&[9; 100], 8192).unwrap();
    let found = bytes(&*file);
    assert_eq!(found.len(), 8292);
    assert_eq!(found[4096..8192], [0; 4096]);
    assert_eq!(found[8192..], [9; 100]);
}
