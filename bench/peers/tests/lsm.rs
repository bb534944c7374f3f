//! A short run has all rows of Adamant and its peers, and what was asked of them.

use std::process::Command;

/// Row, unit, Adamant, its peers, how many times better, and whether that is as asked.
const CELLS: usize = if cfg!(feature = "rocksdb") { 7 } else { 6 };

#[test]
fn rows_of_engines_are_beside_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_adamant-peers"))
        .args(["lsm", "--quick", "--entries", "20000"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).unwrap();
    for row in ["load.100", "get.zipfian.warm.1024", "open.kill.100", "space.compacted.vs_lz4.100"]
    {
        let line = page.lines().find(|line| line.starts_with(&format!("| `{row}` |"))).unwrap();
        assert_eq!(line.split('|').filter(|cell| !cell.trim().is_empty()).count(), CELLS, "{line}");
    }
}
