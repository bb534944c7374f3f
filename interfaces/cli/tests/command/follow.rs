//! The feed of changes as the command shows it, beside a program that writes and without one.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use adamant::{Deadline, Engine, KeyspaceOptions, Store};
use serde_json::{Value, json};

use crate::support::Shell;

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

fn objects(bytes: &[u8]) -> Vec<Value> {
    lines(bytes).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A store with every kind of change that a program makes often.
fn changed(shell: &Shell) -> Store {
    let store = Store::open(shell.path("store")).expect("a new store");
    store.record_changes(Some(1 << 20)).expect("room");
    // Of other engines, the removal of a range is that of each entry.
    let options = KeyspaceOptions::new().engine(Engine::Lsm);
    let towns = store.keyspace_with("towns", options).expect("a keyspace");
    towns.put("Bern", "134\t000").expect("room");
    towns.put([0xff], [0xfe]).expect("room");
    towns.rename("Bern", "Berne").expect("room");
    towns.delete([0xff]).expect("room");
    towns.delete_range("A".."C").expect("room");
    let sessions = store.expiring("sessions").expect("a keyspace");
    let end = Deadline::from_millis(1_900_000_000_000);
    sessions.put("ada", "token", Some(end)).expect("room");
    sessions.put("bob", "for ever", None).expect("room");
    store.rename_keyspace("towns", "places").expect("room");
    store
}

#[test]
fn each_change_is_a_line() {
    let shell = Shell::new();
    changed(&shell).close().expect("nothing is in progress");
    let expected = [
        "1\ttowns\tcreated",
        "2\ttowns\tput\tBern\t134\\t000",
        "3\ttowns\tput\t\\xff\t\\xfe",
        "4\ttowns\tmoved\tBern\ttowns\tBerne",
        "5\ttowns\tremoved\t\\xff",
        "6\ttowns\trange removed\t>= A\t< C",
        "7\tsessions\tcreated",
        "8\tsessions\tput\tada\ttoken\tuntil 1900000000000",
        "9\tsessions\tput\tbob\tfor ever",
        "10\ttowns\trenamed\tplaces",
    ];
    assert_eq!(lines(&shell.ok(["watch", "store", "--once"])), expected);
    let some = shell.ok(["watch", "store", "--once", "--from", "4", "--limit", "2"]);
    assert_eq!(lines(&some), expected[3..5]);
    let some = shell.ok(["watch", "store", "--once", "--keyspace", "sessions", "--limit", "2"]);
    assert_eq!(lines(&some), expected[6..8]);
    let some = shell.ok(["watch", "store", "--once", "--keyspace", "places"]);
    assert_eq!(lines(&some), expected[9..]);
    // The number of the next one.
    assert_eq!(lines(&shell.ok(["watch", "store", "--once", "--from", "11"])), [""; 0]);
    assert!(shell.fails(3, ["watch", "store", "--from", "12"]).contains("up to 10"));
}

#[test]
fn each_commit_is_an_object() {
    let shell = Shell::new();
    changed(&shell).close().expect("nothing is in progress");
    let found = objects(&shell.ok(["watch", "store", "--once", "--json"]));
    let change = |number: usize| {
        assert_eq!(found[number - 1]["commit"], number);
        let mut change = found[number - 1]["changes"][0].clone();
        change.as_object_mut().expect("a change").remove("keyspace_id").expect("a number");
        change
    };
    assert_eq!(
        change(2),
        json!({"change": "put", "keyspace": "towns", "key": "Bern", "value": "134\t000"})
    );
    assert_eq!(
        change(3),
        json!({"change": "put", "keyspace": "towns", "key_base64": "/w==", "value_base64": "/g=="})
    );
    assert_eq!(change(4)["target_key"], "Berne");
    assert_eq!(
        change(6),
        json!({"change": "range removed", "keyspace": "towns", "from": "A", "from_included": true,
            "to": "C", "to_included": false})
    );
    assert_eq!(change(8)["value"], "token");
    assert_eq!(change(8)["deadline"], 1_900_000_000_000_u64);
    assert_eq!(change(9).get("deadline"), None);
    assert_eq!(change(10)["new_name"], "places");
}

/// The command, as it runs.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn new(shell: &Shell, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_adamant"))
            .args(arguments)
            .current_dir(shell.path("."))
            .stdout(Stdio::piped())
            .spawn()
            .expect("run the command");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

#[test]
fn commits_are_printed_as_they_come_until_a_signal() {
    let shell = Shell::new();
    let store = changed(&shell);
    let jobs = store.keyspace("jobs").expect("a keyspace");
    let mut watch = Running::new(&shell, &["watch", "store", "--from", "11"]);
    assert_eq!(watch.line(), "11\tjobs\tcreated");
    for number in 12..20_u64 {
        jobs.put("job", number.to_string()).expect("room");
        assert_eq!(watch.line(), format!("{number}\tjobs\tput\tjob\t{number}"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        let id = watch.child.id().to_string();
        // Not that of Ctrl-C, which is ignored where tests run in the background.
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        assert_eq!(watch.child.wait().expect("it ends").signal(), Some(15));
        assert_eq!(watch.line(), "");
    }
    let _ = watch.child.kill();
    // Nobody is kept from anything, and what is left of the reader goes.
    jobs.put("job", "more").expect("room");
    assert!(Store::open_beside(shell.path("store")).is_ok());
    assert!(store.check().expect("it is open").is_clean());
}

#[test]
fn a_closed_pipe_ends_it() {
    let shell = Shell::new();
    let store = changed(&shell);
    let jobs = store.keyspace("jobs").expect("a keyspace");
    let mut watch = Running::new(&shell, &["watch", "store", "--from", "1"]);
    assert_eq!(watch.line(), "1\ttowns\tcreated");
    drop(watch.lines);
    let code = loop {
        jobs.put("job", "sweep").expect("room");
        if let Some(status) = watch.child.try_wait().expect("it runs") {
            break status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(code, Some(0));
}

#[test]
fn recording_begins_and_ends() {
    let shell = Shell::new();
    shell.fails(3, ["changes", "store"]);
    shell.fails(3, ["changes", "store", "--keep", "1MiB"]);
    shell.ok(["put", "store", "Bern", "134,000"]);
    assert!(lines(&shell.ok(["changes", "store"]))[0].contains("not recorded"));
    assert!(shell.fails(3, ["watch", "store", "--once"]).contains("record"));
    for wrong in [&["--keep", "64MB"][..], &["--keep", "1MiB", "--stop"]] {
        assert_eq!(shell.run([&["changes", "store"], wrong].concat()).code, 2);
    }
    shell.ok(["changes", "store", "--keep", "1MiB"]);
    shell.ok(["put", "store", "Bern", "135,000"]);
    let store = Store::open(shell.path("store")).expect("the store");
    store.set_cursor("worker", 1).expect("room");
    assert_eq!(shell.run(["changes", "store", "--stop"]).code, 6, "the store is open");
    let found = objects(&shell.ok(["changes", "store", "--json"])).remove(0);
    assert_eq!((&found["first"], &found["last"]), (&json!(1), &json!(1)));
    assert_eq!((&found["bytes_max"], &found["cursors"]), (&json!(1 << 20), &json!({"worker": 1})));
    store.close().expect("nothing is in progress");
    let text = lines(&shell.ok(["changes", "store"])).join("\n");
    assert!(text.contains("1,048,576") && text.contains("1 at \"worker\""), "{text}");
    shell.ok(["changes", "store", "--stop"]);
    let found = objects(&shell.ok(["changes", "store", "--json"])).remove(0);
    assert_eq!(found, json!({"recorded": false}));
}

/// The keyspace of the history, where other verbs meet it.
#[test]
fn other_verbs_let_the_history_be() {
    let shell = Shell::new();
    changed(&shell).close().expect("nothing is in progress");
    let name = "adamant.changes";
    let listed = shell.ok(["keyspace", "list", "store"]);
    assert!(lines(&listed).iter().any(|line| line.ends_with("\"adamant.changes\"  changes")));
    for verb in [
        &["put", "store", "--keyspace", name, "key", "value"][..],
        &["delete", "store", "--keyspace", name, "key"],
        &["keyspace", "drop", "store", name],
        &["keyspace", "rename", "store", name, "mine"],
        &["keyspace", "convert", "store", name, "--engine", "lsm"],
    ] {
        shell.fails(4, verb.iter().copied());
    }
    // It can be looked at, as it is stored.
    let count = shell.ok(["scan", "store", "--keyspace", name, "--count"]);
    assert_eq!(lines(&count), ["11"]);
    let before = shell.ok(["watch", "store", "--once"]);
    shell.ok(["check", "store"]);
    shell.ok(["stat", "store"]);
    shell.ok(["compact", "store"]);
    assert_eq!(shell.ok(["watch", "store", "--once"]), before);
    shell.ok(["backup", "store", "copy"]);
    assert_eq!(shell.ok(["watch", "copy", "--once"]), before);
    shell.ok(["repair", "store"]);
    shell.ok(["check", "store"]);
    assert_eq!(shell.ok(["watch", "store", "--once"]), before);
}
