//! Readers beside a writer: heaps of one directory, as other processes have them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adamant_heap::{Durability, Error, Heap, MemoryDirectory, OsDirectory, Read, Refresh, Write};
use adamant_medium::storage::Directory;

const BLOCK_BYTES: usize = 3000;

fn open_writer(directory: &Arc<dyn Directory>, reader_bytes_max: u64) -> Heap {
    let mut options = crate::setup::options();
    options.address_bytes_max = 1 << 30;
    options.log_bytes_max = 4 << 20;
    options.reader_bytes_max = reader_bytes_max;
    Heap::open(Arc::clone(directory), options).expect("opens").0
}

fn open_reader(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = crate::setup::options();
    options.address_bytes_max = 1 << 30;
    options.read_only = true;
    options.beside_writer = true;
    Heap::open(Arc::clone(directory), options).expect("opens beside").0
}

fn byte_of(index: u64, version: u64) -> u8 {
    (index.wrapping_mul(31) ^ version.wrapping_mul(151)) as u8
}

fn make(heap: &Heap, count: u64) -> Vec<u64> {
    let made = heap.transaction(Durability::Buffered, |tx| {
        let mut blocks = Vec::new();
        for index in 0..count {
            let block = tx.reserve(BLOCK_BYTES as u64)?;
            tx.write(block, 0, BLOCK_BYTES)?.fill(byte_of(index, 0));
            blocks.push(block);
        }
        Ok::<_, Error>(blocks)
    });
    made.expect("commits")
}

fn overwrite(heap: &Heap, blocks: &[u64], version: u64) {
    let done = heap.transaction(Durability::Buffered, |tx| {
        for (index, block) in (0..).zip(blocks) {
            tx.write(*block, 0, BLOCK_BYTES)?.fill(byte_of(index, version));
        }
        Ok::<_, Error>(())
    });
    done.expect("commits");
}

/// Checks that a reader has one version of all blocks.
fn check(reader: &Heap, blocks: &[u64], version: u64) {
    let view = reader.view().expect("open");
    for (index, block) in (0..).zip(blocks) {
        let bytes = view.block(*block).expect("read");
        let byte = byte_of(index, version);
        let is_one = bytes[..BLOCK_BYTES].iter().all(|found| *found == byte);
        assert!(is_one, "block {index} in version {version}: {} for {byte}", bytes[0]);
    }
}

/// Moves a reader on, or opens it again if it cannot move; returns whether it moved in place.
fn refresh(reader: &mut Heap, directory: &Arc<dyn Directory>) -> bool {
    let before = reader.last_commit();
    let refresh = reader.refresh().expect("refreshes");
    match refresh {
        Refresh::Unchanged => assert_eq!(reader.last_commit(), before),
        Refresh::Later => assert!(reader.last_commit() > before),
        Refresh::InUse => panic!("nothing is in use"),
        Refresh::Closed => {
            assert!(reader.view().is_err(), "no half of two moments is seen");
            *reader = open_reader(directory);
        }
    }
    refresh != Refresh::Closed
}

fn left_behind(directory: &Arc<dyn Directory>) -> Vec<String> {
    directory.subdirectory("readers").expect("is there").list().expect("is listed")
}

#[test]
fn each_reader_sees_its_moment_whatever_is_written_since() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open_writer(&directory, 1 << 30);
    let blocks = make(&heap, 700);
    let mut readers = vec![open_reader(&directory)];
    for version in 1..6 {
        overwrite(&heap, &blocks, version);
        if version != 3 {
            heap.checkpoint().expect("is made");
        }
        readers.push(open_reader(&directory));
        // One loads its pages early, the others at the end.
        check(&readers[1], &blocks, 1);
    }
    overwrite(&heap, &blocks, 6);
    heap.close().expect("closes");
    for (version, reader) in (0..).zip(&readers) {
        check(reader, &blocks, version);
        assert!(reader.check().expect("checks").findings.is_empty(), "reader {version}");
    }
    drop(readers);
    // The next batch removes what was kept.
    let heap = open_writer(&directory, 1 << 30);
    overwrite(&heap, &blocks, 7);
    heap.checkpoint().expect("is made");
    assert_eq!(left_behind(&directory), Vec::<String>::new());
}

/// Writers that are closed, or end without, and begin anew; blocks that are freed and used again,
/// pages that are given back; readers that come and go.
#[test]
fn random_writers_and_readers() {
    let (mut refreshes, mut moved) = (0, 0);
    for seed in 0..24 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut heap = open_writer(&directory, 1 << 30);
        let mut blocks = make(&heap, 200);
        let mut readers: Vec<(Heap, Vec<u64>, u64)> = Vec::new();
        let mut last = 0;
        for version in 1..60 {
            match random.u32(..10) {
                0 => {
                    heap.close().expect("closes");
                    drop(heap);
                    heap = open_writer(&directory, 1 << 30);
                }
                1 => {
                    drop(heap);
                    heap = open_writer(&directory, 1 << 30);
                }
                2 => heap.checkpoint().expect("is made"),
                3 => {
                    heap.shrink().expect("shrinks");
                }
                4 => {
                    let (count, freed) = (random.u64(50..400), std::mem::take(&mut blocks));
                    heap.transaction(Durability::Buffered, |tx| {
                        freed.iter().try_for_each(|block| tx.free(*block))
                    })
                    .expect("commits");
                    blocks = make(&heap, count);
                    last = 0;
                }
                5 | 6 => {
                    heap.transaction(Durability::Buffered, |_| Ok::<_, Error>(()))
                        .expect("commits");
                    readers.push((open_reader(&directory), blocks.clone(), last));
                }
                7 if !readers.is_empty() => {
                    readers.swap_remove(random.usize(..readers.len()));
                }
                8 if !readers.is_empty() => {
                    let at = random.usize(..readers.len());
                    let (reader, seen, version) = &mut readers[at];
                    refreshes += 1;
                    moved += u32::from(refresh(reader, &directory));
                    assert_eq!(reader.last_commit(), heap.last_commit());
                    (*seen, *version) = (blocks.clone(), last);
                    check(reader, seen, last);
                }
                _ => {
                    overwrite(&heap, &blocks, version);
                    last = version;
                }
            }
            if let Some((reader, blocks, version)) = readers.last() {
                let some = random.usize(..=blocks.len());
                check(reader, &blocks[..some], *version);
            }
        }
        for (reader, blocks, version) in &readers {
            check(reader, blocks, *version);
            let findings = reader.check().expect("checks").findings;
            assert!(findings.is_empty(), "seed {seed}, version {version}: {findings:?}");
        }
    }
    assert!(refreshes > 50 && moved > refreshes / 2, "{moved} of {refreshes} in place");
}

/// One reader follows a writer, with some pages in memory and others not.
#[test]
fn a_reader_follows() {
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let heap = open_writer(&directory, 1 << 30);
        let blocks = make(&heap, 600);
        let mut versions = vec![0_u64; blocks.len()];
        let mut reader = open_reader(&directory);
        let mut closed = 0;
        for version in 1..200 {
            let start = random.usize(..blocks.len());
            let end = random.usize(start..=blocks.len());
            let some = if random.u8(..8) == 0 { start..end } else { start..end.min(start + 5) };
            heap.transaction(Durability::Buffered, |tx| {
                for index in some.clone() {
                    let byte = byte_of(index as u64, version);
                    tx.write(blocks[index], 0, BLOCK_BYTES)?.fill(byte);
                }
                Ok::<_, Error>(())
            })
            .expect("commits");
            versions[some].fill(version);
            if random.u8(..10) == 0 {
                heap.checkpoint().expect("is made");
            }
            if random.u8(..3) > 0 {
                continue;
            }
            closed += u32::from(!refresh(&mut reader, &directory));
            let view = reader.view().expect("open");
            for _ in 0..random.usize(..200) {
                let index = random.usize(..blocks.len());
                let bytes = view.block(blocks[index]).expect("read");
                let byte = byte_of(index as u64, versions[index]);
                let is_one = bytes[..BLOCK_BYTES].iter().all(|found| *found == byte);
                assert!(is_one, "seed {seed}, block {index} in version {version}");
            }
        }
        refresh(&mut reader, &directory);
        let findings = reader.check().expect("checks").findings;
        assert!(findings.is_empty(), "seed {seed}: {findings:?}");
        assert_eq!(closed, 0, "seed {seed}: it need not be opened again");
        // What it knew before needs nothing any more.
        heap.checkpoint().expect("is made");
        refresh(&mut reader, &directory);
        overwrite(&heap, &blocks, 1);
        heap.checkpoint().expect("is made");
        let kept = left_behind(&directory).iter().filter(|name| name.ends_with(".pages")).count();
        assert_eq!(kept, 1, "seed {seed}: {:?}", left_behind(&directory));
    }
}

#[test]
fn a_reader_in_use_stays() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open_writer(&directory, 1 << 30);
    let blocks = make(&heap, 10);
    let reader = open_reader(&directory);
    let slice = reader.view().expect("open").lend(blocks[3], BLOCK_BYTES).expect("lent");
    overwrite(&heap, &blocks, 1);
    assert_eq!(reader.refresh().expect("stays"), Refresh::InUse);
    check(&reader, &blocks, 0);
    assert!(slice.iter().all(|found| *found == byte_of(3, 0)));
    drop(slice);
    let pin = reader.pin().expect("pins");
    assert_eq!(reader.refresh().expect("stays"), Refresh::InUse);
    drop(pin);
    assert_eq!(reader.refresh().expect("moves"), Refresh::Later);
    check(&reader, &blocks, 1);
    assert_eq!(reader.refresh().expect("stays"), Refresh::Unchanged);
    assert_eq!(heap.refresh().expect("is the newest"), Refresh::Unchanged);
}

/// Each page is kept once for a reader, however often it is overwritten.
#[test]
fn a_page_is_kept_once() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    // Room for one version of all blocks.
    let heap = open_writer(&directory, 4 << 20);
    let blocks = make(&heap, 700);
    heap.checkpoint().expect("is made");
    let old = open_reader(&directory);
    for version in 1..20 {
        overwrite(&heap, &blocks, version);
        heap.checkpoint().expect("is made");
    }
    check(&old, &blocks, 0);
}

/// A reader that is too old for what is kept begins anew.
#[test]
fn a_reader_that_was_overtaken_is_closed_by_a_refresh() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open_writer(&directory, 1 << 20);
    let blocks = make(&heap, 700);
    heap.checkpoint().expect("is made");
    let mut reader = open_reader(&directory);
    for version in 1..4 {
        overwrite(&heap, &blocks, version);
        heap.checkpoint().expect("is made");
    }
    assert!(!refresh(&mut reader, &directory));
    check(&reader, &blocks, 3);
}

#[test]
fn a_reader_that_needs_too_much_is_told() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open_writer(&directory, 4 << 20);
    let blocks = make(&heap, 700);
    heap.checkpoint().expect("is made");
    let old = open_reader(&directory);
    for version in 1..4 {
        overwrite(&heap, &blocks, version);
        heap.checkpoint().expect("is made");
    }
    let new = open_reader(&directory);
    overwrite(&heap, &blocks, 4);
    heap.checkpoint().expect("is made");
    check(&new, &blocks, 3);
    let view = old.view().expect("open");
    let mut told = 0;
    for (index, block) in (0..).zip(&blocks) {
        match view.block(*block) {
            Ok(bytes) => assert_eq!(bytes[0], byte_of(index, 0), "block {index}"),
            Err(error) => {
                assert!(error.to_string().contains("too old"), "{error}");
                told += 1;
            }
        }
    }
    assert!(told > 600, "{told} errors");
}

#[test]
fn a_reader_waits_for_a_commit() {
    let temporary = tempfile::tempdir().expect("a directory");
    let path = temporary.path().join("heap");
    let directory: Arc<dyn Directory> = Arc::new(OsDirectory::create(&path).expect("made"));
    let heap = open_writer(&directory, 1 << 30);
    let blocks = make(&heap, 10);
    let mut reader = open_reader(&directory);
    assert!(!reader.wait_for_later(Duration::from_millis(20)).expect("waits"));
    assert!(!heap.wait_for_later(Duration::from_millis(20)).expect("is the newest"));
    const ROUNDS: u64 = 300;
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1..=ROUNDS {
                // The next one when that was seen, with checkpoints and rests in between.
                let start = Instant::now();
                while seen.load(Ordering::Acquire) + 1 < version {
                    assert!(start.elapsed() < Duration::from_secs(60), "version {version}");
                    std::thread::yield_now();
                }
                overwrite(&heap, &blocks, version);
                if version % 16 == 0 {
                    heap.checkpoint().expect("is made");
                }
            }
        });
        while seen.load(Ordering::Relaxed) < ROUNDS {
            assert!(reader.wait_for_later(Duration::from_secs(100)).expect("waits"));
            refresh(&mut reader, &directory);
            let byte = reader.view().expect("open").block(blocks[0]).expect("read")[0];
            let before = seen.load(Ordering::Relaxed);
            let version = (before..=before + 1).find(|version| byte_of(0, *version) == byte);
            seen.store(version.expect("the next one, or the same"), Ordering::Release);
        }
    });
}

/// The writer runs while readers open: each sees one version of all blocks, and none goes back.
#[test]
fn readers_that_open_while_pages_are_written() {
    let temporary = tempfile::tempdir().expect("a directory");
    let path = temporary.path().join("heap");
    let directory: Arc<dyn Directory> = Arc::new(OsDirectory::create(&path).expect("made"));
    let heap = open_writer(&directory, 1 << 30);
    let blocks = make(&heap, 300);
    let stamp = |version: u64| {
        let done = heap.transaction(Durability::Buffered, |tx| {
            for block in &blocks {
                tx.write(*block, 0, 8)?.copy_from_slice(&version.to_le_bytes());
            }
            Ok::<_, Error>(())
        });
        done.expect("commits");
    };
    stamp(1);
    let (is_over, opened) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let directory: Arc<dyn Directory> =
                    Arc::new(OsDirectory::open(&path).expect("is there"));
                let (mut newest, mut rounds) = (0, 0_u32);
                let mut reader = open_reader(&directory);
                while !is_over.load(Ordering::Relaxed) {
                    rounds += 1;
                    match rounds % 10 {
                        0 => reader = open_reader(&directory),
                        _ => _ = refresh(&mut reader, &directory),
                    }
                    let seen = |index: usize| {
                        let view = reader.view().expect("open");
                        view.block(blocks[index]).expect("read")[..8].to_vec()
                    };
                    let version = u64::from_le_bytes(seen(0).try_into().expect("8 bytes"));
                    assert!(version >= newest, "{version} after {newest}");
                    for index in [299, 150, 20, 280] {
                        let found = u64::from_le_bytes(seen(index).try_into().expect("8 bytes"));
                        assert_eq!(found, version, "block {index}");
                        std::thread::yield_now();
                    }
                    newest = version;
                    opened.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut version = 1;
        while opened.load(Ordering::Relaxed) < 1000 && version < 100_000 {
            version += 1;
            stamp(version);
            if version % 20 == 0 {
                heap.checkpoint().expect("is made");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(opened.load(Ordering::Relaxed) >= 1000, "{opened:?} readers");
}

/// What looks like damage may be a record that is half written, or a log file that is overwritten
/// meanwhile: only opening says that it is damage.
#[test]
fn damage_of_the_log_closes_a_reader_until_it_is_gone() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open_writer(&directory, 1 << 30);
    let blocks = make(&heap, 30);
    let reader = open_reader(&directory);
    heap.checkpoint().expect("is made");
    for version in 1..=5 {
        overwrite(&heap, &blocks, version);
        // Else what follows a record does not prove that it was there.
        heap.sync().expect("is durable");
    }
    let log = directory.subdirectory("log").expect("is there");
    let files = log.list().expect("is listed");
    let files = files.iter().map(|name| log.open(name).expect("opens").expect("is there"));
    let version = [byte_of(0, 3); 64];
    let mut damaged = 0;
    for file in files {
        let mut bytes = vec![0; file.len().expect("a length") as usize];
        file.read_at(&mut bytes, 0).expect("reads");
        let Some(at) = bytes.windows(version.len()).position(|found| found == version) else {
            continue;
        };
        file.write_at(&[!version[0]], at as u64).expect("writes");
        assert_eq!(reader.refresh().expect("no error"), Refresh::Closed);
        assert!(reader.view().is_err(), "no half of two moments is seen");
        damaged += 1;
        let mut options = crate::setup::options();
        (options.read_only, options.beside_writer) = (true, true);
        let opened = Heap::open(Arc::clone(&directory), options).map(|_| ());
        assert!(matches!(opened, Err(Error::Damaged { .. })), "{opened:?}");
        file.write_at(&version[..1], at as u64).expect("writes");
    }
    assert_eq!(damaged, 1, "one file has the record");
    check(&open_reader(&directory), &blocks, 5);
}
