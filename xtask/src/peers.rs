//! `cargo xtask peers`: Adamant beside its peers.
//!
//! The peers are a workspace of their own, in `bench/peers`, with a folder of its own to build in,
//! so that nothing else of Adamant waits for them or builds them.

use std::env;
use std::process::Command;

use crate::workspace::Workspace;

/// What RocksDB's own build finds on Linux, and the build of its package leaves out: checksums by
/// instructions of the processor, preallocated logs, early writes of long files.
const ROCKSDB_FLAGS: &str = "-DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT \
                             -DROCKSDB_PTHREAD_ADAPTIVE_MUTEX -DROCKSDB_MALLOC_USABLE_SIZE";
/// The same, where the processor is one of x86-64.
const ROCKSDB_FLAGS_X86: &str = "-msse4.2 -mpclmul";

/// Folder of the C program, and where it is built.
const PMDK_SOURCES: &str = "bench/peers/pmdk";
const PMDK_BUILT: &str = "bench/peers/target/pmdk";

/// Runs it at the root. `--features A,B` goes to cargo, all other options to the program.
pub(crate) fn run(options: &[String]) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let mut features = Vec::new();
    let mut passed = Vec::new();
    let built;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if option == "--features" {
            let names = options.next().ok_or("--features needs names of features after it")?;
            features.extend(["--features", names]);
        } else {
            passed.push(option);
        }
    }
    let mut command = Command::new(env!("CARGO"));
    if env::var_os("CXXFLAGS").is_none() && env::consts::OS == "linux" {
        let is_x86 = env::consts::ARCH == "x86_64";
        let flags = if is_x86 { ROCKSDB_FLAGS_X86 } else { "" };
        command.env("CXXFLAGS", format!("{flags} {ROCKSDB_FLAGS}"));
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

/// Builds the program that measures libpmemobj, as it is and counting fences; `false` where
/// libpmemobj, or a C compiler, is not installed.
fn build_pmdk(root: &Path) -> Result<bool, String> {
    let folder = root.join(PMDK_SOURCES);
    let preprocessed = Command::new("cc")
        .args(["-E", "harness.h"])
        .current_dir(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !preprocessed.is_ok_and(|status| status.success()) {
        eprintln!(
            "libpmemobj is not installed: only Adamant is measured. It needs a C compiler and the \
             package libpmemobj-dev of Debian."
        );
        return Ok(false);
    }
    let built = root.join(PMDK_BUILT);
    fs::create_dir_all(&built).map_err(|error| format!("{PMDK_BUILT}: {error}"))?;
    let mut sources: Vec<_> = fs::read_dir(&folder)
        .map_err(|error| format!("{PMDK_SOURCES}: {error}"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    for (program, define) in [("pmdk", "-DNDEBUG"), ("pmdk-counting", "-DCOUNT_FENCES")] {
        let status = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", define, "-o"])
            .arg(built.join(program))
            .args(&sources)
            .args(["-lpmemobj", "-lpmem", "-lpthread", "-ldl"])
            .status()
            .map_err(|error| format!("could not run cc: {error}"))?;
        if !status.success() {
            return Err(format!("cc could not build {PMDK_SOURCES}"));
        }
    }
    Ok(true)
}
