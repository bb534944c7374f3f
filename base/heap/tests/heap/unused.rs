//! Appends to buffers by `write_unused`, in transactions and savepoints that are undone or not,
//! beside ordinary writes: the bytes in use match the model, whatever becomes of the rest.

use std::sync::Arc;

use adamant_heap::{Durability, Error, Heap, Read, Transaction, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use fastrand::Rng;

use crate::savepoints::{PLANNED, transact};

/// Bytes of a buffer's block: a copied one, one of a run, extents.
const SIZES: [usize; 4] = [2000, 10_000, 300_000, 3_000_000];

/// A block whose first word holds the number of bytes in use behind it.
#[derive(Clone)]
struct Buffer {
    block: u64,
    len: usize,
    used: Vec<u8>,
    /// Bytes in use when the transaction or a savepoint around began.
    floor: usize,
}

/// A transaction or a savepoint begins.
fn begin(buffers: &mut [Buffer]) {
    buffers.iter_mut().for_each(|buffer| buffer.floor = buffer.floor.max(buffer.used.len()));
}

impl Buffer {
    fn make(tx: &mut Transaction<'_>, len: usize) -> Result<Buffer, Error> {
        let block = tx.reserve(len as u64)?;
        tx.write(block, 0, 8)?.fill(0);
        Ok(Buffer { block, len, used: Vec::new(), floor: 0 })
    }

    fn append(&mut self, tx: &mut Transaction<'_>, random: &mut Rng) -> Result<(), Error> {
        let at = 8 + self.used.len();
        let most = if random.u8(..20) == 0 { 9000 } else { 200 };
        let bytes = random.usize(..most);
        let bytes = bytes.min(self.len - at);
        let added: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
        // Bytes that an undo may return to are saved.
        let saved = (self.floor + 8).saturating_sub(at).min(bytes);
        tx.write(self.block, at, saved)?.copy_from_slice(&added[..saved]);
        let unused = tx.write_unused(self.block, at + saved, bytes - saved)?;
        unused.copy_from_slice(&added[saved..]);
        self.used.extend(&added);
        tx.update_u64(self.block, 0, self.used.len() as u64)
    }

    /// Changes some of the bytes in use, by an ordinary write.
    fn overwrite(&mut self, tx: &mut Transaction<'_>, random: &mut Rng) -> Result<(), Error> {
        let at = random.usize(..=self.used.len());
        let bytes = random.usize(..=(self.used.len() - at).min(300));
        random.fill(&mut self.used[at..at + bytes]);
        tx.write(self.block, 8 + at, bytes)?.copy_from_slice(&self.used[at..at + bytes]);
        Ok(())
    }

    /// Uses fewer bytes, so that the next append overwrites used ones.
    fn cut(&mut self, tx: &mut Transaction<'_>, random: &mut Rng) -> Result<(), Error> {
        self.used.truncate(random.usize(..=self.used.len()));
        tx.update_u64(self.block, 0, self.used.len() as u64)
    }

    fn assert_holds(&self, read: &impl Read) {
        let bytes = read.block(self.block).expect("a block");
        assert_eq!(bytes[..8], (self.used.len() as u64).to_le_bytes());
        assert!(bytes[8..8 + self.used.len()] == self.used, "{} bytes", self.used.len());
    }
}

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = crate::setup::options();
    options.address_bytes_max = 1 << 30;
    Heap::open(Arc::clone(directory), options).expect("opens").0
}

fn work(
    tx: &mut Transaction<'_>,
    random: &mut Rng,
    buffers: &mut [Buffer],
    depth: u32,
) -> Result<(), Error> {
    for _ in 0..random.u32(1..8) {
        let index = random.usize(..buffers.len());
        match random.u32(..16) {
            0 => {
                let made = Buffer::make(tx, buffers[index].len)?;
                tx.free(buffers[index].block)?;
                buffers[index] = made;
            }
            1 => buffers[index].cut(tx, random)?,
            2..=3 => buffers[index].overwrite(tx, random)?,
            4..=6 if depth < 3 => {
                let mut inner = buffers.to_vec();
                begin(&mut inner);
                let fails = random.bool();
                let outcome: Result<(), Error> = tx.savepoint(|tx| {
                    work(tx, random, &mut inner, depth + 1)?;
                    if fails { Err(PLANNED) } else { Ok(()) }
                });
                assert_eq!(outcome.is_err(), fails, "{outcome:?}");
                if !fails {
                    for (outer, inner) in buffers.iter_mut().zip(inner) {
                        let floor = if outer.block == inner.block { outer.floor } else { 0 };
                        *outer = Buffer { floor, ..inner };
                    }
                }
            }
            _ => buffers[index].append(tx, random)?,
        }
        for buffer in buffers.iter() {
            buffer.assert_holds(tx);
        }
    }
    Ok(())
}

#[test]
fn what_is_in_use_is_what_was_committed() {
    for seed in 0..16 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut heap = open(&directory);
        let mut buffers = heap
            .transaction(Durability::Buffered, |tx| {
                SIZES.iter().map(|len| Buffer::make(tx, *len)).collect::<Result<Vec<_>, Error>>()
            })
            .expect("there is room");
        for _ in 0..80 {
            let fails = random.u32(..4) == 0;
            transact(&heap, &mut buffers, (fails, None), |tx, buffers| {
                buffers.iter_mut().for_each(|buffer| buffer.floor = 0);
                begin(buffers);
                work(tx, &mut random, buffers, 0)
            });
            if random.u32(..20) == 0 {
                // Without closing: the commits come from the journal.
                drop(heap);
                heap = open(&directory);
            }
            let view = heap.view().expect("ours");
            buffers.iter().for_each(|buffer| buffer.assert_holds(&view));
        }
        let report = heap.check().expect("checked");
        assert!(report.is_clean(), "{:?}", report.findings);
        assert_eq!(report.blocks, buffers.len() as u64);
    }
}

#[test]
fn what_is_not_there_or_is_lent_is_refused() {
    let heap = open(&(Arc::new(MemoryDirectory::new()) as Arc<dyn Directory>));
    for len in SIZES {
        let block = heap
            .transaction(Durability::Sync, |tx| {
                let block = tx.reserve(len as u64)?;
                tx.write(block, 0, 8)?.fill(1);
                Ok::<_, Error>(block)
            })
            .expect("there is room");
        let lent = heap.view().expect("ours").lend(block, 100).expect("lent");
        let write = |at: usize, bytes: usize| {
            heap.transaction(Durability::Sync, |tx| {
                tx.write_unused(block, at, bytes).map(|bytes| bytes.fill(2))
            })
        };
        assert!(matches!(write(8, 100), Err(Error::Misuse { .. })), "{len}");
        drop(lent);
        write(8, 100).expect("not lent any more");
        write(8, 0).expect("nothing");
        for (at, bytes) in [(len * 2, 1), (usize::MAX, 2)] {
            assert!(matches!(write(at, bytes), Err(Error::InvalidPointer { .. })), "{len}");
        }
        assert!(matches!(write(0, len * 2), Err(Error::InvalidPointer { .. })), "{len}");
    }
}

#[test]
fn an_append_takes_little_more_of_the_journal_than_its_bytes() {
    let heap = open(&(Arc::new(MemoryDirectory::new()) as Arc<dyn Directory>));
    let make = |len: u64| {
        heap.transaction(Durability::Sync, |tx| tx.reserve_zeroed(len)).expect("there is room")
    };
    let (used, buffer) = (make(64), make(1 << 20));
    for number in 0..1000 {
        let before = heap.stats().journal.log_appended_bytes;
        heap.transaction(Durability::Buffered, |tx| {
            tx.write_unused(buffer, 120 * number, 120)?.fill(7);
            tx.update_u64(used, 0, 120 * (number as u64 + 1))
        })
        .expect("there is room");
        let taken = heap.stats().journal.log_appended_bytes - before;
        assert!(taken < 200, "{taken} bytes for 120");
    }
}

/// Readers that a transaction admits find the used bytes as they were, and need no copy for that.
#[test]
fn readers_are_let_in_beside_appends() {
    let heap = open(&(Arc::new(MemoryDirectory::new()) as Arc<dyn Directory>));
    let len = 3_000_000;
    let (word, buffer) = heap
        .transaction(Durability::Sync, |tx| {
            let word = tx.reserve(8)?;
            tx.write(word, 0, 8)?.fill(0);
            let buffer = tx.reserve(len)?;
            tx.write(buffer, 0, 100)?.fill(1);
            Ok::<_, Error>((word, buffer))
        })
        .expect("there is room");
    // More than may be copied.
    let work = |tx: &mut Transaction<'_>| {
        for at in (100..len as usize - 1000).step_by(1000) {
            tx.write_unused(buffer, at, 1000)?.fill(2);
            assert!(tx.can_yield());
            tx.update_u64(word, 0, at as u64 + 1000)?;
        }
        let earlier = tx.earlier().expect("it can be told");
        assert_eq!(earlier.block(word)?[..8], [0; 8]);
        assert_eq!(earlier.block(buffer)?[..100], [1; 100]);
        Ok::<_, Error>(())
    };
    heap.chunked_transaction(Durability::Sync, 1000, work, |_| {}).expect("commits");
    let view = heap.view().expect("ours");
    assert_eq!(view.block(buffer).expect("a block")[99..1101], {
        let mut expected = [2; 1002];
        expected[0] = 1;
        expected
    });
}
