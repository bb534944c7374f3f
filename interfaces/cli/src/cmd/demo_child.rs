//! The child process of the demo: commits, and reports its commits, until it is killed.

use adamant::Store;
use adamant_cli::record::{self, Record};

use crate::args::DemoChildArgs;
use crate::failure::{Code, Failure, Result};
use crate::opening::Stores;
use crate::output::Output;

/// The keyspace that the child imports into.
pub(crate) const KEYSPACE: &str = "import that is killed";

/// The records that ship with the command.
const SAMPLE: &str = include_str!("../../data/packages-sample.jsonl");

/// The records that ship with the command.
pub(crate) fn sample() -> Result<Vec<Record>> {
    SAMPLE
        .lines()
        .map(|line| record::parse(line.as_bytes()))
        .collect::<std::result::Result<_, _>>()
        .map_err(|what| Failure::new(Code::Other, format!("the sample records: {what}")))
}

/// The child's change with this `number`, from 0 on: endless, in the order of keys.
pub(crate) fn change(records: &[Record], number: u64) -> Record {
    let (name, value) = &records[(number % records.len() as u64) as usize];
    let mut key = format!("{number:08} ").into_bytes();
    key.extend_from_slice(name);
    (key, value.clone())
}

/// Commits one record after the other, durably, and prints the number of each when its commit has
/// returned, until it is killed or its output is closed.
pub(crate) fn run(args: &DemoChildArgs, stores: &Stores, output: &Output) -> Result<()> {
    let records = sample()?;
    let store: Store = stores.existing(&args.store)?;
    let keyspace = store.keyspace(KEYSPACE)?;
    for number in 0.. {
        let (key, value) = change(&records, number);
        keyspace.put(key, value)?;
        output.line(&number.to_string())?;
        output.finish()?;
    }
    Ok(())
}
