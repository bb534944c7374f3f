//! The `adamant` command: a store's operations for operators.
//!
//! Data goes to standard output, messages to standard error. Exit codes are in `failure.rs`, for
//! users in `docs/command.md` and in `adamant --help`.

#![forbid(unsafe_code)]

mod failure;
mod figures;
mod follow_args;
mod key_args;
mod target;
mod merge_args;
mod args;
mod integer;
mod output;
mod progress;
mod keys;
mod opening;
mod cmd;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Verb};
use crate::failure::Result;
use crate::key_args::KeyArgs;
use crate::opening::Stores;
use crate::output::Output;

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.json);
    run(args.verb, &args.key, &output).unwrap_or_else(|failure| output.fail(&failure))
}

fn run(verb: Verb, key: &KeyArgs, output: &Output) -> Result<ExitCode> {
    // What opens no store asks for no key, which may not be there yet.
    let found = if verb.opens_store() { key.key()? } else { None };
    let stores = Stores::new(found, key.takes_input());
    match verb {
        Verb::Demo => cmd::demo::run(&stores, output),
        Verb::DemoChild(args) => cmd::demo_child::run(&args, &stores, output),
        Verb::Import(args) => cmd::transfer::import::run(&args, &stores, output),
        Verb::Export(args) => cmd::transfer::export::run(&args, &stores, output),
        Verb::Get(args) => cmd::entries::get::run(&args, &stores, output),
        Verb::Put(args) => cmd::entries::put::put(&args, &stores, output),
        Verb::Merge(args) => cmd::entries::merge::run(&args, &stores, output),
        Verb::Delete(args) => cmd::entries::delete::delete(&args, &stores, output),
        Verb::Insert(args) => cmd::entries::put::insert(&args, &stores, output),
        Verb::Remove(args) => cmd::entries::delete::remove(&args, &stores, output),
        Verb::Rename(args) => cmd::entries::rename::run(&args, &stores, output),
        Verb::Scan(args) => cmd::entries::scan::run(&args, &stores, output),
        Verb::Watch(args) => cmd::follow::watch::run(&args, &stores, output),
        Verb::Changes(args) => cmd::follow::changes::run(&args, &stores, output),
        Verb::Keyspace(args) => cmd::entries::keyspace::run(&args, &stores, output),
        Verb::Savepoint(args) => cmd::savepoint::run(&args, &stores, output),
        Verb::Stat(args) => cmd::inspect::stat::run(&args, &stores, output),
        Verb::Check(args) => cmd::inspect::check::run(&args, &stores, output),
        Verb::Backup(args) => cmd::transfer::backup::run(&args, &stores, output),
        Verb::Restore(args) => cmd::transfer::restore::run(&args, &stores, output),
        Verb::Copy(args) => return cmd::transfer::copy::run(&args, &stores, output.is_json()),
        Verb::Compact(args) => cmd::compact::run(&args, &stores, output),
        Verb::Repair(args) => cmd::repair::run(&args, &stores, output),
        Verb::Encrypt(args) => cmd::encryption::encrypt(&args, &stores, output),
        Verb::Decrypt(args) => cmd::encryption::decrypt(&args, &stores, output),
        Verb::Rekey(args) => cmd::encryption::rekey(&args, &stores, output),
        Verb::Key(args) => cmd::encryption::key(&args, output),
        Verb::Heap(args) => cmd::inspect::heap::run(&args, &stores, output),
        Verb::Lsm(args) => cmd::inspect::lsm::run(&args, &stores, output),
        Verb::Completions(args) => cmd::completions::run(&args, output),
    }?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
