//! `adamant keyspace list|create|options|convert|rename|drop STORE ..`.

use std::path::Path;

use adamant::{Engine, Error, KeyspaceKind, KeyspaceOptions, RecordedType};
use serde_json::json;

use crate::args::{KeyspaceAction, KeyspaceArgs, OwnArgs};
use crate::failure::{Code, Failure, Result};
use crate::figures::thousands;
use crate::opening::Stores;
use crate::output::Output;

/// Runs the action.
pub(crate) fn run(args: &KeyspaceArgs, stores: &Stores, output: &Output) -> Result<()> {
    match &args.action {
        KeyspaceAction::List { store } => list(store, stores, output),
        KeyspaceAction::Create { store, name, engine, lsm } => {
            create((store, name), lsm.over(KeyspaceOptions::new().engine(*engine)), stores, output)
        }
        KeyspaceAction::Options { store, name, lsm } => {
            options((store, name), *lsm, stores, output)
        }
        KeyspaceAction::Convert { store, name, engine } => {
            convert((store, name), *engine, stores, output)
        }
        KeyspaceAction::Rename { store, name, new_name } => {
            rename((store, name), new_name, stores, output)
        }
        KeyspaceAction::Drop { store, name } => drop_one((store, name), stores, output),
    }
}

fn list(path: &Path, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.readable(path)?;
    for keyspace in store.keyspaces()? {
        let (name, engine, entries) = (keyspace.name, keyspace.engine.name(), keyspace.entries);
        let (kind, types) = (keyspace.kind, keyspace.types);
        if output.is_json() {
            let of = |found: &RecordedType| json!({"name": found.name, "version": found.version});
            let types =
                types.map(|types| json!({"key": of(&types.key), "value": of(&types.value)}));
            let object = json!({
                "name": name, "engine": engine, "kind": kind.name(), "types": types,
                "entries": entries,
            });
            output.line(&object.to_string())?;
        } else {
            // A name may hold line breaks: shown as a Rust string.
            let kind = if kind == KeyspaceKind::Plain { "" } else { kind.name() };
            // So may the name of a type.
            let types = types.map(|types| types.to_string().escape_debug().to_string());
            let about = types.as_deref().unwrap_or(kind);
            let line = format!("{:>15}  {engine:<8}  {name:?}  {about}", thousands(entries));
            output.line(line.trim_end())?;
        }
    }
    Ok(store.close()?)
}

fn create(
    (path, name): (&Path, &str),
    options: KeyspaceOptions,
    stores: &Stores,
    output: &Output,
) -> Result<()> {
    let store = stores.created(path)?;
    store.create_keyspace_with(name, options)?;
    store.close()?;
    output.result(&json!({"created": name}), &format!("created the keyspace {name:?}"))
}

fn options(
    (path, name): (&Path, &str),
    given: OwnArgs,
    stores: &Stores,
    output: &Output,
) -> Result<()> {
    let store = match given.is_empty() {
        true => stores.readable(path)?,
        false => stores.existing(path)?,
    };
    // One that is missing is not to be made.
    store.open_stored(name)?;
    let options = given.over(KeyspaceOptions::new());
    let keyspace = match store.open_keyspace(name) {
        Err(Error::WrongKind { found: KeyspaceKind::Expiring, .. }) => {
            store.expiring_with(name, options)?.keyspaces().0.clone()
        }
        opened => {
            opened?;
            store.keyspace_with(name, options)?
        }
    };
    let options = keyspace.lsm()?.options()?;
    let (compression, block_bytes) = (options.compression.to_string(), options.block_bytes);
    let (filter_bits, hash_index) = (options.filter_bits_per_key, options.hash_index);
    let blob_bytes_min = options.blob_bytes_min;
    store.close()?;
    if output.is_json() {
        let object = json!({
            "keyspace": name, "compression": compression, "block_bytes": block_bytes,
            "filter_bits": filter_bits, "hash_index": hash_index,
            "blob_bytes_min": blob_bytes_min,
        });
        return output.line(&object.to_string());
    }
    let blobs = blob_bytes_min.map_or("never".into(), |bytes| thousands(bytes.into()));
    let line = format!(
        "compression {compression}; block bytes {}; filter bits {filter_bits}; \
         hash index {hash_index}; blob bytes min {blobs}",
        thousands(block_bytes as u64)
    );
    output.line(&line)
}

fn convert(
    (path, name): (&Path, &str),
    engine: Engine,
    stores: &Stores,
    output: &Output,
) -> Result<()> {
    let store = stores.existing(path)?;
    let is_new = store.convert_keyspace(name, engine)?;
    store.close()?;
    let text = match is_new {
        true => format!("converted the keyspace {name:?} to {engine}"),
        false => format!("the keyspace {name:?} is kept by {engine} already"),
    };
    output.result(&json!({"converted": name, "engine": engine.name(), "changed": is_new}), &text)
}

fn rename(
    (path, name): (&Path, &str),
    new_name: &str,
    stores: &Stores,
    output: &Output,
) -> Result<()> {
    let store = stores.existing(path)?;
    store.rename_keyspace(name, new_name)?;
    store.close()?;
    output.result(
        &json!({"renamed": name, "to": new_name}),
        &format!("the keyspace {name:?} is called {new_name:?} now"),
    )
}

fn drop_one((path, name): (&Path, &str), stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.existing(path)?;
    let dropped = store.drop_keyspace(name)?;
    store.close()?;
    if !dropped {
        return Err(Failure::new(Code::NotFound, format!("there is no keyspace {name:?}")));
    }
    output.result(&json!({"dropped": name}), &format!("dropped the keyspace {name:?}"))
}
