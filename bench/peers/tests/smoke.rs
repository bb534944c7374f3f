//! A small run goes through all workloads with every engine, and writes the whole report.
//!
//! The workloads check contents after every group; what differs ends a child, and is recorded.

use std::fs;
use std::path::Path;
use std::process::Command;

use adamant_peers::results::goals;
use adamant_peers::run::roster::ENTRIES;
use serde_json::Value;

fn run(arguments: &[&str], work: &Path) -> String {
    let program = env!("CARGO_BIN_EXE_adamant-peers");
    let output = Command::new(program).args(arguments).current_dir(work).output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_engine_does_all_of_it_and_the_report_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path();
    fs::create_dir(work.join("work")).unwrap();
    run(&["--smoke", "--path", "work", "--output", "docs"], work);
    assert_eq!(fs::read_dir(work.join("work")).unwrap().count(), 0, "data is removed");

    let text = fs::read_to_string(work.join("docs/benchmarks/rows.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed: Vec<&Value> = lines.iter().filter(|line| !line["failed"].is_null()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let has = |row: &str, engine: &str| {
        lines.iter().any(|line| line["row"] == row && line["engine"] == engine)
    };
    for entry in ENTRIES {
        assert!(has("delete.batch1000.deferred", entry.name), "{}", entry.name);
        let is_durable = entry.facts.sync.is_some();
        assert_eq!(has("put.sync.8t", entry.name), is_durable, "{}", entry.name);
        assert_eq!(has("get.uniform.1t.real", entry.name), is_durable, "{}", entry.name);
    }
    for goal in goals::read().unwrap() {
        assert!(has(&goal.row, "adamant"), "{} is a goal and was not measured", goal.row);
    }

    let latencies = |engine: &str| {
        lines.iter().filter(|line| !line["latency"].is_null() && line["engine"] == engine).count()
    };
    let can_trace = lines[0]["can_trace"] == true;
    for entry in ENTRIES.iter().filter(|entry| entry.facts.sync.is_some()) {
        assert_eq!(latencies(entry.name), 2, "{}", entry.name);
        assert!(has("open.after_kill", entry.name), "{}", entry.name);
        let traced = lines.iter().filter(|line| {
            line["calls"].is_string() && line["engine"] == entry.name && line["writes"].is_u64()
        });
        assert_eq!(traced.count() >= 3, can_trace, "{}", entry.name);
    }
    assert!(latencies("raw append") > 0 && latencies("raw prealloc") > 0);
    if can_trace {
        let syncs =
            lines.iter().find(|line| line["calls"] == "put.sync.1t" && line["engine"] == "adamant");
        let syncs = syncs.unwrap();
        assert!(syncs["syncs"].as_u64() >= syncs["operations"].as_u64(), "{syncs}");
    }

    let report = fs::read_to_string(work.join("docs/benchmarks.md")).unwrap();
    for heading in [
        "## Goals",
        "## Where Adamant is behind",
        "## Rates",
        "## Waiting",
        "## System calls",
        "## What a write survives",
    ] {
        assert!(report.contains(heading), "{heading}");
    }
    for name in ["ratios", "latency_1t", "latency_8t", "throughput"] {
        let plot = fs::read_to_string(work.join(format!("docs/benchmarks/{name}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && report.contains(&format!("benchmarks/{name}.svg")));
    }
    let again = ["--from", "docs/benchmarks/rows.jsonl", "--output", "again"];
    run(&again, work);
    let repeated = fs::read_to_string(work.join("again/benchmarks.md")).unwrap();
    assert_eq!(repeated, report, "the report follows from the rows");
}

#[test]
fn mistakes_are_told() {
    let program = env!("CARGO_BIN_EXE_adamant-peers");
    let output = Command::new(program).arg("--fast").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--fast"));
}

#[test]
fn the_heap_is_reported_also_without_libpmemobj() {
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path();
    fs::create_dir(work.join("work")).unwrap();
    run(&["heap", "--smoke", "--path", "work", "--output", "docs"], work);
    assert_eq!(fs::read_dir(work.join("work")).unwrap().count(), 0, "data is removed");
    let report = fs::read_to_string(work.join("docs/heap.md")).unwrap();
    for heading in ["## What is asked", "## Pictures", "## All rows", "## Machine"] {
        assert!(report.contains(heading), "{heading}");
    }
    for name in ["objects", "free", "snapshot"] {
        let plot = fs::read_to_string(work.join(format!("docs/heap/{name}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && report.contains(&format!("heap/{name}.svg")));
    }
    run(&["heap", "--from", "docs/heap/rows.jsonl", "--output", "again"], work);
    let repeated = fs::read_to_string(work.join("again/heap.md")).unwrap();
    assert_eq!(repeated, report, "the report follows from the rows");
}
