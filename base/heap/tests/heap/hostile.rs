//! Forged bytes of a pool or a log, under checksums that match: errors or wrong numbers, but no
//! panic and no hang, whatever is then asked of the heap.

use std::sync::Arc;

use adamant_heap::layout::{CHECKPOINT_OFFSETS, PAGE_BYTES, TABLE_BASE};
use adamant_heap::layout::{checksum_file_offset, file_offset};
use adamant_heap::{Durability, Error, Heap, Options, Read, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::{crc32c, page_checksum};

/// Sizes of the runs and extents.
const SIZES: [u64; 6] = [8, 100, 1000, 5000, 40_000, 300_000];
/// Bytes of a header or a checkpoint before its checksum, by where it begins.
const SUMMED: [(u64, usize, bool); 3] =
    [(0, 56, false), (CHECKPOINT_OFFSETS[0], 60, true), (CHECKPOINT_OFFSETS[1], 60, true)];

fn options() -> Options {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    options
}

fn make(heap: &Heap, bytes: u64) -> Result<u64, Error> {
    heap.transaction(Durability::Sync, |tx| {
        let block = tx.reserve(bytes)?;
        tx.write(block, 0, 8)?.fill(7);
        Ok(block)
    })
}

fn bytes_of(file: &Arc<dyn File>) -> Vec<u8> {
    let mut bytes = vec![0; file.len().expect("in memory") as usize];
    file.read_at(&mut bytes, 0).expect("in memory");
    bytes
}

/// A directory with these files.
fn directory_of(pool: &[u8], logs: &[(String, Vec<u8>)]) -> Arc<dyn Directory> {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let log = directory.subdirectory("log").expect("in memory");
    directory.create("pool").expect("new").write_at(pool, 0).expect("in memory");
    for (name, bytes) in logs {
        log.create(name).expect("new").write_at(bytes, 0).expect("in memory");
    }
    directory
}

/// Recomputes the checksum of the part of the pool that holds a byte.
fn sum(pool: &mut [u8], at: u64) {
    for (start, len, has_uuid) in SUMMED {
        let start = start as usize;
        if (start..start + len).contains(&(at as usize)) {
            let seed = if has_uuid { crc32c(0, &pool[40..56]) } else { 0 };
            let crc = crc32c(seed, &pool[start..start + len]);
            pool[start + len..start + len + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
    for page in [0, PAGE_BYTES, TABLE_BASE] {
        let start = file_offset(page);
        if (start..start + PAGE_BYTES).contains(&at) {
            let crc = page_checksum(&pool[start as usize..][..PAGE_BYTES as usize]);
            pool[checksum_file_offset(page) as usize..][..4].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// Opens the heap and does everything to it. The results do not matter.
fn exercise(directory: Arc<dyn Directory>, blocks: &[u64]) {
    let Ok((heap, _)) = Heap::open(directory, options()) else { return };
    let _ = (heap.stats(), heap.check());
    for block in blocks.iter().copied().chain([0, PAGE_BYTES, TABLE_BASE, u64::MAX]) {
        let _ = heap.view().expect("ours").block(block).map(<[u8]>::len);
        let _ = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
            tx.write(block, 0, 8)?.fill(1);
            Ok(())
        });
        let _ = heap.transaction::<_, Error>(Durability::Buffered, |tx| tx.free(block));
        let _ = make(&heap, SIZES[(block % 6) as usize]);
    }
    let _ = (heap.check(), heap.close());
}

#[test]
fn hostile_bytes_are_no_panic() {
    for is_closed in [false, true] {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let (heap, _) = Heap::open(Arc::clone(&directory), options()).expect("opens");
        let mut blocks: Vec<u64> = SIZES.map(|bytes| make(&heap, bytes).expect("room")).into();
        heap.checkpoint().expect("nothing fails");
        blocks.extend(SIZES.map(|bytes| make(&heap, bytes).expect("room")));
        if is_closed {
            heap.close().expect("nothing fails");
        }
        let pool = bytes_of(&directory.open("pool").expect("in memory").expect("is there"));
        let log = directory.subdirectory("log").expect("in memory");
        let logs: Vec<(String, Vec<u8>)> = log
            .list()
            .expect("in memory")
            .into_iter()
            .map(|name| {
                let file = log.open(&name).expect("in memory").expect("is there");
                (name, bytes_of(&file))
            })
            .collect();
        drop(heap);
        let descriptors = file_offset(TABLE_BASE);
        let places: Vec<u64> = (0..56)
            .chain(CHECKPOINT_OFFSETS.into_iter().flat_map(|slot| slot..slot + 60))
            .chain(descriptors..descriptors + 8 * 200)
            .chain(file_offset(0)..file_offset(0) + 24)
            .chain(file_offset(PAGE_BYTES)..file_offset(PAGE_BYTES) + 16 * 150)
            .collect();
        for seed in 0..600 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut pool, mut logs) = (pool.clone(), logs.clone());
            if seed % 5 == 0 {
                let (_, bytes) = &mut logs[0];
                let at = random.usize(..56);
                bytes[at..56.min(at + 8)].fill(random.u8(..));
                let crc = crc32c(0, &bytes[..56]);
                bytes[56..60].copy_from_slice(&crc.to_le_bytes());
            } else {
                let at = places[random.usize(..places.len())];
                let len = random.usize(1..=8 - (at % 8) as usize);
                pool[at as usize..][..len].fill([0xFF, random.u8(..)][random.usize(..2)]);
                sum(&mut pool, at);
            }
            println!("seed {seed}, closed {is_closed}");
            exercise(directory_of(&pool, &logs), &blocks);
        }
    }
}
