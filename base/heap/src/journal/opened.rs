//! The journal of an open heap: writable or read-only.
//!
//! Thread safety: any thread.

use std::time::Duration;

use adamant_medium::storage::Directory;

use super::handle::Journal;
use super::stats::JournalStats;
use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::image::mapping::Image;
use crate::image::mapping::guards::Exclusive;
use crate::image::pool_file::PoolFile;
use crate::journal::recovery::beside::Refresh;
use crate::journal::recovery::read_only::ReadOnly;

/// The journal of a heap.
#[derive(Debug)]
pub(crate) enum Opened {
    /// For reading and writing.
    Writable(Journal),
    /// For reading only.
    ReadOnly(Box<ReadOnly>),
}

impl Opened {
    /// The journal, for writing.
    ///
    /// # Errors
    /// `Error::ReadOnly`.
    #[inline]
    pub(crate) fn writable(&self) -> Result<&Journal> {
        match self {
            Self::Writable(journal) => Ok(journal),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Whether another process may write the pool.
    pub(crate) fn is_beside_writer(&self) -> bool {
        matches!(self, Self::ReadOnly(journal) if journal.is_beside_writer())
    }

    /// The pool file.
    pub(crate) fn pool(&self) -> &PoolFile {
        match self {
            Self::Writable(journal) => journal.pool(),
            Self::ReadOnly(journal) => journal.pool(),
        }
    }

    /// As [`Journal::finish`]; a read-only heap holds durable data only.
    ///
    /// # Errors
    /// As [`Journal::finish`].
    #[inline]
    pub(crate) fn finish(&self, sequence: u64, durability: Durability) -> Result<()> {
        self.writable().map_or(Ok(()), |journal| journal.finish(sequence, durability))
    }

    /// Verifies all pages of the file and calls `on_damage` for each that is damaged. Returns the
    /// number of pages verified. O(pool).
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn verify(&self, on_damage: &mut dyn FnMut(Error)) -> Result<u64> {
        match self {
            Self::Writable(journal) => journal.verify(on_damage),
            Self::ReadOnly(journal) => journal.verify(on_damage),
        }
    }

    /// As [`Journal::back_up`].
    ///
    /// # Errors
    /// As [`Journal::back_up`].
    pub(crate) fn back_up(
        &self,
        image: &Image,
        target: &PoolFile,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        match self {
            Self::Writable(journal) => journal.back_up(target, go_on),
            Self::ReadOnly(journal) => journal.back_up(image, target, go_on),
        }
    }

    /// Moves a heap beside a writer on to the last commit; others stay.
    ///
    /// # Errors
    /// As [`ReadOnly::refresh`].
    pub(crate) fn refresh(
        &self,
        directory: &dyn Directory,
        image: &mut Exclusive<'_>,
    ) -> Result<Refresh> {
        match self {
            Self::Writable(_) => Ok(Refresh::Unchanged),
            Self::ReadOnly(journal) => journal.refresh(directory, image),
        }
    }

    /// Whether no later record can be found than the last one that is applied.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn is_newest(&self, directory: &dyn Directory) -> Result<bool> {
        match self {
            Self::Writable(_) => Ok(true),
            Self::ReadOnly(journal) => journal.is_newest(directory),
        }
    }

    /// As [`ReadOnly::wait`]; nothing comes later in other heaps.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn wait(&self, directory: &dyn Directory, longest: Duration) -> Result<bool> {
        match self {
            Self::Writable(_) => Ok(false),
            Self::ReadOnly(journal) => journal.wait(directory, longest),
        }
    }

    /// Sequence number of the last record.
    pub(crate) fn last_sequence(&self) -> u64 {
        match self {
            Self::Writable(journal) => journal.last_sequence(),
            Self::ReadOnly(journal) => journal.last_sequence(),
        }
    }

    /// Counters.
    pub(crate) fn stats(&self) -> JournalStats {
        match self {
            Self::Writable(journal) => journal.stats(),
            Self::ReadOnly(journal) => journal.stats(),
        }
    }
}
