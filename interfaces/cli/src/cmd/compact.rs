//! `adamant compact STORE`: files as small as their contents.

use serde_json::json;

use crate::args::CompactArgs;
use crate::failure::Result;
use crate::figures::bytes;
use crate::opening::Stores;
use crate::output::Output;
use crate::progress;

/// Compacts a store.
pub(crate) fn run(args: &CompactArgs, stores: &Stores, output: &Output) -> Result<()> {
    let bar = progress::spinner("compacting");
    let compacted = adamant::compact_with(&args.store, stores.options());
    bar.finish_and_clear();
    let compacted = compacted?;
    let (before, after) = (compacted.bytes_before, compacted.bytes_after);
    output.result(
        &json!({"bytes_before": before, "bytes_after": after}),
        &format!("the files took {}, and take {} now", bytes(before), bytes(after)),
    )
}
