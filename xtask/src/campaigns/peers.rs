//! `cargo xtask peers`: benchmarks of Adamant and its peers.
//!
//! The peers are a workspace of their own, in `bench/peers`, with a build folder of its own, so
//! that nothing else of Adamant waits for them or builds them.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::campaigns::pmdk;
use crate::source::workspace::Workspace;

/// Features that RocksDB's own build detects on Linux, and the build of its package leaves out:
/// checksums by instructions of the processor, preallocated logs, early writes of long files.
const ROCKSDB_FLAGS: &str = "-DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT \
                             -DROCKSDB_PTHREAD_ADAPTIVE_MUTEX -DROCKSDB_MALLOC_USABLE_SIZE";
/// The same, for x86-64 processors.
const ROCKSDB_FLAGS_X86: &str = "-msse4.2 -mpclmul";
/// That Linux has `fdatasync`, which SQLite's own build detects; and, as its documentation
/// recommends, no statistics of its allocator, which would take a lock for them.
const SQLITE_FLAGS: &str = "-DHAVE_FDATASYNC=1 -DSQLITE_DEFAULT_MEMSTATUS=0";

/// Runs it at the root. `--features A,B` goes to cargo, all other options to the program.
pub(crate) fn run(options: &[String]) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let mut features = Vec::new();
    let mut passed = Vec::new();
    let pmdk;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if option == "--features" {
            let names = options.next().ok_or("--features needs names of features after it")?;
            features.extend(["--features", names]);
        } else {
            passed.push(option);
        }
    }
    if passed.first().is_some_and(|first| *first == "heap") && pmdk::build(&workspace.root)? {
        pmdk = ["--pmdk", pmdk::BUILT].map(str::to_owned);
        passed.extend(&pmdk);
    }
    let mut command = Command::new(env!("CARGO"));
    if env::var_os("CXXFLAGS").is_none() && env::consts::OS == "linux" {
        let is_x86 = env::consts::ARCH == "x86_64";
        let flags = if is_x86 { ROCKSDB_FLAGS_X86 } else { "" };
        command.env("CXXFLAGS", format!("{flags} {ROCKSDB_FLAGS}"));
    }
    if env::var_os("LIBSQLITE3_FLAGS").is_none() && env::consts::OS == "linux" {
        command.env("LIBSQLITE3_FLAGS", SQLITE_FLAGS);
    }
    if passed.first().is_some_and(|first| *first == "slice") && !build_memory(&workspace.root)? {
        return Ok(false);
    }
    let status = command
        .args(["run", "--release", "--manifest-path", "bench/peers/Cargo.toml"])
        .args(["--target-dir", "bench/peers/target"])
        .args(features)
        .arg("--")
        .args(passed)
        .current_dir(&workspace.root)
        .status()
        .map_err(|error| format!("could not run cargo: {error}"))?;
    Ok(status.success())
}

/// Builds the program that counts the memory of strings: it has an allocator of its own.
fn build_memory(root: &Path) -> Result<bool, String> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--manifest-path", "bench/peers/Cargo.toml"])
        .args(["--target-dir", "bench/peers/target", "--bin", "adamant-peers-memory"])
        .current_dir(root)
        .status()
        .map_err(|error| format!("could not run cargo: {error}"))?;
    Ok(status.success())
}
