//! Adamant's tasks: `cargo xtask layers`, `cargo xtask tidy`, `cargo xtask test`,
//! `cargo xtask soundness`, `cargo xtask stress`, `cargo xtask peers`.
//!
//! Purpose: what the compiler and clippy cannot check, and one command that runs every test.
//! The checks read the sources with `syn`; they build nothing.

#![forbid(unsafe_code)]

mod workspace;
mod sources;
mod imports;
mod modules;
mod layers;
mod words;
mod proofs;
mod tidy;
mod parts;
mod test;
mod soundness;
mod stress;
mod pmdk;
mod peers;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask layers                 one-way order of crates, no cycle between modules
       cargo xtask tidy                   what must not be in the sources, and the longest of them
       cargo xtask test [--kill-rounds N] every test, in parts, with seconds and a summary
       cargo xtask soundness              Miri, loom, sanitizer and fuzzer on the slice, what there is
       cargo xtask stress lsm [options]   kills at random moments, verified: --seconds N, --seed N
       cargo xtask peers [options]            Adamant beside other stores: --quick, --full, --help;
                                              --features sled,rocksdb builds more of them
       cargo xtask peers heap [options]       the heap beside libpmemobj, where it is installed
       cargo xtask peers slice [options]      the slice beside byteview, bytes and other strings";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["layers"] => layers::run(),
        ["tidy"] => tidy::run(),
        ["test"] => test::run(None),
        ["test", "--kill-rounds", rounds] => match rounds.parse() {
            Ok(rounds) => test::run(Some(rounds)),
            Err(_) => Err(format!("--kill-rounds takes a number, found {rounds:?}")),
        },
        ["soundness"] => soundness::run(),
        ["stress", "lsm", ref options @ ..] => stress::run(options),
        ["peers", ..] => peers::run(&arguments[1..]),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}
