//! `adamant del STORE KEY`: one durable removal.

use adamant_cli::record;

use crate::args::DelArgs;
use crate::cmd::entries::get;
use crate::failure::Result;
use crate::opening;
use crate::output::Output;

/// Removes a key; fails if there is none.
pub(crate) fn run(args: &DelArgs, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let (store, keyspace) = opening::existing_keyspace(&args.target)?;
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
