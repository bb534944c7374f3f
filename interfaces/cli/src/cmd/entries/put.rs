//! `adamant put|insert STORE KEY VALUE`: one durable change.

use std::io::Read;

use adamant_cli::record;

use crate::args::PutArgs;
use crate::failure::{Code, Failure, Result};
use crate::opening::Stores;
use crate::output::Output;

/// Sets the value of a key.
pub(crate) fn put(args: &PutArgs, stores: &Stores, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let value = value_of(args, stores)?;
    let (store, keyspace) = stores.created_keyspace(&args.target)?;
    keyspace.put(&key, &value)?;
    store.close()?;
    if output.is_json() {
        let object = record::format_key(&key);
        output.line(&serde_json::Value::Object(object).to_string())?;
    }
    Ok(())
}

/// Sets the value of a key, and reports whether it had one.
pub(crate) fn insert(args: &PutArgs, stores: &Stores, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let value = value_of(args, stores)?;
    let (store, keyspace) = stores.created_keyspace(&args.target)?;
    let replaced = keyspace.insert(&key, &value)?;
    store.close()?;
    if output.is_json() {
        let mut object = record::format_key(&key);
        object.insert("replaced".into(), replaced.into());
        return output.line(&serde_json::Value::Object(object).to_string());
    }
    output.line(if replaced { "replaced" } else { "new" })
}

fn value_of(args: &PutArgs, stores: &Stores) -> Result<Vec<u8>> {
    if args.value != "-" {
        return args.encoding.bytes(&args.value);
    }
    input(stores)
}

/// All of standard input, byte for byte.
pub(crate) fn input(stores: &Stores) -> Result<Vec<u8>> {
    stores.need_input()?;
    let mut value = Vec::new();
    std::io::stdin()
        .read_to_end(&mut value)
        .map_err(|error| Failure::new(Code::Other, format!("standard input: {error}")))?;
    Ok(value)
}
