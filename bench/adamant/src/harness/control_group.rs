//! Control groups: a child process that may use only so much memory.
//!
//! Purpose: data larger than memory, on a machine that has more. Linux counts a process's own
//! memory and the cached file pages that it touched first, gives the pages back to stay below the
//! limit, and ends the process where that is not enough.
//! A group is made below the one of this process, else below one above that; of version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use adamant_medium::system::memory_limit::{LIMIT_NAMES, memory_groups};

use crate::harness::error::Result;

/// The limit of the swap device in version 2: without it a process would get more than it may have.
const SWAP_LIMIT: &str = "memory.swap.max";
/// The file that names the processes of a group.
const PROCESSES: &str = "cgroup.procs";

/// A control group without processes; removed with the value.
#[derive(Debug)]
pub struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// A group for processes that may have `bytes` of memory; `None` where the system lets this
    /// process make none.
    pub fn with_memory(bytes: u64) -> Option<Self> {
        memory_groups().into_iter().find_map(|parent| {
            let path = parent.join(format!("adamant-bench-{}", process::id()));
            fs::create_dir(&path).ok()?;
            let group = Self { path };
            // A file that is not there cannot be made: the hierarchy has another purpose.
            let is_limited = LIMIT_NAMES
                .iter()
                .map(|name| group.path.join(name))
                .filter(|limit| limit.exists())
                .any(|limit| fs::write(limit, bytes.to_string()).is_ok());
            // Without a swap device the file may be missing.
            let _ = fs::write(group.path.join(SWAP_LIMIT), "0");
            is_limited.then_some(group)
        })
    }

    /// Where a process enters it.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // One that stays costs nothing, and there is nobody to tell.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Moves this process into the group at `path`. Memory that it has already stays where it was
/// counted, so this comes first.
///
/// # Errors
/// When the system refuses.
pub fn enter(path: &Path) -> Result<()> {
    let processes = path.join(PROCESSES);
    fs::write(&processes, process::id().to_string()).map_err(|error| {
        format!("could not enter the control group {}: {error}", path.display())
    })?;
    Ok(())
}
