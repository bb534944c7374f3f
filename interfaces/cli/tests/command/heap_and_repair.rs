//! The heap below a store, and repair.

use std::os::unix::fs::FileExt;
use std::path::Path;

use adamant::{Flushing, JournalKind, Options, Store};
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
        let stretch = object(line);
        assert_eq!(stretch["page"].as_u64(), Some(next), "stretches follow each other");
        next += stretch["pages"].as_u64().expect("pages");
        allocated += stretch["allocated"].as_u64().unwrap_or(0);
        if stretch["usage"] == "free" {
            free += stretch["pages"].as_u64().expect("pages") * 4096;
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

/// Every verb takes the journal that a store has; there is no option to make one of the other.
#[test]
fn a_store_of_the_undo_journal_is_looked_at_and_repaired() {
    // Most Linux systems have a tmpfs there; elsewhere there is nothing to see.
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let memory = tempfile::tempdir_in("/dev/shm").expect("a temporary folder");
    let path = memory.path().join("store");
    let options = Options::new().journal(JournalKind::Undo).flushing(Flushing::Volatile);
    let store = Store::open_with(&path, options).expect("a new store");
    let keyspace = store.keyspace("default").expect("a keyspace");
    for number in 0..1000 {
        keyspace.insert(format!("key {number:04}"), format!("is {number:04}")).expect("room");
    }
    store.close().expect("nothing is in progress");
    let shell = Shell::new();
    let store = path.to_str().expect("UTF-8");
    shell.ok(["set", store, "one more", "1"]);
    assert_eq!(shell.ok(["scan", store, "--count"]), b"1001\n");
    let stat = object(&shell.ok(["heap", "stat", store, "--json"]));
    assert!(stat["allocated_bytes"].as_u64().expect("a number") > 0, "{stat}");
    assert!(!shell.ok(["heap", "map", store]).is_empty());
    shell.ok(["heap", "check", store]);
    shell.ok(["check", store]);
    assert!(shell.run(["repair", store]).stderr.contains("nothing is wrong"));

    let pool = path.join("pool");
    let bytes = std::fs::read(&pool).expect("the pool");
    let at = bytes.windows(15).rposition(|bytes| bytes == b"key 0500is 0500").expect("an entry");
    let file = std::fs::OpenOptions::new().write(true).open(&pool).expect("the pool");
    file.write_all_at(b"kex", at as u64).expect("write");
    shell.fails(5, ["check", store]);
    let report = object(&shell.ok(["repair", store, "--json"]));
    assert_eq!(report["journal"], "undo");
    assert_eq!(report["values_unproved"], true);
    assert_eq!(report["keyspaces"][0]["saved"], 1000, "{report}");
    assert_eq!(report["keyspaces"][0]["loss_count"], 1, "{report}");
    shell.ok(["check", store]);

    // Copied to a disk it can only be read, and the message says what to do.
    let copy = shell.path("copy");
    std::fs::create_dir_all(copy.join("log")).expect("a folder");
    for name in ["pool", "log/lanes"] {
        std::fs::copy(path.join(name), copy.join(name)).expect("a copy");
    }
    assert_eq!(shell.ok(["scan", "copy", "--count"]), b"1000\n");
    shell.ok(["check", "copy"]);
    let run = shell.run(["set", "copy", "key", "value"]);
    if run.code == 0 {
        // Temporary files are on memory here.
        return;
    }
    assert!(run.stderr.contains("adamant repair"), "{}", run.stderr);
    let report = object(&shell.ok(["repair", "copy", "--json"]));
    assert_eq!(report["journal"], "redo", "{report}");
    assert_eq!(shell.ok(["scan", "copy", "--count"]), b"1000\n");
}
