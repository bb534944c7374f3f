//! The pool file of an increment while it is made.
//!
//! Purpose: looks like an empty file that becomes a pool, and keeps only the blocks that differ
//! from the parent's.
//! Invariants: a block that was never written is zero, whatever the parent has there. Blocks are
//! compared byte by byte. A slot that a block no longer needs is the next one's.
//! Thread safety: one lock, held for each call.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::storage::File;
use parking_lot::Mutex;

use crate::increment::chain::{Chain, never_written};
use crate::increment::index::{BLOCKS_MAX, block_checksum, position_of};
use crate::increment::layout::{BLOCK_BYTES, RunEntry, ZERO_SLOT};

/// Blocks that are compared at once: 1 MiB.
const BLOCKS_AT_ONCE: u64 = 256;
/// Contents of a block: zeros, the parent's, or from here on those of a slot.
const ZERO: u32 = 0;
const SAME: u32 = 1;
const FIRST_SLOT: u32 = 2;

/// A pool file that keeps what differs from another one.
#[derive(Debug)]
pub(super) struct Difference {
    file: Arc<dyn File>,
    parent: Arc<Chain>,
    uuid: [u8; 16],
    kept: Mutex<Kept>,
}

/// What is kept of each block: 1 MiB of memory for 1 GiB of the pool.
#[derive(Debug, Default)]
struct Kept {
    len: u64,
    contents: Vec<u32>,
    /// Checksum of each slot.
    checksums: Vec<u32>,
    /// Slots that no block needs.
    free: Vec<u32>,
}

/// What the index says of the pool.
#[derive(Debug)]
pub(super) struct KeptBlocks {
    /// Blocks of the pool file.
    pub(super) blocks: u64,
    pub(super) runs: Vec<RunEntry>,
    /// Those of the slots.
    pub(super) checksums: Vec<u32>,
}

impl Kept {
    /// Gives a block other contents; a slot for `None`.
    fn set(&mut self, block: u64, content: Option<u32>) -> u32 {
        let before = self.contents[block as usize];
        let slot = before.checked_sub(FIRST_SLOT);
        let now = match (content, slot) {
            (None, Some(_)) => before,
            (None, None) => FIRST_SLOT + self.free_slot(),
            (Some(content), slot) => {
                self.free.extend(slot);
                content
            }
        };
        self.contents[block as usize] = now;
        now
    }

    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.checksums.push(0);
            (self.checksums.len() - 1) as u32
        })
    }

    /// Gives the file another length: new bytes are zero.
    fn set_len(&mut self, len: u64) {
        let blocks = len.div_ceil(BLOCK_BYTES) as usize;
        let cut = self.contents.iter().skip(blocks);
        self.free.extend(cut.filter_map(|content| content.checked_sub(FIRST_SLOT)));
        self.contents.resize(blocks, ZERO);
        self.len = len;
    }
}

impl Difference {
    /// An empty pool file, whose blocks are kept in the slots of `file`.
    pub(super) fn new(file: Arc<dyn File>, parent: Arc<Chain>, uuid: [u8; 16]) -> Self {
        Self { file, parent, uuid, kept: Mutex::default() }
    }

    /// What was kept, in slots without gaps between them.
    ///
    /// # Errors
    /// Those of the storage backend.
    pub(super) fn finish(&self) -> MediumResult<KeptBlocks> {
        let mut kept = self.kept.lock();
        self.close_gaps(&mut kept)?;
        let mut runs: Vec<RunEntry> = Vec::new();
        for (block, content) in (0..).zip(&kept.contents) {
            let slot = match *content {
                SAME => continue,
                ZERO => ZERO_SLOT,
                slot => u64::from(slot - FIRST_SLOT),
            };
            let goes_on = |last: &&mut RunEntry| {
                let next = match last.slot.get() {
                    ZERO_SLOT => ZERO_SLOT,
                    first => first + last.count.get(),
                };
                last.first.get() + last.count.get() == block && next == slot
            };
            match runs.last_mut().filter(goes_on) {
                Some(last) => last.count += 1,
                None => {
                    runs.push(RunEntry { first: block.into(), count: 1.into(), slot: slot.into() });
                }
            }
        }
        let blocks = kept.contents.len() as u64;
        Ok(KeptBlocks { blocks, runs, checksums: std::mem::take(&mut kept.checksums) })
    }

    /// Moves blocks from the last slots to those that no block needs, and cuts these off. There may
    /// be many: a page that the log names is copied as the pool has it first, and then again.
    fn close_gaps(&self, kept: &mut Kept) -> MediumResult<()> {
        let count = kept.checksums.len() - kept.free.len();
        let mut gaps = std::mem::take(&mut kept.free);
        gaps.retain(|slot| (*slot as usize) < count);
        gaps.sort_unstable_by(|one, other| other.cmp(one));
        let mut bytes = [0; BLOCK_BYTES as usize];
        for content in &mut kept.contents {
            let slot = content.checked_sub(FIRST_SLOT).filter(|slot| *slot as usize >= count);
            // There are as many of the one as of the other.
            let Some((slot, gap)) = slot.and_then(|slot| Some((slot, gaps.pop()?))) else {
                continue;
            };
            self.file.read_at(&mut bytes, position_of(slot.into()))?;
            self.file.write_at(&bytes, position_of(gap.into()))?;
            kept.checksums[gap as usize] = kept.checksums[slot as usize];
            *content = FIRST_SLOT + gap;
        }
        kept.checksums.truncate(count);
        self.file.set_len(position_of(count as u64))
    }

    /// Makes the file long enough, and fails if that is longer than any pool.
    fn extend(&self, kept: &mut Kept, end: u64) -> MediumResult<()> {
        if end.div_ceil(BLOCK_BYTES) > BLOCKS_MAX {
            let source = std::io::ErrorKind::FileTooLarge.into();
            return Err(MediumError::io("extend", self.path(), None, end, source));
        }
        if end > kept.len {
            kept.set_len(end);
        }
        Ok(())
    }

    /// Reads whole blocks.
    fn read(&self, kept: &Kept, first: u64, bytes: &mut [u8]) -> MediumResult<()> {
        for (block, bytes) in (first..).zip(bytes.chunks_mut(BLOCK_BYTES as usize)) {
            match kept.contents[block as usize] {
                ZERO => bytes.fill(0),
                SAME => self.parent.read(bytes, block * BLOCK_BYTES)?,
                slot => self.file.read_at(bytes, position_of((slot - FIRST_SLOT).into()))?,
            }
        }
        Ok(())
    }

    /// Writes whole blocks, those to slots behind each other by one call.
    fn put(&self, kept: &mut Kept, first: u64, bytes: &[u8]) -> MediumResult<()> {
        let mut parents = vec![0; bytes.len()];
        self.parent.read(&mut parents, first * BLOCK_BYTES)?;
        let block_bytes = BLOCK_BYTES as usize;
        let pairs = bytes.chunks(block_bytes).zip(parents.chunks(block_bytes));
        // The bytes to write, and the slot of their end.
        let (mut pending, mut next): (Range<usize>, u32) = (0..0, 0);
        for (index, (block, parents)) in pairs.enumerate() {
            let number = first + index as u64;
            let content = match block {
                zeros if zeros.iter().all(|&byte| byte == 0) => Some(ZERO),
                same if same == parents => Some(SAME),
                _ => None,
            };
            let Some(slot) = kept.set(number, content).checked_sub(FIRST_SLOT) else { continue };
            kept.checksums[slot as usize] = block_checksum(&self.uuid, number, block);
            let start = index * block_bytes;
            if pending.end != start || next != slot {
                self.write_pending(bytes, &pending, next)?;
                pending.start = start;
            }
            (pending.end, next) = (start + block_bytes, slot + 1);
        }
        self.write_pending(bytes, &pending, next)
    }

    fn write_pending(&self, bytes: &[u8], pending: &Range<usize>, next: u32) -> MediumResult<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let end = position_of(next.into());
        self.file.write_at(&bytes[pending.clone()], end - pending.len() as u64)
    }
}

impl File for Difference {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn len(&self) -> MediumResult<u64> {
        Ok(self.kept.lock().len)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> MediumResult<()> {
        let kept = self.kept.lock();
        let end = offset.saturating_add(buffer.len() as u64);
        refuse_short(self, kept.len, buffer, offset)?;
        let first = offset / BLOCK_BYTES;
        let mut bytes = vec![0; ((end.div_ceil(BLOCK_BYTES) - first) * BLOCK_BYTES) as usize];
        self.read(&kept, first, &mut bytes)?;
        let skipped = (offset % BLOCK_BYTES) as usize;
        buffer.copy_from_slice(&bytes[skipped..skipped + buffer.len()]);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> MediumResult<()> {
        let mut kept = self.kept.lock();
        let end = offset.saturating_add(bytes.len() as u64);
        self.extend(&mut kept, end)?;
        let mut at = offset;
        while at < end {
            let first = at / BLOCK_BYTES;
            let stop = end.min((first + BLOCKS_AT_ONCE) * BLOCK_BYTES);
            let part = &bytes[(at - offset) as usize..(stop - offset) as usize];
            let count = stop.div_ceil(BLOCK_BYTES) - first;
            let (skipped, rest) = (at % BLOCK_BYTES, stop % BLOCK_BYTES);
            if skipped == 0 && rest == 0 {
                self.put(&mut kept, first, part)?;
            } else {
                let mut blocks = vec![0; (count * BLOCK_BYTES) as usize];
                let last_at = ((count - 1) * BLOCK_BYTES) as usize;
                // Only the blocks at the edges keep bytes that they had.
                self.read(&kept, first, &mut blocks[..BLOCK_BYTES as usize])?;
                self.read(&kept, first + count - 1, &mut blocks[last_at..])?;
                blocks[skipped as usize..skipped as usize + part.len()].copy_from_slice(part);
                self.put(&mut kept, first, &blocks)?;
            }
            at = stop;
        }
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> MediumResult<()> {
        self.extend(&mut self.kept.lock(), offset.saturating_add(len))
    }

    fn punch(&self, _: u64, _: u64) -> MediumResult<()> {
        // A copy that is being made has nothing to give back.
        Err(never_written(self.path()))
    }

    fn set_len(&self, len: u64) -> MediumResult<()> {
        let mut kept = self.kept.lock();
        self.extend(&mut kept, len)?;
        kept.set_len(len);
        Ok(())
    }

    /// The whole file is made durable at once, with its index.
    fn sync(&self) -> MediumResult<()> {
        Ok(())
    }
}

/// Fails unless a file of that length has the bytes.
pub(super) fn refuse_short(
    file: &dyn File,
    len: u64,
    buffer: &[u8],
    offset: u64,
) -> MediumResult<()> {
    let expected_bytes = buffer.len() as u64;
    if offset.checked_add(expected_bytes).is_some_and(|end| end <= len) {
        return Ok(());
    }
    let found_bytes = len.saturating_sub(offset);
    Err(MediumError::Truncated { path: file.path().into(), offset, expected_bytes, found_bytes })
}

#[cfg(test)]
mod tests {
    use adamant_medium::memory::MemoryDirectory;
    use adamant_medium::storage::Directory;

    use super::*;
    use crate::options::Options;
    use crate::store::handle::Store;

    const BLOCK: usize = BLOCK_BYTES as usize;

    /// A full backup, and the bytes of its pool.
    fn parent() -> (Arc<Chain>, Vec<u8>) {
        let siblings: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let directory = siblings.subdirectory("full").unwrap();
        let store = Store::open_directory(Arc::clone(&directory), Options::new()).unwrap();
        let data = store.keyspace("data").unwrap();
        (0..2_000_u32).for_each(|number| data.put(number.to_le_bytes(), [7; 500]).unwrap());
        store.close().unwrap();
        let pool = directory.open("pool").unwrap().unwrap();
        let mut bytes = vec![0; pool.len().unwrap() as usize];
        pool.read_at(&mut bytes, 0).unwrap();
        (Arc::new(Chain::open(&siblings, "full", None).unwrap()), bytes)
    }

    /// Bytes at a place: zeros, the parent's, and others, in runs that end anywhere.
    fn rolled(random: &mut fastrand::Rng, parents: &[u8], at: usize, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let from = at + bytes.len();
            let count = random.usize(1..=3 * BLOCK).min(len - bytes.len());
            match random.u8(..3) {
                0 => bytes.resize(bytes.len() + count, 0),
                1 => bytes
                    .extend((from..from + count).map(|at| parents.get(at).copied().unwrap_or(0))),
                _ => bytes.extend(std::iter::repeat_n(random.u8(1..), count)),
            }
        }
        bytes
    }

    /// What the index and the slots give to one who knows the parent.
    fn put_together(file: &dyn File, kept: &KeptBlocks, parents: &[u8]) -> Vec<u8> {
        let mut bytes = parents.to_vec();
        bytes.resize(kept.blocks as usize * BLOCK, 0);
        for run in &kept.runs {
            for index in 0..run.count.get() {
                let block = &mut bytes[(run.first.get() + index) as usize * BLOCK..][..BLOCK];
                match run.slot.get() {
                    ZERO_SLOT => block.fill(0),
                    slot => file.read_at(block, position_of(slot + index)).unwrap(),
                }
            }
        }
        bytes
    }

    /// Writes at any place and of any length, against bytes in memory.
    #[test]
    fn a_pool_file_is_what_was_written_to_it() {
        let (chain, parents) = parent();
        assert!(parents.len() > 100 * BLOCK);
        for seed in 0..60 {
            println!("seed {seed}");
            let mut random = fastrand::Rng::with_seed(seed);
            let file = MemoryDirectory::new().create("increment").unwrap();
            let difference = Difference::new(Arc::clone(&file), Arc::clone(&chain), [1; 16]);
            let mut model: Vec<u8> = Vec::new();
            for _ in 0..random.usize(1..40) {
                let at = random.usize(..parents.len() + 20 * BLOCK);
                let at = if random.bool() { at / BLOCK * BLOCK } else { at };
                match random.u8(..10) {
                    0 => {
                        let blocks = random.usize(..=parents.len() / BLOCK + 20);
                        difference.set_len((blocks * BLOCK) as u64).unwrap();
                        model.resize(blocks * BLOCK, 0);
                    }
                    1 => {
                        let len = random.usize(..20 * BLOCK);
                        difference.allocate(at as u64, len as u64).unwrap();
                        model.resize(model.len().max(at + len), 0);
                    }
                    2 if !model.is_empty() => {
                        let at = random.usize(..model.len());
                        let mut found = vec![1; random.usize(..=model.len() - at)];
                        difference.read_at(&mut found, at as u64).unwrap();
                        assert!(found == model[at..at + found.len()], "{} at {at}", found.len());
                    }
                    _ => {
                        let len_max = random.choice([3, 5, 600]).unwrap() * BLOCK;
                        let len = random.usize(1..len_max);
                        let len = if random.bool() { len.next_multiple_of(BLOCK) } else { len };
                        let bytes = rolled(&mut random, &parents, at, len);
                        difference.write_at(&bytes, at as u64).unwrap();
                        model.resize(model.len().max(at + len), 0);
                        model[at..at + len].copy_from_slice(&bytes);
                    }
                }
                assert_eq!(difference.len().unwrap(), model.len() as u64);
            }
            let mut found = vec![1; model.len()];
            difference.read_at(&mut found, 0).unwrap();
            assert!(found == model, "before the end");
            let kept = difference.finish().unwrap();
            model.resize(model.len().next_multiple_of(BLOCK), 0);
            let mut found = put_together(&*file, &kept, &parents);
            assert_eq!(kept.blocks as usize * BLOCK, model.len());
            found.truncate(model.len());
            assert!(found == model, "behind the end");
            let slots = kept.runs.iter().filter(|run| run.slot.get() != ZERO_SLOT);
            let count: u64 = slots.map(|run| run.count.get()).sum();
            assert_eq!(count, kept.checksums.len() as u64, "no slot is left");
        }
    }
}
