//! `adamant restore BACKUP TARGET`: a store from a backup.

use serde_json::json;

use crate::args::RestoreArgs;
use crate::failure::Result;
use crate::opening::Stores;
use crate::output::Output;
use crate::progress;

/// Verifies a backup and copies it.
pub(crate) fn run(args: &RestoreArgs, stores: &Stores, output: &Output) -> Result<()> {
    let bar = progress::spinner("verifying and copying");
    let made = adamant::restore_with(&args.backup, &args.target, stores.options());
    bar.finish_and_clear();
    made?;
    let (backup, target) = (args.backup.display(), args.target.display().to_string());
    let text = format!("{backup} is whole, and {target} is a store with what it holds");
    output.result(&json!({"restored": target}), &text)
}
