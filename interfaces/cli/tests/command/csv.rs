//! CSV in and out, keyspaces with other names, and words for shells.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::support::Shell;

#[test]
fn a_table_goes_in_and_comes_out() {
    let shell = Shell::new();
    let table = "town,name,mail,note\n\
                 Paris,blaise,b@example.org,\"says \"\"hm\"\"\"\n\
                 London,ada,a@example.org,\"two\nlines\"\n\
                 Paris,sophie,s@example.org,\n";
    shell.write("people.csv", table);
    let import = ["import", "store", "people.csv", "--csv"];
    shell.ok(import.into_iter().chain(["--key", "town,name", "--value", "note"]));
    assert_eq!(shell.ok(["get", "store", "London\tada"]), b"two\nlines");
    let csv = shell.ok(["export", "store", "--csv", "--key", "town,name", "--value", "note"]);
    let expected = "town,name,note\n\
                    London,ada,\"two\nlines\"\n\
                    Paris,blaise,\"says \"\"hm\"\"\"\n\
                    Paris,sophie,\n";
    assert_eq!(String::from_utf8_lossy(&csv), expected);

    let values = ["--key", "name", "--value", "mail,town", "--separator", "::"];
    shell.ok(import.into_iter().chain(["--keyspace", "mail"]).chain(values));
    assert_eq!(shell.ok(["get", "store", "ada", "--keyspace", "mail"]), b"a@example.org::London");
    let out = ["export", "store", "mail.csv", "--csv", "--keyspace", "mail"];
    shell.ok(out.into_iter().chain(values));
    let text = std::fs::read_to_string(shell.path("mail.csv")).expect("a file");
    assert!(text.starts_with("name,mail,town\nada,a@example.org,London\n"), "{text}");
    // Not all keys have two parts.
    let stderr = shell.fails(4, ["export", "store", "--csv", "--value", "a,b"]);
    assert!(stderr.contains("2 parts"), "{stderr}");
}

#[test]
fn any_bytes_survive_a_table() {
    let shell = Shell::new();
    shell.write("records", "{\"key_base64\":\"/1wA\",\"value\":\"C:\\\\new\\n\"}\n");
    shell.ok(["import", "store", "records"]);
    shell.ok(["export", "store", "table.csv", "--csv"]);
    let text = std::fs::read_to_string(shell.path("table.csv")).expect("a file in UTF-8");
    assert_eq!(text, "key,value\n\\xff\\\\\0,\"C:\\\\new\n\"\n");
    shell.ok(["import", "other", "table.csv", "--csv"]);
    assert_eq!(shell.ok(["export", "other"]), shell.ok(["export", "store"]));
    // As they are, on the way out and in.
    shell.ok(["export", "store", "raw.csv", "--csv", "--raw"]);
    shell.ok(["import", "raw", "raw.csv", "--csv", "--raw"]);
    assert_eq!(shell.ok(["export", "raw"]), shell.ok(["export", "store"]));
}

#[test]
fn a_bad_row_is_named_by_its_line() {
    let shell = Shell::new();
    shell.write("t.csv", "key,value\na,\"1\n2\"\nb\nc,3\n,4\nd,C:\\new\n");
    let import = ["import", "store", "t.csv", "--csv"];
    let stderr = shell.fails(4, import);
    assert!(stderr.contains("line 4 of t.csv: expected 2 columns, found 1"), "{stderr}");
    assert!(stderr.contains("nothing was imported") && !shell.path("store").exists(), "{stderr}");
    let stderr = shell.fails(4, import.into_iter().chain(["--partial"]));
    for named in ["line 4", "line 7", "2 malformed", "--raw"] {
        assert!(stderr.contains(named), "{named} in {stderr}");
    }
    assert_eq!(shell.ok(["scan", "store", "--count"]), b"3\n", "the empty key is one");
    let stderr = shell.fails(4, import.into_iter().chain(["--key", "id"]));
    assert!(stderr.contains("\"id\"") && stderr.contains("key, value"), "{stderr}");
    shell.fails(4, ["export", "store", "--csv", "--key", "a", "--value", "a"]);
    // Columns mean something in tables only.
    shell.fails(2, ["export", "store", "--key", "a"]);
    shell.fails(2, ["export", "store", "--csv", "--separator", ""]);
}

/// A table in Latin-1 went in byte for byte, and came out as another one.
#[test]
fn a_table_of_another_encoding_is_refused_by_its_line() {
    let shell = Shell::new();
    shell.write("latin.csv", b"key,value\na,1\nb,M\xfcnchen\n");
    let import = ["import", "store", "latin.csv", "--csv"];
    let stderr = shell.fails(4, import);
    assert!(stderr.contains("line 3 of latin.csv: expected UTF-8"), "{stderr}");
    assert!(stderr.contains("0xfc") && !shell.path("store").exists(), "{stderr}");
    shell.ok(import.into_iter().chain(["--raw"]));
    assert_eq!(shell.ok(["get", "store", "b"]), b"M\xfcnchen");
    shell.write("header.csv", b"k\xe4y,key,value\n1,a,1\n");
    let stderr = shell.fails(4, ["import", "other", "header.csv", "--csv"]);
    assert!(stderr.contains("line 1: expected UTF-8"), "{stderr}");
}

/// Lines of JSON with a byte order mark were refused.
#[test]
fn a_byte_order_mark_is_passed_over() {
    let shell = Shell::new();
    shell.write("marked.csv", "\u{feff}key,value\na,1\nb\n");
    shell.write("marked.jsonl", "\u{feff}{\"key\":\"c\",\"value\":\"3\"}\n");
    let stderr = shell.fails(4, ["import", "store", "marked.csv", "--csv", "--partial"]);
    assert!(stderr.contains("line 3 of marked.csv"), "{stderr}");
    shell.ok(["import", "store", "marked.jsonl"]);
    assert_eq!(shell.ok(["scan", "store"]), b"a\t1\nc\t3\n");
}

#[test]
fn a_keyspace_is_renamed() {
    let shell = Shell::with_sample();
    let content = shell.ok(["export", "store"]);
    shell.ok(["keyspace", "rename", "store", "default", "packages"]);
    assert_eq!(shell.ok(["export", "store", "--keyspace", "packages"]), content);
    shell.fails(3, ["export", "store"]);
    shell.fails(3, ["keyspace", "rename", "store", "default", "other"]);
    shell.ok(["keyspace", "create", "store", "default"]);
    let stderr = shell.fails(4, ["keyspace", "rename", "store", "packages", "default"]);
    assert!(stderr.contains("already"), "{stderr}");
    shell.fails(4, ["keyspace", "rename", "store", "packages", ""]);
    shell.ok(["check", "store"]);
}

#[test]
fn shells_get_scripts() {
    let shell = Shell::new();
    for (name, sign) in
        [("bash", "complete -F"), ("zsh", "#compdef adamant"), ("fish", "complete -c")]
    {
        let script = String::from_utf8(shell.ok(["completions", name])).expect("UTF-8");
        assert!(script.contains(sign), "{name}: {script}");
        for word in ["backup", "compact", "keyspace", "--separator"] {
            assert!(script.contains(word.trim_start_matches('-')), "{word} for {name}");
        }
    }
    shell.fails(2, ["completions", "tcsh"]);
}

/// Verbs that only read leave no trace, and need no permission to write.
#[test]
fn who_only_reads_changes_nothing() {
    let shell = Shell::with_sample();
    shell.ok(["put", "store", "zlib1g", "x"]);
    for name in ["pool", "lock", "log", "."] {
        let path = shell.path("store").join(name);
        std::fs::set_permissions(path, Permissions::from_mode(0o555)).expect("ours");
    }
    let times = || {
        ["pool", "lock", "log", "."].map(|name| {
            let about = std::fs::metadata(shell.path("store").join(name)).expect("it is there");
            (about.modified().expect("a time"), about.len())
        })
    };
    let before = times();
    let verbs: [&[&str]; 9] = [
        &["get", "store", "zlib1g"],
        &["scan", "store", "--limit", "3"],
        &["export", "store"],
        &["stat", "store"],
        &["check", "store"],
        &["keyspace", "list", "store"],
        &["heap", "stat", "store"],
        &["heap", "map", "store"],
        &["heap", "check", "store"],
    ];
    for verb in verbs {
        shell.ok(verb);
    }
    shell.ok(["backup", "store", "copy"]);
    assert_eq!(times(), before);
    for name in ["pool", "lock", "log", "."] {
        let path = shell.path("store").join(name);
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("ours");
    }
    // Beside a reader others read, and nobody writes.
    let reader = adamant::Store::open_read_only(shell.path("store")).expect("a store");
    shell.ok(["get", "store", "zlib1g"]);
    let stderr = shell.fails(6, ["put", "store", "key", "value"]);
    assert!(stderr.contains(&std::process::id().to_string()), "{stderr}");
    drop(reader);
    shell.ok(["put", "store", "key", "value"]);
}
