//! A small run of `heap` goes through all groups on every journal, and leaves nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use adamant_bench::heap::{Journal, group_names};
use serde_json::Value;

/// Where Linux keeps files in memory: what the undo journal can work on everywhere.
const MEMORY: &str = "/dev/shm";

fn journals() -> impl Iterator<Item = Journal> {
    let all = Journal::ALL.iter().copied();
    all.filter(|journal| *journal != Journal::Undo || Path::new(MEMORY).is_dir())
}

#[test]
fn a_small_run_reports_every_group_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("rows.jsonl");
    let sizes = ["--operations", "300", "--inserts", "500", "--frees", "100", "--large", "2000"];
    let mut rows: Vec<Value> = Vec::new();
    for journal in journals() {
        let work = match journal {
            Journal::Undo => tempfile::tempdir_in(MEMORY).unwrap(),
            Journal::Redo => tempfile::tempdir().unwrap(),
        };
        let output = Command::new(env!("CARGO_BIN_EXE_adamant-bench"))
            .args(["heap", "--quick", "--rounds", "1", "--sizes", "50"])
            .args(["--journal", journal.name()])
            .args(sizes)
            .arg("--path")
            .arg(work.path())
            .arg("--json")
            .arg(&json)
            .output()
            .unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {talk}", journal.name());
        assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0, "temporary data is removed");
        let text = fs::read_to_string(&json).unwrap();
        rows.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    let median = |row: &str, engine: &str| {
        let found = rows.iter().find(|line| line["row"] == row && line["engine"] == engine);
        found.and_then(|line| line["median"].as_f64()).unwrap_or_else(|| panic!("no row {row}"))
    };
    for journal in journals() {
        let name = journal.name();
        for row in ["pair.64.2t", "write.4096", "tx.free.100.written", "inserts.speedup"] {
            assert!(median(row, name) > 0.0, "{row}");
        }
        for row in ["open.objects", "tx.large.alloc", "tx.large.set.memory"] {
            assert!(median(row, name) >= 0.0, "{row}");
        }
        assert!(median("heap.bytes.64", name) >= 64.0);
        assert!((0.0..100.0).contains(&median("fragmentation.maximum", name)));
        let curve = rows.iter().find(|line| line["curve"] == "fragmentation");
        assert!(curve.is_some_and(|curve| !curve["points"].as_array().unwrap().is_empty()));
    }
    if journals().any(|journal| journal == Journal::Undo) {
        assert_eq!(median("fences.empty", "undo"), 0.0);
        assert!((1.0..5.0).contains(&median("fences.write.8", "undo")));
        // What nobody wrote to is not taken to the medium, only that it is allocated.
        assert!(median("lines.publish.100.filled", "undo") >= 1.0);
        assert!((0.01..1.0).contains(&median("lines.publish.100", "undo")));
    }
    assert_eq!(median("log.empty", "redo"), 0.0);
    assert!((8.0..80.0).contains(&median("log.write.8", "redo")));
}

#[test]
fn a_group_that_is_not_there_is_an_error_that_names_those_that_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_adamant-bench"))
        .args(["heap", "--group", "fences"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(group_names().all(|name| talk.contains(name)), "{talk}");
}
