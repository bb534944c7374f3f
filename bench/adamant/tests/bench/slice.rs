//! A small run of `slice` reports every row that is asked for.

use crate::{program, run};

#[test]
fn a_small_run_reports_all_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("rows.jsonl");
    let sizes = ["--operations", "50", "--strings", "500", "--records", "40", "--rounds", "2"];
    let (rows, table) = run(program().arg("slice").args(sizes), &json);
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
    assert!(table.contains("of 18 figures asked for hold"), "{table}");
}
