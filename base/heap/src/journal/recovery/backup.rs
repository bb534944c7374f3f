//! Online backup: copies the pool while others commit and checkpoints are made.
//!
//! Purpose: the pages are copied as they are, one piece after the other, and then the log is
//! applied to them: everything from the position of the pool when the copy began, to a durable end
//! beyond all that was applied meanwhile. So the copy is what recovery would make of the pool.
//! Invariants: a piece is read under the pool lock, so its pages are whole, and verified by their
//! checksums (R7). A record states its changes in absolute terms, so applying it to a page that
//! shows later records is harmless: each byte ends as the last record left it. Log files from the
//! beginning on are held. The log is applied to the copy directly, so the copy never has a log of
//! its own: its UUID may be another one. It is no pool before everything in it is written.
//! Thread safety: takes the pool lock for a piece at a time, half a millisecond, which only a
//! checkpoint waits for. Memory is a piece, and 8 MiB of pages.

use adamant_medium::error::Error as MediumError;
use adamant_wire::frame::log_seed;
use parking_lot::Mutex;

use crate::collections::range_set::RangeSet;
use crate::error::{Error, Result};
use crate::image::mapping::Image;
use crate::image::pool_file::PoolFile;
use crate::image::pool_file::page_checksums::ReadPages;
use crate::journal::checkpoints::batch::{BatchWriter, Copies};
use crate::journal::checkpoints::checkpoint::CheckpointState;
use crate::journal::records::files::Files;
use crate::journal::records::log::Log;
use crate::journal::recovery::dirty::DirtyPages;
use crate::journal::recovery::overlay::lay_over;
use crate::journal::recovery::tail::Tail;
use crate::layout::{PAGE_BYTES, checksum_file_offset, file_offset};

/// Bytes of pages of the copy in memory while the log is applied to it.
const PAGES_BYTES_MAX: u64 = 8 << 20;

/// The parts of a journal that a backup reads.
#[derive(Clone, Copy)]
pub(in crate::journal) struct Source<'j> {
    pub(in crate::journal) pool: &'j PoolFile,
    pub(in crate::journal) log: &'j Log,
    /// The newest checkpoint that is durable.
    pub(in crate::journal) applied_last: &'j Mutex<CheckpointState>,
    /// Held while the log restarts.
    pub(in crate::journal) beginning: &'j Mutex<()>,
}

/// Holds log files while it lives.
struct Held<'j>(&'j Files);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
        // Best effort: the next caller that gives files back removes surplus ones.
        let _ = self.0.trim();
    }
}

/// Makes an empty file a pool with the contents of the source after some record, which is durable;
/// returns its number. `go_on` is called before each piece. O(pool + log written meanwhile).
///
/// # Errors
/// Those of `go_on`; `Error::Poisoned`, `Error::Damaged` for a damaged page of the source; those of
/// the medium: out of space for the copy, or for the log, when writers needed the space of held
/// files.
pub(in crate::journal) fn back_up(
    source: Source<'_>,
    target: &PoolFile,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<u64> {
    let Source { pool, log, applied_last, beginning } = source;
    let (start, generation) = {
        let _not_anew = beginning.lock();
        // In this order: a checkpoint publishes its position before it gives files back.
        log.files.hold();
        let applied = applied_last.lock();
        (applied.needed(), applied.generation)
    };
    let _held = Held(&log.files);
    let go_on = || go_on().and_then(|()| log.poison.check());
    copy_pages(pool, target, &mut |_, error| Err(error), &go_on)?;
    // All that was applied until here is durable and lies before this.
    let end = log.end();
    log.sync(end.sequence)?;
    let Some(files) = log.files.held() else { return Err(let_go(log)) };
    let seed = log_seed(pool.uuid(), generation);
    let tail = Tail { files, seed, start, end, torn: false };
    if let Err(error) = take_in(target, &tail) {
        // A released file is overwritten, which looks like damage.
        return Err(if log.files.held().is_none() { let_go(log) } else { error });
    }
    finish(target, end.sequence)
}

/// A pool without a writer, or as of a moment, and the image that recovery would make of it.
pub(in crate::journal) struct Still<'j> {
    pub(in crate::journal) pool: &'j PoolFile,
    pub(in crate::journal) image: &'j Image,
    /// Heap offset and length of the ranges that the image has otherwise.
    pub(in crate::journal) unlike: Vec<(u64, u64)>,
    /// Whether the page at a heap offset is the image's, so that the pool's need not be whole.
    pub(in crate::journal) is_named: &'j dyn Fn(u64) -> bool,
}

/// As [`back_up`], for a pool without a writer: pages that the image has otherwise are its. The log
/// is not read again: where another process writes, it may be gone.
///
/// # Errors
/// As [`back_up`].
pub(in crate::journal) fn back_up_still(
    source: Still<'_>,
    last_sequence: u64,
    target: &PoolFile,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<u64> {
    let Still { pool, image, unlike, is_named } = source;
    let mut verify = |page, error| if is_named(page) { Ok(()) } else { Err(error) };
    copy_pages(pool, target, &mut verify, go_on)?;
    target.grow_with_holes(image.pages())?;
    let (mut writer, mut copies) = (BatchWriter::unnamed(), Copies::default());
    for (offset, len) in unlike {
        for page in (offset..offset + len).step_by(PAGE_BYTES as usize) {
            go_on()?;
            let bytes = image.copy_page(page)?;
            // What is not in the pool yet is a hole of the copy.
            if is_named(page) || bytes != [0; PAGE_BYTES as usize] {
                copies.add(page / PAGE_BYTES).copy_from_slice(&bytes);
            }
            if copies.is_full() {
                writer.write(target, &copies.batch(), 0)?;
                copies.clear();
            }
        }
        // The next range may lie before this one.
        writer.write(target, &copies.batch(), 0)?;
        copies.clear();
    }
    finish(target, last_sequence)
}

/// Applies a tail to a copy. It is no pool before it is finished, so no table names the written
/// pages.
fn take_in(target: &PoolFile, tail: &Tail) -> Result<()> {
    let mut pages = DirtyPages::new(target, tail, BatchWriter::unnamed(), PAGES_BYTES_MAX);
    lay_over(tail, &mut pages, &mut RangeSet::default(), &mut Err)?;
    pages.finish().map(|_| ())
}

/// Completes a copy that has all pages and records.
fn finish(target: &PoolFile, sequence: u64) -> Result<u64> {
    target.grow_with_holes(target.pages_allocated()?)?;
    target.back_allocated()?;
    target.finish(sequence)?;
    Ok(sequence)
}

/// Copies all pages, descriptors first. Pages of zeros stay holes. Calls `verify` for those that
/// are damaged.
pub(in crate::journal) fn copy_pages(
    pool: &PoolFile,
    target: &PoolFile,
    verify: &mut dyn FnMut(u64, Error) -> Result<()>,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<()> {
    // The pool may grow meanwhile, and no later record may name the new pages. And it may be cut.
    pool.read_all(u64::MAX, go_on, &mut |piece, pages| {
        let mut verified = Ok(());
        piece.find_damage(&**pool.file(), &mut |page, error| {
            if verified.is_ok() {
                verified = verify(page, error);
            }
        });
        verified?;
        write_piece(target, piece, pages)
    })
}

/// Writes the pages of a piece that are not zero, and their checksums; `pages` is the size of the
/// pool.
fn write_piece(target: &PoolFile, piece: &ReadPages, pages: u64) -> Result<()> {
    target.grow_with_holes(pages)?;
    let page_bytes = PAGE_BYTES as usize;
    let is_zero = |page: &[u8]| page.iter().all(|&byte| byte == 0);
    let mut at = 0;
    while at < piece.bytes.len() {
        let rest = piece.bytes[at..].chunks(page_bytes);
        let zeros = rest.clone().take_while(|page| is_zero(page)).count() * page_bytes;
        let written = rest.skip(zeros / page_bytes).take_while(|page| !is_zero(page)).count();
        let run = at + zeros..at + zeros + written * page_bytes;
        if !run.is_empty() {
            let offset = file_offset(piece.offset) + run.start as u64;
            target.file().write_at(&piece.bytes[run.clone()], offset)?;
        }
        at = run.end;
    }
    if !is_zero(&piece.checksums) {
        target.file().write_at(&piece.checksums, checksum_file_offset(piece.offset))?;
    }
    Ok(())
}

/// The device had no space for writers, and they took the held files; or the log was given back.
fn let_go(log: &Log) -> Error {
    Error::Medium(MediumError::OutOfSpace {
        operation: "keep the log for a copy of the pool in",
        path: log.files.path().into(),
        bytes: log.files.bytes(),
        source: std::io::ErrorKind::StorageFull.into(),
    })
}
