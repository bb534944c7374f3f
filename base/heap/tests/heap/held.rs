//! Held-back buffers: filled, written elsewhere, freed and made again during checkpoints, and
//! intact when the heap is opened again, closed or not.

use std::sync::Arc;

use adamant_heap::{Directory, Durability, Error, Heap, MemoryDirectory, Options, Read, Write};

const BUFFER_BYTES: u64 = 256 << 10;
const ENTRY_BYTES: usize = 1000;

fn open(directory: &Arc<dyn Directory>, background: bool, log_held_bytes_max: u64) -> Heap {
    let mut options = Options::default();
    options.background = background;
    options.log_bytes_max = 8 << 20;
    options.log_held_bytes_max = log_held_bytes_max;
    options.memory_bytes_max = 4 << 20;
    options.address_bytes_max = 1 << 30;
    Heap::open(Arc::clone(directory), options).expect("opens").0
}

fn directory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

/// Two buffers, the second of which is being filled, and the number of entries ever appended.
#[derive(Debug, Default)]
struct Buffers {
    blocks: Vec<u64>,
    entries: usize,
}

impl Buffers {
    /// The byte that an entry consists of.
    fn byte(entry: usize) -> u8 {
        (entry * 7 + entry / 256) as u8
    }

    /// Appends entries, each by a commit of its own.
    fn append(&mut self, heap: &Heap, count: usize, random: &mut fastrand::Rng) {
        let per_buffer = BUFFER_BYTES as usize / ENTRY_BYTES;
        let all = [Durability::Sync, Durability::Buffered, Durability::Deferred];
        for _ in 0..count {
            let at = self.entries % per_buffer;
            let done = heap.transaction::<_, Error>(all[random.usize(..3)], |tx| {
                if at == 0 {
                    if self.blocks.len() == 2 {
                        tx.free(self.blocks.remove(0))?;
                    }
                    self.blocks.push(tx.reserve_held(BUFFER_BYTES)?);
                }
                let block = self.blocks[self.blocks.len() - 1];
                tx.write_unused(block, at * ENTRY_BYTES, ENTRY_BYTES)?
                    .fill(Self::byte(self.entries));
                tx.set_root(0, block)?;
                tx.set_root(1, self.blocks[0])?;
                tx.set_root(2, self.entries as u64 + 1)
            });
            done.expect("there is room");
            self.entries += 1;
        }
    }

    /// Checks all entries of the two buffers.
    fn assert_is_in(&self, heap: &Heap) {
        let view = heap.view().expect("ours");
        assert_eq!(view.root(2), self.entries as u64);
        let per_buffer = BUFFER_BYTES as usize / ENTRY_BYTES;
        let first = (self.entries - 1) / per_buffer * per_buffer;
        let older = first.saturating_sub(per_buffer)..first;
        for (root, entries) in [(0, first..self.entries), (1, older)] {
            let bytes = view.block(view.root(root)).expect("a buffer");
            for (entry, bytes) in entries.zip(bytes.chunks(ENTRY_BYTES)) {
                assert!(bytes.iter().all(|byte| *byte == Self::byte(entry)), "entry {entry}");
            }
        }
    }
}

/// During other commits, views, checkpoints on a thread, and eviction.
#[test]
fn buffers_come_and_go_while_checkpoints_are_made() {
    for log_held_bytes_max in [300_000, u64::MAX] {
        let directory = directory();
        let mut random = fastrand::Rng::with_seed(5);
        let (mut buffers, mut others) = (Buffers::default(), Vec::new());
        let mut heap = open(&directory, true, log_held_bytes_max);
        for round in 0..40 {
            buffers.append(&heap, 150, &mut random);
            let other = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
                let block = tx.reserve(50_000 + 1000 * round)?;
                tx.write(block, 0, 50_000)?.fill(round as u8);
                Ok(block)
            });
            others.push(other.expect("there is room"));
            buffers.assert_is_in(&heap);
            match round % 10 {
                3 => heap.checkpoint().expect("applied"),
                5 => drop(heap.shrink().expect("given back")),
                7 => {
                    let target: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
                    heap.back_up(target.as_ref()).expect("copied");
                    buffers.assert_is_in(&open(&target, false, 0));
                }
                9 => {
                    if round == 19 {
                        heap.close().expect("closed");
                    }
                    drop(heap);
                    heap = open(&directory, true, log_held_bytes_max);
                    buffers.assert_is_in(&heap);
                }
                _ => {}
            }
        }
        let view = heap.view().expect("ours");
        for (round, block) in others.iter().enumerate() {
            let bytes = &view.block(*block).expect("a block")[..50_000];
            assert!(bytes.iter().all(|byte| *byte == round as u8), "block {round}");
        }
        drop(view);
        let report = heap.check().expect("checked");
        assert!(report.is_clean(), "{:?}", report.findings);
    }
}

/// Bytes appended to buffers are written once, to the log.
#[test]
fn what_is_freed_in_time_is_not_written_to_the_pool() {
    let mut random = fastrand::Rng::with_seed(6);
    let mut written = [0; 2];
    for (written, log_held_bytes_max) in written.iter_mut().zip([u64::MAX, 0]) {
        let heap = open(&directory(), false, log_held_bytes_max);
        let mut buffers = Buffers::default();
        for _ in 0..60 {
            buffers.append(&heap, 100, &mut random);
            heap.checkpoint().expect("applied");
        }
        buffers.assert_is_in(&heap);
        let stats = heap.stats().journal;
        assert_eq!(stats.log_held_bytes > 0, log_held_bytes_max > 0, "{stats:?}");
        *written = stats.pool_written_bytes;
    }
    let [held, given_up] = written;
    assert!(given_up > 6_000_000 && held < 1_000_000, "{held} and {given_up} bytes of the pool");
}
