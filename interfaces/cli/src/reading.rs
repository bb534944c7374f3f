//! Reader of record files, record by record.
//!
//! Purpose: reads the input of import, line by line or row by row, whatever is in it.
//! Invariants: each record passed on is one that a store can hold; lines are numbered from 1 on, in
//! order; memory holds one record.
//! Thread safety: none needed.

use std::fmt;
use std::io::{self, BufRead, Read};

use crate::record::{self, Record};
use crate::table::{Columns, Layout};

/// The byte order mark at the start of some UTF-8 files.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A record of a file, or its error.
#[derive(Debug)]
pub struct Found {
    /// The number of its first line, from 1 on.
    pub line: u64,
    /// Bytes of the file up to its end.
    pub end_bytes: u64,
    /// Key and value, or a message with the expected and the found.
    pub record: Result<Record, String>,
}

/// The reason why the rest of a file cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system failed to read it.
    Unread(io::Error),
    /// The file as a whole is malformed, as the message says.
    Malformed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(error) => write!(formatter, "the input could not be read: {error}"),
            Self::Malformed(what) => formatter.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unread(error) => Some(error),
            Self::Malformed(_) => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Unread(error)
    }
}

impl From<csv::Error> for Error {
    fn from(error: csv::Error) -> Self {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => Self::Unread(error),
            kind => Self::Malformed(format!("expected CSV: {kind:?}")),
        }
    }
}

/// Passes every record of a file to `take`, until that fails: as CSV with a layout, otherwise as
/// JSON Lines. Skips a byte order mark at the beginning.
///
/// # Errors
/// Those of `take`, and failures to read the rest of the file. A malformed record is no error.
pub fn each_record<E: From<Error>>(
    mut reader: impl BufRead,
    layout: Option<&Layout>,
    mut take: impl FnMut(Found) -> Result<(), E>,
) -> Result<(), E> {
    // Read here rather than with what follows, since a pipe may deliver it in several parts.
    let mut start = Vec::new();
    reader.by_ref().take(MARK.len() as u64).read_to_end(&mut start).map_err(Error::from)?;
    let is_marked = start == MARK;
    if is_marked {
        start.clear();
        // By itself: the CSV reader would skip a second mark in its first buffer.
        reader.by_ref().take(1).read_to_end(&mut start).map_err(Error::from)?;
    }
    let reader = start.as_slice().chain(reader);
    let take = |found: Found| {
        let mark_bytes = if is_marked { MARK.len() as u64 } else { 0 };
        take(Found { end_bytes: found.end_bytes + mark_bytes, ..found })
    };
    match layout {
        Some(layout) => each_row(reader, layout, take),
        None => each_line(reader, take),
    }
}

fn each_row<E: From<Error>>(
    reader: impl BufRead,
    layout: &Layout,
    mut take: impl FnMut(Found) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = csv::Reader::from_reader(reader);
    let header = reader.byte_headers().map_err(Error::from)?.clone();
    let columns = Columns::find(layout, &header)
        .map_err(|what| Error::Malformed(format!("line 1: {what}; nothing was imported")))?;
    let mut fields = csv::ByteRecord::new();
    loop {
        let before = reader.position().line();
        let (line, record) = match reader.read_byte_record(&mut fields) {
            Ok(false) => return Ok(()),
            Ok(true) => (fields.position().map(csv::Position::line), columns.parse(&fields)),
            Err(error) => match *error.kind() {
                csv::ErrorKind::UnequalLengths { ref pos, expected_len, len } => {
                    let what = format!("expected {expected_len} columns, found {len}");
                    (pos.as_ref().map(csv::Position::line), Err(what))
                }
                _ => return Err(Error::from(error).into()),
            },
        };
        let end_bytes = reader.position().byte();
        take(Found { line: line.unwrap_or(before), end_bytes, record })?;
    }
}

/// Skips blank lines.
fn each_line<E: From<Error>>(
    mut reader: impl BufRead,
    mut take: impl FnMut(Found) -> Result<(), E>,
) -> Result<(), E> {
    let (mut content, mut end_bytes) = (Vec::new(), 0);
    for line in 1.. {
        content.clear();
        let taken = reader.read_until(b'\n', &mut content).map_err(Error::from)?;
        if taken == 0 {
            break;
        }
        end_bytes += taken as u64;
        let content = content.trim_ascii();
        if !content.is_empty() {
            take(Found { line, end_bytes, record: record::parse(content) })?;
        }
    }
    Ok(())
}
