//! `adamant export STORE [FILE]`: a keyspace as JSON Lines or CSV, sorted by key.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use adamant_cli::{record, table};
use serde_json::json;

use crate::args::ExportArgs;
use crate::failure::{Code, Failure, Result};
use crate::figures::{per_second, thousands};
use crate::opening::{Readable, Stores};
use crate::output::Output;
use crate::progress;

/// Writes all entries.
pub(crate) fn run(args: &ExportArgs, stores: &Stores, output: &Output) -> Result<()> {
    let (store, keyspace) = stores.readable_keyspace(&args.target)?;
    let start = Instant::now();
    let to_stdout = args.file == Path::new("-");
    let count = if to_stdout {
        let count = write(args, &keyspace, |piece| output.bytes(piece))?;
        output.finish()?;
        count
    } else {
        to_file(args, &keyspace)
            .map_err(|failure| failure.before(format!("{} is incomplete", args.file.display())))?
    };
    store.close()?;
    let time = start.elapsed();
    let rate = thousands(per_second(count, time));
    let words = format!("exported {} records ({rate}/s)", thousands(count));
    if to_stdout {
        output.talk(&words);
        return Ok(());
    }
    output.result(&json!({"exported": count, "seconds": time.as_secs_f64()}), &words)
}

fn to_file(args: &ExportArgs, keyspace: &Readable) -> Result<u64> {
    let path = &args.file;
    let failed = |error| Failure::file(path, &error);
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
    let count = write(args, keyspace, |piece| writer.write_all(piece).map_err(failed))?;
    writer.flush().map_err(failed)?;
    // Pipes and terminals cannot be synced, and need not be.
    if path.is_file() {
        writer.get_ref().sync_all().map_err(failed)?;
        // Also syncs its name.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        folder.sync_all().map_err(failed)?;
    }
    Ok(count)
}

/// Passes every entry to `sink`, as the bytes of a line or a row; returns their number.
fn write(
    args: &ExportArgs,
    keyspace: &Readable,
    mut sink: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let bar = progress::entries("exporting", keyspace.len()?);
    let bad = |what| Failure::new(Code::BadInput, what);
    let row = |record: &_| {
        let failed = |error| Failure::new(Code::Other, format!("a row of CSV: {error}"));
        table::row(record).map_err(failed)
    };
    let layout = args.csv.layout().map_err(bad)?;
    if let Some(layout) = &layout {
        let header = table::header(layout).map_err(bad)?;
        sink(&row(header.as_byte_record())?)?;
    }
    let mut count = 0;
    for entry in keyspace.range(..) {
        let (key, value) = entry?;
        if let Some(layout) = &layout {
            sink(&row(&table::format(layout, &key, &value).map_err(bad)?)?)?;
        } else {
            sink((record::format(&key, &value) + "\n").as_bytes())?;
        }
        count += 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(count)
}
