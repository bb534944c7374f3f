//! `adamant heap stat|map|check|shrink STORE`: the heap below a store.

use std::fs;
use std::path::Path;

use adamant::{HeapCheckReport, Occupancy, PageRange, Shrunk, Store, Usage};
use serde_json::{Map, Value, json};

use crate::args::{HeapAction, HeapArgs};
use crate::cmd::inspect::heap_map;
use crate::failure::{Code, Failure, Result};
use crate::figures::{bytes, thousands};
use crate::opening::Stores;
use crate::output::Output;

/// Bytes of a page of the heap.
const PAGE_BYTES: u64 = 4096;

/// Runs the action.
pub(crate) fn run(args: &HeapArgs, stores: &Stores, output: &Output) -> Result<()> {
    match &args.action {
        HeapAction::Stat { store } => stat(&read(stores, store, Store::occupancy)?, output),
        HeapAction::Map { store, svg: None } => {
            map(&read(stores, store, Store::occupancy)?, output)
        }
        HeapAction::Map { store, svg: Some(file) } => {
            let picture = heap_map::svg(&read(stores, store, Store::occupancy)?);
            fs::write(file, picture).map_err(|error| Failure::file(file, &error))
        }
        HeapAction::Check { store } => {
            check(store, &read(stores, store, Store::check_heap)?, output)
        }
        HeapAction::Shrink { store: path } => {
            let store = stores.existing(path)?;
            let shrunk = store.shrink()?;
            store.close()?;
            shrink(&shrunk, output)
        }
    }
}

fn read<T>(
    stores: &Stores,
    path: &Path,
    look: impl FnOnce(&Store) -> adamant::Result<T>,
) -> Result<T> {
    let store = stores.readable(path)?;
    let found = look(&store)?;
    store.close()?;
    Ok(found)
}

fn stat(heap: &Occupancy, output: &Output) -> Result<()> {
    let runs: u64 = heap.classes.iter().map(|class| class.runs).sum();
    let figures = [
        ("allocated_bytes", heap.allocated_bytes()),
        ("unused_run_bytes", heap.unused_run_bytes()),
        ("free_bytes", heap.free_pages * PAGE_BYTES),
        ("free_bytes_largest", heap.free_pages_largest * PAGE_BYTES),
        ("extents", heap.extents),
        ("extent_bytes", heap.extent_pages * PAGE_BYTES),
        ("runs", runs),
    ];
    if output.is_json() {
        let mut object: Map<String, Value> =
            figures.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect();
        object.insert("fragmentation".into(), heap.fragmentation().into());
        let classes = heap.classes.iter().map(|class| {
            json!({
                "block_bytes": class.block_bytes,
                "runs": class.runs,
                "pages": class.pages,
                "blocks": class.blocks,
                "allocated": class.allocated,
            })
        });
        object.insert("classes".into(), classes.collect());
        return output.line(&Value::Object(object).to_string());
    }
    for (name, value) in figures {
        output.line(&format!("{name:<20} {:>22}", thousands(value)))?;
    }
    output.line(&format!("{:<20} {:>22.3}", "fragmentation", heap.fragmentation()))?;
    output.line("")?;
    output.line("block_bytes       runs         blocks      allocated  full")?;
    for class in &heap.classes {
        output.line(&format!(
            "{:>11} {:>10} {:>14} {:>14} {:>4.0}%",
            thousands(class.block_bytes),
            thousands(class.runs),
            thousands(class.blocks),
            thousands(class.allocated),
            100.0 * class.allocated as f64 / class.blocks.max(1) as f64,
        ))?;
    }
    Ok(())
}

fn map(heap: &Occupancy, output: &Output) -> Result<()> {
    for page_range in &heap.page_ranges {
        let line =
            if output.is_json() { object(page_range).to_string() } else { words(page_range) };
        output.line(&line)?;
    }
    Ok(())
}

fn words(page_range: &PageRange) -> String {
    let usage = match page_range.usage {
        Usage::Run { block_bytes, blocks, allocated } => {
            format!("run      {allocated} of {blocks} blocks of {block_bytes} bytes")
        }
        Usage::Extent => format!("extent   {}", bytes(page_range.pages * PAGE_BYTES)),
        other => name(other).to_owned(),
    };
    format!("{:>10} {:>8}  {usage}", page_range.page, page_range.pages)
}

fn name(usage: Usage) -> &'static str {
    match usage {
        Usage::System => "system",
        Usage::Free => "free",
        Usage::Extent => "extent",
        Usage::Run { .. } => "run",
        _ => "unknown",
    }
}

fn object(page_range: &PageRange) -> Value {
    let mut object = json!({"page": page_range.page, "pages": page_range.pages, "usage": name(page_range.usage)});
    if let (Usage::Run { block_bytes, blocks, allocated }, Some(fields)) =
        (page_range.usage, object.as_object_mut())
    {
        fields.insert("block_bytes".into(), block_bytes.into());
        fields.insert("blocks".into(), blocks.into());
        fields.insert("allocated".into(), allocated.into());
    }
    object
}

fn check(path: &Path, report: &HeapCheckReport, output: &Output) -> Result<()> {
    for finding in &report.findings {
        let (file, offset) = (finding.file.display(), finding.offset);
        output.line(&match output.is_json() {
            true => json!({
                "file": file.to_string(),
                "offset": offset,
                "finding": finding.what,
                "unread": finding.is_unread,
            })
            .to_string(),
            false => format!("{file} at byte {offset}: {}", finding.what),
        })?;
    }
    let findings = report.findings.len();
    output.result(
        &json!({
            "clean": report.is_clean(),
            "findings": findings,
            "pages_verified": report.pages_verified,
            "runs": report.runs,
            "extents": report.extents,
            "blocks": report.blocks,
            "block_bytes": report.block_bytes,
            "free_pages": report.free_pages,
        }),
        &format!(
            "verified {} pages, {} runs, {} extents, {} blocks of {}: {findings} wrong",
            thousands(report.pages_verified),
            thousands(report.runs),
            thousands(report.extents),
            thousands(report.blocks),
            bytes(report.block_bytes),
        ),
    )?;
    if report.is_clean() {
        return Ok(());
    }
    let what = format!("the heap of {}", path.display());
    if report.is_unread() {
        return Err(Failure::unread(what, findings));
    }
    let what =
        format!("{what} is damaged: {findings} findings; adamant repair saves what can be read");
    Err(Failure::new(Code::Damaged, what))
}

fn shrink(shrunk: &Shrunk, output: &Output) -> Result<()> {
    let Shrunk { bytes_released, bytes_punched, log_bytes_released, .. } = *shrunk;
    output.result(
        &json!({
            "bytes_released": bytes_released,
            "bytes_punched": bytes_punched,
            "log_bytes_released": log_bytes_released,
        }),
        &format!(
            "gave back {} at the end of the pool, {} within it and {} of the log",
            bytes(bytes_released),
            bytes(bytes_punched),
            bytes(log_bytes_released)
        ),
    )
}
