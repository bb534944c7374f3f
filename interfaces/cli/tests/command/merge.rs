//! Merge operators: recorded for a keyspace, shown, and used by the verb merge.

use std::sync::Arc;

use adamant::{KeyspaceOptions, MergeError, MergeOperator, Options, Store};
use serde_json::Value;

use crate::support::Shell;

fn json(bytes: Vec<u8>) -> Vec<Value> {
    let text = String::from_utf8(bytes).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// The value of a counter, as the command prints it.
fn integer(shell: &Shell, keyspace: &str, key: &str) -> String {
    let text = shell.ok(["get", "store", key, "--keyspace", keyspace, "--integer"]);
    String::from_utf8(text).expect("UTF-8").trim_end().to_owned()
}

#[test]
fn integers_are_merged_and_shown_in_decimal() {
    for engine in ["bplus", "lsm"] {
        let shell = Shell::new();
        for (operator, operands, expected) in [
            ("add", &["5", "-7", "1"][..], "-1"),
            ("max_u64", &["3", "18446744073709551615", "4"], "18446744073709551615"),
            ("min_u64", &["3", "18446744073709551615", "4"], "3"),
            ("max_i64", &["-3", "-9223372036854775808"], "-3"),
            ("min_i64", &["-3", "9223372036854775807", "-4"], "-4"),
        ] {
            let create = ["keyspace", "create", "store", operator, "--engine", engine];
            shell.ok([&create[..], &["--merge-operator", operator]].concat());
            for operand in operands {
                let merge = ["merge", "store", "key", operand, "--keyspace", operator];
                assert_eq!(shell.ok(merge), b"");
            }
            assert_eq!(integer(&shell, operator, "key"), expected, "{operator}, {engine}");
            let get = ["get", "store", "key", "--keyspace", operator, "--json"];
            let shown = &json(shell.ok([&get[..], &["--integer"]].concat()))[0];
            assert_eq!(shown["integer"].to_string(), expected);
            assert_eq!(shown["key"], "key");
            assert_eq!(shell.ok(&get[..5]).len(), 8, "byte for byte");
        }
        shell.ok(["check", "store"]);
    }
}

#[test]
fn bytes_are_merged_from_the_command_line_base64_and_standard_input() {
    let shell = Shell::new();
    shell.ok(["keyspace", "create", "store", "default", "--merge-operator", "append"]);
    shell.ok(["merge", "store", "list", "one,"]);
    let shown = json(shell.ok(["merge", "store", "list", "2,", "--json"]));
    assert_eq!(shown[0]["key"], "list");
    shell.ok(["merge", "store", "bGlzdA==", "/w==", "--base64"]);
    let from_input = shell.run_with(["merge", "store", "list", "-"], b"\n,three");
    assert_eq!((from_input.code, &*from_input.stderr), (0, ""));
    assert_eq!(shell.ok(["get", "store", "list"]), b"one,2,\xff\n,three");
    // Bytes of an integer, and other bytes.
    shell.ok(["keyspace", "create", "store", "hits", "--merge-operator", "add"]);
    let merge = ["merge", "store", "--keyspace", "hits", "--base64", "AA=="];
    shell.ok([&merge[..], &["AQAAAAAAAAA="]].concat());
    let words = shell.fails(4, [&merge[..], &["AQ=="]].concat());
    assert!(words.contains("8 bytes") && words.contains("\"add\""), "{words}");
    let get = ["get", "store", "--keyspace", "hits", "--base64", "AA==", "--integer"];
    assert_eq!(shell.ok(get), b"1\n");
}

#[test]
fn a_keyspace_shows_its_operator_and_keeps_it() {
    let shell = Shell::with_sample();
    let options = ["keyspace", "options", "store", "default"];
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    assert!(text(shell.ok(options)).contains("merge operator none"));
    shell.ok([&options[..], &["--merge-operator", "append"]].concat());
    for engine in ["lsm", "bplus"] {
        shell.ok(["keyspace", "convert", "store", "default", "--engine", engine]);
        assert!(text(shell.ok(options)).contains("merge operator append"), "{engine}");
        let shown = json(shell.ok([&options[..], &["--json"]].concat()));
        assert_eq!(shown[0]["merge_operator"], "append");
        assert!(text(shell.ok(["keyspace", "list", "store"])).contains("merges by append"));
        let listed = json(shell.ok(["keyspace", "list", "store", "--json"]));
        assert_eq!(listed[0]["merge_operator"], "append");
        let before = shell.ok(["get", "store", "hatari"]);
        shell.ok(["merge", "store", "hatari", "!"]);
        assert_eq!(shell.ok(["get", "store", "hatari"]), [&before[..], b"!"].concat());
    }
    let words = shell.fails(4, [&options[..], &["--merge-operator", "add"]].concat());
    assert!(words.contains("\"append\"") && words.contains("\"add\""), "{words}");
}

#[test]
fn what_cannot_be_merged_is_said_with_what_was_expected() {
    let shell = Shell::with_sample();
    let words = shell.fails(4, ["merge", "store", "hatari", "1"]);
    assert!(words.contains("--merge-operator") && words.contains("max_i64"), "{words}");
    let words = shell.fails(2, ["keyspace", "create", "store", "a", "--merge-operator", "sum"]);
    assert!(words.contains("\"sum\"") && words.contains("min_u64"), "{words}");
    shell.fails(3, ["merge", "nowhere", "k", "1"]);
    assert!(shell.fails(3, ["merge", "store", "k", "1", "--keyspace", "no"]).contains("no"));

    shell.ok(["keyspace", "create", "store", "hits", "--merge-operator", "add"]);
    for (operand, says) in [("one", "\"one\""), ("1.0", "--base64"), ("", "integer")] {
        let words = shell.fails(4, ["merge", "store", "--keyspace", "hits", "k", operand]);
        assert!(words.contains(says) && words.contains("add"), "{operand:?}: {words}");
    }
    shell.fails(3, ["get", "store", "k", "--keyspace", "hits", "--integer"]);
    assert!(shell.fails(4, ["get", "store", "hatari", "--integer"]).contains("8 bytes"));
    let words = shell.fails(4, ["keyspace", "options", "store", "hits", "--merge-operator", "or"]);
    assert!(words.contains("\"add\"") && words.contains("\"or\""), "{words}");
    // Values that the operator does not take stay what they are.
    shell.ok(["put", "store", "--keyspace", "hits", "text", "no integer"]);
    let words = shell.fails(4, ["merge", "store", "--keyspace", "hits", "text", "1"]);
    assert!(words.contains("10 bytes"), "{words}");
    assert_eq!(shell.ok(["get", "store", "text", "--keyspace", "hits"]), b"no integer");

    // Those of other kinds have none.
    shell.write("pairs", "{\"key\":\"k\",\"value\":\"v\"}\n");
    shell.ok(["import", "store", "pairs", "--multimap", "--keyspace", "pairs"]);
    let words = shell.fails(4, ["merge", "store", "--keyspace", "pairs", "k", "v"]);
    assert!(words.contains("multimap"), "{words}");
    let words = shell.fails(1, ["keyspace", "options", "store", "pairs", "--merge-operator", "or"]);
    assert!(words.contains("multimap"), "{words}");
}

struct Longest;

impl MergeOperator for Longest {
    fn merge(
        &self,
        _key: &[u8],
        older: &[u8],
        newer: &[u8],
        merged: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        merged.extend_from_slice(if newer.len() > older.len() { newer } else { older });
        Ok(())
    }
}

/// The command has no operators of programs: it names those, and merges nothing.
#[test]
fn an_operator_of_a_program_is_named() {
    let shell = Shell::new();
    let options = Options::new().merge_operator("longest", Arc::new(Longest));
    let store = Store::open_with(shell.path("store"), options).unwrap();
    let keyspace = KeyspaceOptions::new().engine(adamant::Engine::Lsm).merge_operator("longest");
    let words = store.keyspace_with("words", keyspace).unwrap();
    words.put("k", "one").unwrap();
    words.compact().unwrap();
    words.merge("k", "three").unwrap();
    drop(words);
    store.close().unwrap();
    let list = String::from_utf8(shell.ok(["keyspace", "list", "store"])).unwrap();
    assert!(list.contains("merges by longest"), "{list}");
    for verb in [&["merge", "store", "k", "four"][..], &["get", "store", "k"]] {
        let words = shell.fails(8, [verb, &["--keyspace", "words"]].concat());
        assert!(words.contains("\"longest\"") && words.contains("\"words\""), "{words}");
    }
}
