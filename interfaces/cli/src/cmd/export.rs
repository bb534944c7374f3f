//! `adamant export STORE [FILE]`: a keyspace as JSON Lines, sorted by key.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use adamant::Keyspace;
use serde_json::json;

use crate::args::ExportArgs;
use crate::failure::{Failure, Result};
use crate::figures::{per_second, thousands};
use crate::output::Output;
use crate::{opening, progress, record};

/// Writes all entries.
pub(crate) fn run(args: &ExportArgs, output: &Output) -> Result<()> {
    let (store, keyspace) = opening::existing_keyspace(&args.target)?;
    let start = Instant::now();
    let to_stdout = args.file == Path::new("-");
    let count = if to_stdout {
        let count = write(&keyspace, |line| output.line(line))?;
        output.finish()?;
        count
    } else {
        to_file(&keyspace, &args.file)
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

fn to_file(keyspace: &Keyspace, path: &Path) -> Result<u64> {
    let failed = |error| Failure::file(path, &error);
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
    let count = write(keyspace, |line| {
        writer.write_all(line.as_bytes()).and_then(|()| writer.write_all(b"\n")).map_err(failed)
    })?;
    writer.flush().map_err(failed)?;
    // Pipes and terminals cannot be synced, and need not be.
    if path.is_file() {
        writer.get_ref().sync_all().map_err(failed)?;
    }
    Ok(count)
}

/// Hands every entry as a line to `sink`; the number of them.
fn write(keyspace: &Keyspace, mut sink: impl FnMut(&str) -> Result<()>) -> Result<u64> {
    let bar = progress::entries("exporting", keyspace.len()?);
    let mut count = 0;
    for entry in keyspace.iter() {
        let (key, value) = entry?;
        sink(&record::format(key.as_ref(), value.as_ref()))?;
        count += 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(count)
}
