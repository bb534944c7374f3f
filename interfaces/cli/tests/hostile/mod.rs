//! Files of records that somebody made to do harm, for import.
//!
//! Whatever is in there, reading ends, with records or with an error. It does not depend on how the
//! bytes come in, and what was taken is written by export in such a way that import takes the same
//! again.

use std::io::{BufRead, BufReader, Read};

use adamant_cli::reading::{self, Found};
use adamant_cli::record::{self, Record};
use adamant_cli::table::{self, Layout};

/// In the first byte of a program, beside the number of the layout: fields are the bytes that they
/// are; and how many bytes come in at once.
const RAW: u8 = 4;
const PIECE_SHIFT: u32 = 4;

/// Everything that reading said: line, end, record; and why it ended before the file did.
type Said = (Vec<(u64, u64, Result<Record, String>)>, Result<(), String>);

/// Reads a file in two ways, writes what was taken, and reads that. Returns how many records were
/// taken.
///
/// # Panics
/// If the ways differ.
pub(crate) fn run(program: &[u8]) -> usize {
    let Some((&shape, file)) = program.split_first() else { return 0 };
    let layout = layout(shape);
    let said = read(file, layout.as_ref());
    let bytes = 1 + usize::from(shape >> PIECE_SHIFT);
    let pieces = BufReader::with_capacity(bytes, Pieces { rest: file, bytes });
    assert_eq!(read(pieces, layout.as_ref()), said, "it depends on how many bytes come in at once");
    let mut last = (0, 0);
    for &(line, end_bytes, ref record) in &said.0 {
        assert!((line, end_bytes) >= last && end_bytes <= file.len() as u64, "{line}, {end_bytes}");
        last = (line, end_bytes);
        let is_fit = record.as_ref().is_ok_and(|(key, value)| record::check(key, value).is_ok());
        assert!(is_fit || record.as_ref().is_err_and(|what| !what.is_empty()), "{record:?}");
    }
    let taken: Vec<Record> = said.0.into_iter().filter_map(|found| found.2.ok()).collect();
    let count = taken.len();
    let may_refuse = shape % 4 == OVERLAPPING;
    let (file, written) = write(taken, layout.as_ref(), may_refuse);
    let (again, end) = read(&file[..], layout.as_ref());
    let again: Vec<Record> = again.into_iter().map(|found| found.2.expect("a record")).collect();
    assert_eq!((again, end), (written, Ok(())), "export wrote something else");
    count
}

/// The layout whose separator may also arise where two columns meet it, so that export cannot
/// always tell the columns apart.
const OVERLAPPING: u8 = 3;

fn layout(shape: u8) -> Option<Layout> {
    let (keys, values, separator) = match shape % 4 {
        0 => return None,
        1 => (&["key"][..], &["value"][..], "\t"),
        2 => (&["a", "b"][..], &["c", "d", "e"][..], "-"),
        _ => (&["b", "a"][..], &["value"][..], "aa"),
    };
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let layout = Layout::new(owned(keys), owned(values), separator.into(), shape & RAW != 0);
    Some(layout.expect("columns with something between them"))
}

fn read(reader: impl BufRead, layout: Option<&Layout>) -> Said {
    let mut found = Vec::new();
    let outcome = reading::each_record(reader, layout, |Found { line, end_bytes, record }| {
        found.push((line, end_bytes, record));
        Ok::<(), reading::Error>(())
    });
    (found, outcome.map_err(|error| error.to_string()))
}

/// The records as export writes them, and those of them that it did not refuse.
fn write(
    records: Vec<Record>,
    layout: Option<&Layout>,
    may_refuse: bool,
) -> (Vec<u8>, Vec<Record>) {
    let row = |record: &csv::ByteRecord| table::row(record).expect("a row");
    let header = layout.map(|layout| table::header(layout).expect("a header"));
    let mut file = header.map_or_else(Vec::new, |header| row(header.as_byte_record()));
    let mut written = Vec::new();
    for (key, value) in records {
        let bytes = match layout.map(|layout| table::format(layout, &key, &value)) {
            None => (record::format(&key, &value) + "\n").into_bytes(),
            Some(Ok(record)) => row(&record),
            Some(Err(_)) if may_refuse => continue,
            Some(Err(what)) => panic!("export refuses what import took: {what}"),
        };
        file.extend_from_slice(&bytes);
        written.push((key, value));
    }
    (file, written)
}

/// Bytes that come in a few at a time.
struct Pieces<'b> {
    rest: &'b [u8],
    bytes: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let taken = self.bytes.min(buffer.len()).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(taken);
        buffer[..taken].copy_from_slice(piece);
        self.rest = rest;
        Ok(taken)
    }
}
