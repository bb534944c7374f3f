//! Readers beside a writer, in every order: between any two calls that one of them makes of the
//! medium, the other does all that it does.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant_heap::{Durability, Error, Heap, Options, Read, Refresh, Write};
use adamant_medium::error::Error as MediumError;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_sim::{Call, Hooked};
use parking_lot::Mutex;

const BLOCKS: u64 = 40;
const BLOCK_BYTES: usize = 3000;
/// Calls between which the other does something, at most: more would be a fault of the test.
const CALLS_MAX: u64 = 5_000;

fn options() -> Options {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    options.log_bytes_max = 4 << 20;
    options
}

fn open_writer(directory: Arc<dyn Directory>) -> Heap {
    Heap::open(directory, options()).expect("opens").0
}

fn open_reader(directory: Arc<dyn Directory>) -> Heap {
    let mut options = options();
    options.read_only = true;
    options.beside_writer = true;
    Heap::open(directory, options).expect("opens beside").0
}

fn write(heap: &Heap, blocks: &[u64], version: u8) {
    let done = heap.transaction(Durability::Buffered, |tx| {
        for block in blocks {
            tx.write(*block, 0, BLOCK_BYTES)?.fill(version);
        }
        Ok::<_, Error>(())
    });
    done.expect("commits");
}

/// A heap of version 1, half of which is in the pool.
fn make(directory: Arc<dyn Directory>) -> (Heap, Vec<u64>) {
    let heap = open_writer(directory);
    let made = heap.transaction(Durability::Buffered, |tx| {
        (0..BLOCKS).map(|_| tx.reserve(BLOCK_BYTES as u64)).collect::<Result<Vec<_>, Error>>()
    });
    let blocks = made.expect("commits");
    write(&heap, &blocks, 0);
    heap.checkpoint().expect("is made");
    write(&heap, &blocks, 1);
    (heap, blocks)
}

/// The version of all blocks.
fn version_of(reader: &Heap, blocks: &[u64]) -> u8 {
    let view = reader.view().expect("open");
    let version = view.block(blocks[0]).expect("read")[0];
    for block in blocks {
        let bytes = &view.block(*block).expect("read")[..BLOCK_BYTES];
        assert!(bytes.iter().all(|byte| *byte == version), "{} beside {version}", bytes[0]);
    }
    version
}

/// Calls `hook` before the call of that number, and returns how many there were.
fn at_call(
    directory: &MemoryDirectory,
    number: u64,
    hook: impl Fn() + Send + Sync + 'static,
) -> (Arc<dyn Directory>, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let hooked = Hooked::new(directory.clone(), move |_, _| {
        if counted.fetch_add(1, Ordering::Relaxed) == number {
            hook();
        }
        Ok(())
    });
    (Arc::new(hooked.within()), calls)
}

/// Runs something that acts at the call of a number and counts its calls, for each number.
fn at_each_call(calls_min: u64, run: impl Fn(u64) -> Arc<AtomicU64>) {
    let mut number = 0;
    while run(number).load(Ordering::Relaxed) > number {
        number += 1;
        assert!(number < CALLS_MAX, "it ends");
    }
    assert!(number >= calls_min, "{number} calls");
}

/// What a writer does while a reader opens, or reads.
type Act = fn(&mut Option<Heap>, &MemoryDirectory, &[u64]);

/// A checkpoint; two, so that the tables of doubt and the log are used again; the end of the
/// writer, and a new one that recovers.
const ACTS: [Act; 3] = [
    |heap, _, blocks| {
        let heap = heap.as_ref().expect("is open");
        write(heap, blocks, 3);
        heap.checkpoint().expect("is made");
    },
    |heap, _, blocks| {
        let heap = heap.as_ref().expect("is open");
        for version in [3, 4] {
            write(heap, blocks, version);
            heap.checkpoint().expect("is made");
        }
    },
    |heap, directory, blocks| {
        write(heap.as_ref().expect("is open"), blocks, 3);
        *heap = None;
        *heap = Some(open_writer(Arc::new(directory.clone())));
    },
];

#[test]
fn whatever_is_written_between_two_calls_of_a_reader() {
    for (kind, act) in ACTS.into_iter().enumerate() {
        at_each_call(20, |number| {
            let directory = MemoryDirectory::new();
            let (heap, blocks) = make(Arc::new(directory.clone()));
            let heap = Arc::new(Mutex::new(Some(heap)));
            let (acting, written, inner) = (Arc::clone(&heap), blocks.clone(), directory.clone());
            let (hooked, calls) =
                at_call(&directory, number, move || act(&mut acting.lock(), &inner, &written));
            let reader = open_reader(hooked);
            let version = version_of(&reader, &blocks);
            assert!([1, 3, 4].contains(&version), "act {kind}, call {number}: {version}");
            act(&mut heap.lock(), &directory, &blocks);
            assert_eq!(version_of(&reader, &blocks), version, "act {kind}, call {number}");
            assert!(reader.check().expect("checks").findings.is_empty());
            calls
        });
    }
}

/// Moves a reader on, or opens it again if it cannot move; whether it moved.
fn refresh(reader: &mut Heap, directory: &Arc<dyn Directory>) -> bool {
    match reader.refresh().expect("no call fails") {
        Refresh::Unchanged | Refresh::Later => true,
        Refresh::Closed => {
            assert!(reader.view().is_err(), "no half of two moments is seen");
            *reader = open_reader(Arc::clone(directory));
            false
        }
        Refresh::InUse => panic!("nothing is in use"),
    }
}

/// The same for a reader that moves on: behind records alone, and behind a checkpoint.
#[test]
fn whatever_is_written_between_two_calls_of_a_refresh() {
    for ((kind, act), before) in
        ACTS.into_iter().enumerate().flat_map(|act| [0, 1, 2].map(|before| (act, before)))
    {
        let moved = AtomicU64::new(0);
        at_each_call(10, |number| {
            let directory = MemoryDirectory::new();
            let (heap, blocks) = make(Arc::new(directory.clone()));
            let heap = Arc::new(Mutex::new(Some(heap)));
            let (acting, written, inner) = (Arc::clone(&heap), blocks.clone(), directory.clone());
            let (hooked, calls) =
                at_call(&directory, number, move || act(&mut acting.lock(), &inner, &written));
            // Not while it is being opened.
            calls.store(u64::MAX / 2, Ordering::Relaxed);
            let mut reader = open_reader(Arc::clone(&hooked));
            // Some pages are in memory.
            assert_eq!(version_of(&reader, &blocks[..BLOCKS as usize / 2]), 1);
            {
                let heap = heap.lock();
                let heap = heap.as_ref().expect("is open");
                write(heap, &blocks, 2);
                if before > 0 {
                    heap.checkpoint().expect("is made");
                }
                if before > 1 {
                    write(heap, &blocks, 2);
                }
            }
            calls.store(0, Ordering::Relaxed);
            moved.fetch_add(refresh(&mut reader, &hooked).into(), Ordering::Relaxed);
            let counted = Arc::new(AtomicU64::new(calls.load(Ordering::Relaxed)));
            let version = version_of(&reader, &blocks);
            let at = format!("act {kind}, before {before}, call {number}");
            assert!((2..=4).contains(&version), "{at}: {version}");
            act(&mut heap.lock(), &directory, &blocks);
            assert_eq!(version_of(&reader, &blocks), version, "{at}");
            assert!(reader.check().expect("checks").findings.is_empty(), "{at}");
            refresh(&mut reader, &hooked);
            let newest = heap.lock().as_ref().expect("is open").last_commit();
            assert_eq!(reader.last_commit(), newest, "{at}");
            assert!(version_of(&reader, &blocks) >= version, "{at}");
            counted
        });
        assert!(moved.load(Ordering::Relaxed) > 0, "act {kind}: some move in place");
    }
}

/// A writer whose next checkpoint ends behind its pages, and before it counts.
fn ends_behind_pages(directory: &MemoryDirectory) -> (Arc<dyn Directory>, Arc<AtomicBool>) {
    let (ends, syncs) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let is_ending = Arc::clone(&ends);
    let hooked = Hooked::new(directory.clone(), move |call, path: &Path| {
        let is_pool = path.to_string_lossy().contains("pool");
        if !is_ending.load(Ordering::Relaxed) || !is_pool {
            return Ok(());
        }
        match call {
            // Behind the table, and behind the pages.
            Call::Sync => _ = syncs.fetch_add(1, Ordering::Relaxed),
            Call::Write if syncs.load(Ordering::Relaxed) >= 2 => {
                let source = ErrorKind::Other.into();
                return Err(MediumError::io("write", path, None, 0, source));
            }
            _ => {}
        }
        Ok(())
    });
    (Arc::new(hooked.within()), ends)
}

/// The same while a checkpoint is not finished, so that a reader moves on in place: its batches
/// leave out pages that were kept before, unless they know that a reader moves.
#[test]
fn a_batch_between_two_calls_of_a_refresh() {
    let moved = AtomicU64::new(0);
    at_each_call(10, |number| {
        let directory = MemoryDirectory::new();
        let (hooked_writer, ends) = ends_behind_pages(&directory);
        let (heap, blocks) = make(hooked_writer);
        let heap = Arc::new(Mutex::new(heap));
        let (acting, written) = (Arc::clone(&heap), blocks.clone());
        let (hooked, calls) = at_call(&directory, number, move || {
            ends.store(true, Ordering::Relaxed);
            write(&acting.lock(), &written, 3);
            acting.lock().checkpoint().expect_err("ends");
        });
        calls.store(u64::MAX / 2, Ordering::Relaxed);
        let mut reader = open_reader(Arc::clone(&hooked));
        write(&heap.lock(), &blocks, 2);
        heap.lock().checkpoint().expect("is made");
        let second = heap.lock().last_commit();
        calls.store(0, Ordering::Relaxed);
        moved.fetch_add(refresh(&mut reader, &hooked).into(), Ordering::Relaxed);
        let counted = Arc::new(AtomicU64::new(calls.load(Ordering::Relaxed)));
        let version = version_of(&reader, &blocks);
        let expected = if reader.last_commit() == second { 2 } else { 3 };
        assert_eq!(version, expected, "call {number}");
        assert!(reader.check().expect("checks").findings.is_empty(), "call {number}");
        counted
    });
    assert!(moved.load(Ordering::Relaxed) > 10, "{moved:?} in place");
}

#[test]
fn whatever_is_read_between_two_calls_of_a_writer() {
    for is_recovered in [false, true] {
        at_each_call(20, |number| {
            let directory = MemoryDirectory::new();
            let (heap, blocks) = make(Arc::new(directory.clone()));
            let readers = Arc::new(Mutex::new(Vec::new()));
            let (opened, inner, read) = (Arc::clone(&readers), directory.clone(), blocks.clone());
            let plain: Arc<dyn Directory> = Arc::new(directory.clone());
            let following = Arc::new(Mutex::new((open_reader(Arc::clone(&plain)), 1)));
            version_of(&following.lock().0, &blocks[..BLOCKS as usize / 2]);
            let (follows, beside) = (Arc::clone(&following), Arc::clone(&plain));
            let open = move || {
                let mut follows = follows.lock();
                refresh(&mut follows.0, &beside);
                follows.1 = version_of(&follows.0, &read[..BLOCKS as usize / 3]);
                // One that reads now, and one that reads later.
                let (now, later) =
                    (open_reader(Arc::new(inner.clone())), open_reader(Arc::new(inner.clone())));
                let version = version_of(&now, &read);
                opened.lock().extend([(now, version), (later, version)]);
            };
            let (hooked, calls) = at_call(&directory, number, open);
            if is_recovered {
                drop(heap);
            } else {
                heap.close().expect("closes");
                drop(heap);
            }
            let heap = open_writer(hooked);
            write(&heap, &blocks, 2);
            heap.checkpoint().expect("is made");
            write(&heap, &blocks, 3);
            heap.checkpoint().expect("is made");
            heap.close().expect("closes");
            let (follows, version) = &mut *following.lock();
            assert_eq!(version_of(follows, &blocks), *version, "call {number}");
            refresh(follows, &plain);
            assert_eq!(version_of(follows, &blocks), 3, "call {number}");
            assert!(follows.check().expect("checks").findings.is_empty());
            for (reader, version) in &*readers.lock() {
                assert!((1..=3).contains(version), "call {number}: {version}");
                assert_eq!(version_of(reader, &blocks), *version, "call {number}");
                assert!(reader.check().expect("checks").findings.is_empty());
            }
            calls
        });
    }
}

fn names(directory: &MemoryDirectory) -> Vec<String> {
    directory.subdirectory("readers").expect("is there").list().expect("listed")
}

/// A regression: the log was read again, which the writer had used for later records.
#[test]
fn a_backup_by_a_reader_is_of_its_moment() {
    let directory = MemoryDirectory::new();
    let (heap, blocks) = make(Arc::new(directory.clone()));
    let reader = open_reader(Arc::new(directory.clone()));
    for version in 2..100 {
        write(&heap, &blocks, version);
        heap.checkpoint().expect("is made");
    }
    let target = MemoryDirectory::new();
    reader.back_up(&target).expect("is copied");
    let copy = open_writer(Arc::new(target));
    assert_eq!(version_of(&copy, &blocks), 1);
    assert!(copy.check().expect("checks").findings.is_empty());
}

/// What cannot be kept for readers fails no checkpoint, is told to them, and leaves nothing.
#[test]
fn a_full_disk_ends_readers_and_no_writer() {
    let directory = MemoryDirectory::new();
    let full = Arc::new(AtomicBool::new(false));
    let is_full = Arc::clone(&full);
    let hooked = Hooked::new(directory.clone(), move |call, path: &Path| {
        let is_kept = path.to_string_lossy().contains(".pages");
        if is_full.load(Ordering::Relaxed) && call == Call::Write && is_kept {
            let source = ErrorKind::StorageFull.into();
            return Err(MediumError::io("write", path, None, 0, source));
        }
        Ok(())
    });
    let (heap, blocks) = make(Arc::new(hooked.within()));
    full.store(true, Ordering::Relaxed);
    for round in 0..5 {
        let reader = open_reader(Arc::new(directory.clone()));
        write(&heap, &blocks, 2 + round);
        heap.checkpoint().expect("is made");
        let view = reader.view().expect("open");
        // Pages that the log named were in memory; all others are errors.
        let mut found = blocks.iter().map(|block| view.block(*block));
        assert!(found.all(|it| it.is_err() || it.is_ok_and(|bytes| bytes[0] == 1 + round)));
    }
    full.store(false, Ordering::Relaxed);
    write(&heap, &blocks, 9);
    heap.checkpoint().expect("is made");
    heap.close().expect("closes");
    assert_eq!(names(&directory), Vec::<String>::new());
}

/// Files of readers that died while they registered, of others, and of two that remove the same.
#[test]
fn what_lies_beside_readers_stops_no_writer() {
    let directory = MemoryDirectory::new();
    let reader = Arc::new(Mutex::new(None::<Heap>));
    let its = Arc::clone(&reader);
    let hooked = Hooked::new(directory.clone(), move |call, path: &Path| {
        if call == Call::Remove && path.to_string_lossy().ends_with(".place") {
            // At this moment it ends by itself.
            drop(its.lock().take());
        }
        Ok(())
    });
    let mut bounded = options();
    bounded.reader_bytes_max = 1 << 10;
    let heap = Heap::open(Arc::new(hooked.within()), bounded).expect("opens").0;
    let made = heap.transaction(Durability::Buffered, |tx| {
        (0..BLOCKS).map(|_| tx.reserve(BLOCK_BYTES as u64)).collect::<Result<Vec<_>, Error>>()
    });
    let blocks = made.expect("commits");
    *reader.lock() = Some(open_reader(Arc::new(directory.clone())));
    let readers = directory.subdirectory("readers").expect("is there");
    readers.create("00000000000000aa.place").expect("made");
    readers.create("00000000000000bb.reader").expect("made");
    readers.subdirectory("00000000000000cc.reader").expect("made");
    readers.create("ffffffffffffffff-0000000000000000.pages").expect("made");
    readers.create("0000000000000001-0000000000000000.pages.new").expect("made");
    for version in 2..6 {
        write(&heap, &blocks, version);
        heap.checkpoint().expect("is made");
        let reader = open_reader(Arc::new(directory.clone()));
        assert_eq!(version_of(&reader, &blocks), version);
    }
    assert!(reader.lock().is_none(), "it ended meanwhile");
    assert_eq!(names(&directory), ["00000000000000cc.reader"]);
}
