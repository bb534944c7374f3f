//! A small run of `transactions` reports every row that is asked for.

use std::fs;
use std::process::Command;

use serde_json::Value;

#[test]
fn a_small_run_reports_all_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("rows.jsonl");
    let output = Command::new(env!("CARGO_BIN_EXE_adamant-bench"))
        .args(["transactions", "--quick", "--entries", "2000", "--batch-bytes", "50000"])
        .args(["--load-seconds", "1", "--full-log-bytes", "4194304", "--path"])
        .arg(directory.path())
        .arg("--json")
        .arg(&json)
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    let text = fs::read_to_string(&json).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (row, engine) in [
        ("snapshot.close", "adamant"),
        ("get.beside_overwrites.count", "adamant"),
        ("exchange.few.2t", "adamant"),
        ("put.buffered.longest", "adamant"),
        ("put.full_log.second.longest", "adamant"),
        ("raw.write.p99.9", "raw"),
        ("put.sync.8t", "adamant"),
    ] {
        let found = rows.iter().find(|line| line["row"] == row && line["engine"] == engine);
        let row = found.unwrap_or_else(|| panic!("no row {row}"));
        assert!(row["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("of 8 figures asked for hold"), "{table}");
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 1, "only the rows are left");
}
