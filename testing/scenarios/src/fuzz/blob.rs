//! Hostile blob files: changed or truncated bytes, with or without corrected checksums, and
//! arbitrary pointers.
//!
//! A value that is read without an error, under a checksum that was not corrected, is what was
//! written. The exception is the cache's answer for a pointer that was never written.

use std::sync::Arc;

use adamant_lsm::{
    BlobFile, BlobOptions, BlobPointer, BlobStream, BlobWriter, Cache, CacheOptions, Compression,
    Identity, check_blob_file, file_name,
};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_wire::checksum::crc32c;

const IDENTITY: Identity = Identity { uuid: [7; 16], number: 1 };
const FOOTER_BYTES: usize = 36;
/// Values of the file that is changed.
const VALUES: u8 = 24;
/// In the first byte of a program: checksums are corrected; values are not compressed, or by zstd.
const SEALED: u8 = 1;
const PLAIN: u8 = 2;
const ZSTD: u8 = 4;
/// Bytes of one change: which record (or the footer, or a pointer), the byte in it (2), the kind, a
/// parameter.
const CHANGE_BYTES: usize = 5;
/// Maximum changes of a program, so that it ends soon.
const CHANGES_MAX: usize = 40;

fn key(number: u8) -> Vec<u8> {
    if number == 0 { Vec::new() } else { format!("key {number}").into_bytes() }
}

/// Some are worth compressing, some not.
fn value(number: u8) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number.into());
    let bytes = usize::from(number) * 13;
    if number.is_multiple_of(2) {
        vec![number; bytes]
    } else {
        std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
    }
}

/// Changes a blob file as the program says and reads it in every way. Returns how many values were
/// read, of those that can be.
///
/// # Panics
/// If a value was read that was never written, under checksums that were not corrected.
pub fn run(program: &[u8]) -> u32 {
    let Some((&choice, changes)) = program.split_first() else { return 0 };
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let compression = match choice & (PLAIN | ZSTD) {
        0 => Compression::Lz4,
        ZSTD => Compression::zstd(),
        _ => Compression::None,
    };
    let mut writer = BlobWriter::create(&directory, IDENTITY, BlobOptions { compression }).unwrap();
    let written: Vec<BlobPointer> =
        (0..VALUES).map(|number| writer.add(&key(number), &value(number)).unwrap()).collect();
    writer.finish().unwrap();
    let mut pointers = written.clone();
    let file = directory.open(&file_name(IDENTITY.number)).unwrap().unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let places = places(&bytes, &pointers);
    let (changes, _) = changes.as_chunks::<CHANGE_BYTES>();
    let mut cut = None;
    for &[place, low, high, what, value] in &changes[..changes.len().min(CHANGES_MAX)] {
        let (start, end) = places[usize::from(place) % places.len()];
        let at = start + usize::from(u16::from_le_bytes([low, high])) % (end - start);
        match what % 8 {
            0..3 => bytes[at] = value,
            3 => bytes[at] ^= value,
            4 => bytes[at..end].fill(value),
            5 => cut = Some(at),
            6 => lead_astray(&mut pointers[usize::from(place % VALUES)], low, high, value),
            _ => pointers.swap(usize::from(place % VALUES), usize::from(value % VALUES)),
        }
    }
    let is_sealed = choice & SEALED != 0;
    if is_sealed {
        seal(&mut bytes, &places);
    }
    file.write_at(&bytes, 0).unwrap();
    cut.into_iter().for_each(|cut| file.set_len(cut as u64).unwrap());
    read(&directory, &pointers, &written, is_sealed)
}

/// The ranges of records and of the footer.
fn places(bytes: &[u8], pointers: &[BlobPointer]) -> Vec<(usize, usize)> {
    let footer = bytes.len() - FOOTER_BYTES;
    let starts = pointers.iter().map(|pointer| pointer.offset as usize).chain([footer]);
    let starts: Vec<usize> = starts.chain([bytes.len()]).collect();
    starts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Changes a pointer.
fn lead_astray(pointer: &mut BlobPointer, low: u8, high: u8, value: u8) {
    match low % 4 {
        0 => pointer.offset = pointer.offset.wrapping_add_signed(i64::from(value as i8)),
        1 => pointer.offset ^= u64::from(value) << (high % 8 * 8),
        2 => pointer.stored_bytes ^= u32::from(value) << (high % 4 * 8),
        _ => pointer.file ^= u64::from(value),
    }
}

/// Corrects all checksums.
fn seal(bytes: &mut [u8], places: &[(usize, usize)]) {
    let seed = crc32c(crc32c(0, &IDENTITY.uuid), &IDENTITY.number.to_le_bytes());
    let Some((&(footer, end), records)) = places.split_last() else { return };
    for &(start, end) in records {
        let seed = crc32c(seed, &(start as u64).to_le_bytes());
        let checksum = crc32c(seed, &bytes[start + 4..end]);
        bytes[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    }
    let checksum = crc32c(seed, &bytes[footer..end - 4]);
    bytes[end - 4..].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads every value by its pointer, through a cache and without, and all of them in order.
fn read(
    directory: &Arc<dyn Directory>,
    pointers: &[BlobPointer],
    written: &[BlobPointer],
    is_sealed: bool,
) -> u32 {
    drop(check_blob_file(directory, IDENTITY));
    if let Ok(stream) = BlobStream::open(directory, IDENTITY) {
        for found in stream.take_while(Result::is_ok).flatten() {
            let is_right =
                || (0..VALUES).any(|of| found.key == key(of) && found.value == value(of));
            assert!(is_sealed || is_right(), "a value that nobody wrote");
        }
    }
    let cache = Arc::new(Cache::new(CacheOptions {
        block_bytes: 8 << 10,
        pinned_bytes: 1 << 10,
        file_count: 1,
    }));
    let Ok(file) = BlobFile::open(directory, IDENTITY, &cache, &Arc::default()) else { return 0 };
    let mut whole = 0;
    for (number, (pointer, written)) in (0..VALUES).zip(pointers.iter().zip(written)) {
        let key = key(number);
        // Cached values are not compared with the key again: they are correct for a pointer that
        // was written, such as a table returns under its checksums.
        let cached = (file.get(pointer, &key), !is_sealed && pointer == written);
        for (found, is_verified) in [cached, (file.get_uncached(pointer, &key), !is_sealed)] {
            let Ok(found) = found else { continue };
            assert!(!is_verified || found == value(number), "not the value of {number}");
            whole += 1;
        }
    }
    whole
}
