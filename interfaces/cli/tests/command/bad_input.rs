//! Bad input gives an error that says what was expected and found, and a documented exit code.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::{SAMPLE, Shell};

#[test]
fn a_malformed_line_is_named_and_nothing_is_imported() {
    let shell = Shell::with_sample();
    let before = shell.ok(["export", "store"]);
    let lines = [
        r#"{"key":"new 1","value":"v"}"#,
        "",
        r#"{"key":"new 2","value":"v"}"#,
        r#"{"key":"new 3","value":"v""#,
        r#"{"key":"new 4","value":"v"}"#,
    ];
    let file = shell.write("bad.jsonl", lines.join("\n"));
    let file = file.to_str().expect("UTF-8");
    let words = shell.fails(4, ["import", "store", file]);
    assert!(words.contains("line 4"), "{words}");
    assert!(words.contains("nothing was imported"), "{words}");
    assert!(shell.ok(["export", "store"]) == before);

    let from_stdin = shell.run_with(["import", "store", "-"], lines.join("\n").as_bytes());
    assert_eq!(from_stdin.code, 4);
    assert!(from_stdin.stderr.contains("line 4"), "{}", from_stdin.stderr);
    assert!(shell.ok(["export", "store"]) == before);

    // A store that did not exist still does not.
    shell.fails(4, ["import", "other", file]);
    assert!(!shell.path("other").exists());

    let words = shell.fails(4, ["import", "store", file, "--partial"]);
    assert!(words.contains("line 4"), "{words}");
    assert!(words.contains("imported 3 records"), "{words}");
    assert!(words.contains("1 malformed"), "{words}");
    assert_eq!(shell.ok(["scan", "store", "--prefix", "new ", "--count"]), b"3\n");
}

#[test]
fn every_kind_of_malformed_line_is_refused() {
    let shell = Shell::new();
    let long = format!(r#"{{"key":"{}","value":""}}"#, "k".repeat(65_536));
    for line in [
        "plain text",
        "[1]",
        "{}",
        r#"{"key":"k"}"#,
        r#"{"value":"v"}"#,
        r#"{"key":"k","value":null}"#,
        r#"{"key":"k","value":"v","more":1}"#,
        r#"{"key_base64":"?","value":"v"}"#,
        long.as_str(),
    ] {
        let run = shell.run_with(["import", "store", "-"], line.as_bytes());
        assert_eq!(run.code, 4, "{line}");
        assert!(run.stderr.contains("line 1 of -: expected"), "{}", run.stderr);
    }
    let not_text = shell.run_with(["import", "store", "-"], b"{\"key\":\"k\xff\",\"value\":\"\"}");
    assert_eq!(not_text.code, 4);
    assert!(!shell.path("store").exists());
}

#[test]
fn keys_and_names_have_lengths() {
    let shell = Shell::new();
    shell.ok(["put", "store", &"k".repeat(65_535), "v"]);
    shell.fails(3, ["get", "store", ""]);
    shell.ok(["put", "store", "", "v"]);
    assert_eq!(shell.ok(["get", "store", ""]), b"v");
    let words = shell.fails(4, ["put", "store", &"k".repeat(65_536), "v"]);
    assert!(words.contains("65535") && words.contains("65536"), "{words}");
    let create = |name: &str| shell.run(["keyspace", "create", "store", name]).code;
    assert_eq!(create(""), 4);
    assert_eq!(create(&"n".repeat(256)), 4);
    assert_eq!(create(&"n".repeat(255)), 0);
    assert_eq!(create(&"n".repeat(255)), 4, "it exists");
    assert_eq!(create("/"), 0);
    assert_eq!(create(".."), 0);
    assert_eq!(shell.run(["put", "store", "k", "v", "--keyspace", ""]).code, 4);
}

#[test]
fn what_is_not_there_is_named() {
    let shell = Shell::with_sample();
    for verb in [
        &["get", "nowhere", "k"][..],
        &["delete", "nowhere", "k"],
        &["remove", "nowhere", "k"],
        &["scan", "nowhere"],
        &["export", "nowhere"],
        &["stat", "nowhere"],
        &["check", "nowhere"],
        &["keyspace", "list", "nowhere"],
        &["keyspace", "drop", "nowhere", "k"],
    ] {
        assert!(shell.fails(3, verb).contains("nowhere"), "{verb:?}");
        assert!(!shell.path("nowhere").exists(), "{verb:?}");
    }
    for verb in [
        &["get", "store", "k", "--keyspace", "unknown"][..],
        &["delete", "store", "k", "--keyspace", "unknown"],
        &["remove", "store", "k", "--keyspace", "unknown"],
        &["scan", "store", "--keyspace", "unknown"],
        &["export", "store", "--keyspace", "unknown"],
        &["keyspace", "drop", "store", "unknown"],
    ] {
        assert!(shell.fails(3, verb).contains("unknown"), "{verb:?}");
    }
    assert!(shell.fails(3, ["import", "store", "no-such-file"]).contains("no-such-file"));
}

#[test]
fn what_is_no_store_is_left_as_it_is() {
    let shell = Shell::new();
    let file = shell.write("file", "of another program");
    let empty_file = shell.write("empty", "");
    std::fs::create_dir(shell.path("folder")).expect("a folder");
    let within = shell.write("folder/document", "of a user");
    for name in ["file", "empty", "folder"] {
        let words = shell.fails(8, ["put", name, "k", "v"]);
        assert!(words.contains(name) && words.contains("not a store"), "{words}");
    }
    assert_eq!(std::fs::read(file).expect("the file"), b"of another program");
    assert_eq!(std::fs::read(empty_file).expect("the file"), b"");
    assert_eq!(std::fs::read(within).expect("the file"), b"of a user");
    assert_eq!(std::fs::read_dir(shell.path("folder")).expect("the folder").count(), 1);
}

#[test]
fn pools_of_other_programs_and_cut_ones_are_errors() {
    let shell = Shell::with_sample();
    let pool = shell.path("store/pool");
    let good = std::fs::read(&pool).expect("the pool");
    let code_with = |bytes: &[u8]| {
        std::fs::write(&pool, bytes).expect("write the pool");
        let run = shell.run(["check", "store"]);
        assert!(!run.stderr.is_empty());
        run.code
    };
    let is_refused = |code: i32| code == 5 || code == 8;
    assert!(is_refused(code_with(b"")), "an empty pool");
    assert!(is_refused(code_with(&[7; 100_000])), "a pool of another program");
    for bytes in [1, 4_096, 70_000, good.len() / 2, good.len() - 1] {
        assert!(is_refused(code_with(&good[..bytes])), "a pool cut to {bytes} bytes");
    }
    let mut flipped = good.clone();
    flipped[20] ^= 1;
    assert!(is_refused(code_with(&flipped)), "one flipped bit in the header");
    assert_eq!(code_with(&good), 0, "the pool as it was");
}

#[test]
fn a_flipped_bit_in_the_data_is_found_by_check() {
    let shell = Shell::with_sample();
    let pool = shell.path("store/pool");
    let mut bytes = std::fs::read(&pool).expect("the pool");
    let word = b"Description-md5";
    let at = bytes.windows(word.len()).position(|it| it == word).expect("a value in the pool");
    bytes[at] ^= 0x10;
    std::fs::write(&pool, bytes).expect("write the pool");
    let run = shell.run(["check", "store"]);
    assert_eq!(run.code, 5, "{}{}", run.text(), run.stderr);
    assert!(run.text().contains("pool"), "{}", run.text());
}

#[test]
fn a_second_opener_is_told_who_has_the_store() {
    let shell = Shell::with_sample();
    // A process that has the store open until its output is closed: it commits for ever.
    let mut child = Command::new(env!("CARGO_BIN_EXE_adamant"))
        .args(["demo-child", "store"])
        .current_dir(shell.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("run the command");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    lines.next().expect("a line").expect("text");
    // What only reads does so beside it; what writes is told.
    shell.ok(["get", "store", "hatari"]);
    let words = shell.fails(6, ["put", "store", "hatari", "x"]);
    child.kill().expect("kill the child");
    child.wait().expect("wait for the child");
    assert!(words.contains(&child.id().to_string()), "the holder is not named: {words}");
    // The lock has died with its process.
    shell.ok(["check", "store"]);
}

#[test]
fn wrong_usage_is_told_from_other_failures() {
    let shell = Shell::new();
    for arguments in [
        &["get"][..],
        &["frobnicate", "store"],
        &["get", "store"],
        &["scan", "store", "--limit", "many"],
        &["import", "store", SAMPLE, "--batch", "0"],
    ] {
        assert!(shell.fails(2, arguments).contains("--help"), "{arguments:?}");
    }
    assert!(shell.fails(4, ["get", "store", "?", "--base64"]).contains("base64"));
    let help = String::from_utf8(shell.ok(["--help"])).expect("UTF-8");
    assert!(help.contains("Exit codes:"), "{help}");
}
