//! Tests: pages are evicted all the time, and no reader sees a byte change.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::journal::{Copies, PageSource};
use crate::layout::PAGE_BYTES;
use crate::memory::copier::Copier;
use crate::{Durability, Error, Heap, ImageKind, OsDirectory, Read, Reservation, Slice, Write};

const BOUND: u64 = 768 << 10;

fn open(path: &Path, memory_bytes_max: u64, background: bool) -> Heap {
    let log_bytes_max = 16 << 20;
    let options =
        crate::Options { memory_bytes_max, background, log_bytes_max, ..Default::default() };
    Heap::open(Arc::new(OsDirectory::create(path).unwrap()), options).unwrap().0
}

/// A user of a heap, and the model of its contents.
struct User {
    heap: Heap,
    random: fastrand::Rng,
    /// By offset.
    blocks: BTreeMap<u64, Vec<u8>>,
    /// Partly filled, with the byte that the rest gets.
    reserved: Vec<(Reservation, Vec<u8>)>,
    borrowed: Vec<(Slice, Vec<u8>)>,
}

impl User {
    fn new(heap: Heap, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { heap, random, blocks: BTreeMap::new(), reserved: Vec::new(), borrowed: Vec::new() }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = match self.random.u8(..12) {
            0 => self.random.usize(20_000..90_000),
            1..4 => self.random.usize(1_000..4_000),
            _ => self.random.usize(8..300),
        };
        let first = self.random.u8(..);
        (0..len).map(|at| first.wrapping_add(at as u8)).collect()
    }

    fn any_block(&mut self) -> Option<u64> {
        let index = self.random.usize(..self.blocks.len().max(1));
        self.blocks.keys().nth(index).copied()
    }

    /// A transaction of some changes; one in eight is undone.
    fn transact(&mut self) {
        let new: Vec<Vec<u8>> = (0..self.random.usize(1..6)).map(|_| self.bytes()).collect();
        let freed = self.any_block().filter(|_| self.random.bool());
        let written = self.any_block().filter(|block| Some(*block) != freed);
        let is_undone = self.random.u8(..8) == 0;
        let byte = self.random.u8(..);
        let mut made = Vec::new();
        let mut is_written = false;
        let done = self.heap.transaction(Durability::Buffered, |tx| {
            for bytes in &new {
                // Held back from the file, if it is large.
                let block = match byte % 2 {
                    0 => tx.reserve_held(bytes.len() as u64)?,
                    _ => tx.reserve(bytes.len() as u64)?,
                };
                tx.write(block, 0, bytes.len())?.copy_from_slice(bytes);
                made.push(block);
            }
            if let Some(block) = freed {
                tx.free(block)?;
            }
            if let Some(block) = written {
                // Refused while a slice is left.
                is_written = tx.write(block, 1, 6).map(|bytes| bytes.fill(byte)).is_ok();
            }
            if is_undone { Err(Error::Misuse { what: "undone" }) } else { Ok(()) }
        });
        assert_eq!(done.is_err(), is_undone, "{done:?}");
        if is_undone {
            return;
        }
        self.blocks.extend(made.into_iter().zip(new));
        freed.map(|block| self.blocks.remove(&block));
        if let Some(bytes) = written.filter(|_| is_written).and_then(|b| self.blocks.get_mut(&b)) {
            bytes[1..7].fill(byte);
        }
    }

    fn reserve(&mut self) {
        let bytes = self.bytes();
        let mut reservation = self.heap.reserve(bytes.len() as u64).unwrap();
        let half = bytes.len() / 2;
        reservation[..half].copy_from_slice(&bytes[..half]);
        self.reserved.push((reservation, bytes));
    }

    fn publish(&mut self, alone: bool) {
        let (mut reservation, bytes) = self.reserved.swap_remove(0);
        let half = bytes.len() / 2;
        reservation[half..].copy_from_slice(&bytes[half..]);
        let block = reservation.offset();
        if alone {
            self.heap.publish(Durability::Buffered, [reservation]).unwrap();
        } else {
            let published = |tx: &mut crate::Transaction<'_>| tx.publish(reservation);
            self.heap.transaction::<_, Error>(Durability::Buffered, published).unwrap();
        }
        self.blocks.insert(block, bytes);
    }

    fn step(&mut self) {
        match self.random.u8(..20) {
            0..2 => self.reserve(),
            2..4 if !self.reserved.is_empty() => {
                let alone = self.random.bool();
                self.publish(alone);
            }
            4 => {
                if let Some(block) = self.any_block() {
                    let bytes = self.blocks[&block].clone();
                    let slice = self.heap.view().unwrap().lend(block, bytes.len()).unwrap();
                    self.borrowed.push((slice, bytes));
                }
            }
            5 if !self.borrowed.is_empty() => drop(self.borrowed.swap_remove(0)),
            6 if !self.reserved.is_empty() => drop(self.reserved.swap_remove(0)),
            7 => {
                if let Some(block) = self.any_block() {
                    self.blocks.remove(&block);
                    self.heap.free(Durability::Buffered, block).unwrap();
                }
            }
            _ => self.transact(),
        }
    }

    /// Whether every byte is what was written.
    fn is_right(&self) -> bool {
        let Ok(view) = self.heap.view() else { return false };
        let is_there = |(block, bytes): (&u64, &Vec<u8>)| {
            view.block(*block).is_ok_and(|found| found.starts_with(bytes))
        };
        self.blocks.iter().all(is_there)
            && self.borrowed.iter().all(|(slice, bytes)| slice[..] == bytes[..])
            && self.reserved.iter().all(|(reservation, bytes)| {
                let half = bytes.len() / 2;
                reservation[..half] == bytes[..half]
            })
    }
}

/// Takes steps; returns whether all was right, at each check, at the end and after reopening.
fn run(seed: u64, steps: usize) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let mut user = User::new(open(directory.path(), BOUND, false), seed);
    for step in 0..steps {
        user.step();
        if step % 50 == 0 {
            // A reservation keeps its 2 MiB.
            user.reserved.clear();
        }
        if step % 20 == 19 && !user.is_right() {
            return false;
        }
    }
    let stats = user.heap.stats().memory;
    assert!(stats.dropped_bytes > 2 * BOUND, "seed {seed}: {stats:?}");
    if !user.is_right() || !user.heap.check().unwrap().findings.is_empty() {
        return false;
    }
    user.reserved.clear();
    user.borrowed.clear();
    user.heap.close().unwrap();
    user.heap = open(directory.path(), BOUND, false);
    user.is_right()
}

#[test]
fn nobody_sees_a_byte_change() {
    for seed in 0..3 {
        assert!(run(seed, 400), "seed {seed}");
    }
}

/// A buffer that was held back, or reserved and published late, is dirty long after its last store.
/// Once it is copied it is clean, but the file does not have it before its batch is written: it
/// stays in memory until then.
#[test]
fn what_is_copied_stays_until_its_batch_is_written() {
    const BYTES: usize = 100_000;
    let directory = tempfile::tempdir().unwrap();
    // Pages of the file are evicted one by one, and new ones by 2 MiB.
    let heap = open(directory.path(), u64::MAX, false);
    drop(heap.reserve(1 << 20).unwrap());
    heap.close().unwrap();
    drop(heap);
    let heap = open(directory.path(), BOUND, false);
    let mut late = heap.reserve(BYTES as u64).unwrap();
    late.fill(7);
    let made = heap.transaction(Durability::Sync, |tx| {
        let (held, other) = (tx.reserve_held(BYTES as u64)?, tx.reserve(BYTES as u64)?);
        for block in [held, other] {
            tx.write(block, 0, BYTES)?.fill(7);
        }
        Ok::<_, Error>((held, other))
    });
    let (held, other) = made.unwrap();
    heap.checkpoint().unwrap();
    let blocks = [held, late.offset(), other];
    heap.publish(Durability::Sync, [late]).unwrap();
    let states = heap.space.image.bounded().unwrap();
    let pages = blocks.map(|block| block / PAGE_BYTES);
    assert_eq!(pages.map(|page| states.is_dirty(page)), [true, true, false]);
    assert!(pages.iter().all(|page| states.epoch_of(*page) <= states.covered()), "long ago");
    let copier = Copier::new(&heap.space, &heap.writer_queue);
    let (mut copies, mut next) = (Copies::default(), Some(0));
    copier.hold(false, &mut || {
        let epoch = copier.end_epoch();
        while let Some(page) = next {
            next = copier.copy(page, epoch, &mut copies, &|_| None).unwrap();
        }
    });
    assert!(pages.iter().all(|page| !states.is_dirty(*page)), "copied");
    let tools = &mut *heap.evictor.context.tools.lock();
    heap.evictor.context.drop_some(states, tools, 0, states.covered()).unwrap();
    let is_there = pages.map(|page| states.epoch_of(page) > 0);
    assert_eq!(is_there, [true, true, false], "what the file has is dropped");
    let view = heap.view().unwrap();
    for block in blocks {
        assert!(view.block(block).unwrap()[..BYTES].iter().all(|byte| *byte == 7));
    }
}

#[test]
fn memory_stays_below_its_bound_while_three_times_as_much_is_loaded() {
    const BOUND: u64 = 16 << 20;
    let directory = tempfile::tempdir().unwrap();
    let heap = open(directory.path(), BOUND, true);
    let mut blocks = Vec::new();
    let mut dirty_bytes_max = 0;
    for number in 0..3 * BOUND / (64 << 10) {
        let block = heap
            .transaction::<_, Error>(Durability::Buffered, |tx| {
                let block = tx.reserve(64 << 10)?;
                tx.write(block, 0, 64 << 10)?.fill(number as u8);
                Ok(block)
            })
            .unwrap();
        blocks.push(block);
        dirty_bytes_max = heap.stats().memory.dirty_bytes.max(dirty_bytes_max);
    }
    let stats = heap.stats().memory;
    // A commit finds the memory just below the bound, and touches 2 MiB more.
    assert!(dirty_bytes_max <= BOUND + (4 << 20), "{dirty_bytes_max}: {stats:?}");
    assert!(stats.dropped_bytes >= 2 * BOUND, "{stats:?}");
    let view = heap.view().unwrap();
    for (number, block) in blocks.iter().enumerate() {
        assert!(view.block(*block).unwrap().iter().all(|byte| *byte == number as u8));
    }
}

/// Regression: memory stayed above the bound until another commit.
#[test]
fn what_a_large_commit_took_is_given_back_without_another() {
    let directory = tempfile::tempdir().unwrap();
    let heap = open(directory.path(), 4 << 20, true);
    let bytes = 24 << 20;
    let block = heap
        .transaction(Durability::Buffered, |tx| {
            let block = tx.reserve(bytes)?;
            tx.write(block, 0, bytes as usize)?.fill(7);
            Ok::<_, Error>(block)
        })
        .unwrap();
    let begun = Instant::now();
    while heap.stats().memory.dirty_bytes > 4 << 20 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", heap.stats().memory);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(heap.stats().memory.waits == 0, "nobody else wrote");
    assert!(heap.view().unwrap().block(block).unwrap().iter().all(|byte| *byte == 7));
}

/// Regression: a heap that outgrew its first addresses (here 256 MiB) failed with an out-of-space
/// error until it was opened again. Borrowed blocks stay in place.
#[test]
#[cfg_attr(windows, ignore = "what lies behind the first addresses is taken there")]
fn a_heap_takes_more_addresses_when_its_first_are_used_up() {
    for memory_bytes_max in [u64::MAX, 64 << 20] {
        let directory = tempfile::tempdir().unwrap();
        let heap = open(directory.path(), memory_bytes_max, true);
        let first = heap.stats().address_bytes;
        assert_eq!(first, 256 << 20);
        let reserve = |bytes: u64| {
            heap.transaction(Durability::Buffered, |tx| {
                let block = tx.reserve(bytes)?;
                tx.write(block, 0, 8192)?.fill(7);
                tx.update_u64(block, 0, bytes)?;
                Ok::<_, Error>(block)
            })
        };
        let block = reserve(8192).unwrap();
        let borrowed = heap.view().unwrap().lend(block, 8192).unwrap();
        let place = borrowed.as_ptr();
        let mut blocks = vec![(block, 8192)];
        for mib in [200, 150, 700] {
            blocks.push((reserve(mib << 20).unwrap(), mib << 20));
        }
        let stats = heap.stats();
        assert!(stats.address_bytes >= stats.pool_bytes && stats.pool_bytes > 4 * first);
        assert_eq!(heap.view().unwrap().block(block).unwrap().as_ptr(), place);
        assert!(borrowed[8..].iter().all(|byte| *byte == 7));
        for (block, bytes) in &blocks {
            let view = heap.view().unwrap();
            let found = view.block(*block).unwrap();
            assert!(found.len() as u64 >= *bytes && found[8191] == 7);
        }
        assert!(heap.check().unwrap().is_clean());
        drop(heap);
        assert!(borrowed[8..].iter().all(|byte| *byte == 7), "as long as it lives");
    }
}

#[test]
fn a_bound_of_addresses_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let options = crate::Options { address_bytes_max: 256 << 20, ..Default::default() };
    let medium = Arc::new(OsDirectory::create(directory.path()).unwrap());
    let heap = Heap::open(medium, options).unwrap().0;
    let done = heap.transaction(Durability::Buffered, |tx| tx.reserve(300 << 20));
    let error = done.unwrap_err();
    assert!(error.is_out_of_space() && error.to_string().contains("address_bytes_max"));
    assert_eq!(heap.stats().address_bytes, 256 << 20);
}

fn open_huge(path: &Path, memory_bytes_max: u64, background: bool) -> Heap {
    let options = crate::Options {
        memory_bytes_max,
        background,
        huge_bytes_max: u64::MAX / 4,
        image: ImageKind::Mapped,
        log_bytes_max: 16 << 20,
        ..Default::default()
    };
    Heap::open(Arc::new(OsDirectory::create(path).unwrap()), options).unwrap().0
}

#[test]
#[cfg_attr(windows, ignore = "needs more addresses than the first, and there are no huge pages")]
fn hot_parts_are_put_on_huge_pages_and_dropped_again() {
    const BOUND: u64 = 24 << 20;
    let directory = tempfile::tempdir().unwrap();
    let mut user = User::new(open(directory.path(), u64::MAX, false), 9);
    while user.heap.stats().used_bytes < BOUND {
        user.transact();
    }
    user.heap.close().unwrap();
    user.heap = open_huge(directory.path(), BOUND, false);
    assert!(user.is_right(), "which touches all of it");
    let (mut promoted_most, mut demoted) = (0, 0);
    for step in 0..400 {
        user.step();
        if step % 50 == 49 {
            user.reserved.clear();
        }
        if step % 10 == 0 {
            user.heap.evictor.context.promote(&|| false).unwrap();
        }
        if step % 100 == 99 {
            let before = user.heap.stats().memory.promoted_bytes;
            user.heap.evictor.context.round(&|| false).unwrap();
            demoted += before.saturating_sub(user.heap.stats().memory.promoted_bytes);
        }
        if step % 40 == 0 {
            assert!(user.is_right(), "step {step}");
        }
        promoted_most = user.heap.stats().memory.promoted_bytes.max(promoted_most);
    }
    let stats = user.heap.stats().memory;
    println!("{promoted_most} bytes promoted at the most, {demoted} dropped: {stats:?}");
    assert!(user.is_right() && user.heap.check().unwrap().findings.is_empty());
    // A system may have no huge pages; then nothing happens, and the figures say so.
    assert_eq!(promoted_most > 0, stats.has_huge_pages, "{stats:?}");
}

#[test]
#[cfg_attr(windows, ignore = "needs more addresses than the first, and there are no huge pages")]
fn readers_and_writers_go_on_while_pages_become_huge() {
    let directory = tempfile::tempdir().unwrap();
    let mut user = User::new(open(directory.path(), u64::MAX, false), 10);
    while user.heap.stats().used_bytes < 24 << 20 {
        user.transact();
    }
    user.heap.close().unwrap();
    user.heap = open_huge(directory.path(), u64::MAX, true);
    let User { heap, blocks, .. } = &user;
    let is_over = AtomicBool::new(false);
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for skipped in 0..2 {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let some = blocks.iter().skip(skipped).step_by(3);
                    for (number, (block, bytes)) in some.enumerate() {
                        let view = heap.view().unwrap();
                        assert!(view.block(*block).unwrap().starts_with(bytes));
                        drop(view);
                        if number % 32 == 0 {
                            // No thread waits for the image here: it has to be free now and then.
                            std::thread::sleep(std::time::Duration::from_millis(1));
                        }
                    }
                }
            });
        }
        let (mut number, mut written) = (0_u64, Ok(()));
        while written.is_ok()
            && begun.elapsed().as_secs() < 30
            && heap.stats().memory.promoted_bytes < 8 << 20
        {
            written = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
                let block = tx.reserve(3000)?;
                tx.write(block, 0, 3000)?.fill(number as u8);
                if number.is_multiple_of(2) { tx.free(block) } else { Ok(()) }
            });
            number += 1;
            std::thread::yield_now();
        }
        // Or the readers would go on when this fails.
        is_over.store(true, Ordering::Relaxed);
        written.unwrap();
    });
    let stats = heap.stats().memory;
    println!("{stats:?}");
    assert!(stats.promoted_bytes > 0 || !stats.has_huge_pages, "{stats:?}");
    assert!(user.is_right());
}

#[test]
fn views_of_other_threads_and_reservations_go_on_meanwhile() {
    const COUNT: u64 = 500;
    let directory = tempfile::tempdir().unwrap();
    let heap = open(directory.path(), 4 << 20, true);
    let root = heap
        .transaction::<_, Error>(Durability::Buffered, |tx| {
            let root = tx.reserve(8 * COUNT)?;
            tx.write(root, 0, 8 * COUNT as usize)?.fill(0);
            Ok(root)
        })
        .unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = || {
            let mut looks = 0_usize;
            while !is_over.load(Ordering::Relaxed) || looks == 0 {
                let view = heap.view().unwrap();
                // Few at a time: other threads wait for a view.
                let some = 8 * (looks * 20 % COUNT as usize)..;
                for offset in view.block(root).unwrap()[some].chunks_exact(8).take(20) {
                    let offset = u64::from_le_bytes(offset.try_into().unwrap());
                    if offset > 0 {
                        let bytes = &view.block(offset).unwrap()[..9000];
                        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a torn block");
                    }
                }
                looks += 1;
            }
        };
        scope.spawn(reader);
        scope.spawn(|| {
            // Reserved, filled and published while pages around are evicted.
            for number in 0..1000_u64 {
                let mut reservation = heap.reserve(3000).unwrap();
                reservation.fill(number as u8);
                let block = reservation.offset();
                heap.publish(Durability::Buffered, [reservation]).unwrap();
                let view = heap.view().unwrap();
                let bytes = &view.block(block).unwrap()[..3000];
                assert!(bytes.iter().all(|byte| *byte == number as u8), "{number}");
                drop(view);
                heap.free(Durability::Buffered, block).unwrap();
            }
        });
        let mut random = fastrand::Rng::with_seed(5);
        for number in 0..2000_u64 {
            let at = 8 * random.usize(..COUNT as usize);
            heap.transaction::<_, Error>(Durability::Buffered, |tx| {
                let block = tx.reserve(9000)?;
                tx.write(block, 0, 9000)?.fill(number as u8);
                let old = tx.block(root)?[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
                if old > 0 {
                    tx.free(old)?;
                }
                tx.write(root, at, 8)?.copy_from_slice(&block.to_le_bytes());
                Ok(())
            })
            .unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let stats = heap.stats().memory;
    assert!(stats.dropped_bytes > 1 << 20, "{stats:?}");
    assert!(heap.check().unwrap().findings.is_empty());
}
