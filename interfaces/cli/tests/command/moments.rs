//! Stores with a lost checkpoint, or with files of two moments, as every verb sees them.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use adamant::{Durability, Options, Store};
use serde_json::Value;

use crate::support::Shell;

/// Commits that were acknowledged as durable.
const COMMITS: usize = 26;
/// Where checkpoints lie; each begins with its number.
const SLOTS: [u64; 2] = [4096, 8192];

/// A folder with a store whose process died after so many synced commits; "older" is the store as
/// it was when it was closed before those.
fn killed() -> Shell {
    let shell = Shell::new();
    let open = shell.path("open");
    let options = || Options::new().background(false).durability(Durability::Sync);
    let store = Store::open_with(&open, options()).expect("a new store");
    store.keyspace("default").expect("a keyspace").insert("first", "1").expect("room");
    store.close().expect("nothing is in progress");
    copy(&open, &shell.path("older"));
    let store = Store::open_with(&open, options()).expect("the store");
    let keyspace = store.keyspace("default").expect("a keyspace");
    for number in 0..COMMITS {
        keyspace.insert(format!("key {number}"), "acknowledged").expect("room");
    }
    copy(&open, &shell.path("store"));
    shell
}

/// Copies what a killed process would leave.
fn copy(source: &Path, target: &Path) {
    fs::create_dir_all(target.join("log")).expect("a folder");
    for name in ["pool", "log/0001", "log/0002"] {
        fs::copy(source.join(name), target.join(name)).expect("a copy");
    }
}

/// No verb says that all is well, and repair lists what it found; the report of that.
fn all_say_so(shell: &Shell) -> Value {
    let verbs: [&[&str]; 9] = [
        &["scan", "store", "--count"],
        &["get", "store", "first"],
        &["export", "store"],
        &["stat", "store"],
        &["check", "store"],
        &["heap", "check", "store"],
        &["backup", "store", "backup"],
        &["put", "store", "key", "value"],
        &["delete", "store", "first"],
    ];
    for verb in verbs {
        let message = shell.fails(5, verb);
        assert!(message.contains("expected"), "{verb:?}: {message}");
    }
    assert!(!shell.path("backup").exists());
    let report: Value =
        serde_json::from_slice(&shell.ok(["repair", "store", "--json"])).expect("a report");
    assert_eq!(report["repaired"], true);
    assert_ne!(report["findings"].as_array().map(Vec::len), Some(0), "{report}");
    shell.ok(["check", "store"]);
    report
}

#[test]
fn a_lost_checkpoint_is_said_by_every_verb_and_its_commits_are_saved() {
    let shell = killed();
    let pool = fs::OpenOptions::new().read(true).write(true).open(shell.path("store/pool"));
    let pool = pool.expect("the pool");
    let number = |slot: &u64| {
        let mut bytes = [0; 8];
        pool.read_exact_at(&mut bytes, *slot).expect("the slot");
        u64::from_le_bytes(bytes)
    };
    // Of the newest one, the record up to which all are in the pool.
    let at = SLOTS.into_iter().max_by_key(number).expect("two slots") + 16;
    let mut byte = [0];
    pool.read_exact_at(&mut byte, at).expect("the slot");
    pool.write_all_at(&[byte[0] ^ 1], at).expect("the slot");
    let report = all_say_so(&shell);
    let findings = report["findings"].to_string();
    assert!(findings.contains("its records"), "what is proved to follow is named: {findings}");
    assert_eq!(shell.ok(["scan", "store", "--count"]), format!("{}\n", COMMITS + 1).as_bytes());
}

#[test]
fn a_lost_log_is_said_by_every_verb_and_what_is_missing_is_named() {
    let shell = killed();
    fs::remove_file(shell.path("store/log/0001")).expect("a log file");
    let findings = all_say_so(&shell)["findings"].to_string();
    assert!(findings.contains("is missing"), "{findings}");

    let shell = killed();
    fs::copy(shell.path("older/log/0001"), shell.path("store/log/0001")).expect("a copy");
    let findings = all_say_so(&shell)["findings"].to_string();
    assert!(findings.contains("is missing"), "{findings}");
}

/// The pool of a closed store, put back beside the log of later, which has all that follows it.
#[test]
fn an_older_pool_is_said_by_every_verb_and_the_later_log_is_saved() {
    let shell = killed();
    fs::copy(shell.path("older/pool"), shell.path("store/pool")).expect("a copy");
    all_say_so(&shell);
    assert_eq!(shell.ok(["scan", "store", "--count"]), format!("{}\n", COMMITS + 1).as_bytes());
}
