//! `adamant merge STORE KEY OPERAND`: one durable merge.

use adamant::{BuiltInOperator, Store};
use adamant_cli::record;

use crate::cmd::entries::put::input;
use crate::failure::{Code, Failure, Result};
use crate::integer;
use crate::merge_args::{MergeArgs, operator_named, operator_names};
use crate::opening::{Stores, recorded_operator};
use crate::output::Output;

/// Merges an operand with the value of a key, by the operator of its keyspace.
pub(crate) fn run(args: &MergeArgs, stores: &Stores, output: &Output) -> Result<()> {
    let key = args.encoding.bytes(&args.key)?;
    let given = match args.operand == "-" {
        true => Some(input(stores)?),
        false => None,
    };
    let (store, keyspace) = stores.existing_keyspace(&args.target)?;
    let operator = known_operator(&store, &args.target.keyspace)?;
    let operand = match given {
        Some(bytes) => bytes,
        None => operand_of(args, operator)?,
    };
    keyspace.merge(&key, &operand)?;
    store.close()?;
    if output.is_json() {
        let object = record::format_key(&key);
        output.line(&serde_json::Value::Object(object).to_string())?;
    }
    Ok(())
}

/// The bytes of the operand on the command line.
fn operand_of(args: &MergeArgs, operator: BuiltInOperator) -> Result<Vec<u8>> {
    if args.encoding.base64 || !integer::takes_integers(operator) {
        return args.encoding.bytes(&args.operand);
    }
    let text = args.operand.to_string_lossy();
    let parsed = integer::parse(operator, &text);
    parsed.map(Into::into).map_err(|message| Failure::new(Code::BadInput, message))
}

/// The merge operator of a keyspace, which must be one of the library.
fn known_operator(store: &Store, name: &str) -> Result<BuiltInOperator> {
    let Some(operator) = recorded_operator(store, name)? else {
        let message = format!(
            "expected a keyspace with a merge operator, found {name:?} without one; record one: \
             `adamant keyspace options STORE {name:?} --merge-operator NAME`, with one of {}",
            operator_names()
        );
        return Err(Failure::new(Code::BadInput, message));
    };
    operator_named(&operator).ok_or_else(|| {
        let message = format!(
            "expected a merge operator of the library, which are {}, found {operator:?} of the \
             keyspace {name:?}: only the program that it is of can merge",
            operator_names()
        );
        Failure::new(Code::Unsupported, message)
    })
}
