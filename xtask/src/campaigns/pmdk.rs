//! The C program in `bench/peers/pmdk` that measures libpmemobj.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Its sources.
const SOURCES: &str = "bench/peers/pmdk";
/// Its build folder.
pub(crate) const BUILT: &str = "bench/peers/target/pmdk";

/// Builds it twice, plain and with fence counters; `false` if libpmemobj or a C compiler is not
/// installed.
pub(crate) fn build(root: &Path) -> Result<bool, String> {
    let folder = root.join(SOURCES);
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
    let built = root.join(BUILT);
    fs::create_dir_all(&built).map_err(|error| format!("{BUILT}: {error}"))?;
    let mut sources: Vec<_> = fs::read_dir(&folder)
        .map_err(|error| format!("{SOURCES}: {error}"))?
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
            return Err(format!("cc could not build {SOURCES}"));
        }
    }
    Ok(true)
}
