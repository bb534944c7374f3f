//! `adamant changes STORE [--keep BYTES | --stop]`: the recording of changes.

use adamant::Error;
use serde_json::{Map, json};

use crate::failure::Result;
use crate::figures::{bytes, thousands};
use crate::follow_args::ChangesArgs;
use crate::opening::Stores;
use crate::output::Output;

/// Begins, bounds or ends it; otherwise says what there is.
pub(crate) fn run(args: &ChangesArgs, stores: &Stores, output: &Output) -> Result<()> {
    if args.keep.is_none() && !args.stop {
        return show(args, stores, output);
    }
    let store = stores.existing(&args.store)?;
    store.record_changes(args.keep)?;
    store.close()?;
    match args.keep {
        None => output.result(&json!({"recorded": false}), "changes are not recorded any more"),
        Some(kept) => output.result(
            &json!({"recorded": true, "bytes_max": kept}),
            &format!("changes are recorded, and {} of them kept", bytes(kept)),
        ),
    }
}

fn show(args: &ChangesArgs, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.readable(&args.store)?;
    let info = match store.changes_info() {
        Err(Error::ChangesNotRecorded) => {
            store.close()?;
            return match output.is_json() {
                true => output.line(&json!({"recorded": false}).to_string()),
                false => output.line("changes are not recorded; begin with --keep BYTES"),
            };
        }
        info => info?,
    };
    let cursors = store.cursors()?;
    store.close()?;
    if output.is_json() {
        let cursors: Map<_, _> =
            cursors.into_iter().map(|(name, number)| (name, number.into())).collect();
        let object = json!({
            "recorded": true, "first": info.first, "last": info.last, "bytes": info.bytes,
            "bytes_max": info.bytes_max, "cursors": cursors,
        });
        return output.line(&object.to_string());
    }
    let figures = [
        ("first", info.first),
        ("last", info.last),
        ("bytes", info.bytes),
        ("bytes_max", info.bytes_max),
    ];
    for (name, value) in figures {
        output.line(&format!("{name:<20} {:>26}", thousands(value)))?;
    }
    for (name, number) in cursors {
        // A name may hold line breaks: shown as a Rust string.
        output.line(&format!("cursor {:>14} at {name:?}", thousands(number)))?;
    }
    Ok(())
}
