//! `adamant import STORE FILE`: JSON Lines, or CSV, into a keyspace.
//!
//! Purpose: imports all of a file or nothing. Every record is read and validated before the store
//! is opened, so that a malformed one changes nothing; then records go in by batches. Standard
//! input and other sources that can be read only once are kept in memory in between.
//! Invariants: what a failure reports as imported is durable: a successful sync has covered it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::time::Instant;

use adamant::{Batch, Store};
use adamant_cli::reading::{self, Found};
use adamant_cli::record::Record;
use adamant_cli::table::Layout;
use indicatif::ProgressBar;
use serde_json::json;

use crate::args::{DurabilityArg, ImportArgs};
use crate::failure::{Code, Failure, Result};
use crate::figures::{self, per_second, thousands};
use crate::opening::{Stores, Writable};
use crate::output::Output;
use crate::progress;

/// A batch is committed early when its keys and values take so many bytes.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// How many malformed lines are named one by one.
const NAMED_LINES_MAX: u64 = 10;

/// Imports a file.
pub(crate) fn run(args: &ImportArgs, stores: &Stores, output: &Output) -> Result<()> {
    let layout = args.csv.layout().map_err(|what| Failure::new(Code::BadInput, what))?;
    if args.file == Path::new("-") {
        stores.need_input()?;
    }
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
    let (store, keyspace) = stores.created_for_import(&args.target, args.multimap)?;
    let imported = all_of(&mut source, layout.as_ref(), &store, &keyspace, args, output)?;
    store.close().map_err(|error| Failure::from(error).before(imported.all_durable()))?;
    let time = start.elapsed();
    let Imported { records, bytes, malformed } = imported;
    let rate = thousands(per_second(records, time));
    output.result(
        &json!({
            "imported": records,
            "bytes": bytes,
            "malformed": malformed,
            "seconds": time.as_secs_f64(),
        }),
        &format!("imported {} records, {} ({rate}/s)", thousands(records), figures::bytes(bytes)),
    )?;
    match malformed {
        0 => Ok(()),
        count => {
            let what = format!("{} malformed lines were left out", thousands(count));
            Err(Failure::new(Code::BadInput, what))
        }
    }
}

/// Imports a file of well-formed records; then all of it is durable. A failure says how many
/// records are.
fn all_of(
    source: &mut Source,
    layout: Option<&Layout>,
    store: &Store,
    keyspace: &Writable,
    args: &ImportArgs,
    output: &Output,
) -> Result<Imported> {
    let bar = progress::bytes("importing", source.len());
    let mut import = Import::new(store, keyspace, args);
    let outcome = source
        .each_record(layout, &bar, |found| import.record(found, output))
        .and_then(|()| import.commit());
    bar.finish_and_clear();
    // Makes durable what was committed before a failure, if that is still possible.
    let synced = import.sync();
    match outcome.and(synced) {
        Ok(()) => Ok(import.done),
        Err(failure) => Err(failure.before(import.report())),
    }
}

/// The records committed.
#[derive(Clone, Copy, Default)]
struct Imported {
    records: u64,
    /// Bytes of keys and values.
    bytes: u64,
    /// Lines that were skipped.
    malformed: u64,
}

impl Imported {
    /// The message before a failure that loses nothing of it.
    fn all_durable(&self) -> String {
        format!("{} records were imported before this", thousands(self.records))
    }
}

/// An import in progress.
struct Import<'a> {
    store: &'a Store,
    keyspace: &'a Writable,
    args: &'a ImportArgs,
    batch: Batch,
    batch_bytes: usize,
    done: Imported,
    /// How many of the records a successful sync has covered.
    durable: u64,
}

impl<'a> Import<'a> {
    fn new(store: &'a Store, keyspace: &'a Writable, args: &'a ImportArgs) -> Self {
        let (batch, done) = (store.batch(), Imported::default());
        Self { store, keyspace, args, batch, batch_bytes: 0, done, durable: 0 }
    }

    fn record(&mut self, found: Found, output: &Output) -> Result<()> {
        let number = found.line;
        match found.record {
            Ok(record) => self.add(&record),
            Err(what) if self.args.partial => {
                self.done.malformed += 1;
                if self.done.malformed <= NAMED_LINES_MAX {
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
        self.keyspace.put_into(&mut self.batch, key, value)?;
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
        self.done.records += count;
        self.done.bytes += bytes;
        if self.args.durability == DurabilityArg::Sync {
            self.durable = self.done.records;
        }
        Ok(())
    }

    /// Makes all that was committed durable.
    fn sync(&mut self) -> Result<()> {
        self.store.sync()?;
        self.durable = self.done.records;
        Ok(())
    }

    /// Describes what is durable after a failure.
    fn report(&self) -> String {
        if self.durable == self.done.records && self.store.check_writable().is_ok() {
            return self.done.all_durable();
        }
        // The device may have more than that, also of the failed commit.
        format!(
            "{} records are durable; when the store is opened again, some of those behind them may be \
             there, too",
            thousands(self.durable)
        )
    }
}

/// The input, readable more than once.
enum Source {
    /// A regular file.
    File(File, u64),
    /// The contents of standard input or a pipe.
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

    /// Reads it from the beginning.
    fn reader(&mut self) -> Result<Box<dyn BufRead + '_>> {
        match self {
            Self::File(file, _) => {
                file.rewind().map_err(reading::Error::Unread)?;
                Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
            }
            Self::Memory(bytes) => Ok(Box::new(&bytes[..])),
        }
    }

    /// Passes every record to `take`, or its error, with the number of its line.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use adamant::{Keyspace, Options};
    use adamant_sim::{Call, Choice, Fault, SimDirectory, SimDisk};
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Verb};

    const RECORDS: u64 = 60;

    fn open(disk: &SimDisk) -> Keyspace {
        let options = Options::new().background(false).log_bytes_max(1 << 20);
        let directory = Arc::new(SimDirectory::root(disk));
        let store = Store::open_directory(directory, options).expect("a store");
        store.keyspace("default").expect("a keyspace")
    }

    /// Records that are left after a power cut.
    fn left(disk: &SimDisk) -> u64 {
        open(&disk.crash(disk.operation_count(), &mut Choice::None)).len().expect("a number")
    }

    /// An import with one failing call: how many records it reports as durable, and how many a
    /// power cut leaves.
    fn import(durability: &str, failing: Option<(Call, u64)>) -> (SimDisk, Result<u64>) {
        let line = ["adamant", "import", "store", "-", "--batch", "5", "--durability", durability];
        let Verb::Import(args) = Args::parse_from(line).verb else { unreachable!() };
        let disk = SimDisk::new(1);
        let directory = Arc::new(SimDirectory::root(&disk));
        let store = Store::open_directory(directory, Options::new().background(false));
        let store = store.expect("a store");
        let keyspace = store.keyspace("default").expect("a keyspace");
        if let Some((call, number)) = failing {
            disk.fail_call(call, disk.call_count(call) + number, Fault::Device);
        }
        let records = (0..RECORDS).map(|n| format!("{{\"key\":\"{n}\",\"value\":\"v\"}}\n"));
        let mut source = Source::Memory(records.collect::<String>().into_bytes());
        let output = Output::new(false);
        let keyspace = Writable::Plain(keyspace);
        let outcome = all_of(&mut source, None, &store, &keyspace, &args, &output);
        (disk, outcome.map(|imported| imported.records))
    }

    /// An import said "2,000 records were imported before this" after its only sync had failed, and
    /// the store had none of them.
    #[test]
    fn what_a_failed_import_says_is_durable_is() {
        for durability in ["deferred", "buffered", "sync"] {
            let (disk, whole) = import(durability, None);
            assert_eq!((whole.ok(), left(&disk)), (Some(RECORDS), RECORDS));
            let (mut failures, mut most) = (0, 0);
            for (call, number) in [Call::Write, Call::Sync]
                .into_iter()
                .flat_map(|call| (1..=RECORDS).map(move |number| (call, number)))
            {
                let (disk, outcome) = import(durability, Some((call, number)));
                let Err(failure) = outcome else { continue };
                failures += 1;
                let first = failure.message.split(' ').next().expect("a word");
                let said: u64 = first.parse().expect("a number of records");
                let there = left(&disk);
                assert!(
                    said <= there,
                    "{durability}, {call:?} {number}: {there}, {}",
                    failure.message
                );
                most = most.max(said);
            }
            assert!(failures > 0, "{durability}");
            assert!(durability != "sync" || most > 0, "it never says what it knows");
        }
    }
}
