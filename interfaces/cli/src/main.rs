//! The `adamant` command: a store's operations for operators.
//!
//! Data goes to standard output, messages to standard error. Exit codes are in `failure.rs`, for
//! users in `docs/command.md` and in `adamant --help`.

#![forbid(unsafe_code)]

mod failure;
mod figures;
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
        Verb::Import(args) => cmd::import::run(&args, &output),
        Verb::Export(args) => cmd::export::run(&args, &output),
        Verb::Get(args) => cmd::get::run(&args, &output),
        Verb::Put(args) => cmd::put::put(&args, &output),
        Verb::Delete(args) => cmd::delete::delete(&args, &output),
        Verb::Insert(args) => cmd::put::insert(&args, &output),
        Verb::Remove(args) => cmd::delete::remove(&args, &output),
        Verb::Rename(args) => cmd::rename::run(&args, &output),
        Verb::Scan(args) => cmd::scan::run(&args, &output),
        Verb::Keyspace(args) => cmd::keyspace::run(&args, &output),
        Verb::Stat(args) => cmd::stat::run(&args, &output),
        Verb::Check(args) => cmd::check::run(&args, &output),
        Verb::Backup(args) => cmd::backup::run(&args, &output),
        Verb::Restore(args) => cmd::restore::run(&args, &output),
        Verb::Copy(args) => match cmd::copy::run(&args, output.is_json()) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Verb::Compact(args) => cmd::compact::run(&args, &output),
        Verb::Repair(args) => cmd::repair::run(&args, &output),
        Verb::Heap(args) => cmd::heap::run(&args, &output),
        Verb::Lsm(args) => cmd::lsm::run(&args, &output),
        Verb::Completions(args) => cmd::completions::run(&args, &output),
    };
    match outcome.and_then(|()| output.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.fail(&failure),
    }
}
