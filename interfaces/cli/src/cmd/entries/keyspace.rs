//! `adamant keyspace list|create|options|convert|rename|drop STORE ..`.

use std::path::Path;

use adamant::{
    Durability, Engine, Error, KeyspaceInfo, KeyspaceKind, KeyspaceOptions, RecordedType,
};
use serde_json::json;

use crate::args::{ConvertArgs, KeyspaceAction, KeyspaceArgs, OwnArgs};
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
        KeyspaceAction::Convert { store, name, to } => convert((store, name), to, stores, output),
        KeyspaceAction::Rename { store, name, new_name } => {
            rename((store, name), new_name, stores, output)
        }
        KeyspaceAction::Drop { store, name } => drop_one((store, name), stores, output),
    }
}

fn list(path: &Path, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.readable(path)?;
    for keyspace in store.keyspaces()? {
        let values = values_of(&keyspace);
        let dictionary_bytes = keyspace.dictionary_bytes;
        let durability = keyspace.durability.map(durability_name);
        let compression = keyspace.values.map(|values| values.to_string());
        let (name, engine, entries) = (keyspace.name, keyspace.engine.name(), keyspace.entries);
        let (kind, types, operator) = (keyspace.kind, keyspace.types, keyspace.merge_operator);
        if output.is_json() {
            let of = |found: &RecordedType| json!({"name": found.name, "version": found.version});
            let types =
                types.map(|types| json!({"key": of(&types.key), "value": of(&types.value)}));
            let object = json!({
                "name": name, "engine": engine, "kind": kind.name(), "types": types,
                "entries": entries, "value_compression": compression,
                "dictionary_bytes": dictionary_bytes, "durability": durability,
                "merge_operator": operator,
            });
            output.line(&object.to_string())?;
        } else {
            // A name may hold line breaks: shown as a Rust string.
            let kind = if kind == KeyspaceKind::Plain { "" } else { kind.name() };
            // So may the name of a type.
            let types = types.map(|types| types.to_string().escape_debug().to_string());
            let about = types.as_deref().unwrap_or(kind);
            let durability = durability.map_or_else(String::new, |it| format!("  {it}"));
            // A program may have given it any name.
            let operator = operator.map(|name| format!("  merges by {}", name.escape_debug()));
            let operator = operator.unwrap_or_default();
            let line = format!(
                "{:>15}  {engine:<8}  {name:?}  {about}  {values}{durability}{operator}",
                thousands(entries)
            );
            output.line(line.trim_end())?;
        }
    }
    Ok(store.close()?)
}

/// How values are compressed, in words; empty if they are not.
fn values_of(keyspace: &KeyspaceInfo) -> String {
    match (keyspace.values, keyspace.dictionary_bytes) {
        (None, _) => String::new(),
        (Some(values), 0) => format!("values by {values}"),
        (Some(values), bytes) => {
            format!("values by {values}, with a dictionary of {} bytes", thousands(bytes.into()))
        }
    }
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
        Err(Error::WrongKind { found: KeyspaceKind::Multimap, .. }) => {
            store.multimap_with(name, options)?.untyped()
        }
        opened => {
            opened?;
            store.keyspace_with(name, options)?
        }
    };
    let info = store.keyspaces()?.into_iter().find(|info| info.name == name);
    let Some(info) = info else { return Ok(store.close()?) };
    let durability = info.durability.map(durability_name);
    if keyspace.engine() != Engine::Lsm {
        store.close()?;
        return print_values(&info, output);
    }
    let options = keyspace.lsm()?.options()?;
    let (compression, block_bytes) = (options.compression.to_string(), options.block_bytes);
    let (filter_bits, hash_index) = (options.filter_bits_per_key, options.hash_index);
    let (blob_bytes_min, caches_data) = (options.blob_bytes_min, options.caches_data);
    store.close()?;
    if output.is_json() {
        let object = json!({
            "keyspace": name, "compression": compression, "block_bytes": block_bytes,
            "filter_bits": filter_bits, "hash_index": hash_index,
            "blob_bytes_min": blob_bytes_min, "caches_data": caches_data,
            "durability": durability, "merge_operator": info.merge_operator,
        });
        return output.line(&object.to_string());
    }
    let blobs = blob_bytes_min.map_or("never".into(), |bytes| thousands(bytes.into()));
    let line = format!(
        "compression {compression}; block bytes {}; filter bits {filter_bits}; \
         hash index {hash_index}; blob bytes min {blobs}; caches data {caches_data}; \
         durability {}; merge operator {}",
        thousands(block_bytes as u64),
        durability.unwrap_or("of the store"),
        operator_of(&info)
    );
    output.line(&line)
}

/// The name of the merge operator, as one line.
fn operator_of(keyspace: &KeyspaceInfo) -> String {
    let name = keyspace.merge_operator.as_deref().unwrap_or("none");
    name.escape_debug().to_string()
}

/// The name of a durability.
fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Sync => "sync",
        Durability::Buffered => "buffered",
        Durability::Deferred => "deferred",
    }
}

fn print_values(keyspace: &KeyspaceInfo, output: &Output) -> Result<()> {
    let text = keyspace.values.map_or("none".into(), |values| values.to_string());
    if output.is_json() {
        let object = json!({
            "keyspace": keyspace.name, "value_compression": text,
            "dictionary_bytes": keyspace.dictionary_bytes,
            "durability": keyspace.durability.map(durability_name),
            "merge_operator": keyspace.merge_operator,
        });
        return output.line(&object.to_string());
    }
    let bytes = thousands(keyspace.dictionary_bytes.into());
    let durability = keyspace.durability.map_or("of the store", durability_name);
    output.line(&format!(
        "value compression {text}; dictionary bytes {bytes}; durability {durability}; \
         merge operator {}",
        operator_of(keyspace)
    ))
}

fn convert(
    (path, name): (&Path, &str),
    to: &ConvertArgs,
    stores: &Stores,
    output: &Output,
) -> Result<()> {
    let given = match &to.dictionary {
        Some(file) => Some(std::fs::read(file).map_err(|error| {
            Failure::new(Code::BadInput, format!("{}: {error}", file.display()))
        })?),
        None => None,
    };
    let store = stores.existing(path)?;
    let mut lines = Vec::new();
    let mut is_changed = false;
    if let Some(engine) = to.engine {
        let is_new = store.convert_keyspace(name, engine)?;
        is_changed |= is_new;
        lines.push(match is_new {
            true => format!("converted the keyspace {name:?} to {engine}"),
            false => format!("the keyspace {name:?} is kept by {engine} already"),
        });
    }
    if let Some(values) = to.value_compression {
        let trained = to.train_dictionary.map(|bytes| store.train_dictionary(name, bytes));
        let dictionary = trained.transpose()?.or(given);
        let is_new = store.compress_values(name, values, dictionary.as_deref())?;
        is_changed |= is_new;
        let bytes = dictionary.map_or(0, |dictionary| dictionary.len());
        let with = match bytes {
            0 => String::new(),
            bytes => format!(" with a dictionary of {} bytes", thousands(bytes as u64)),
        };
        lines.push(match is_new {
            true => format!("the values of the keyspace {name:?} are stored by {values}{with} now"),
            false => format!("the values of {name:?} are stored by {values}{with} already"),
        });
    }
    store.close()?;
    let object = json!({
        "converted": name, "engine": to.engine.map(Engine::name),
        "value_compression": to.value_compression.map(|values| values.to_string()),
        "changed": is_changed,
    });
    output.result(&object, &lines.join("; "))
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
