//! The memory that this process may have: the machine's, or that of its control groups on Linux.
//!
//! Purpose: bounds of memory that nobody set follow from it. A control group counts private memory,
//! and ends a process that has too much.
//! Thread safety: functions of the system's files, which any thread may call.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[cfg(all(unix, not(target_os = "linux"), not(miri)))]
use crate::address::region::page_bytes;

/// Where the hierarchies are mounted: version 2, and version 1's of the controller `memory`.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"];
/// The file of a group that holds its limit, in version 2 and 1.
pub const LIMIT_NAMES: [&str; 2] = ["memory.max", "memory.limit_in_bytes"];

/// Bytes of memory that this process may have: the least of the machine's and the limits of its
/// control groups, when it was first asked for: that takes some ten reads of small files, and every
/// opening of a store asks. `None` where the system does not say.
pub fn process_memory_bytes() -> Option<u64> {
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let limits = memory_groups();
        limits.iter().filter_map(|group| limit_of(group)).chain(machine_memory_bytes()).min()
    })
}

/// Directories of the control groups that count this process's memory, of version 1 or 2: its own,
/// then those above it. In a container that does not see its own, the root, which is then its own.
pub fn memory_groups() -> Vec<PathBuf> {
    groups_in(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
}

/// The groups that lines `number:controllers:path` name; version 2 names no controllers.
fn groups_in(lines: &str) -> Vec<PathBuf> {
    let mut groups: Vec<PathBuf> = Vec::new();
    for line in lines.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let root = match controllers {
            "" => ROOTS[0],
            _ if controllers.split(',').any(|name| name == "memory") => ROOTS[1],
            _ => continue,
        };
        let own = Path::new(root).join(path.trim_start_matches('/'));
        groups
            .extend(own.ancestors().take_while(|group| group.starts_with(root)).map(PathBuf::from));
    }
    groups
}

/// The limit of one group; `None` if it has none, or is of another kind.
fn limit_of(group: &Path) -> Option<u64> {
    let mut texts = LIMIT_NAMES.iter().map(|name| fs::read_to_string(group.join(name)));
    // Without a limit version 2 says `max`, version 1 a number larger than any memory.
    texts.find_map(|text| text.ok()?.trim().parse().ok())
}

#[cfg(all(target_os = "linux", not(miri)))]
fn machine_memory_bytes() -> Option<u64> {
    let memory = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "a number's type depends on the processor")]
    let bytes = u64::from(memory.totalram).saturating_mul(u64::from(memory.mem_unit));
    (bytes > 0).then_some(bytes)
}

/// Not asked under the interpreter of unsafe code, which knows no such call.
#[cfg(miri)]
fn machine_memory_bytes() -> Option<u64> {
    None
}

#[cfg(all(unix, not(target_os = "linux"), not(miri)))]
fn machine_memory_bytes() -> Option<u64> {
    // SAFETY: a question that changes nothing.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    let bytes = u64::try_from(pages).ok()?.saturating_mul(page_bytes());
    (bytes > 0).then_some(bytes)
}

#[cfg(windows)]
fn machine_memory_bytes() -> Option<u64> {
    use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
    let mut found =
        MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: a place of ours, which says its length and which the call fills.
    let is_filled = unsafe { GlobalMemoryStatusEx(&raw mut found) } != 0;
    is_filled.then_some(found.ullTotalPhys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_memory_up_to_the_root() {
        let lines = "9:name=systemd:/\n4:cpu,memory:/jobs/7\n3:cpuset:/\nno line\n";
        let names = ["/sys/fs/cgroup/memory/jobs/7", "/sys/fs/cgroup/memory/jobs"];
        let mut expected = names.map(PathBuf::from).to_vec();
        expected.push(ROOTS[1].into());
        assert_eq!(groups_in(lines), expected);
        assert_eq!(groups_in("0::/\n"), [PathBuf::from(ROOTS[0])]);
        assert_eq!(groups_in(""), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_limit_is_a_number_of_either_version() {
        let group = tempfile::tempdir().unwrap();
        assert_eq!(limit_of(group.path()), None);
        fs::write(group.path().join(LIMIT_NAMES[1]), "1048576\n").unwrap();
        assert_eq!(limit_of(group.path()), Some(1 << 20));
        fs::write(group.path().join(LIMIT_NAMES[0]), "max\n").unwrap();
        fs::remove_file(group.path().join(LIMIT_NAMES[1])).unwrap();
        assert_eq!(limit_of(group.path()), None);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn a_process_has_no_more_than_the_machine() {
        let bytes = process_memory_bytes().unwrap();
        assert!((1 << 20..=machine_memory_bytes().unwrap()).contains(&bytes), "{bytes}");
    }
}
