//! Shrinking: frees space in the file system, by truncation and by holes.
//!
//! Purpose: the reverse of growth. The file becomes as short as the last chunk in use allows, and
//! whole free chunks before it become holes.
//! Invariants: the pages are free, so nothing in memory or on the medium refers to them: no block,
//! no reservation, nothing that a pin keeps (that is retired, not free). A record says so, durably,
//! before the medium changes, and the checkpoint that changes it passes that record only
//! afterwards. A hole is backed again before it is handed out (`allocator.rs`).
//! Thread safety: the shrinking thread has the image exclusively, and holds the arena's lock
//! throughout, so no other thread reserves, grows or commits.
//!
//! Reads meanwhile and afterwards: a page of a private image that was never written to is a page of
//! the file. Over a hole it reads as zero, which is as good as what a free page held. Beyond the
//! end of the file an access would raise a signal, whether the page was written to or not, so fresh
//! memory replaces these pages first.

use crate::error::Result;
use crate::heap::Heap;
use crate::image::mapping::guards::Exclusive;
use crate::journal::CheckpointLock;
use crate::layout::{FIRST_PAGE, PAGE_BYTES, ROOT_PAGES_END};
use crate::space::allocator::BlockAllocator;
use crate::space::arena::{Arena, CHUNK_PAGES};
use crate::transaction::scratch::Writer;

/// Bytes that a log has at least, which `keep_log` counts apart.
const LOG_LEAST_BYTES: u64 = 2 << 20;

/// Space freed in the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrunk {
    /// Bytes that the pool file became shorter by, free pages at its end.
    pub bytes_released: u64,
    /// Bytes of free pages within it that take no space any more; from the first call after the
    /// heap was opened, those too that took none before.
    pub bytes_punched: u64,
    /// Bytes of log files that were kept ready beyond the present need, and were removed.
    pub log_bytes_released: u64,
}

/// The plan of one shrink.
#[derive(Debug)]
struct Plan {
    /// Free pages from here on were never handed out.
    tail: u64,
    /// Pages that the heap keeps.
    pages: u64,
    /// Pages that become holes below that: start and end of each range.
    holes: Vec<(u64, u64)>,
}

impl Heap {
    /// Frees unused space in the file system: the file ends with the last 256 KiB chunk in use, and
    /// wholly free chunks before it become holes, if the file system has them. The two smallest log
    /// files stay, and the log restarts in one of them if need be; while a backup is made, all that
    /// it needs stays. Space that is free but kept by pins is not released. Allocations back what
    /// they need again, or fail for lack of space. Waits for views and transactions, and they wait
    /// for it; the thread that has one must not call it. O(pages): bitmaps not loaded since the
    /// heap was opened are loaded first, while other threads go on. While there is a
    /// [savepoint](Heap::create_savepoint), or a reader beside this heap, the pool stays as it is.
    ///
    /// # Errors
    /// `Error::Poisoned`, `Error::Damaged` for descriptors that are not what was written,
    /// `Error::Misuse` as for [`Heap::view`] and within a transaction; those of the medium. Nothing
    /// is lost then, whatever was released.
    pub fn shrink(&self) -> Result<Shrunk> {
        self.shrink_keeping(|| 0)
    }

    /// As [`Heap::shrink`], but keeps that many bytes of the log, as
    /// [`Write::keep_log`](crate::Write::keep_log) would. Calls `log_bytes` while no other thread
    /// writes, on the thread that has the heap exclusively.
    ///
    /// # Errors
    /// As [`Heap::shrink`].
    pub fn shrink_keeping(&self, log_bytes: impl FnOnce() -> u64) -> Result<Shrunk> {
        self.refuse_child()?;
        self.refuse_within()?;
        self.look_at_runs()?;
        let shrunk = self.give_back_with(|writer| self.give_up_runs(writer))?;
        let mut checkpoints = self.journal.writable()?.hold_checkpoints()?;
        let log_bytes_released = self.alone(|_, _, _| {
            let kept_bytes = log_bytes();
            // No other thread reserves or publishes without a transaction either.
            let _arena = self.space.arena();
            self.journal.writable()?.shrink_log(&mut checkpoints, kept_bytes)
        })?;
        Ok(Shrunk { log_bytes_released, ..shrunk })
    }

    /// As [`Heap::shrink`], but frees only what is known to be free without reading the medium, and
    /// nothing of the log: for callers that repeat it often.
    ///
    /// # Errors
    /// As [`Heap::shrink`].
    pub fn give_back(&self) -> Result<Shrunk> {
        self.give_back_with(|_| ())
    }

    fn give_back_with(&self, prepare: impl FnOnce(&mut Writer)) -> Result<Shrunk> {
        self.refuse_child()?;
        let journal = self.journal.writable()?;
        journal.wait_for_space()?;
        // Covers most of the log, while no other thread waits.
        self.checkpoint()?;
        let mut checkpoints = journal.hold_checkpoints()?;
        self.alone(|_, image, writer| {
            prepare(writer);
            self.recycle(image);
            // Without relying on the reclaim threads; each record covers a part, which bounds it.
            while self.recycle_part(image) {}
            if journal.savepoints().has_any() {
                // Pages that are free now may be theirs.
                return Ok(Shrunk::default());
            }
            // Where it cannot be told, one may be there.
            if journal.oldest_reader().map_or(true, |oldest| oldest.is_some()) {
                // They may read what would be cut off.
                return Ok(Shrunk::default());
            }
            self.allocator().shrink(image, &mut checkpoints)
        })
    }

    /// Takes the runs back from the shards: then the arena knows which runs are empty. The shards
    /// take other runs, or the same again.
    fn give_up_runs(&self, writer: &mut Writer) {
        let take_back = |run, words: &[u64]| self.space.arena().take_back(run, words);
        writer.shard.give_up(take_back);
        self.allocator().give_up_packing(&mut writer.packing);
        self.thread_caches.all().for_each(|mut thread_cache| thread_cache.shard.give_up(take_back));
    }

    /// Loads the bitmaps of all runs: then the arena knows which are empty. A few at a time, so
    /// that no other thread waits long.
    fn look_at_runs(&self) -> Result<()> {
        loop {
            let _image = self.read_image()?;
            if !self.allocator().load_runs()? {
                return Ok(());
            }
        }
    }
}

impl Heap {
    /// Frees the space of the log files in the file system, except the least that a log needs,
    /// while `work` runs. For a caller that needs room on a full device in order to make more, in
    /// the way that [`Write::keep_log`](crate::Write::keep_log) reserves it; `keep_log` fails
    /// meanwhile. Afterwards the log takes as much again, if there is room. Waits for views and
    /// transactions, which wait for it, and for the device; the thread that has one must not call
    /// it. A backup in progress fails for lack of space.
    ///
    /// # Errors
    /// `Error::Poisoned`, `Error::Damaged` for what is not what was written, `Error::Misuse` as for
    /// [`Heap::view`] and within a transaction; those of the medium. Nothing is lost then, and
    /// `work` did not run.
    pub fn lend_log_space<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        self.refuse_child()?;
        self.refuse_within()?;
        // Covers most of the log, while no other thread waits.
        let journal = self.journal.writable()?;
        journal.checkpoint_held()?;
        let bytes = journal.stats().log_allocated_bytes;
        let mut checkpoints = journal.hold_checkpoints()?;
        let given = self.alone(|_, _, _| {
            // No other thread reserves or publishes without a transaction either.
            let _arena = self.space.arena();
            journal.lend_log_space(&mut checkpoints)
        })?;
        drop(checkpoints);
        let done = work();
        drop(given);
        // The log takes the available room first, for the next time, as far as there is any.
        let _ = journal.keep_log(bytes.saturating_sub(LOG_LEAST_BYTES));
        Ok(done)
    }
}

impl BlockAllocator<'_> {
    /// Releases what is free and can be released. Waits for the medium while no other thread works.
    ///
    /// # Errors
    /// `Error::Poisoned`, `Error::Damaged` for descriptors that are not what was written; those of
    /// the medium. Nothing is lost then, and what was released is backed again before its use.
    fn shrink(
        self,
        image: &mut Exclusive<'_>,
        checkpoints: &mut CheckpointLock<'_>,
    ) -> Result<Shrunk> {
        let mut arena = self.space.arena();
        let before = image.pages();
        self.boot_zones(&mut arena, 0, before)?;
        let plan = self.plan(&arena)?;
        if plan.pages == before && plan.holes.is_empty() {
            return Ok(Shrunk::default());
        }
        let journal = self.journal.writable()?;
        // The tail begins behind every record that names these pages: a crash between a hole and
        // its checksums leaves pages that do not match them, and pages that a record only frees are
        // not verified.
        journal.checkpoint_alone(checkpoints, &[])?;
        self.announce(&mut arena, &plan, image)?;
        // From here on the pages may be holes, whatever fails.
        plan.holes.iter().for_each(|&(start, end)| arena.note_punched(start, end));
        arena.note_punched(plan.pages, before);
        for (start, end) in plan.holes.iter().copied().chain([(plan.pages, before)]) {
            // Memory may hold a copy of the old contents, while the checksum is that of zeros now.
            let (at, len) = (start * PAGE_BYTES, (end - start) * PAGE_BYTES);
            image.note_verified(at, len)?;
        }
        // The checkpoint must lie behind every record that names pages which are cut off.
        let holes = plan.holes.iter().copied().chain([(plan.pages, before)]);
        let holes: Vec<_> = holes.filter(|(start, end)| start < end).collect();
        journal.checkpoint_alone(checkpoints, &holes)?;
        if plan.pages < before {
            image.cut(plan.pages)?;
            // Growth backs the pages that it adds.
            arena.note_backed(plan.pages, before);
            journal.truncate(checkpoints, plan.pages)?;
        }
        let punched: u64 = plan.holes.iter().map(|(start, end)| end - start).sum();
        Ok(Shrunk {
            bytes_released: (before - plan.pages) * PAGE_BYTES,
            bytes_punched: punched * PAGE_BYTES,
            log_bytes_released: 0,
        })
    }

    fn plan(self, arena: &Arena) -> Result<Plan> {
        let tail = arena.free_tail().max(FIRST_PAGE);
        let pages = tail.next_multiple_of(CHUNK_PAGES).min(self.space.image.pages());
        let mut holes = arena.free_chunks(tail);
        if !holes.is_empty() && !self.journal.writable()?.can_punch()? {
            holes.clear();
        }
        Ok(Plan { tail, pages, holes })
    }

    /// Appends and applies the record of what becomes of the pages.
    fn announce(self, arena: &mut Arena, plan: &Plan, image: &Exclusive<'_>) -> Result<()> {
        let is_lower = plan.tail < arena.pages_end;
        let before = image.pages();
        arena.record.clear();
        if is_lower {
            arena.record.bytes(ROOT_PAGES_END, &plan.tail.to_le_bytes());
        }
        for &(start, end) in &plan.holes {
            arena.record.hole(start * PAGE_BYTES, (end - start) * PAGE_BYTES);
        }
        if plan.pages < before {
            // Their checksums stay in place when they are cut off, and must be those of zeros when
            // they come back. All of them: the end may once have been lower than what was used.
            arena.record.hole(plan.pages * PAGE_BYTES, (before - plan.pages) * PAGE_BYTES);
        }
        if !arena.record.is_empty() {
            self.append_for(&arena.record, [(ROOT_PAGES_END, 8)].into_iter())?;
            if is_lower {
                image.store_word(ROOT_PAGES_END, plan.tail)?;
            }
        }
        arena.cut(plan.tail);
        Ok(())
    }
}
