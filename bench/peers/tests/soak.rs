//! A short soak reports all engines.

use std::fs;
use std::process::Command;

#[test]
fn waits_of_all_engines_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_adamant-peers"))
        .args(["soak", "--seconds", "2", "--pieces", "2", "--entries", "3000"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(directory.path().join("docs/soak.md")).unwrap();
    for engine in ["adamant", "fjall", "redb"] {
        let starts = page.lines().filter(|line| line.starts_with(&format!("| {engine} |")));
        assert_eq!(starts.count(), 3, "{page}");
    }
    assert!(page.contains("| raw disk: fdatasync |"), "{page}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "only the page is left");
}
