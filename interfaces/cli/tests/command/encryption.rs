//! Encrypted stores: keys, and every verb with one.

use std::path::Path;

use serde_json::Value;

use crate::support::{SAMPLE, Shell};

/// A folder with an encrypted store, its key `key`, and another key `other`.
fn encrypted() -> Shell {
    let shell = Shell::new();
    shell.ok(["key", "new", "key"]);
    shell.ok(["key", "new", "other"]);
    shell.ok(["--key-file", "key", "import", "store", SAMPLE]);
    shell
}

/// Arguments with the key behind them.
fn with<'a>(key: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--key-file", key]].concat()
}

/// Whether a text is in any file of a folder.
fn shows(folder: &Path, text: &[u8]) -> bool {
    std::fs::read_dir(folder).expect("a folder").any(|entry| {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => shows(&path, text),
            false => {
                let bytes = std::fs::read(&path).expect("a file");
                bytes.windows(text.len()).any(|window| window == text)
            }
        }
    })
}

#[test]
fn a_key_is_made_once_and_for_its_owner() {
    let shell = Shell::new();
    let made = shell.run(["key", "new", "key"]);
    assert!(made.code == 0 && made.stdout.is_empty(), "{}", made.stderr);
    let key = std::fs::read_to_string(shell.path("key")).expect("the key");
    assert!(key.len() == 65 && key.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(!made.stderr.contains(key.trim_end()), "{}", made.stderr);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(shell.path("key")).expect("the key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(shell.fails(4, ["key", "new", "key"]).contains("already"));
    assert_eq!(std::fs::read_to_string(shell.path("key")).expect("the key"), key);
    shell.fails(3, ["key", "new", "no such/key"]);
}

#[test]
fn a_store_is_read_by_its_key_alone() {
    let shell = encrypted();
    assert!(!shows(&shell.path("store"), b"Package: "), "a record is seen");
    let stat: Value =
        serde_json::from_slice(&shell.ok(with("key", &["stat", "store", "--json"]))).expect("JSON");
    assert_eq!(stat["encrypted"], true);
    let text = shell.run(with("key", &["stat", "store"])).text();
    assert!(text.lines().any(|line| line.starts_with("encrypted") && line.ends_with(" yes")));

    for verb in [
        &["get", "store", "a"][..],
        &["put", "store", "a", "b"],
        &["scan", "store"],
        &["check", "store"],
        &["compact", "store"],
        &["repair", "store"],
        &["backup", "store", "copy"],
        &["restore", "store", "copy"],
        &["decrypt", "store"],
        &["rekey", "store", "--new-key-file", "other"],
        &["encrypt", "store", "--new-key-file", "other"],
    ] {
        assert!(shell.fails(9, verb).contains("key"));
        assert!(shell.fails(9, with("other", verb)).contains("expected the key of this store"));
    }
    assert!(!shell.path("copy").exists());

    shell.ok(["put", "plain", "a", "b"]);
    let stderr = shell.fails(9, with("key", &["get", "plain", "a"]));
    assert!(stderr.contains("found one that is not"), "{stderr}");
    assert!(shell.fails(9, ["decrypt", "plain"]).contains("is not encrypted"));
    assert_eq!(shell.ok(["get", "plain", "a"]), b"b");
}

#[test]
fn keys_come_from_files_commands_variables_and_input() {
    let shell = encrypted();
    let text = std::fs::read(shell.path("key")).expect("the key");
    let count = shell.ok(with("key", &["scan", "store", "--count"]));
    assert_eq!(shell.run_with(with("-", &["scan", "store", "--count"]), &text).stdout, count);
    shell.ok(["scan", "store", "--key-command", "cat key"]);
    for (name, value) in [("ADAMANT_KEY_FILE", "key"), ("ADAMANT_KEY_COMMAND", "cat key")] {
        let mut command = shell.command(["scan", "store", "--count"]);
        assert_eq!(command.env(name, value).output().expect("runs").stdout, count);
        // An argument takes its place.
        let mut command = shell.command(["scan", "store", "--count", "--key-file", "other"]);
        assert_eq!(command.env(name, value).output().expect("runs").status.code(), Some(9));
    }
    let mut both = shell.command(["scan", "store"]);
    both.env("ADAMANT_KEY_FILE", "key").env("ADAMANT_KEY_COMMAND", "cat key");
    assert_eq!(both.output().expect("runs").status.code(), Some(9));

    shell.write("bad", "hunter2");
    let stderr = shell.fails(9, with("bad", &["scan", "store"]));
    assert!(stderr.contains("64 hexadecimal digits") && !stderr.contains("hunter2"), "{stderr}");
    shell.fails(3, with("none", &["scan", "store"]));
    let stderr = shell.fails(9, ["scan", "store", "--key-command", "cat bad"]);
    assert!(stderr.contains("found 7 bytes") && !stderr.contains("hunter2"), "{stderr}");
    let stderr = shell.fails(1, ["scan", "store", "--key-command", "echo sealed >&2; exit 7"]);
    assert!(stderr.contains("exit status: 7: sealed"), "{stderr}");
    // What is to be stored cannot be the key.
    for verb in [&["put", "store", "a", "-"][..], &["import", "store", "-"]] {
        let run = shell.run_with(with("-", verb), &text);
        assert!(run.code == 4 && run.stderr.contains("standard input"), "{}", run.stderr);
    }
    // What opens no store needs none.
    let mut command = shell.command(["key", "new", "third"]);
    assert!(command.env("ADAMANT_KEY_FILE", "third").status().expect("runs").success());
}

#[test]
fn every_verb_takes_the_key() {
    let shell = encrypted();
    let ok = |arguments: &[&str]| shell.ok(with("key", arguments));
    ok(&["put", "store", "a", "1"]);
    ok(&["insert", "store", "b", "2"]);
    ok(&["rename", "store", "b", "c"]);
    ok(&["delete", "store", "a"]);
    assert_eq!(ok(&["get", "store", "c"]), b"2");
    ok(&["remove", "store", "c"]);
    ok(&["changes", "store", "--keep", "1MiB"]);
    ok(&["put", "store", "d", "4"]);
    assert!(String::from_utf8_lossy(&ok(&["watch", "store", "--once"])).contains("put\td\t4"));
    ok(&["changes", "store"]);
    ok(&["keyspace", "create", "store", "logs", "--engine", "lsm"]);
    ok(&["import", "store", SAMPLE, "--keyspace", "logs"]);
    ok(&["keyspace", "options", "store", "logs", "--compression", "none"]);
    ok(&["keyspace", "list", "store"]);
    ok(&["keyspace", "convert", "store", "default", "--engine", "btree"]);
    ok(&["keyspace", "rename", "store", "default", "packages"]);
    ok(&["lsm", "compact", "store"]);
    ok(&["lsm", "stat", "store"]);
    ok(&["lsm", "levels", "store"]);
    ok(&["heap", "stat", "store"]);
    ok(&["heap", "map", "store"]);
    ok(&["heap", "check", "store"]);
    ok(&["heap", "shrink", "store"]);
    ok(&["check", "store"]);
    ok(&["compact", "store"]);
    ok(&["repair", "store"]);
    assert!(!shows(&shell.path("store"), b"Package: "), "a record is seen");
    ok(&["export", "store", "out.jsonl", "--keyspace", "logs"]);
    ok(&["import", "again", "out.jsonl", "--keyspace", "logs"]);
    let export = ["export", "again", "--keyspace", "logs"];
    assert_eq!(ok(&export), std::fs::read(shell.path("out.jsonl")).expect("the records"));
    shell.fails(9, export);
    ok(&["keyspace", "drop", "store", "logs"]);
    ok(&["demo"]);
}

#[test]
fn copies_are_encrypted_as_their_store_is() {
    let shell = encrypted();
    let ok = |arguments: &[&str]| shell.ok(with("key", arguments));
    ok(&["keyspace", "create", "store", "logs", "--engine", "lsm"]);
    ok(&["import", "store", SAMPLE, "--keyspace", "logs"]);
    ok(&["backup", "store", "monday"]);
    ok(&["put", "store", "day", "tuesday"]);
    ok(&["backup", "store", "tuesday", "--since", "monday"]);
    ok(&["backup", "store", "linked", "--link"]);
    let content = ok(&["export", "store"]);
    for copy in ["tuesday", "linked"] {
        let target = format!("restored {copy}");
        shell.fails(9, ["restore", copy, &target]);
        ok(&["check", copy]);
        assert_eq!(ok(&["export", copy]), content);
        ok(&["restore", copy, &target]);
        assert_eq!(ok(&["export", &target]), content);
        shell.fails(9, ["stat", &target]);
        for folder in [copy, &target] {
            assert!(!shows(&shell.path(folder), b"Package: "), "a record is seen in {folder}");
        }
    }
    // Beside a program that writes it.
    let key = adamant::EncryptionKey::read(&shell.path("key")).expect("the key");
    let options = adamant::Options::new().encryption_key(key);
    let writer = adamant::Store::open_with(shell.path("store"), options).expect("the store");
    assert_eq!(ok(&["get", "store", "day"]), b"tuesday");
    ok(&["backup", "store", "wednesday"]);
    writer.close().expect("closes");
}

#[test]
fn keys_are_replaced_and_stores_encrypted_and_not() {
    let shell = encrypted();
    let content = shell.ok(with("key", &["export", "store"]));
    shell.ok(with("key", &["backup", "store", "monday"]));
    shell.ok(with("key", &["rekey", "store", "--new-key-file", "other"]));
    shell.fails(9, with("key", &["export", "store"]));
    assert_eq!(shell.ok(with("other", &["export", "store"])), content);
    assert_eq!(shell.ok(with("key", &["export", "monday"])), content, "it keeps its key");
    let since = ["backup", "store", "tuesday", "--since", "monday"];
    let stderr = shell.fails(9, with("other", &since));
    assert!(stderr.contains("monday"), "{stderr}");
    shell.ok(with("key", &["rekey", "monday", "--new-key-file", "other"]));
    shell.ok(with("other", &since));
    shell.ok(with("other", &["rekey", "store", "--new-key-command", "cat key"]));

    shell.ok(with("key", &["decrypt", "store"]));
    assert!(shows(&shell.path("store"), b"Package: "));
    assert_eq!(shell.ok(["export", "store"]), content);
    shell.fails(9, with("key", &["rekey", "store", "--new-key-file", "other"]));
    shell.ok(["encrypt", "store", "--new-key-file", "key"]);
    assert!(!shows(&shell.path("store"), b"Package: "), "a record is seen");
    shell.ok(with("key", &["encrypt", "store", "--new-key-file", "other"]));
    assert_eq!(shell.ok(with("other", &["export", "store"])), content);
    shell.ok(with("other", &["check", "store"]));
    assert!(!shell.path("store.compacting").exists());

    shell.fails(2, ["encrypt", "store"]);
    shell.fails(3, ["encrypt", "none", "--new-key-file", "key"]);
    shell.fails(3, with("key", &["rekey", "none", "--new-key-file", "other"]));
    shell.fails(3, with("other", &["encrypt", "store", "--new-key-file", "none"]));
}

#[test]
fn what_is_whole_of_a_damaged_store_is_saved() {
    let shell = encrypted();
    let entries = |store| shell.run(with("key", &["scan", store, "--count"])).text();
    let before: u64 = entries("store").trim().parse().expect("a number");
    let pool = shell.path("store").join("pool");
    let mut bytes = std::fs::read(&pool).expect("the pool");
    // Behind the structures at the beginning, so that leaves are hit.
    let middle = bytes.len() / 2;
    bytes[middle..middle + 600].fill(0x55);
    std::fs::write(&pool, bytes).expect("write");
    let found = shell.run(with("key", &["check", "store"]));
    assert!(found.code == 5 && found.text().contains("pool"), "{}{}", found.text(), found.stderr);
    shell.ok(with("key", &["repair", "store"]));
    assert!(shell.path("store.damaged").exists());
    shell.ok(with("key", &["check", "store"]));
    let after: u64 = entries("store").trim().parse().expect("a number");
    assert!(after <= before && after * 2 > before, "{after} of {before}");
    shell.fails(9, ["scan", "store"]);
    assert!(!shows(&shell.path("store"), b"Package: "), "a record is seen");
    // The key file is written twice: one of both is enough.
    let key = shell.path("store").join("key");
    let mut bytes = std::fs::read(&key).expect("the key file");
    bytes[20] ^= 1;
    std::fs::write(&key, &bytes).expect("write");
    shell.ok(with("key", &["scan", "store"]));
    bytes.fill(0);
    std::fs::write(&key, bytes).expect("write");
    let stderr = shell.fails(5, with("key", &["scan", "store"]));
    assert!(stderr.contains("key"), "{stderr}");
}
