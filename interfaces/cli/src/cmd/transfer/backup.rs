//! `adamant backup STORE TARGET`: a copy of a store, or of what changed since another one.

use adamant::Increment;
use serde_json::json;

use crate::args::BackupArgs;
use crate::failure::Result;
use crate::opening::Stores;
use crate::output::Output;
use crate::progress;

/// Copies a store.
pub(crate) fn run(args: &BackupArgs, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.readable(&args.store)?;
    let bar = progress::spinner("copying");
    let made = match (&args.since, args.link) {
        (Some(parent), _) => store.backup_since(parent, &args.target).map(Some),
        (None, true) => store.backup_linked(&args.target).map(|()| None),
        (None, false) => store.backup(&args.target).map(|()| None),
    };
    bar.finish_and_clear();
    let made = made?;
    store.close()?;
    let target = args.target.display().to_string();
    if let (Some(made), Some(parent)) = (made, &args.since) {
        let parent = parent.display().to_string();
        let Increment { sequence, bytes, blocks, pool_blocks, files, store_files, .. } = made;
        let figures = json!({
            "backup": target, "since": parent, "sequence": sequence, "bytes": bytes,
            "blocks": blocks, "pool_blocks": pool_blocks, "files": files, "store_files": store_files,
        });
        let words = format!(
            "{target} is what changed since {parent}: {bytes} bytes, {blocks} of {pool_blocks} blocks \
             and {files} of {store_files} files"
        );
        return output.result(&figures, &words);
    }
    output.result(&json!({"backup": target}), &format!("{target} is a copy of the store"))
}
