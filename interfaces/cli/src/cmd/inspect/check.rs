//! `adamant check STORE`: every checksum and every structure.

use serde_json::json;

use crate::args::CheckArgs;
use crate::failure::{Code, Failure, Result};
use crate::figures::{bytes, thousands};
use crate::opening::Stores;
use crate::output::Output;
use crate::progress;

/// Checks a store; fails if there are findings.
pub(crate) fn run(args: &CheckArgs, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.readable(&args.store)?;
    let bar = progress::spinner("checking");
    let report = store.check()?;
    bar.finish_and_clear();
    store.close()?;
    for finding in &report.findings {
        match output.is_json() {
            true => {
                let object = json!({
                    "place": finding.place,
                    "finding": finding.what,
                    "unread": finding.is_unread,
                });
                output.line(&object.to_string())?;
            }
            false => output.line(&finding.to_string())?,
        }
    }
    let (findings, heap) = (report.findings.len(), &report.heap);
    let entries: u64 = report.keyspaces.iter().map(|keyspace| keyspace.entries).sum();
    output.result(
        &json!({
            "clean": report.is_clean(),
            "findings": findings,
            "pages_verified": heap.pages_verified,
            "blocks": heap.blocks,
            "block_bytes": heap.block_bytes,
            "keyspaces": report.keyspaces.len(),
            "entries": entries,
        }),
        &format!(
            "verified {} pages, {} blocks of {}, {} keyspaces with {} entries: {findings} wrong",
            thousands(heap.pages_verified),
            thousands(heap.blocks),
            bytes(heap.block_bytes),
            report.keyspaces.len(),
            thousands(entries),
        ),
    )?;
    if report.is_clean() {
        return Ok(());
    }
    let what = args.store.display();
    Err(match report.is_unread() {
        true => Failure::unread(what, findings),
        false => Failure::new(Code::Damaged, format!("{what} is damaged: {findings} findings")),
    })
}
