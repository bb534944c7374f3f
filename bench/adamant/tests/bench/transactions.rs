//! A small run of `transactions` reports every row that is asked for.

use std::fs;

use crate::{program, run};

#[test]
fn a_small_run_reports_all_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("rows.jsonl");
    let mut command = program();
    command
        .args(["transactions", "--quick", "--entries", "2000", "--batch-bytes", "50000"])
        .args(["--load-seconds", "1", "--full-log-bytes", "4194304", "--path"])
        .arg(directory.path());
    let (rows, table) = run(&mut command, &json);
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
    assert!(table.contains("of 8 figures asked for hold"), "{table}");
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 1, "only the rows are left");
}
