//! Persistent savepoints by the command.

use adamant::Store;
use serde_json::Value;

use crate::support::Shell;

fn listed(shell: &Shell) -> Vec<Value> {
    let text = String::from_utf8(shell.ok(["savepoint", "list", "store", "--json"])).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn savepoints_are_made_read_gone_back_to_and_deleted() {
    let shell = Shell::new();
    shell.ok(["put", "store", "tea", "3"]);
    shell.ok(["savepoint", "create", "store", "one"]);
    shell.ok(["put", "store", "tea", "4"]);
    shell.ok(["savepoint", "create", "store", "two"]);
    let message = shell.fails(4, ["savepoint", "create", "store", "two"]);
    assert!(message.contains("\"two\" already"), "{message}");
    shell.ok(["put", "store", "tea", "5"]);
    let found = listed(&shell);
    let names: Vec<_> = found.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(found.iter().all(|it| it["bytes"].as_u64() > Some(0) && it["state"] == "whole"));
    let text = String::from_utf8(shell.ok(["savepoint", "list", "store"])).unwrap();
    assert!(text.contains("\"one\"") && text.contains("bytes"), "{text}");
    shell.ok(["savepoint", "backup", "store", "one", "copy"]);
    assert_eq!(shell.ok(["get", "copy", "tea"]), b"3");
    shell.ok(["savepoint", "restore", "store", "one"]);
    assert_eq!(shell.ok(["get", "store", "tea"]), b"3");
    shell.ok(["savepoint", "restore", "store", "two"]);
    assert_eq!(shell.ok(["get", "store", "tea"]), b"4");
    for verb in ["restore", "delete"] {
        let message = shell.fails(3, ["savepoint", verb, "store", "three"]);
        assert!(message.contains("\"three\""), "{message}");
    }
    let message = shell.fails(4, ["compact", "store"]);
    assert!(message.contains("(one, two)"), "{message}");
    let store = Store::open(shell.path("store")).unwrap();
    shell.fails(6, ["savepoint", "restore", "store", "one"]);
    store.close().unwrap();
    for name in ["one", "two"] {
        shell.ok(["savepoint", "delete", "store", name]);
    }
    assert!(listed(&shell).is_empty());
    shell.ok(["compact", "store"]);
    assert_eq!(shell.ok(["get", "store", "tea"]), b"4");
}
