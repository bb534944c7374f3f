//! `adamant rename STORE KEY NEW_KEY`: one durable move of a value of any size.

use adamant::Moved;
use adamant_cli::record;

use crate::args::RenameArgs;
use crate::cmd::entries::get;
use crate::failure::Result;
use crate::opening::Stores;
use crate::output::Output;

/// Moves the value of a key to another key, also of another keyspace; fails if there is no such
/// key.
pub(crate) fn run(args: &RenameArgs, stores: &Stores, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let new_key = args.encoding.bytes(&args.new_key)?;
    let (store, keyspace) = stores.existing_keyspace(&args.target)?;
    let moved = match &args.to {
        Some(name) => keyspace.move_to(&key, &store.open_keyspace(name)?, &new_key)?,
        None => keyspace.rename(&key, &new_key)?,
    };
    store.close()?;
    if !moved.is_moved() {
        return Err(get::missing(&key, &args.target.keyspace));
    }
    if output.is_json() {
        let mut object = record::format_key(&new_key);
        object.insert("replaced".into(), (moved == Moved::Replaced).into());
        output.line(&serde_json::Value::Object(object).to_string())?;
    }
    Ok(())
}
