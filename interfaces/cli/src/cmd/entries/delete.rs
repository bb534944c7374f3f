//! `adamant delete|remove STORE KEY`: one durable removal.

use adamant_cli::record;

use crate::args::DeleteArgs;
use crate::cmd::entries::get;
use crate::failure::Result;
use crate::opening::Stores;
use crate::output::Output;

/// Deletes a key, whether it exists or not.
pub(crate) fn delete(args: &DeleteArgs, stores: &Stores, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let (store, keyspace) = stores.existing_keyspace(&args.target)?;
    keyspace.delete(&key)?;
    store.close()?;
    if output.is_json() {
        let object = record::format_key(&key);
        output.line(&serde_json::Value::Object(object).to_string())?;
    }
    Ok(())
}

/// Removes a key; fails if there is none.
pub(crate) fn remove(args: &DeleteArgs, stores: &Stores, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let (store, keyspace) = stores.existing_keyspace(&args.target)?;
    let removed = keyspace.remove(&key)?;
    store.close()?;
    if !removed {
        return Err(get::missing(&key, &args.target.keyspace));
    }
    if output.is_json() {
        let mut object = record::format_key(&key);
        object.insert("removed".into(), removed.into());
        output.line(&serde_json::Value::Object(object).to_string())?;
    }
    Ok(())
}
