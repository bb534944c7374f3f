//! `adamant watch STORE`: the feed of changes, commit by commit, as they come.
//!
//! A line of text is a change: the number of its commit, its keyspace, what happened, and then keys
//! and values, separated by tabs. With `--json` a line is a commit.

use std::time::Duration;

use adamant::{Change, Changes, Commit};
use serde_json::{Value, json};

use crate::cmd::follow::describe::{concerns, object, text};
use crate::failure::Result;
use crate::follow_args::WatchArgs;
use crate::opening::Stores;
use crate::output::Output;

/// How long it waits for a commit, before it waits again.
const WAIT: Duration = Duration::from_secs(60);

/// Prints commits until it is stopped, or there are as many as asked for. A signal may end it at
/// any moment: it holds nothing but its place as a reader, which the next one removes.
pub(crate) fn run(args: &WatchArgs, stores: &Stores, output: &Output) -> Result<()> {
    let store = match args.once {
        true => stores.readable(&args.store)?,
        false => stores.beside(&args.store)?,
    };
    let after = match args.from {
        Some(number) => number.saturating_sub(1),
        None if args.once => store.changes_info()?.first - 1,
        None => store.last_change()?,
    };
    let mut changes = store.changes(after)?;
    // Beside a writer the feed is a reader of its own. This one would stay where it is, and the
    // program that writes would keep for it what it overwrites.
    drop(store);
    let mut rest = args.limit.unwrap_or(u64::MAX);
    while rest > 0
        && let Some(commit) = next(&mut changes, args.once, output)?
    {
        rest -= u64::from(print(&commit, args, output)?);
    }
    Ok(())
}

/// The next commit; `None` if there is none and none is to be waited for.
fn next(changes: &mut Changes, is_once: bool, output: &Output) -> Result<Option<Commit>> {
    if let Some(commit) = changes.try_next()? {
        return Ok(Some(commit));
    }
    // What is there is seen before the next commit comes.
    output.finish()?;
    if is_once {
        return Ok(None);
    }
    loop {
        if let Some(commit) = changes.next_within(WAIT)? {
            return Ok(Some(commit));
        }
    }
}

/// Prints what is asked for of a commit; whether there is anything.
fn print(commit: &Commit, args: &WatchArgs, output: &Output) -> Result<bool> {
    let is_asked =
        |change: &&Change| args.keyspace.as_ref().is_none_or(|name| concerns(change, name));
    let asked: Vec<&Change> = commit.changes.iter().filter(is_asked).collect();
    if asked.is_empty() {
        return Ok(false);
    }
    if output.is_json() {
        let changes = asked.into_iter().map(object).collect::<Result<Vec<Value>>>()?;
        let line = json!({"commit": commit.number, "changes": changes}).to_string();
        output.line(&line)?;
        return Ok(true);
    }
    for change in asked {
        output.line(&format!("{}\t{}", commit.number, text(change)?))?;
    }
    Ok(true)
}
