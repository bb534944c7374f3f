//! The heap below a store, and repair.

use std::os::unix::fs::FileExt;

use serde_json::Value;

use crate::support::{SAMPLE, Shell};

fn object(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("a JSON object")
}

#[test]
fn heap_stat_and_map_agree() {
    let shell = Shell::with_sample();
    let stat = object(&shell.ok(["heap", "stat", "store", "--json"]));
    let classes = stat["classes"].as_array().expect("classes");
    let blocks = |field: &str| classes.iter().filter_map(|c| c[field].as_u64()).sum::<u64>();
    assert!(blocks("allocated") > 1_000, "an entry is a block");
    let (mut next, mut allocated, mut free) = (0, 0, 0);
    for line in shell.ok(["heap", "map", "store", "--json"]).split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let page_range = object(line);
        assert_eq!(page_range["page"].as_u64(), Some(next), "stretches follow each other");
        next += page_range["pages"].as_u64().expect("pages");
        allocated += page_range["allocated"].as_u64().unwrap_or(0);
        if page_range["usage"] == "free" {
            free += page_range["pages"].as_u64().expect("pages") * 4096;
        }
    }
    assert_eq!(allocated, blocks("allocated"));
    assert_eq!(Some(free), stat["free_bytes"].as_u64());
    let words = shell.ok(["heap", "stat", "store"]);
    assert!(String::from_utf8_lossy(&words).contains("fragmentation"));
}

#[test]
fn heap_map_draws_a_picture() {
    let shell = Shell::with_sample();
    shell.ok(["heap", "map", "store", "--svg", "map.svg"]);
    let picture = std::fs::read_to_string(shell.path("map.svg")).expect("a file");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(picture.matches("<rect").count() > 200);
}

#[test]
fn shrinking_gives_back_what_a_dropped_keyspace_held() {
    let shell = Shell::with_sample();
    let bytes = || std::fs::metadata(shell.path("store").join("pool")).expect("the pool").len();
    shell.ok(["import", "store", SAMPLE, "--keyspace", "other"]);
    shell.ok(["keyspace", "drop", "store", "other"]);
    let (before, kept) = (bytes(), shell.ok(["export", "store"]));
    let shrunk = object(&shell.ok(["heap", "shrink", "store", "--json"]));
    let released = shrunk["bytes_released"].as_u64().expect("a number");
    assert!(released > 0 && before - bytes() == released, "{shrunk}");
    assert!(shrunk["bytes_punched"].is_u64(), "{shrunk}");
    assert_eq!(shell.ok(["export", "store"]), kept);
    shell.ok(["import", "store", SAMPLE, "--keyspace", "other"]);
    shell.ok(["check", "store"]);
    assert!(shell.run(["heap", "shrink", "store"]).stderr.contains("gave back"));
}

#[test]
fn a_damaged_page_is_found_and_repaired_around() {
    let shell = Shell::with_sample();
    shell.ok(["heap", "check", "store"]);
    let nothing = shell.run(["repair", "store"]);
    assert!(nothing.code == 0 && nothing.stderr.contains("nothing is wrong"), "{}", nothing.stderr);

    let pool = shell.path("store").join("pool");
    let bytes = std::fs::read(&pool).expect("the pool");
    let at = bytes.windows(9).rposition(|bytes| bytes == b"Package: ").expect("a record");
    let file = std::fs::OpenOptions::new().write(true).open(&pool).expect("the pool");
    file.write_all_at(b"Pockage: ", at as u64).expect("write");
    assert!(shell.fails(5, ["heap", "check", "store"]).contains("adamant repair"));
    let report = object(&shell.ok(["repair", "store", "--json"]));
    assert_eq!(report["repaired"], true);
    assert_eq!(report["lost_pages"], 1);
    let saved = report["keyspaces"][0]["saved"].as_u64().expect("saved");
    let lost = report["keyspaces"][0]["loss_count"].as_u64().expect("losses");
    assert!((1..=512).contains(&lost) && saved + lost == 1_000, "{saved} saved, {lost} lost");
    shell.ok(["check", "store"]);
    assert_eq!(shell.ok(["scan", "store", "--count"]), format!("{saved}\n").as_bytes());
    assert!(shell.path("store.damaged").join("pool").exists());
    assert!(shell.fails(3, ["repair", "none"]).contains("none"));
}
