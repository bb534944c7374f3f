//! `adamant lsm stat|levels|compact STORE [NAME]`: keyspaces that are LSM trees.

use std::fs;

use adamant::{Engine, Keyspace, LsmKeyspace, LsmStats, LsmTable, Store};
use adamant_cli::record;
use serde_json::{Value, json};

use crate::args::{LsmAction, LsmArgs, LsmTarget};
use crate::cmd::inspect::lsm_map;
use crate::failure::{Code, Failure, Result};
use crate::figures::{bytes, thousands};
use crate::opening::Stores;
use crate::output::{Output, escape};
use crate::progress;

/// Bytes of a key that text output shows: more would break the table.
const KEY_BYTES_SHOWN: usize = 32;

/// Runs the action.
pub(crate) fn run(args: &LsmArgs, stores: &Stores, output: &Output) -> Result<()> {
    match &args.action {
        LsmAction::Stat(target) => {
            for (name, stats) in read(stores, target, |lsm| lsm.stats())? {
                stat(&name, &stats, output)?;
            }
            Ok(())
        }
        LsmAction::Levels { target, svg: None } => {
            for (name, levels) in read(stores, target, |lsm| lsm.levels())? {
                print_levels(&name, &levels, output)?;
            }
            Ok(())
        }
        LsmAction::Levels { target, svg: Some(file) } => {
            let picture = lsm_map::svg(&read(stores, target, |lsm| lsm.levels())?);
            fs::write(file, picture).map_err(|error| Failure::file(file, &error))
        }
        LsmAction::Compact(target) => compact(target, stores, output),
    }
}

/// The keyspaces to show; fails if there is none.
fn keyspaces(store: &Store, target: &LsmTarget) -> Result<Vec<Keyspace>> {
    if let Some(name) = &target.name {
        let keyspace = store.open_stored(name)?;
        if keyspace.engine() != Engine::Lsm {
            let what =
                format!("expected a keyspace of lsm, {name:?} is one of {}", keyspace.engine());
            return Err(Failure::new(Code::BadInput, what));
        }
        return Ok(vec![keyspace]);
    }
    let mut found = Vec::new();
    for info in store.keyspaces()?.iter().filter(|info| info.engine == Engine::Lsm) {
        found.push(store.open_stored(&info.name)?);
    }
    if found.is_empty() {
        let what = format!("no keyspace of {} has the engine lsm", target.store.display());
        return Err(Failure::new(Code::NotFound, what));
    }
    Ok(found)
}

/// Reads each keyspace of a read-only store.
fn read<T>(
    stores: &Stores,
    target: &LsmTarget,
    look: impl Fn(&LsmKeyspace<'_>) -> adamant::Result<T>,
) -> Result<Vec<(String, T)>> {
    let store = stores.readable(&target.store)?;
    let mut found = Vec::new();
    for keyspace in keyspaces(&store, target)? {
        found.push((keyspace.name().to_owned(), look(&keyspace.lsm()?)?));
    }
    store.close()?;
    Ok(found)
}

fn stat(name: &str, stats: &LsmStats, output: &Output) -> Result<()> {
    if output.is_json() {
        return output.line(&stat_object(name, stats).to_string());
    }
    output.line(&format!("{name:?}"))?;
    output.line("  memtable          bytes        entries    index_bytes")?;
    for (number, memtable) in stats.memtables.iter().enumerate() {
        output.line(&format!(
            "  {:<8} {:>14} {:>14} {:>14}",
            if number == 0 { "active" } else { "frozen" },
            thousands(memtable.bytes),
            thousands(memtable.entries),
            thousands(memtable.index_bytes),
        ))?;
    }
    output.line(
        "  level  tables          bytes        entries     tombstones  ranges   plain/stored",
    )?;
    for (number, level) in stats.levels.iter().enumerate().filter(|(_, level)| level.tables > 0) {
        output.line(&format!(
            "  {number:>5} {:>7} {:>14} {:>14} {:>14} {:>7} {:>14.2}",
            thousands(level.tables),
            thousands(level.bytes),
            thousands(level.entries),
            thousands(level.tombstones),
            thousands(level.range_tombstones),
            level.data_bytes_plain as f64 / level.data_bytes_stored.max(1) as f64,
        ))?;
    }
    let blobs = &stats.blobs;
    output.line(&format!(
        "  {} blob files of {}, {} values, {} of them ({}) stale; debt {:.2}",
        thousands(blobs.files),
        bytes(blobs.bytes),
        thousands(blobs.values),
        thousands(blobs.stale_values),
        bytes(blobs.stale_bytes),
        stats.debt,
    ))
}

fn stat_object(name: &str, stats: &LsmStats) -> Value {
    let memtables = stats.memtables.iter().map(|memtable| {
        json!({
            "bytes": memtable.bytes,
            "entries": memtable.entries,
            "index_bytes": memtable.index_bytes,
        })
    });
    let levels = stats.levels.iter().map(|level| {
        json!({
            "tables": level.tables,
            "bytes": level.bytes,
            "entries": level.entries,
            "tombstones": level.tombstones,
            "range_tombstones": level.range_tombstones,
            "data_bytes_plain": level.data_bytes_plain,
            "data_bytes_stored": level.data_bytes_stored,
        })
    });
    let blobs = &stats.blobs;
    json!({
        "keyspace": name,
        "memtables": memtables.collect::<Value>(),
        "levels": levels.collect::<Value>(),
        "blobs": {
            "files": blobs.files,
            "bytes": blobs.bytes,
            "values": blobs.values,
            "stored_bytes": blobs.stored_bytes,
            "stale_values": blobs.stale_values,
            "stale_bytes": blobs.stale_bytes,
        },
        "debt": stats.debt,
    })
}

fn print_levels(name: &str, levels: &[Vec<LsmTable>], output: &Output) -> Result<()> {
    if !output.is_json() {
        output.line(&format!("{name:?}"))?;
        output.line("  level      table        bytes      entries  tombstones  ranges  keys")?;
    }
    for (level, tables) in levels.iter().enumerate() {
        for table in tables {
            let line = match output.is_json() {
                true => table_object(name, level, table).to_string(),
                false => words(level, table),
            };
            output.line(&line)?;
        }
    }
    Ok(())
}

fn words(level: usize, table: &LsmTable) -> String {
    format!(
        "  {level:>5} {:>10} {:>12} {:>12} {:>11} {:>7}  {} .. {}{}",
        table.number,
        thousands(table.file_bytes),
        thousands(table.entries),
        thousands(table.tombstones),
        thousands(table.range_tombstones),
        short(&table.key_min),
        short(&table.key_max),
        // The end of a range tombstone is no key of the table.
        if table.key_max_is_exclusive { " (not included)" } else { "" },
    )
}

/// The first bytes of a key.
fn short(key: &[u8]) -> String {
    match key.get(..KEY_BYTES_SHOWN) {
        Some(shown) if shown.len() < key.len() => format!("{}..", escape(shown)),
        _ => escape(key),
    }
}

fn table_object(name: &str, level: usize, table: &LsmTable) -> Value {
    json!({
        "keyspace": name,
        "level": level,
        "table": table.number,
        "bytes": table.file_bytes,
        "entries": table.entries,
        "tombstones": table.tombstones,
        "range_tombstones": table.range_tombstones,
        "first": record::format_key(&table.key_min),
        "last": record::format_key(&table.key_max),
        "last_is_included": !table.key_max_is_exclusive,
    })
}

fn compact(target: &LsmTarget, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.existing(&target.store)?;
    let held = |stats: &LsmStats| {
        let tables: u64 = stats.levels.iter().map(|level| level.bytes).sum();
        tables + stats.blobs.bytes
    };
    for keyspace in keyspaces(&store, target)? {
        let lsm = keyspace.lsm()?;
        let before = held(&lsm.stats()?);
        let bar = progress::spinner("compacting");
        let outcome = keyspace.compact();
        bar.finish_and_clear();
        outcome?;
        let (name, after) = (keyspace.name(), held(&lsm.stats()?));
        output.result(
            &json!({"compacted": name, "bytes_before": before, "bytes_after": after}),
            &format!("the files of {name:?} took {}, and take {} now", bytes(before), bytes(after)),
        )?;
    }
    Ok(store.close()?)
}
