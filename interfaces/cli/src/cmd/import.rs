//! `adamant import STORE FILE`: JSON Lines, or CSV, into a keyspace.
//!
//! Purpose: all of a file or nothing of it. Every record is read and judged before the store is
//! opened, so that a malformed one changes nothing; then records go in by batches. Standard
//! input and other things that can be read only once are kept in memory in between.
//! Invariants: what a failure reports as imported is durable.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::time::Instant;

use adamant::{Batch, Keyspace, Store};
use indicatif::ProgressBar;
use serde_json::json;

use crate::args::{CsvArgs, ImportArgs};
use crate::failure::{Code, Failure, Result};
use crate::figures::{self, per_second, thousands};
use crate::output::Output;
use crate::record::Record;
use crate::table::Columns;
use crate::{opening, progress, record};

/// A batch is committed early when its keys and values take so many bytes.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// How many malformed lines are named one by one.
const NAMED_LINES_MAX: u64 = 10;

/// A record, or what is wrong with it.
type Parsed = std::result::Result<Record, String>;

/// Imports a file.
pub(crate) fn run(args: &ImportArgs, output: &Output) -> Result<()> {
    let mut source = Source::open(&args.file)?;
    if !args.partial {
        let bar = progress::bytes("checking", source.len());
        source.each_record(args, &bar, |number, record| match record {
            Ok(_) => Ok(()),
            Err(what) => {
                let what = format!("line {number} of {}: {what}", args.file.display());
                Err(Failure::new(Code::BadInput, what + "; nothing was imported"))
            }
        })?;
        bar.finish_and_clear();
    }
    let start = Instant::now();
    let (store, keyspace) = opening::created_keyspace(&args.target)?;
    let bar = progress::bytes("importing", source.len());
    let mut import = Import::new(&store, &keyspace, args);
    let outcome = source
        .each_record(args, &bar, |number, record| import.record(number, record, output))
        .and_then(|()| import.commit());
    bar.finish_and_clear();
    // What was committed before a failure is made durable too, so that the report is true.
    let synced = store.sync().map_err(Failure::from);
    let (done, bytes, malformed) = (import.done, import.bytes, import.malformed);
    if let Err(failure) = outcome.and(synced) {
        let words = format!("{} records were imported before this", thousands(done));
        return Err(failure.before(words));
    }
    store.close()?;
    let time = start.elapsed();
    let rate = thousands(per_second(done, time));
    output.result(
        &json!({
            "imported": done,
            "bytes": bytes,
            "malformed": malformed,
            "seconds": time.as_secs_f64(),
        }),
        &format!("imported {} records, {} ({rate}/s)", thousands(done), figures::bytes(bytes)),
    )?;
    match malformed {
        0 => Ok(()),
        count => {
            let what = format!("{} malformed lines were left out", thousands(count));
            Err(Failure::new(Code::BadInput, what))
        }
    }
}

/// An import under way.
struct Import<'a> {
    store: &'a Store,
    keyspace: &'a Keyspace,
    args: &'a ImportArgs,
    batch: Batch,
    batch_bytes: usize,
    /// Records committed.
    done: u64,
    /// Bytes of their keys and values.
    bytes: u64,
    malformed: u64,
}

impl<'a> Import<'a> {
    fn new(store: &'a Store, keyspace: &'a Keyspace, args: &'a ImportArgs) -> Self {
        let batch = store.batch();
        Self { store, keyspace, args, batch, batch_bytes: 0, done: 0, bytes: 0, malformed: 0 }
    }

    fn record(&mut self, number: u64, record: Parsed, output: &Output) -> Result<()> {
        match record {
            Ok(record) => self.add(&record),
            Err(what) if self.args.partial => {
                self.malformed += 1;
                if self.malformed <= NAMED_LINES_MAX {
                    output.talk(&format!("line {number} of {}: {what}", self.args.file.display()));
                }
                Ok(())
            }
            Err(what) => {
                let file = self.args.file.display();
                let what = format!("line {number} of {file} changed while it was read: {what}");
                Err(Failure::new(Code::BadInput, what))
            }
        }
    }

    fn add(&mut self, (key, value): &Record) -> Result<()> {
        self.batch.insert(self.keyspace, key, value)?;
        self.batch_bytes += key.len() + value.len();
        if self.batch.len() >= self.args.batch as usize || self.batch_bytes >= BATCH_BYTES_MAX {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let mut batch = std::mem::replace(&mut self.batch, self.store.batch());
        let (count, bytes) = (batch.len() as u64, self.batch_bytes as u64);
        self.batch_bytes = 0;
        if batch.is_empty() {
            return Ok(());
        }
        batch.durability(self.args.durability.into());
        batch.commit()?;
        self.done += count;
        self.bytes += bytes;
        Ok(())
    }
}

/// What is imported, readable more than once.
enum Source {
    /// A regular file.
    File(File, u64),
    /// What standard input or a pipe held.
    Memory(Vec<u8>),
}

impl Source {
    fn open(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        if path == Path::new("-") {
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|error| Failure::file(Path::new("standard input"), &error))?;
            return Ok(Self::Memory(bytes));
        }
        let failed = |error| Failure::file(path, &error);
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() {
            return Ok(Self::File(file, metadata.len()));
        }
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok(Self::Memory(bytes))
    }

    fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// What it holds, from the beginning.
    fn reader(&mut self) -> Result<Box<dyn BufRead + '_>> {
        match self {
            Self::File(file, _) => {
                file.rewind().map_err(unread)?;
                Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
            }
            Self::Memory(bytes) => Ok(Box::new(&bytes[..])),
        }
    }

    /// Hands every record to `take`, or what is wrong with it, with the number of its line.
    fn each_record(
        &mut self,
        args: &ImportArgs,
        bar: &ProgressBar,
        mut take: impl FnMut(u64, Parsed) -> Result<()>,
    ) -> Result<()> {
        if args.csv.csv {
            return self.each_row(&args.csv, bar, take);
        }
        self.each_line(bar, |number, line| take(number, record::parse(line)))
    }

    /// Hands every row of a table to `take`, with the number of the line that it begins on.
    fn each_row(
        &mut self,
        args: &CsvArgs,
        bar: &ProgressBar,
        mut take: impl FnMut(u64, Parsed) -> Result<()>,
    ) -> Result<()> {
        let mut reader = csv::Reader::from_reader(self.reader()?);
        let broken = |error: csv::Error| match error.into_kind() {
            csv::ErrorKind::Io(error) => unread(error),
            kind => Failure::new(Code::BadInput, format!("expected CSV: {kind:?}")),
        };
        let header = reader.byte_headers().map_err(broken)?.clone();
        let columns = Columns::find(args, &header).map_err(|what| {
            Failure::new(Code::BadInput, format!("line 1: {what}; nothing was imported"))
        })?;
        let mut fields = csv::ByteRecord::new();
        loop {
            let line = reader.position().line();
            match reader.read_byte_record(&mut fields) {
                Ok(false) => break,
                Ok(true) => {
                    let line = fields.position().map_or(line, csv::Position::line);
                    take(line, columns.parse(&fields))?;
                }
                Err(error) => match *error.kind() {
                    csv::ErrorKind::UnequalLengths { ref pos, expected_len, len } => {
                        let line = pos.as_ref().map_or(line, csv::Position::line);
                        let what = format!("expected {expected_len} columns, found {len}");
                        take(line, Err(what))?;
                    }
                    _ => return Err(broken(error)),
                },
            }
            bar.set_position(reader.position().byte());
        }
        Ok(())
    }

    /// Hands every line that is not blank to `take`, with its number from 1 on.
    fn each_line(
        &mut self,
        bar: &ProgressBar,
        mut take: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut reader = self.reader()?;
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let taken = reader.read_until(b'\n', &mut line).map_err(unread)?;
            if taken == 0 {
                break;
            }
            let content = line.trim_ascii();
            if !content.is_empty() {
                take(number, content)?;
            }
            bar.inc(taken as u64);
        }
        Ok(())
    }
}

fn unread(error: std::io::Error) -> Failure {
    Failure::file(Path::new("the input"), &error)
}
