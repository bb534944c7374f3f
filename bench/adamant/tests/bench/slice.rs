//! A small run of `slice` reports every row that is asked for.

use std::fs;
use std::process::Command;

use serde_json::Value;

#[test]
fn a_small_run_reports_all_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("rows.jsonl");
    let sizes = ["--operations", "50", "--strings", "500", "--records", "40", "--rounds", "2"];
    let output = Command::new(env!("CARGO_BIN_EXE_adamant-bench"))
        .arg("slice")
        .args(sizes)
        .arg("--json")
        .arg(&json)
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    let text = fs::read_to_string(&json).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (row, engine) in [
        ("block.inline", "adamant"),
        ("block.longer.buffered", "adamant"),
        ("search.heap", "adamant"),
        ("clone.2t", "Vec<u8>"),
    ] {
        let found = rows.iter().find(|line| line["row"] == row && line["engine"] == engine);
        let row = found.unwrap_or_else(|| panic!("no row {row}"));
        assert!(row["median"].as_f64().unwrap() > 0.0 && row["rounds"] == 2, "{row}");
    }
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("of 18 figures asked for hold"), "{table}");
}
