//! The `adamant` command: a store's operations for operators.
//!
//! Data goes to standard output, messages to standard error. Exit codes are in `failure.rs`, for
//! users in `docs/command.md` and in `adamant --help`.

#![forbid(unsafe_code)]

mod failure;
mod figures;
mod follow_args;
mod args;
mod output;
mod progress;
mod opening;
mod cmd;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Verb};
use crate::output::Output;

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.json);
    let outcome = match args.verb {
        Verb::Demo => cmd::demo::run(&output),
        Verb::DemoChild(args) => cmd::demo_child::run(&args, &output),
        Verb::Import(args) => cmd::transfer::import::run(&args, &output),
        Verb::Export(args) => cmd::transfer::export::run(&args, &output),
        Verb::Get(args) => cmd::entries::get::run(&args, &output),
        Verb::Put(args) => cmd::entries::put::put(&args, &output),
        Verb::Delete(args) => cmd::entries::delete::delete(&args, &output),
        Verb::Insert(args) => cmd::entries::put::insert(&args, &output),
        Verb::Remove(args) => cmd::entries::delete::remove(&args, &output),
        Verb::Rename(args) => cmd::entries::rename::run(&args, &output),
        Verb::Scan(args) => cmd::entries::scan::run(&args, &output),
        Verb::Watch(args) => cmd::follow::watch::run(&args, &output),
        Verb::Changes(args) => cmd::follow::changes::run(&args, &output),
        Verb::Keyspace(args) => cmd::entries::keyspace::run(&args, &output),
        Verb::Stat(args) => cmd::inspect::stat::run(&args, &output),
        Verb::Check(args) => cmd::inspect::check::run(&args, &output),
        Verb::Backup(args) => cmd::transfer::backup::run(&args, &output),
        Verb::Restore(args) => cmd::transfer::restore::run(&args, &output),
        Verb::Copy(args) => match cmd::transfer::copy::run(&args, output.is_json()) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Verb::Compact(args) => cmd::compact::run(&args, &output),
        Verb::Repair(args) => cmd::repair::run(&args, &output),
        Verb::Heap(args) => cmd::inspect::heap::run(&args, &output),
        Verb::Lsm(args) => cmd::inspect::lsm::run(&args, &output),
        Verb::Completions(args) => cmd::completions::run(&args, &output),
    };
    match outcome.and_then(|()| output.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.fail(&failure),
    }
}
