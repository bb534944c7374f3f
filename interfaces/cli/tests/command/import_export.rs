//! What goes in comes out: import, export, and the verbs that read and change single keys.

use std::collections::BTreeMap;

use crate::support::{SAMPLE, Shell, records};
use serde_json::Value;

#[test]
fn export_is_the_import_sorted_by_key() {
    let shell = Shell::with_sample();
    shell.ok(["export", "store", "out.jsonl"]);
    let expected: BTreeMap<String, String> = records(SAMPLE).into_iter().collect();
    assert_eq!(expected.len(), 1_000);
    assert!(records(shell.path("out.jsonl")) == expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn export_import_export_is_byte_identical() {
    let shell = Shell::with_sample();
    shell.ok(["put", "store", "--base64", "/wD+", "gIGC/w=="]);
    let first = shell.ok(["export", "store"]);
    let import = shell.run_with(["import", "second", "-", "--durability", "sync"], &first);
    assert_eq!(import.code, 0, "{}", import.stderr);
    assert!(import.stderr.contains("imported 1,001 records"), "{}", import.stderr);
    assert!(shell.ok(["export", "second", "-"]) == first);
    let last = first.trim_ascii_end().rsplit(|&byte| byte == b'\n').next();
    assert_eq!(last, Some(&br#"{"key_base64":"/wD+","value_base64":"gIGC/w=="}"#[..]));
}

#[test]
fn values_come_byte_for_byte() {
    let shell = Shell::new();
    let value: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let put = shell.run_with(["put", "store", "key", "-"], &value);
    assert_eq!((put.code, &put.stdout[..], &put.stderr[..]), (0, &b""[..], ""));
    assert!(shell.ok(["get", "store", "key"]) == value);
    shell.ok(["put", "store", "key", ""]);
    assert_eq!(shell.ok(["get", "store", "key"]), b"");
    shell.ok(["delete", "store", "key"]);
    assert!(shell.fails(3, ["get", "store", "key"]).contains("\"key\""));
    shell.ok(["delete", "store", "key"]);
    assert!(shell.fails(3, ["remove", "store", "key"]).contains("\"key\""));
    assert_eq!(shell.ok(["insert", "store", "key", "1"]), b"new\n");
    assert_eq!(shell.ok(["insert", "store", "key", "2"]), b"replaced\n");
    shell.ok(["remove", "store", "key"]);
    assert!(shell.fails(3, ["get", "store", "key"]).contains("\"key\""));
}

#[test]
fn a_rename_moves_and_replaces() {
    let shell = Shell::new();
    let value = vec![b'v'; 100_000];
    shell.run_with(["put", "store", "old", "-"], &value);
    shell.ok(["put", "store", "new", "loser"]);
    shell.ok(["rename", "store", "old", "new"]);
    assert!(shell.ok(["get", "store", "new"]) == value);
    assert!(shell.fails(3, ["rename", "store", "old", "new"]).contains("\"old\""));
    let elsewhere = ["rename", "store", "new", "k", "--to", "other"];
    assert!(shell.fails(3, elsewhere).contains("\"other\""));
    shell.ok(["keyspace", "create", "store", "other", "--engine", "critbit"]);
    let said = String::from_utf8(shell.ok([&["--json"][..], &elsewhere].concat())).unwrap();
    assert_eq!(said.trim(), r#"{"key":"k","replaced":false}"#);
    assert!(shell.ok(["get", "store", "k", "--keyspace", "other"]) == value);
    assert_eq!(shell.ok(["export", "store"]), b"");
}

#[test]
fn scans_take_bounds_prefixes_and_directions() {
    let shell = Shell::new();
    for key in ["a", "ab", "abc", "b", "ba", "c"] {
        shell.ok(["put", "store", key, &format!("value\t{key}")]);
    }
    let keys = |arguments: &[&str]| -> String {
        let text = shell.ok(["scan", "store"].iter().chain(arguments));
        let text = String::from_utf8(text).expect("UTF-8");
        text.lines()
            .map(|line| line.split('\t').next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(keys(&[]), "a ab abc b ba c");
    assert_eq!(keys(&["--reverse"]), "c ba b abc ab a");
    assert_eq!(keys(&["--from", "ab", "--to", "ba"]), "ab abc b");
    assert_eq!(keys(&["--prefix", "ab"]), "ab abc");
    assert_eq!(keys(&["--prefix", "a", "--from", "aa", "--limit", "1"]), "ab");
    assert_eq!(keys(&["--to", "b", "--reverse", "--limit", "2"]), "abc ab");
    assert_eq!(keys(&["--from", "b", "--to", "a"]), "");
    assert_eq!(keys(&["--limit", "0"]), "");
    assert_eq!(keys(&["--count"]), "6");
    assert_eq!(keys(&["--count", "--prefix", "b"]), "2");
    assert_eq!(keys(&["--count", "--limit", "4"]), "4");
    let line = shell.ok(["scan", "store", "--prefix", "c"]);
    assert_eq!(line, b"c\tvalue\\tc\n");
}

#[test]
fn keyspaces_are_apart() {
    let shell = Shell::new();
    let odd = "../a\n/\u{e9} b";
    shell.ok(["put", "store", "k", "default"]);
    shell.ok(["put", "store", "k", "odd", "--keyspace", odd]);
    shell.ok(["keyspace", "create", "store", "empty"]);
    assert_eq!(shell.ok(["get", "store", "k", "--keyspace", odd]), b"odd");
    let listed = shell.ok(["keyspace", "list", "store", "--json"]);
    let listed: Vec<Value> = String::from_utf8(listed)
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let names: Vec<&str> = listed.iter().filter_map(|keyspace| keyspace["name"].as_str()).collect();
    assert_eq!(names, [odd, "default", "empty"]);
    let entries: Vec<u64> = listed.iter().filter_map(|it| it["entries"].as_u64()).collect();
    assert_eq!(entries, [1, 1, 0]);
    assert!(listed.iter().all(|keyspace| keyspace["engine"] == "bplus"));
    shell.ok(["keyspace", "drop", "store", odd]);
    assert!(shell.fails(3, ["get", "store", "k", "--keyspace", odd]).contains("keyspace"));
    assert_eq!(shell.ok(["get", "store", "k"]), b"default");
}

#[test]
fn keyspaces_have_types() {
    let shell = Shell::new();
    let store = adamant::Store::open(shell.path("store")).unwrap();
    store.keyspace("ages").unwrap().typed::<String, u32>().unwrap();
    store.keyspace("bytes").unwrap();
    store.close().unwrap();
    let listed = String::from_utf8(shell.ok(["keyspace", "list", "store"])).unwrap();
    assert!(listed.contains("\"ages\"  keys String, values u32\n"), "{listed}");
    assert!(listed.ends_with("\"bytes\"\n"), "{listed}");
    let listed = String::from_utf8(shell.ok(["keyspace", "list", "store", "--json"])).unwrap();
    let of: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let expected = r#"{"key":{"name":"String","version":1},"value":{"name":"u32","version":1}}"#;
    assert_eq!((of[0]["types"].to_string(), &of[1]["types"]), (expected.to_owned(), &Value::Null));
    // By bytes, whatever they are.
    shell.ok(["put", "store", "ada", "four", "--keyspace", "ages"]);
    assert_eq!(shell.ok(["get", "store", "ada", "--keyspace", "ages"]), b"four");
}

#[test]
fn keyspaces_have_engines() {
    let shell = Shell::new();
    shell.ok(["keyspace", "create", "store", "words", "--engine", "critbit"]);
    shell.ok(["put", "store", "k", "v", "--keyspace", "words"]);
    let engine = || {
        let listed = shell.ok(["keyspace", "list", "store", "--json"]);
        let listed: Value = serde_json::from_slice(&listed).expect("one line of JSON");
        listed["engine"].as_str().expect("a name").to_owned()
    };
    assert_eq!(engine(), "critbit");
    for to in ["redblack", "btree", "lsm", "lsm", "bplus", "bplus"] {
        shell.ok(["keyspace", "convert", "store", "words", "--engine", to]);
        assert_eq!(engine(), to);
        assert_eq!(shell.ok(["get", "store", "k", "--keyspace", "words"]), b"v");
    }
    let unknown = shell.fails(2, ["keyspace", "create", "store", "other", "--engine", "hash"]);
    assert!(unknown.contains("critbit"), "{unknown}");
    shell.fails(3, ["keyspace", "convert", "store", "none", "--engine", "btree"]);
    shell.ok(["check", "store"]);
}

#[test]
fn every_verb_speaks_json() {
    let shell = Shell::with_sample();
    let verbs: &[&[&str]] = &[
        &["get", "store", "python3-can"],
        &["put", "store", "new", "1"],
        &["insert", "store", "new", "2"],
        &["remove", "store", "new"],
        &["delete", "store", "new"],
        &["scan", "store", "--limit", "3"],
        &["scan", "store", "--count"],
        &["export", "store"],
        &["export", "store", "out.jsonl"],
        &["import", "store", "out.jsonl"],
        &["keyspace", "create", "store", "other"],
        &["keyspace", "list", "store"],
        &["keyspace", "drop", "store", "other"],
        &["stat", "store"],
        &["check", "store"],
    ];
    for verb in verbs {
        let text = String::from_utf8(shell.ok(verb.iter().chain(&["--json"]))).expect("UTF-8");
        assert!(!text.is_empty(), "{verb:?}");
        for line in text.lines() {
            let object: Value = serde_json::from_str(line).expect("JSON");
            assert!(object.is_object(), "{verb:?}: {line}");
        }
    }
    let failure = shell.fails(3, ["get", "store", "missing", "--json"]);
    let failure: Value = serde_json::from_str(&failure).expect("JSON");
    assert_eq!(failure["error"]["code"], 3);
}

#[test]
fn stat_and_check_tell_of_what_is_there() {
    let shell = Shell::with_sample();
    let stat: Value = serde_json::from_slice(&shell.ok(["stat", "store", "--json"])).expect("JSON");
    assert_eq!((stat["keyspaces"].as_u64(), stat["entries"].as_u64()), (Some(1), Some(1_000)));
    assert!(stat["pool_bytes"].as_u64() > Some(700_000), "{stat}");
    let check = shell.run(["check", "store"]);
    assert_eq!((check.code, check.text()), (0, String::new()));
    assert!(check.stderr.contains("1,000 entries: 0 wrong"), "{}", check.stderr);
}

#[test]
fn a_reader_who_leaves_early_is_no_failure() {
    use std::process::{Command, Stdio};
    let shell = Shell::with_sample();
    let mut child = Command::new(env!("CARGO_BIN_EXE_adamant"))
        .args(["export", "store"])
        .current_dir(shell.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run the command");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("wait for the command");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn the_demo_ends_with_a_table() {
    let shell = Shell::new();
    let text = String::from_utf8(shell.ok(["demo"])).expect("UTF-8");
    for row in ["import", "point reads", "prefix scan", "killed child", "recovered", "checked"] {
        assert!(text.lines().any(|line| line.starts_with(row)), "{row} is not in:\n{text}");
    }
    assert!(text.contains("none lost"), "{text}");
}

#[test]
fn a_multimap_is_exported_and_imported_as_pairs() {
    let shell = Shell::new();
    let store = adamant::Store::open(shell.path("store")).expect("a new store");
    let tags = store.multimap("tags").expect("a multimap");
    tags.extend([("a", "2"), ("a", "1"), ("b\0", "")]).expect("room");
    let numbers = store.multimap("numbers").expect("a multimap").typed::<u16, u16>();
    numbers.expect("no pairs").insert(&1, &2).expect("room");
    store.close().expect("nothing is in progress");

    let pairs = shell.ok(["export", "store", "--keyspace", "tags"]);
    let text = String::from_utf8_lossy(&pairs).into_owned();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.starts_with("{\"key\":\"a\",\"value\":\"1\"}\n"), "{text}");
    assert_eq!(shell.ok(["scan", "store", "--keyspace", "tags", "--to", "b"]), b"a\t1\na\t2\n");
    assert_eq!(shell.ok(["scan", "store", "--keyspace", "tags", "--count"]), b"3\n");
    // Others are shown as they are stored.
    assert_eq!(shell.ok(["scan", "store", "--keyspace", "numbers"]), b"\\x00\\x01\\x00\\x02\t\n");

    let import =
        shell.run_with(["import", "copy", "-", "--keyspace", "tags", "--multimap"], &pairs);
    assert_eq!(import.code, 0, "{}", import.stderr);
    assert!(shell.ok(["export", "copy", "--keyspace", "tags"]) == pairs);
    // Into one that is there without saying so, and never into another kind.
    let import = shell.run_with(
        ["import", "copy", "-", "--keyspace", "tags"],
        b"{\"key\":\"c\",\"value\":\"1\"}",
    );
    assert_eq!(import.code, 0, "{}", import.stderr);
    assert_eq!(shell.ok(["scan", "copy", "--keyspace", "tags", "--count"]), b"4\n");
    shell.ok(["put", "copy", "k", "v"]);
    let import = shell.run_with(["import", "copy", "-", "--multimap"], &pairs);
    assert!(import.code != 0 && import.stderr.contains("plain"), "{}", import.stderr);

    let listed = shell.ok(["keyspace", "list", "copy"]);
    assert!(String::from_utf8_lossy(&listed).contains("multimap"));
    for line in [
        &["get", "copy", "a", "--keyspace", "tags"][..],
        &["put", "copy", "a", "1", "--keyspace", "tags"],
        &["insert", "copy", "a", "1", "--keyspace", "tags"],
        &["delete", "copy", "a", "--keyspace", "tags"],
        &["remove", "copy", "a", "--keyspace", "tags"],
        &["rename", "copy", "a", "b", "--keyspace", "tags"],
    ] {
        let refused = shell.fails(4, line.iter().copied());
        assert!(refused.contains("multimap"), "{line:?}: {refused}");
    }
    shell.ok(["keyspace", "options", "copy", "tags"]);
}
