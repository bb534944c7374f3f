//! The page source of a checkpoint.
//!
//! Purpose: the journal lies below the heap, and takes no lock of it: the owner of the pages copies
//! them and excludes writers meanwhile.

use crate::error::Result;
use crate::journal::checkpoints::batch::Copies;
use crate::journal::records::record::RecordBuilder;

/// Pages in memory that records name.
pub(crate) trait PageSource: std::fmt::Debug + Send + Sync {
    /// A record was appended: the pages that it names are dirty (C2). Called by the thread that
    /// appends, which keeps holds out until memory shows the record, under locks of the log.
    fn note_named(&self, record: &RecordBuilder);

    /// Does `work` while no record is appended, and memory shows all that were (C1). `is_alone`:
    /// the caller guarantees that. Otherwise waits for writers.
    fn hold(&self, is_alone: bool, work: &mut dyn FnMut());

    /// Ends the epoch of stores, within a hold. `None`: no epoch is left.
    fn end_epoch(&self) -> Option<u32>;

    /// How many pages are dirty, about: other threads change that meanwhile.
    fn dirty_pages(&self) -> u64;

    /// Copies dirty pages from one on, by number, within a hold, and makes them clean: as many as a
    /// hold allows. Pages for which `held_end` gives the end of their extent stay dirty. Returns
    /// where to continue.
    ///
    /// # Errors
    /// For pages that no heap has.
    fn copy(
        &self,
        page: u64,
        epoch: Option<u32>,
        copies: &mut Copies,
        held_end: &dyn Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>>;

    /// The file durably has all pages that were stored to up to the end of an epoch, except for
    /// dirty ones.
    fn note_covered(&self, epoch: u32);
}
