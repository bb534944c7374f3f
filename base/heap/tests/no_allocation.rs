//! A transaction in steady state takes no memory from the process's allocator: it reuses that of
//! the previous one. A very large one takes a few bytes for each operation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use adamant_heap::{Durability, Error, Heap, Options, Read, Transaction, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::system::os::OsDirectory;

thread_local!(static COUNT: Cell<u64> = const { Cell::new(0) });
thread_local!(static BYTES_HELD: Cell<i64> = const { Cell::new(0) });
thread_local!(static BYTES_HELD_MAX: Cell<i64> = const { Cell::new(0) });

fn hold(bytes: i64) {
    BYTES_HELD.set(BYTES_HELD.get() + bytes);
    BYTES_HELD_MAX.set(BYTES_HELD_MAX.get().max(BYTES_HELD.get()));
}

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a cell of the
// thread, which needs no memory and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        hold(layout.size() as i64);
        // SAFETY: the caller's promise is the one that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: as above; all memory came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BYTES: [usize; 4] = [8, 100, 1000, 20_000];

/// One transaction: a new block for each size, the old ones freed, a word set, a savepoint undone.
fn replace(heap: &Heap, blocks: &mut [u64; 4], round: u64) {
    let done = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        let mut made = *blocks;
        for (block, len) in made.iter_mut().zip(BYTES) {
            if *block != 0 {
                tx.free(*block)?;
            }
            *block = tx.reserve(len as u64)?;
            tx.write(*block, 0, len.min(100))?.fill(round as u8);
        }
        tx.set_root(0, round)?;
        let undone: Result<(), Error> = tx.savepoint(|tx| {
            let block = tx.reserve(300)?;
            tx.write(block, 0, 300)?.fill(1);
            tx.write(made[1], 10, 50)?.fill(2);
            Err(Error::TooLarge { bytes: 1, bytes_max: 0 })
        });
        undone.expect_err("on purpose");
        Ok(made)
    });
    *blocks = done.expect("there is room");
}

/// One transaction that appends to a buffer and writes to it, and a savepoint in it that is undone.
fn append(heap: &Heap, buffer: u64, round: u64) {
    let done = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        let at = 100 + 80 * (round as usize % 100);
        tx.write_unused(buffer, at, 50)?.fill(round as u8);
        tx.write_unused(buffer, at + 60, 10)?.fill(round as u8);
        let undone: Result<(), Error> = tx.savepoint(|tx| {
            tx.write_unused(buffer, at + 70, 10)?.fill(1);
            Err(Error::TooLarge { bytes: 1, bytes_max: 0 })
        });
        undone.expect_err("on purpose");
        tx.update_u64(buffer, 0, round)
    });
    done.expect("there is room");
}

/// The same without a transaction.
fn act(heap: &Heap, round: u64) {
    let mut reservation = heap.reserve(100).expect("there is room");
    reservation.fill(round as u8);
    let block = reservation.offset();
    heap.publish(Durability::Buffered, [reservation]).expect("published");
    heap.free(Durability::Buffered, block).expect("allocated");
}

#[test]
fn a_transaction_in_steady_state_allocates_nothing() {
    let mut options = Options::default();
    options.background = false;
    let (heap, _) = Heap::open(Arc::new(MemoryDirectory::new()), options).expect("opens");
    let mut blocks = [0; 4];
    let buffer = heap.transaction(Durability::Sync, |tx| tx.reserve_zeroed(20_000));
    let buffer = buffer.expect("there is room");
    // Until both log files were written in full: here their bytes take memory when first written.
    let mut first = 0;
    while heap.stats().journal.log_appended_bytes < 4 << 20 {
        for round in first..first + 400 {
            replace(&heap, &mut blocks, round);
            act(&heap, round);
            append(&heap, buffer, round);
        }
        first += 400;
        heap.checkpoint().expect("applied");
    }
    let before = COUNT.get();
    for round in first..first + 400 {
        replace(&heap, &mut blocks, round);
        act(&heap, round);
        append(&heap, buffer, round);
    }
    assert_eq!(COUNT.get() - before, 0, "allocations of 400 transactions and actions");
    let view = heap.view().expect("ours");
    assert_eq!(view.block(blocks[1]).expect("published")[..100], [(first + 399) as u8; 100]);
}

/// Regression: a map with an entry for each block took 190 bytes each, and became slower with every
/// one.
#[test]
fn a_million_allocations_and_frees_of_one_transaction_take_little_memory_each() {
    const BLOCKS: u64 = 1_000_000;
    let mut options = Options::default();
    options.background = false;
    let (heap, _) = Heap::open(Arc::new(MemoryDirectory::new()), options).expect("opens");
    let mut blocks = vec![0; BLOCKS as usize];
    let within = |what: &str, work: &mut dyn FnMut(&mut Transaction<'_>) -> Result<(), Error>| {
        let before = BYTES_HELD.get();
        BYTES_HELD_MAX.set(before);
        heap.transaction::<_, Error>(Durability::Buffered, |tx| {
            work(tx)?;
            // Growth by doubling holds three times the memory in use for a moment.
            let each = (BYTES_HELD_MAX.get() - before) as f64 / BLOCKS as f64;
            assert!(each < 12.0, "{what}: {each} bytes for each block");
            Ok(())
        })
        .expect("there is room");
    };
    within("reserve", &mut |tx| {
        for block in &mut blocks {
            *block = tx.reserve(64)?;
        }
        Ok(())
    });
    within("free", &mut |tx| blocks.iter().try_for_each(|block| tx.free(*block)));
    within("reserve and free", &mut |tx| {
        (0..BLOCKS).try_for_each(|_| {
            let block = tx.reserve(64)?;
            tx.free(block)
        })
    });
}

/// Regression: one value of 300 MB took 600 beside the image during its commit: as a record, and
/// once more as its frames, which grew by doubling; and most of it was kept.
#[test]
fn a_large_commit_takes_its_bytes_once_and_keeps_little() {
    const BYTES: usize = 32 << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = Options::default();
    options.background = false;
    // A checkpoint reads the log in windows of its own.
    options.log_bytes_max = 1 << 30;
    let medium = OsDirectory::create(directory.path()).expect("opens");
    let (heap, _) = Heap::open(Arc::new(medium), options).expect("opens");
    for durability in [Durability::Sync, Durability::Buffered, Durability::Deferred] {
        let before = BYTES_HELD.get();
        BYTES_HELD_MAX.set(before);
        let fill = |tx: &mut Transaction<'_>| {
            let block = tx.reserve(BYTES as u64)?;
            tx.write(block, 0, BYTES)?.fill(7);
            Ok::<_, Error>(block)
        };
        heap.transaction(durability, fill).expect("there is room");
        let (most, kept) = (BYTES_HELD_MAX.get() - before, BYTES_HELD.get() - before);
        assert!(most < (BYTES + (8 << 20)) as i64, "{most} bytes at most, {durability:?}");
        assert!(kept < 8 << 20, "{kept} bytes are kept, {durability:?}");

        BYTES_HELD_MAX.set(before);
        let mut reservation = heap.reserve(BYTES as u64).expect("there is room");
        reservation.fill(8);
        heap.publish(durability, [reservation]).expect("published");
        let (most, kept) = (BYTES_HELD_MAX.get() - before, BYTES_HELD.get() - before);
        assert!(most < (BYTES + (8 << 20)) as i64, "{most} bytes at most, {durability:?}");
        assert!(kept < 8 << 20, "{kept} bytes are kept, {durability:?}");
    }
}
