//! `adamant get STORE KEY`: the value, byte for byte.

use adamant_cli::record;

use crate::args::GetArgs;
use crate::failure::{Code, Failure, Result};
use crate::opening::{Readable, Stores};
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
        Some(value) if output.is_json() => output.line(&record::format(&key, value.as_ref()))?,
        Some(value) => output.bytes(value.as_ref())?,
        None => return Err(missing(&key, &args.target.keyspace)),
    }
    Ok(store.close()?)
}

/// The failure for a missing key.
pub(crate) fn missing(key: &[u8], keyspace: &str) -> Failure {
    let key = String::from_utf8_lossy(key);
    Failure::new(Code::NotFound, format!("there is no key {key:?} in the keyspace {keyspace:?}"))
}
