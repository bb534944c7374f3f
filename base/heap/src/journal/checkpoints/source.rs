//! Where a checkpoint gets its pages from.
//!
//! Purpose: the journal lies below the heap, and takes no lock of it: whose pages these are copies them
//! and keeps others out meanwhile.

use crate::error::Result;
use crate::journal::checkpoints::batch::Copies;
use crate::journal::records::record::RecordBuilder;

/// Pages in memory that records are about.
pub(crate) trait PageSource: std::fmt::Debug + Send + Sync {
    /// A record was appended: the pages that it names are dirty (C2). Called by the thread that
    /// appends, which keeps holds out until memory shows what the record says, under locks of the log.
    fn note_named(&self, record: &RecordBuilder);

    /// Does `work` while no record is appended, and memory shows all that were (C1). `is_alone`: the
    /// caller sees to that. Else waits for those who write.
    fn hold(&self, is_alone: bool, work: &mut dyn FnMut());

    /// Ends the epoch of stores, within a hold. `None`: there are no more.
    fn end_epoch(&self) -> Option<u32>;

    /// How many pages are dirty, about: others change that meanwhile.
    fn dirty_pages(&self) -> u64;

    /// Copies dirty pages from one on, by number, within a hold, and makes them clean: as many as a
    /// hold allows. Those of which `held_end` gives the end of the extent that they lie in stay dirty.
    /// Returns where to go on.
    ///
    /// # Errors
    /// For what is no heap.
    fn copy(
        &self,
        page: u64,
        epoch: Option<u32>,
        copies: &mut Copies,
        held_end: &dyn Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>>;

    /// The file has all pages that were stored to up to the end of an epoch, but for those that are
    /// dirty, durably.
    fn note_covered(&self, epoch: u32);
}
