//! The log tail: the records that the pool does not hold yet.
//!
//! Purpose: the records after the newest checkpoint, read one by one, to be applied to pages.
//! Invariants: all of them are whole: the caller that made this has verified it. Memory is that of
//! one frame.
//! Thread safety: reads only.

use adamant_wire::frame::Kind;

use crate::error::{Error, Result};
use crate::journal::records::chain::{ChainReader, Cursor, Step};
use crate::journal::records::files::Used;
use crate::journal::records::record::{CommitHead, Entries, Entry};
use crate::layout::{Checkpoint, DESCRIPTOR_BYTES, HEAP_BYTES_MAX, PAGE_BYTES, TABLE_BASE};

/// End of the descriptor tables of the largest heap.
const TABLE_END: u64 = TABLE_BASE + HEAP_BYTES_MAX / PAGE_BYTES * DESCRIPTOR_BYTES;

/// Called with each finding; decides whether to stop there.
pub(crate) type OnFinding<'a> = &'a mut dyn FnMut(Error) -> Result<()>;

/// The tail of a log: the records that the pool file does not hold yet.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The files of its generation, by ordinal.
    pub(in crate::journal) files: Vec<Used>,
    pub(in crate::journal) seed: u32,
    pub(in crate::journal) start: Cursor,
    pub(in crate::journal) end: Cursor,
    /// Whether an earlier version was applying the tail: pages that it names may be torn.
    pub(crate) torn: bool,
}

/// The start of the records that a checkpoint does not cover.
pub(in crate::journal) fn start_of(checkpoint: &Checkpoint) -> Cursor {
    Cursor {
        ordinal: checkpoint.ordinal.get(),
        position: checkpoint.position.get(),
        previous: checkpoint.previous.get(),
        sequence: checkpoint.applied.get(),
    }
}

impl Tail {
    /// That of a pool that holds everything up to a record.
    pub(in crate::journal) fn none(sequence: u64) -> Self {
        let end = Cursor { ordinal: 0, position: 0, previous: 0, sequence };
        Self { files: Vec::new(), seed: 0, start: end, end, torn: false }
    }

    /// Whole records in it.
    pub(crate) fn records(&self) -> u64 {
        self.end.sequence - self.start.sequence
    }

    /// Sequence number of the last whole record.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.end.sequence
    }

    /// Calls `each` with every change, in order; calls `on_finding` for changes that no heap can
    /// have: a frame with a matching checksum that was not written like that.
    ///
    /// # Errors
    /// Those of the medium, of `on_finding`, and of `each`.
    pub(crate) fn replay(
        &self,
        on_finding: OnFinding<'_>,
        each: &mut dyn FnMut(Entry<'_>) -> Result<()>,
    ) -> Result<()> {
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
            for entry in Entries::new(payload) {
                match entry.and_then(of_a_heap) {
                    Ok(entry) => each(entry)?,
                    Err(what) => {
                        let at = reader.cursor(sequence);
                        on_finding(damaged_record(&self.files, &at, header.sequence, what))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The entry, if some heap has the bytes that it names.
fn of_a_heap(entry: Entry<'_>) -> std::result::Result<Entry<'_>, &'static str> {
    let (offset, len) = entry.range();
    let end = offset.saturating_add(len);
    let is_within = match (entry, offset < TABLE_BASE) {
        (Entry::Hole { .. }, _) => {
            let is_whole = offset.is_multiple_of(PAGE_BYTES) && len.is_multiple_of(PAGE_BYTES);
            if !is_whole || end > HEAP_BYTES_MAX {
                return Err("a hole of the record is no whole pages of any heap");
            }
            true
        }
        (_, true) => end <= HEAP_BYTES_MAX,
        (_, false) => end <= TABLE_END,
    };
    if is_within { Ok(entry) } else { Err("a change of the record lies outside of every heap") }
}

/// The error for a damaged record whose last frame read ends at `at`.
pub(in crate::journal) fn damaged_record(
    files: &[Used],
    at: &Cursor,
    sequence: u64,
    what: &str,
) -> Error {
    let used = files.iter().find(|used| used.ordinal == at.ordinal);
    Error::Damaged {
        file: used.map_or_else(Default::default, |used| used.file.file.path().into()),
        offset: at.position,
        what: format!(
            "{what} (in record {sequence}, whose frame ends here); restore a backup, or let `adamant \
             repair` save what can be read"
        ),
    }
}
