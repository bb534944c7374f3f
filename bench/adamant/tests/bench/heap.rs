//! A small run of `heap` goes through all groups on every medium, and leaves nothing.

use std::fs;
use std::path::Path;

use adamant_bench::commands::heap::{Medium, group_names};
use serde_json::Value;

use crate::{program, run};

/// Where Linux keeps files in memory: what is memory everywhere.
const MEMORY: &str = "/dev/shm";

fn media() -> impl Iterator<Item = Medium> {
    let all = Medium::ALL.iter().copied();
    all.filter(|medium| *medium != Medium::Memory || Path::new(MEMORY).is_dir())
}

#[test]
fn a_small_run_reports_every_group_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("rows.jsonl");
    let sizes = ["--operations", "300", "--inserts", "500", "--frees", "100", "--large", "2000"];
    let mut rows: Vec<Value> = Vec::new();
    for medium in media() {
        let work = match medium {
            Medium::Memory => tempfile::tempdir_in(MEMORY).unwrap(),
            Medium::Files => tempfile::tempdir().unwrap(),
        };
        let mut command = program();
        command
            .args(["heap", "--quick", "--rounds", "1", "--sizes", "50"])
            .args(["--medium", medium.name()])
            .args(sizes)
            .arg("--path")
            .arg(work.path());
        rows.extend(run(&mut command, &json).0);
        assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0, "temporary data is removed");
    }
    let median = |row: &str, engine: &str| {
        let found = rows.iter().find(|line| line["row"] == row && line["engine"] == engine);
        found.and_then(|line| line["median"].as_f64()).unwrap_or_else(|| panic!("no row {row}"))
    };
    for medium in media() {
        let name = medium.name();
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
    if media().any(|medium| medium == Medium::Memory) {
        assert_eq!(median("fences.empty", "memory"), 0.0);
        assert!((1.0..5.0).contains(&median("fences.write.8", "memory")));
        // What nobody wrote to is not taken to the medium, only that it is allocated.
        assert!(median("lines.publish.100.filled", "memory") >= 1.0);
        assert!((0.01..1.0).contains(&median("lines.publish.100", "memory")));
    }
    assert_eq!(median("log.empty", "files"), 0.0);
    assert!((8.0..80.0).contains(&median("log.write.8", "files")));
}

#[test]
fn a_group_that_is_not_there_is_an_error_that_names_those_that_are() {
    let output = program().args(["heap", "--group", "fences"]).output().unwrap();
    assert!(!output.status.success());
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(group_names().all(|name| talk.contains(name)), "{talk}");
}
