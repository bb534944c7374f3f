//! The limit of open files, of which each client takes one.
//!
//! Purpose: clients must never take the files that the store needs: a log file that cannot be
//! created ends all writes. So the limit is raised for as many as are wanted, as far as the system
//! allows.

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beyond those of clients: some 256 tables and blobs of the store, log files and the pool,
/// status connections, and those of the runtime.
#[cfg(unix)]
const OWN_FILES: u64 = 512;

/// The possible number of clients, if `wanted` are wanted: at least one.
#[cfg(unix)]
pub(crate) fn clients_max(wanted: usize) -> usize {
    let needed = OWN_FILES.saturating_add(wanted as u64);
    let limit = getrlimit(Resource::Nofile);
    let current = match limit.current {
        Some(current) if current < needed => {
            let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
            let changed = Rlimit { current: Some(raised), maximum: limit.maximum };
            match setrlimit(Resource::Nofile, changed) {
                Ok(()) => raised,
                Err(_) => current,
            }
        }
        _ => return wanted,
    };
    usize::try_from(current.saturating_sub(OWN_FILES)).unwrap_or(wanted).clamp(1, wanted)
}

/// Windows limits no number of open files and sockets.
#[cfg(windows)]
pub(crate) fn clients_max(wanted: usize) -> usize {
    wanted
}
