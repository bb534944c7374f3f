//! `adamant get STORE KEY`: the value, byte for byte.

use adamant_cli::record;
use serde_json::Value;

use crate::args::GetArgs;
use crate::failure::{Code, Failure, Result};
use crate::integer;
use crate::merge_args::operator_named;
use crate::opening::{Readable, Stores, recorded_operator};
use crate::output::Output;

/// Prints the value of a key.
pub(crate) fn run(args: &GetArgs, stores: &Stores, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let (store, keyspace) = stores.readable_keyspace(&args.target)?;
    if let Readable::Pairs(multimap) = &keyspace {
        let name = multimap.name();
        return Err(Failure::new(
            Code::BadInput,
            format!(
                "the keyspace {name:?} is a multimap, whose keys have several values: use `scan`"
            ),
        ));
    }
    let value = keyspace.get(&key)?;
    match &value {
        Some(value) if args.integer => {
            let recorded = recorded_operator(&store, &args.target.keyspace)?;
            let operator = recorded.and_then(|name| operator_named(&name));
            let number = integer::read(operator, value.as_ref());
            let number = number.map_err(|message| Failure::new(Code::BadInput, message))?;
            print_integer(&key, number, output)?;
        }
        Some(value) if output.is_json() => output.line(&record::format(&key, value.as_ref()))?,
        Some(value) => output.bytes(value.as_ref())?,
        None => return Err(missing(&key, &args.target.keyspace)),
    }
    Ok(store.close()?)
}

/// Prints an integer: all of them fit a JSON number of 64 bits.
fn print_integer(key: &[u8], number: i128, output: &Output) -> Result<()> {
    if !output.is_json() {
        return output.line(&number.to_string());
    }
    let mut object = record::format_key(key);
    let signed = i64::try_from(number).map(Value::from);
    object.insert("integer".into(), signed.unwrap_or_else(|_| (number as u64).into()));
    output.line(&Value::Object(object).to_string())
}

/// The failure for a missing key.
pub(crate) fn missing(key: &[u8], keyspace: &str) -> Failure {
    let key = String::from_utf8_lossy(key);
    Failure::new(Code::NotFound, format!("there is no key {key:?} in the keyspace {keyspace:?}"))
}
