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
use adamant_cli::reading::{self, Found};
use adamant_cli::record::Record;
use adamant_cli::table::Layout;
use indicatif::ProgressBar;
use serde_json::json;

use crate::args::ImportArgs;
use crate::failure::{Code, Failure, Result};
use crate::figures::{self, per_second, thousands};
use crate::output::Output;
use crate::{opening, progress};

/// A batch is committed early when its keys and values take so many bytes.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// How many malformed lines are named one by one.
const NAMED_LINES_MAX: u64 = 10;

/// Imports a file.
pub(crate) fn run(args: &ImportArgs, output: &Output) -> Result<()> {
    let layout = args.csv.layout().map_err(|what| Failure::new(Code::BadInput, what))?;
    let mut source = Source::open(&args.file)?;
    if !args.partial {
        let bar = progress::bytes("checking", source.len());
        source.each_record(layout.as_ref(), &bar, |found| match found.record {
            Ok(_) => Ok(()),
            Err(what) => {
                let what = format!("line {} of {}: {what}", found.line, args.file.display());
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
        .each_record(layout.as_ref(), &bar, |found| import.record(found, output))
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

    fn record(&mut self, found: Found, output: &Output) -> Result<()> {
        let number = found.line;
        match found.record {
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
                file.rewind().map_err(reading::Error::Unread)?;
                Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
            }
            Self::Memory(bytes) => Ok(Box::new(&bytes[..])),
        }
    }

    /// Hands every record to `take`, or what is wrong with it, with the number of its line.
    fn each_record(
        &mut self,
        layout: Option<&Layout>,
        bar: &ProgressBar,
        mut take: impl FnMut(Found) -> Result<()>,
    ) -> Result<()> {
        reading::each_record(self.reader()?, layout, |found| {
            bar.set_position(found.end_bytes);
            take(found)
        })
    }
}
