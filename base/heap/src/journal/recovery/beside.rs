//! Reading beside a process that writes: opening as of a commit, and moving on to a later one.
//!
//! Purpose: see docs/decisions/0133-readers-beside-the-writer.md. A refresh that meets no new
//! checkpoint applies the records behind its own; one that does forgets the pages that were
//! overwritten or that records named, and applies the log as opening does. All other pages are as
//! they were: no record named them.
//! Invariants: the image is as of one commit, or a refresh says that it is closed.
//! Thread safety: a refresh runs alone.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use adamant_medium::address::bell::Bell;
use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::{Directory, File, Lock};

use crate::error::{Error, Result};
use crate::image::kind::ImageKind;
use crate::image::mapping::guards::Exclusive;
use crate::image::memory_bounds::Bounds;
use crate::image::pool_file::PoolFile;
use crate::journal::readers::{ReaderLock, Registration};
use crate::journal::recovery::as_of::PoolAsOf;
use crate::journal::recovery::overlay::Private;
use crate::journal::recovery::read_only::{Applied, Found, ReadOnly, log_of};
use crate::journal::recovery::tail::Tail;
use crate::journal::recovery::validate::validate_behind;
use crate::layout::{BELL_OFFSET, Checkpoint, PAGE_BYTES, POOL_NAME};

/// Attempts to open beside a process that writes, those of them that may find damage, and the pause
/// between two.
const ATTEMPTS_MAX: u32 = 200;
const DAMAGED_ATTEMPTS_MAX: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);
/// A process that waits looks after this long, whether or not a bell has rung: the process that
/// writes may have none.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The result of moving on to a later commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Nothing was committed since.
    Unchanged,
    /// The heap is as of a later commit.
    Later,
    /// A copy is being made, or a slice or a pin is left: it is as of the same commit.
    InUse,
    /// It could not move on, and is closed: open it again.
    Closed,
}

fn newest_number(pool: &PoolFile) -> Result<u64> {
    Ok(pool.newest_checkpoint()?.map_or(0, |newest| newest.number.get()))
}

impl ReadOnly {
    /// The same beside a process that may write the heap meanwhile, as of some commit of it.
    ///
    /// # Errors
    /// As [`ReadOnly::open`]; an error of kind `ResourceBusy` if checkpoints follow each other too
    /// fast.
    pub(crate) fn open_beside(
        directory: &Arc<dyn Directory>,
        bytes_max: u64,
        bounds: Bounds,
    ) -> Result<(Box<dyn Lock>, Found)> {
        let mut damaged = 0;
        for _ in 0..ATTEMPTS_MAX {
            let registration = Arc::new(Registration::new(directory.as_ref())?);
            let lock = ReaderLock(Arc::clone(&registration));
            let now = PoolFile::open_in(directory.as_ref())?;
            // First: pages as they are before a checkpoint, with the log behind it, lack something.
            let before = newest_number(&now)?;
            let file = PoolAsOf::new(now, before, Arc::clone(&registration))?;
            let opened = PoolFile::open(Arc::clone(&file) as Arc<dyn File>).and_then(|pool| {
                Self::open_pool(directory, pool, bytes_max, bounds, ImageKind::Filled)
            });
            // Behind a checkpoint log files are given back, and may be overwritten while they are
            // read.
            let after = newest_number(file.now())?;
            match opened {
                Ok(opened) if after == before => {
                    file.set_moment(opened.0.last_sequence().max(1))?;
                    if !registration.is_overtaken()? {
                        let (mut journal, image, recovery) = opened;
                        journal.as_of = Some(file);
                        return Ok((Box::new(lock), (journal, image, recovery)));
                    }
                }
                // A record that is half written looks like damage, too.
                Err(Error::Damaged { .. }) if after == before && damaged < DAMAGED_ATTEMPTS_MAX => {
                    damaged += 1;
                }
                Err(error) if after == before && !registration.is_overtaken()? => {
                    return Err(error);
                }
                _ => {}
            }
            thread::sleep(PAUSE);
        }
        let source = io::Error::new(
            io::ErrorKind::ResourceBusy,
            "each attempt met the end of a checkpoint, or was too slow for what is kept for \
             readers; allow the process that writes a longer log, and more bytes for its readers",
        );
        Err(MediumError::io("read beside a writer", directory.path(), None, 0, source).into())
    }

    /// Moves on to the last commit that can be found. O(records since), and after a checkpoint
    /// O(pages that it wrote + log).
    ///
    /// # Errors
    /// Those of the medium; then it is [`Refresh::Closed`], too. Damage is that alone:
    /// opening is the error, if the damage stays.
    pub(crate) fn refresh(
        &self,
        directory: &dyn Directory,
        image: &mut Exclusive<'_>,
    ) -> Result<Refresh> {
        let Some(file) = &self.as_of else { return Ok(Refresh::Unchanged) };
        let pages = image.pages();
        let Some(newest) = file.now().newest_checkpoint()? else { return Ok(Refresh::Closed) };
        let (number, mut applied) = (newest.number.get(), self.applied.write());
        let is_later = number == applied.checkpoints;
        let refreshed = match is_later {
            true => self.apply_later(directory, image, &newest, &mut applied),
            false => self.apply_anew(directory, image, (file, number), &mut applied),
        };
        drop(applied);
        // Behind a checkpoint log files are given back, and may be overwritten while they are read.
        if newest_number(file.now())? != number {
            return Ok(Refresh::Closed);
        }
        let refresh = match refreshed {
            // A record that is half written looks like damage, too. Opening again tells.
            Ok(Refresh::Closed) | Err(Error::Damaged { .. }) => return Ok(Refresh::Closed),
            refreshed => refreshed?,
        };
        if !is_later || pages < image.pages() {
            self.unlike_file(image, &mut |offset, len| image.note_verified(offset, len))?;
        }
        if !is_later || refresh == Refresh::Later {
            file.set_moment(self.last_sequence().max(1))?;
        }
        Ok(if file.is_overtaken()? { Refresh::Closed } else { refresh })
    }

    /// Applies the records behind those that were applied.
    fn apply_later(
        &self,
        directory: &dyn Directory,
        image: &mut Exclusive<'_>,
        newest: &Checkpoint,
        applied: &mut Applied,
    ) -> Result<Refresh> {
        let Some(tail) = self.later(directory, newest, applied)? else {
            return Ok(Refresh::Closed);
        };
        if tail.records() == 0 {
            return Ok(Refresh::Unchanged);
        }
        let overlaid = std::mem::take(&mut applied.overlaid);
        applied.lay(&self.pool, &tail, Private::resume(&self.pool, image, overlaid))?;
        Ok(Refresh::Later)
    }

    /// The records behind those that were applied, as long as `newest` is the newest checkpoint.
    /// `None` if it is not known where they are.
    fn later(
        &self,
        directory: &dyn Directory,
        newest: &Checkpoint,
        applied: &Applied,
    ) -> Result<Option<Tail>> {
        let Some(start) = applied.end else {
            // Without a tail there is no log: its first record comes behind a checkpoint that names
            // it. Of a store that was made anew elsewhere, and removed, there is none to come.
            let is_there = directory.list()?.iter().any(|name| name == POOL_NAME);
            return Ok(is_there.then(|| Tail::none(applied.last_sequence)));
        };
        let Some(log) = log_of(directory)? else { return Ok(None) };
        validate_behind(&self.pool, log.as_ref(), newest, start)
    }

    /// Whether no later record can be found than the last one that was applied.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn is_newest(&self, directory: &dyn Directory) -> Result<bool> {
        let Some(file) = &self.as_of else { return Ok(true) };
        let applied = self.applied.read();
        let newest = file.now().newest_checkpoint()?;
        let Some(newest) = newest.filter(|it| it.number.get() == applied.checkpoints) else {
            return Ok(false);
        };
        Ok(self.later(directory, &newest, &applied)?.is_some_and(|tail| tail.records() == 0))
    }

    /// Waits until a later record can be found than the last one that was applied, for no longer
    /// than that; whether one can.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn wait(&self, directory: &dyn Directory, longest: Duration) -> Result<bool> {
        let start = Instant::now();
        loop {
            let bell = self.bell();
            let seen = bell.map_or(0, |bell| bell.count());
            if !self.is_newest(directory)? {
                return Ok(true);
            }
            let Some(left) = longest.checked_sub(start.elapsed()).filter(|left| !left.is_zero())
            else {
                return Ok(false);
            };
            match bell {
                Some(bell) => bell.wait(seen, left.min(WAIT_MAX)),
                None => thread::sleep(left.min(PAUSE)),
            }
        }
    }

    /// The bell, once there is one: it is mapped once.
    fn bell(&self) -> Option<&dyn Bell> {
        if self.bell.get().is_none() {
            let found = self.pool.file().bell(BELL_OFFSET, false)?;
            // Another thread may have been first.
            let _ = self.bell.set(found);
        }
        self.bell.get().map(AsRef::as_ref)
    }

    /// Forgets what may be otherwise since another checkpoint, and applies the log as it is now.
    fn apply_anew(
        &self,
        directory: &dyn Directory,
        image: &mut Exclusive<'_>,
        (file, number): (&PoolAsOf, u64),
        applied: &mut Applied,
    ) -> Result<Refresh> {
        let Some(overwritten) = file.advance(number)? else { return Ok(Refresh::Closed) };
        overwritten.into_iter().for_each(|page| image.forget(page, PAGE_BYTES));
        // Those that were not overwritten are as they have to be, but their memory would stay.
        let mut at = 0;
        while let Some((start, end)) = applied.overlaid.unlike.first_in(at, u64::MAX) {
            image.forget(start, end - start);
            at = end;
        }
        let pages = self.pool.find_growth()?;
        if pages > image.pages() {
            image.grow(pages)?;
        }
        let before = applied.last_sequence;
        *applied = Applied::new(directory, &self.pool, image)?;
        Ok(if applied.last_sequence == before { Refresh::Unchanged } else { Refresh::Later })
    }
}
