//! Adamant's tasks: `cargo xtask layers`, `cargo xtask tidy`, `cargo xtask test`, `cargo xtask
//! docs`, `cargo xtask package`, `cargo xtask soundness`, `cargo xtask sanitize`, `cargo xtask
//! stress`, `cargo xtask mutants`, `cargo xtask proof`, `cargo xtask power-cut`, `cargo xtask
//! faults`, `cargo xtask fuzz`, `cargo xtask peers`, `cargo xtask services`, `cargo xtask
//! portable`, `cargo xtask packages`, `cargo xtask header`, `cargo xtask methods`, `cargo xtask
//! install-c`.
//!
//! Purpose: checks that the compiler and clippy cannot make, and one command that runs every test.
//! The checks read the sources with `syn`; they build nothing.

#![forbid(unsafe_code)]

mod source;
mod testing;
mod lint;
mod campaigns;
mod test;
mod quick;
mod header;
mod install_c;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask quick                  while editing: format, tidy, layers; clippy of what changed and what
                                          uses it, unit tests of what changed
       cargo xtask check                  before a commit: the same of everything, all tests of one set of
                                          features, with fewer engines
       cargo xtask layers                 one-way order of crates, no cycle between modules
       cargo xtask tidy                   what must not be in the sources, and the longest of them
       cargo xtask methods                makes docs/guide/methods.md, the table of methods by handle
       cargo xtask test [--kill-rounds N] every test, in parts, with seconds and a summary
       cargo xtask test --python          the parts of it in Python: the package, and redis-py at the server
       cargo xtask services [--rounds N]  the workspace of server, replicas, stores on objects: format,
                                          clippy, tests; --lint: no tests
       cargo xtask docs [--open]          documentation of the crates that users need, without warnings
       cargo xtask package [--quick]      their packages, each built from what was packed; the command
                                          installed. --quick: packed and looked at only
       cargo xtask soundness              Miri on the slice, loom on it and the heap, what there is
       cargo xtask sanitize [options]     the tests under the sanitizers of addresses and threads, and valgrind:
                                          --smoke, --only address|thread|valgrind
       cargo xtask emulate [--smoke]      the tests of the crates below the store, and its own, on aarch64, emulated
       cargo xtask portable [--smoke]     other systems: compiled for Windows, macOS, FreeBSD, Android, musl;
                                          tests on musl, under Wine, and on aarch64, emulated
       cargo xtask packages [--smoke]     what people install: Python's wheels for each system and its source
                                          distribution, static programs for Linux, in target/packages
       cargo xtask fuzz [options]         programs of bytes that do harm, to slices, files, stores: --smoke,
                                          --seconds N (of all), --target T, --seed N
       cargo xtask stress lsm [options]   kills at random moments, verified: --seconds N, --seed N
       cargo xtask stress cluster [options]   nodes of a cluster killed under load: --rounds N, --seed N
       cargo xtask mutants [--smoke]      mistakes of our own, planted one at a time: are they noticed?
                                          --only PREFIX
       cargo xtask proof [options]        campaigns that try to lose data, one table: --smoke,
                                          --minutes N, --seed S
       cargo xtask power-cut [options]    virtual machines lose their power: --smoke, --cuts N,
                                          --seconds N, --seed N, --medium disk|memory, --lying-disk
       cargo xtask faults [options]       system calls that fail, full file systems: --smoke,
                                          --seconds N, --seed N
       cargo xtask peers [options]            Adamant beside other stores: --quick, --full, --help;
                                              --features libmdbx,sqlite,canopydb,rocksdb,sled
                                              builds more of them
       cargo xtask peers heap [options]       the heap beside libpmemobj, where it is installed
       cargo xtask peers large [options]      data of five times the memory of each engine's process
       cargo xtask peers slice [options]      the slice beside byteview, bytes and other strings
       cargo xtask peers server [--rounds N]  adamant-server beside redis-server, by redis-benchmark
       cargo xtask peers cluster [--rounds N] three of its nodes beside three of etcd
       cargo xtask header [--check]           makes the header of the C interface, or compares it
       cargo xtask install-c --prefix P       builds and installs the C interface: header, libraries,
                                              files for pkg-config and CMake; --dev: without optimisation";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["layers"] => lint::layers::run(),
        ["tidy"] => lint::tidy::run(),
        ["methods"] => lint::methods::run(),
        ["quick"] => quick::quick(),
        ["check"] => quick::check(),
        ["test"] => test::run(None),
        ["test", "--kill-rounds", rounds] => match rounds.parse() {
            Ok(rounds) => test::run(Some(rounds)),
            Err(_) => Err(format!("--kill-rounds takes a number, found {rounds:?}")),
        },
        ["test", "--python"] => test::run_python(),
        ["services"] => testing::services::run(None),
        ["services", "--lint"] => testing::services::run_lints(),
        ["services", "--rounds", rounds] => match rounds.parse() {
            Ok(rounds) => testing::services::run(Some(rounds)),
            Err(_) => Err(format!("--rounds takes a number, found {rounds:?}")),
        },
        ["docs"] => testing::docs::run(false),
        ["docs", "--open"] => testing::docs::run(true),
        ["package"] => testing::package::run(false),
        ["package", "--quick"] => testing::package::run(true),
        ["soundness"] => campaigns::soundness::run(),
        ["emulate", ref options @ ..] => campaigns::emulate::run(options),
        ["portable", ref options @ ..] => campaigns::portable::run(options),
        ["packages", ref options @ ..] => campaigns::packages::run(options),
        ["sanitize", ref options @ ..] => campaigns::sanitize::run(options),
        ["stress", "lsm", ref options @ ..] => campaigns::stress::lsm(options),
        ["stress", "cluster", ref options @ ..] => campaigns::stress::cluster(options),
        ["mutants", ref options @ ..] => campaigns::mutants::run(options),
        ["proof", ref options @ ..] => campaigns::proof::run(options),
        ["power-cut", ref options @ ..] => campaigns::field::power_cut(options),
        ["fuzz", ref options @ ..] => campaigns::fuzz::run(options),
        ["faults", ref options @ ..] => campaigns::field::faults(options),
        ["peers", "server", ref options @ ..] => campaigns::servers::server(options),
        ["peers", "cluster", ref options @ ..] => campaigns::servers::cluster(options),
        ["peers", ..] => campaigns::peers::run(&arguments[1..]),
        ["header"] => header::run(false),
        ["header", "--check"] => header::run(true),
        ["install-c", "--prefix", prefix] => install_c::run(prefix, false),
        ["install-c", "--prefix", prefix, "--dev"] => install_c::run(prefix, true),
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
