//! A small run of `bplus` measures every row, finds what it wrote, and leaves nothing.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use adamant_bench::harness::asked::AskedRows;
use serde_json::Value;

use crate::{program, run};

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

fn medians(place: &Path) -> HashMap<(String, String), f64> {
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut command = program();
    command.args(["bplus", "--pairs", "2000", "--scans", "50", "--rounds", "2", "--path"]);
    let (rows, _table) = run(command.arg(place), json.path());
    assert_eq!(fs::read_dir(place).unwrap().count(), 0, "temporary data is removed");
    let name = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| ((name(row, "row"), name(row, "engine")), row["median"].as_f64().unwrap()))
        .collect()
}

#[test]
fn a_small_run_measures_all() {
    // The floor is plain stores to a file that is memory.
    if !Path::new(MEMORY).is_dir() {
        return;
    }
    let place = tempfile::tempdir_in(MEMORY).unwrap();
    let rows = medians(place.path());
    let row = |name: &str, engine: &str| match rows.get(&(name.to_owned(), engine.to_owned())) {
        Some(median) => *median,
        None => panic!("{engine} has no row {name}"),
    };
    for cell in ["sequential.800", "random.800", "sequential.15", "random.15"] {
        for work in ["fill", "get", "miss", "scan", "scan100", "overwrite", "delete", "refill"] {
            assert!(row(&format!("{work}.{cell}"), "adamant") > 0.0, "{work}.{cell}");
        }
        assert_eq!(row(&format!("left.{cell}"), "adamant"), 0.0);
        assert!((0.1..1.0).contains(&row(&format!("efficiency.{cell}"), "adamant")));
        assert!(row(&format!("memory.{cell}"), "adamant") > 0.0);
        assert!(row(&format!("get.{cell}"), "btreemap") > 0.0);
    }
    assert!(row("fences.fill.random.15", "adamant") < 1.5);
    assert!((800.0..1_000.0).contains(&row("log.fill.sequential.800", "adamant")));
    assert!(row("append.cold.800", "floor") > 0.0);
    AskedRows::of("bplus").unwrap().names().for_each(|name| assert!(row(name, "adamant") >= 0.0));
}
