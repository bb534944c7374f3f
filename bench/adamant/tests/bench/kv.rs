//! A small run of `kv` goes through all workloads and reports every row that is asked for.

use std::fs;

use crate::{program, run};

#[test]
fn a_small_run_reports_all_that_is_asked_for_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path().join("work");
    fs::create_dir(&work).unwrap();
    let json = directory.path().join("rows.jsonl");
    let sizes = ["--entries", "3000", "--large-entries", "1000", "--rounds", "2"];
    let mut command = program();
    command.args(["kv", "--quick"]).args(sizes).arg("--path").arg(&work);
    let (rows, table) = run(&mut command, &json);
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "temporary data is removed");

    for row in &rows {
        for field in ["bench", "row", "engine", "unit", "n", "median", "min", "max", "rounds"] {
            assert!(!row[field].is_null(), "{field} of {row}");
        }
        for field in ["asked", "better", "holds"] {
            assert!(row.get(field).is_some(), "{field} of {row}");
        }
    }
    let judged = rows.iter().filter(|row| row["holds"].is_boolean()).count();
    assert_eq!(judged, 9, "as many as asked.toml has figures");
    let has = |name: &str, engine: &str| {
        rows.iter().any(|row| row["row"] == name && row["engine"] == engine)
    };
    for name in ["get.zipfian.2t", "scan.full.reverse", "open.after_kill", "memory.peak"] {
        assert!(has(name, "adamant"), "{name}");
    }
    assert!(has("get.zipfian.2t", "btreemap") && has("raw.append.fdatasync.8t", "raw"));
    assert!(table.contains("of 9 figures asked for hold"), "{table}");
}

#[test]
fn mistakes_end_with_the_usage_and_code_2() {
    let output = program().arg("kw").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: adamant-bench"));
}
