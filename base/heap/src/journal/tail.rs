//! What a log holds beyond its pool.
//!
//! Purpose: the records after the newest checkpoint, read one by one, for whoever lays them over
//! something.
//! Invariants: all of them are whole; whoever made this has looked. Memory is that of one frame.
//! Thread safety: reads only.

use adamant_wire::frame::Kind;

use super::chain::{ChainReader, Cursor, Step};
use super::files::Used;
use super::record::{CommitHead, Entries, Entry};
use crate::error::Result;
use crate::layout::Checkpoint;

/// The tail of a log: what the pool file does not hold yet.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The files of its generation, by ordinal.
    pub(super) files: Vec<Used>,
    pub(super) seed: u32,
    pub(super) start: Cursor,
    pub(super) end: Cursor,
    /// Whether an applier was at work: pages that it names may be torn.
    pub(crate) torn: bool,
}

/// Where the records begin that a checkpoint does not cover.
pub(super) fn start_of(checkpoint: &Checkpoint) -> Cursor {
    Cursor {
        ordinal: checkpoint.ordinal.get(),
        position: checkpoint.position.get(),
        previous: checkpoint.previous.get(),
        sequence: checkpoint.applied.get(),
    }
}

impl Tail {
    /// Whole records in it.
    pub(crate) fn records(&self) -> u64 {
        self.end.sequence - self.start.sequence
    }

    /// Sequence number of the last whole record.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.end.sequence
    }

    /// Hands out every change, in order.
    ///
    /// # Errors
    /// Those of the medium, and of `each`.
    pub(crate) fn replay(&self, each: &mut dyn FnMut(Entry<'_>) -> Result<()>) -> Result<()> {
        let mut reader = ChainReader::new(&self.files, self.seed, &self.start);
        let mut sequence = self.start.sequence;
        while sequence < self.end.sequence {
            let (header, range) = match reader.next(sequence + 1)? {
                Step::Frame(header, range) => (header, range),
                Step::End(end) => return Err(end.damaged()),
            };
            let mut payload = reader.bytes(range);
            if header.kind == Kind::Commit {
                CommitHead::take(&mut payload);
                sequence += 1;
            }
            // A frame with a valid checksum was written by us and decodes; what does not is left.
            for entry in Entries::new(payload).map_while(std::result::Result::ok) {
                each(entry)?;
            }
        }
        Ok(())
    }
}
