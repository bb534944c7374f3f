//! A small run of `slice` measures all types, counts their memory, and writes the whole report.

use std::fs;
use std::path::Path;
use std::process::Command;

fn run(arguments: &[&str], work: &Path) {
    let program = env!("CARGO_BIN_EXE_adamant-peers");
    let output = Command::new(program).args(arguments).current_dir(work).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_slice_is_reported_beside_all_others() {
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path();
    run(&["slice", "--smoke", "--output", "docs"], work);
    let report = fs::read_to_string(work.join("docs/slice.md")).unwrap();
    for heading in ["## What is asked", "## Reading blocks", "## Memory", "## Machine"] {
        assert!(report.contains(heading), "{heading}");
    }
    for figures in ["| 20 | 24.0 | 24.0 |", "| 65536 | 65568 |"] {
        assert!(report.contains(figures), "{figures}: {report}");
    }
    assert!(report.contains(" of 23 lines are reached"));
    for name in ["ratios", "memory"] {
        let plot = fs::read_to_string(work.join(format!("docs/slice/{name}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && report.contains(&format!("slice/{name}.svg")));
    }
    run(&["slice", "--from", "docs/slice/rows.jsonl", "--output", "again"], work);
    let repeated = fs::read_to_string(work.join("again/slice.md")).unwrap();
    assert_eq!(repeated, report, "the report follows from the rows");
}
