//! The page source of checkpoints: copies of dirty pages for the file.
//!
//! Purpose: a checkpoint reads neither the log nor the pool: what the file is to hold is in memory.
//! Invariants: C1, pages are copied only under the writer lock and the allocator's lock: so memory
//! shows the changes of every appended record, and no thread stores to allocated blocks. C3, a
//! block that a reservation may be filling is not read: blocks of an open run that are not
//! allocated are zeros in the file. In other runs only transactions reserve, and none runs; and
//! free pages are not dirty. The flag of open runs stays in memory.
//! Thread safety: any thread; one checkpoint at a time. A hold copies 256 pages, some 0.1 ms.

use std::sync::Arc;

use crate::error::Result;
use crate::image::class::Class;
use crate::image::mapping::Image;
use crate::journal::{Copies, PageBytes, PageSource, RecordBuilder};
use crate::latch::writer_queue::WriterQueue;
use crate::layout::{
    Descriptor, FIRST_PAGE, FLAG_OPEN, KIND_RUN, KIND_RUN_CONTINUED, PAGE_BYTES, TABLE_BASE,
};
use crate::space::state::Space;
use crate::transaction::scratch::Writer;

/// Pages copied in one hold of the locks.
const HOLD_PAGES_MAX: usize = 256;

/// Copies the pages of a heap.
#[derive(Debug)]
pub(crate) struct Copier {
    space: Arc<Space>,
    writer_queue: Arc<WriterQueue<Writer>>,
}

impl Copier {
    /// A copier for a heap.
    pub(crate) fn new(space: &Arc<Space>, writer_queue: &Arc<WriterQueue<Writer>>) -> Self {
        Self { space: Arc::clone(space), writer_queue: Arc::clone(writer_queue) }
    }

    fn copy_page(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        let image = &self.space.image;
        let offset = page * PAGE_BYTES;
        if offset >= TABLE_BASE {
            return copy_descriptors(image, offset, bytes);
        }
        if page >= FIRST_PAGE {
            let Descriptor { kind, flags, class, argument } = image.descriptor(page)?;
            let is_open_run =
                matches!(kind, KIND_RUN | KIND_RUN_CONTINUED) && flags & FLAG_OPEN != 0;
            let back = if kind == KIND_RUN { 0 } else { argument.get().into() };
            // A forged descriptor may lead before the first page: no block is reserved there.
            if let (Some(run), Some(shape)) =
                (page.checked_sub(back), self.space.classes.get(class.get()))
                && is_open_run
            {
                return copy_open(image, run, shape, offset, bytes);
            }
        }
        bytes.copy_from_slice(image.bytes(offset, PAGE_BYTES)?);
        Ok(())
    }
}

/// Copies a page of descriptors without the flags that only memory has.
fn copy_descriptors(image: &Image, offset: u64, bytes: &mut PageBytes) -> Result<()> {
    let open = Descriptor { flags: FLAG_OPEN, ..Descriptor::default() }.word();
    let (words, _) = bytes.as_chunks_mut();
    for (at, word) in (offset..).step_by(8).zip(words) {
        *word = (image.load_word(at)? & !open).to_le_bytes();
    }
    Ok(())
}

/// Copies the allocated blocks of a page of an open run, and its bitmap.
fn copy_open(
    image: &Image,
    run: u64,
    shape: &Class,
    offset: u64,
    bytes: &mut PageBytes,
) -> Result<()> {
    bytes.fill(0);
    let base = run * PAGE_BYTES;
    let (start, end) = (offset - base, offset - base + PAGE_BYTES);
    let mut copy = |from: u64, to: u64| -> Result<()> {
        let (from, to) = (from.max(start), to.min(end));
        if from < to {
            let target = &mut bytes[(from - start) as usize..(to - start) as usize];
            target.copy_from_slice(image.bytes(base + from, to - from)?);
        }
        Ok(())
    };
    copy(0, shape.blocks_start)?;
    let first = start.saturating_sub(shape.blocks_start) / shape.block_bytes;
    for index in first..shape.block_count {
        let at = shape.blocks_start + index * shape.block_bytes;
        if at >= end {
            break;
        }
        if image.bitmap_word(run, shape, (index / 64) as usize)? >> (index % 64) & 1 != 0 {
            copy(at, at + shape.block_bytes)?;
        }
    }
    Ok(())
}

impl PageSource for Copier {
    fn note_named(&self, record: &RecordBuilder) {
        let states = self.space.image.states();
        record.pages().iter().for_each(|pages| states.note_dirty(pages.clone()));
    }

    fn hold(&self, is_alone: bool, work: &mut dyn FnMut()) {
        if is_alone {
            return work();
        }
        let _permit = self.writer_queue.wait();
        let _arena = self.space.arena();
        work();
    }

    fn dirty_pages(&self) -> u64 {
        self.space.image.states().dirty_pages()
    }

    fn end_epoch(&self) -> Option<u32> {
        self.space.image.states().end_epoch()
    }

    fn copy(
        &self,
        mut page: u64,
        epoch: Option<u32>,
        copies: &mut Copies,
        held_end: &dyn Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        let states = self.space.image.states();
        for _ in 0..HOLD_PAGES_MAX {
            if copies.is_full() {
                return Ok(Some(page));
            }
            let Some(dirty) = states.next_dirty(page) else { return Ok(None) };
            page = match held_end(dirty) {
                Some(end) => end,
                None => {
                    self.copy_page(dirty, copies.add(dirty))?;
                    states.note_copied(dirty, epoch);
                    dirty + 1
                }
            };
        }
        Ok(Some(page))
    }

    fn note_covered(&self, epoch: u32) {
        self.space.image.states().note_covered(epoch);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use adamant_medium::memory::MemoryDirectory;

    use crate::durability::Durability;
    use crate::heap::{Heap, Options};

    /// The holder of the allocator's lock may have appended a record that memory does not show yet.
    #[test]
    fn a_checkpoint_waits_for_who_has_the_allocator() {
        let options = Options { background: false, ..Options::default() };
        let (heap, _) = Heap::open(Arc::new(MemoryDirectory::new()), options).expect("opens");
        let reserved = heap.reserve(100).expect("reserves");
        heap.publish(Durability::Sync, [reserved]).expect("publishes");
        let is_made = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let arena = heap.space.arena();
            scope.spawn(|| {
                heap.checkpoint().expect("checkpoint");
                is_made.store(true, Ordering::Release);
            });
            std::thread::sleep(Duration::from_millis(100));
            assert!(!is_made.load(Ordering::Acquire), "it is made beside the allocator");
            drop(arena);
        });
        assert!(is_made.load(Ordering::Acquire));
    }
}
