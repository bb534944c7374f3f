//! `adamant set STORE KEY VALUE`: one durable change.

use std::io::Read;

use adamant_cli::record;

use crate::args::SetArgs;
use crate::failure::{Code, Failure, Result};
use crate::opening;
use crate::output::Output;

/// Sets the value of a key.
pub(crate) fn run(args: &SetArgs, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let value = if args.value == "-" {
        let mut value = Vec::new();
        std::io::stdin()
            .read_to_end(&mut value)
            .map_err(|error| Failure::new(Code::Other, format!("standard input: {error}")))?;
        value
    } else {
        args.encoding.bytes(&args.value)?
    };
    let (store, keyspace) = opening::created_keyspace(&args.target)?;
    let replaced = keyspace.insert(&key, &value)?;
    store.close()?;
    if output.is_json() {
        let mut object = record::format_key(&key);
        object.insert("replaced".into(), replaced.into());
        output.line(&serde_json::Value::Object(object).to_string())?;
    }
    Ok(())
}
