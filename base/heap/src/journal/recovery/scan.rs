//! The log scan: finds the end of the records of a generation, and its cause (R3).
//!
//! Purpose: the first pass over a log, which applies nothing: a record counts once its commit frame
//! matches all its parts; anything else after that is a torn tail, or damage.
//! Invariants: reads only. Messages name missing records by sequence number.
//! Thread safety: reads only.

use std::sync::Arc;

use adamant_wire::checksum::crc32c;
use adamant_wire::frame::Kind;

use crate::error::{Error, Result};
use crate::journal::records::chain::{ChainReader, Cursor, End, Step};
use crate::journal::records::files::Used;
use crate::journal::records::log_file::LogFile;
use crate::journal::records::record::CommitHead;
use crate::journal::recovery::search::{Beyond, search};
use crate::journal::recovery::tail::damaged_record;

/// A scan for the end of consecutive records.
pub(in crate::journal) struct Scan<'f> {
    pub(in crate::journal) files: &'f [Used],
    pub(in crate::journal) seed: u32,
    /// Highest sequence number known to have been durable.
    pub(in crate::journal) durable: u64,
    /// After the last whole record.
    pub(in crate::journal) last: Cursor,
}

impl Scan<'_> {
    /// Finds the last whole record, and decides why no other follows it (R3): its end, and the
    /// damage that ends the log there, if it is damage. Files in `headless` may belong to the log,
    /// with a lost header.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn find_end(
        mut self,
        headless: &[Arc<LogFile>],
    ) -> Result<(Cursor, Option<Error>)> {
        let end = match self.run() {
            Ok(end) => end,
            Err(damage @ Error::Damaged { .. }) => return Ok((self.last, Some(damage))),
            Err(error) => return Err(error),
        };
        let expected = self.last.sequence + 1;
        let known = if expected <= self.durable {
            self.durable
        } else {
            match search(self.files, headless, self.seed, &end, expected)? {
                Beyond::Nothing => return Ok((self.last, None)),
                Beyond::LaterRecord(later) => later,
            }
        };
        let what = format!("{}; {}", end.what, missing(self.last.sequence, known));
        Ok((self.last, Some(End { what, ..end }.damaged())))
    }

    /// The same where another process may write: whatever follows the last whole record is not
    /// there yet.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn find_written_end(mut self) -> Result<Cursor> {
        match self.run() {
            Ok(_) | Err(Error::Damaged { .. }) => Ok(self.last),
            Err(error) => Err(error),
        }
    }

    /// Reads records until none follows.
    fn run(&mut self) -> Result<End> {
        let mut reader = ChainReader::new(self.files, self.seed, &self.last);
        let (mut parts, mut parts_crc) = (0, 0);
        loop {
            let sequence = self.last.sequence + 1;
            let (header, range) = match reader.next(sequence)? {
                Step::Frame(header, range) => (header, range),
                Step::End(end) => return Ok(end),
            };
            if header.kind == Kind::Part {
                parts += 1;
                parts_crc = crc32c(parts_crc, &header.crc.to_le_bytes());
                continue;
            }
            let found = CommitHead::take(&mut reader.bytes(range));
            let lag = found.map_or(0, |head| head.lag);
            let expected = CommitHead { lag, parts, parts_crc };
            if found != Some(expected) {
                let what = "the commit frame does not fit the parts before it";
                return Err(damaged_record(self.files, &reader.cursor(sequence), sequence, what));
            }
            self.durable = self.durable.max(sequence.saturating_sub(lag));
            self.last = reader.cursor(sequence);
            (parts, parts_crc) = (0, 0);
        }
    }
}

/// Describes the records missing after `last`: `known` is the highest one that is known to have
/// existed.
pub(in crate::journal) fn missing(last: u64, known: u64) -> String {
    if known > last {
        return format!("records {} to {known}, at least, are missing", last + 1);
    }
    format!("whatever followed record {last} is missing")
}
