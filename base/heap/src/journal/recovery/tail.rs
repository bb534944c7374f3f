//! What a log holds beyond its pool.
//!
//! Purpose: the records after the newest checkpoint, read one by one, for whoever lays them over
//! something.
//! Invariants: all of them are whole; whoever made this has looked. Memory is that of one frame.
//! Thread safety: reads only.

use adamant_wire::frame::Kind;

use crate::error::{Error, Result};
use crate::journal::records::chain::{ChainReader, Cursor, Step};
use crate::journal::records::files::Used;
use crate::journal::records::record::{CommitHead, Entries, Entry};
use crate::layout::{Checkpoint, DESCRIPTOR_BYTES, HEAP_BYTES_MAX, PAGE_BYTES, TABLE_BASE};

/// End of the descriptor tables of the largest heap.
const TABLE_END: u64 = TABLE_BASE + HEAP_BYTES_MAX / PAGE_BYTES * DESCRIPTOR_BYTES;

/// Who is told of what does not fit, and whether it ends there.
pub(crate) type OnFinding<'a> = &'a mut dyn FnMut(Error) -> Result<()>;

/// The tail of a log: what the pool file does not hold yet.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The files of its generation, by ordinal.
    pub(in crate::journal) files: Vec<Used>,
    pub(in crate::journal) seed: u32,
    pub(in crate::journal) start: Cursor,
    pub(in crate::journal) end: Cursor,
    /// Whether an applier of an earlier version was at work: pages that it names may be torn.
    pub(crate) torn: bool,
}

/// Where the records begin that a checkpoint does not cover.
pub(in crate::journal) fn start_of(checkpoint: &Checkpoint) -> Cursor {
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

    /// Hands out every change, in order; `on_finding` is told of what is none of any heap: a frame with
    /// a checksum that fits, which nobody wrote as it is.
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

/// The entry, if some heap has what it names.
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

/// Damage of the record whose last frame read ends at `at`.
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
