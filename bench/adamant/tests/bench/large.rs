//! A small run of `large`: data beyond a limit of memory are loaded, read and changed by a process
//! that is not ended for it, and a get reads no more than it needs.

use crate::printed;

/// Entries, more than the memory holds; bytes of that memory.
const ENTRIES: &str = "100000";
const MEMORY_BYTES: &str = "67108864";
/// Bytes that a get may read from the disk: some pages. The system's own read-ahead made it 4 MB.
const READ_BYTES_MAX: f64 = 65_536.0;

#[test]
fn data_beyond_the_memory_degrade_and_do_not_end_the_process() {
    let out = printed(&[
        "large",
        "--quick",
        "--row-seconds",
        "1",
        "--entries",
        ENTRIES,
        "--memory-bytes",
        MEMORY_BYTES,
    ]);
    let figures = |row: &str| -> Vec<f64> {
        let start = format!("| `{row}` |");
        let line = out.lines().find(|line| line.starts_with(&start)).expect(row);
        line.split('|').filter_map(|cell| cell.trim().parse().ok()).collect()
    };
    for row in ["load.settled", "get.zipfian", "scan.100", "mixed.50_50.4t", "space.mixed"] {
        assert_eq!(figures(row).len(), 2, "{row} in {out}");
    }
    if out.contains("a limited memory") {
        assert!(figures("get.uniform.read").iter().all(|read| *read < READ_BYTES_MAX), "{out}");
    }
}
