//! `adamant savepoint list|create|delete|backup|restore STORE ..`.

use std::path::Path;
use std::time::UNIX_EPOCH;

use adamant::SavepointState;
use serde_json::json;

use crate::args::{SavepointAction, SavepointArgs};
use crate::failure::{Code, Failure, Result};
use crate::figures::thousands;
use crate::opening::Stores;
use crate::output::Output;
use crate::progress;

/// Runs the action.
pub(crate) fn run(args: &SavepointArgs, stores: &Stores, output: &Output) -> Result<()> {
    match &args.action {
        SavepointAction::List { store } => list(store, stores, output),
        SavepointAction::Create { store, name } => create(store, name, stores, output),
        SavepointAction::Delete { store, name } => delete(store, name, stores, output),
        SavepointAction::Backup { store, name, target } => {
            back_up((store, name), target, stores, output)
        }
        SavepointAction::Restore { store, name } => restore(store, name, stores, output),
    }
}

fn list(path: &Path, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.readable(path)?;
    for savepoint in store.savepoints()? {
        let state = match savepoint.state {
            SavepointState::Whole => "whole",
            SavepointState::Lost => "lost",
            _ => "damaged",
        };
        let since = savepoint.made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made_seconds = since.map(|since| since.as_secs());
        let (name, commit, bytes) = (savepoint.name, savepoint.commit, savepoint.bytes);
        if output.is_json() {
            let object = json!({
                "name": name, "commit": commit, "made_seconds": made_seconds, "bytes": bytes,
                "state": state,
            });
            output.line(&object.to_string())?;
            continue;
        }
        // A name may hold line breaks: shown as a Rust string.
        let (commit, bytes) = (thousands(commit), thousands(bytes));
        let state = if state == "whole" { "" } else { state };
        let line = format!("{bytes:>15} bytes  commit {commit}  {name:?}  {state}");
        output.line(line.trim_end())?;
    }
    Ok(store.close()?)
}

fn create(path: &Path, name: &str, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.existing(path)?;
    store.create_savepoint(name)?;
    store.close()?;
    output.result(&json!({"created": name}), &format!("made the savepoint {name:?}"))
}

fn delete(path: &Path, name: &str, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.existing(path)?;
    let is_deleted = store.delete_savepoint(name)?;
    store.close()?;
    if !is_deleted {
        return Err(Failure::new(Code::NotFound, format!("there is no savepoint {name:?}")));
    }
    output.result(&json!({"deleted": name}), &format!("deleted the savepoint {name:?}"))
}

fn back_up(
    (path, name): (&Path, &str),
    target: &Path,
    stores: &Stores,
    output: &Output,
) -> Result<()> {
    let store = stores.readable(path)?;
    let savepoint = store.open_savepoint(name)?;
    let bar = progress::spinner("copying");
    let made = savepoint.backup(target);
    bar.finish_and_clear();
    made?;
    savepoint.close()?;
    store.close()?;
    let target = target.display().to_string();
    let text = format!("{target} is a store with what the savepoint {name:?} shows");
    output.result(&json!({"backup": target, "savepoint": name}), &text)
}

fn restore(path: &Path, name: &str, stores: &Stores, output: &Output) -> Result<()> {
    let bar = progress::spinner("making the pool anew");
    let made = adamant::go_back_with(path, name, stores.options());
    bar.finish_and_clear();
    made?;
    let text = format!("the store is what the savepoint {name:?} shows; all savepoints stay");
    output.result(&json!({"restored": name}), &text)
}
