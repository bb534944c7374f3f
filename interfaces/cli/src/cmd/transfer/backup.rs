//! `adamant backup STORE TARGET`: a copy of a store.

use serde_json::json;

use crate::args::BackupArgs;
use crate::failure::Result;
use crate::output::Output;
use crate::{opening, progress};

/// Copies a store.
pub(crate) fn run(args: &BackupArgs, output: &Output) -> Result<()> {
    let store = opening::readable(&args.store)?;
    let bar = progress::spinner("copying");
    let made = match args.link {
        true => store.backup_linked(&args.target),
        false => store.backup(&args.target),
    };
    bar.finish_and_clear();
    made?;
    store.close()?;
    let target = args.target.display().to_string();
    output.result(&json!({"backup": target}), &format!("{target} is a copy of the store"))
}
