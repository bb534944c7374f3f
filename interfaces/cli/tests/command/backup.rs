//! Copies of stores, back from them, and stores made small.

use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{SAMPLE, Shell};

fn object(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("a JSON object")
}

#[test]
fn a_backup_is_restored() {
    let shell = Shell::with_sample();
    let content = shell.ok(["export", "store"]);
    let made = object(&shell.ok(["backup", "store", "monday", "--json"]));
    assert_eq!(made["backup"], "monday");
    shell.ok(["put", "store", "late", "x"]);
    std::fs::create_dir(shell.path("again")).expect("a folder");
    for target in ["new", "again"] {
        let restored = object(&shell.ok(["restore", "monday", target, "--json"]));
        assert_eq!(restored["restored"], target);
        shell.ok(["check", target]);
        assert_eq!(shell.ok(["export", target]), content);
    }
    assert_eq!(shell.ok(["export", "monday"]), content);
    let words = shell.run(["backup", "store", "tuesday"]);
    assert!(words.code == 0 && words.stderr.contains("tuesday is a copy"), "{}", words.stderr);
}

#[test]
fn increments_are_read_and_restored_as_any_store() {
    let shell = Shell::with_sample();
    shell.ok(["backup", "store", "monday"]);
    shell.ok(["put", "store", "day", "tuesday"]);
    let tuesday = shell.ok(["export", "store"]);
    let made = object(&shell.ok(["backup", "store", "tuesday", "--since", "monday", "--json"]));
    assert_eq!((&made["backup"], &made["since"]), (&"tuesday".into(), &"monday".into()));
    let number = |name: &str| made[name].as_u64().expect("a number");
    assert!(number("blocks") * 4 < number("pool_blocks") && number("bytes") > 4096, "{made}");
    shell.ok(["put", "store", "day", "wednesday"]);
    let wednesday = shell.ok(["export", "store"]);
    let made = shell.run(["backup", "store", "wednesday", "--since", "tuesday"]);
    assert!(made.stderr.contains("wednesday is what changed since tuesday"), "{}", made.stderr);
    for (name, content) in [("tuesday", tuesday), ("wednesday", wednesday)] {
        assert_eq!(shell.ok(["export", name]), content);
        assert_eq!(shell.ok(["get", name, "day"]), name.as_bytes());
        assert!(!shell.ok(["scan", name, "--count"]).is_empty());
        shell.ok(["stat", name]);
        shell.ok(["check", name]);
        let target = format!("restored {name}");
        shell.ok(["restore", name, &target]);
        assert_eq!(shell.ok(["export", &target]), content);
        shell.ok(["check", &target]);
    }
    for write in
        [&["put", "tuesday", "a", "b"][..], &["compact", "tuesday"], &["repair", "tuesday"]]
    {
        let stderr = shell.fails(8, write.iter().copied());
        assert!(stderr.contains("tuesday is an increment"), "{stderr}");
    }
    let stderr = shell.fails(4, ["backup", "store", "new", "--since", "store"]);
    assert!(stderr.contains("the store itself"), "{stderr}");
    shell.fails(2, ["backup", "store", "new", "--since", "monday", "--link"]);
    shell.fails(3, ["backup", "store", "new", "--since", "sunday"]);

    std::fs::rename(shell.path("tuesday"), shell.path("gone")).expect("it is ours");
    let stderr = shell.fails(3, ["restore", "wednesday", "new"]);
    assert!(stderr.contains("tuesday") && stderr.contains("nothing"), "{stderr}");
    std::fs::rename(shell.path("gone"), shell.path("tuesday")).expect("it is ours");
    let file = shell.path("tuesday").join("increment");
    let mut bytes = std::fs::read(&file).expect("the increment");
    bytes[4096 + 77] ^= 1;
    std::fs::write(&file, bytes).expect("write");
    let stderr = shell.fails(5, ["restore", "tuesday", "new"]);
    assert!(stderr.contains("tuesday/increment") && stderr.contains("checksum"), "{stderr}");
    assert!(!shell.path("new").exists() && !shell.path("new.restoring").exists());
}

/// Whenever it is killed, the backups below it are whole, and the next run cleans up.
#[test]
fn making_an_increment_is_killed() {
    let shell = Shell::with_sample();
    shell.ok(["backup", "store", "monday"]);
    for keyspace in ["a", "b", "c", "d"] {
        shell.ok(["import", "store", SAMPLE, "--keyspace", keyspace]);
    }
    let content = shell.ok(["export", "store", "--keyspace", "d"]);
    let mut random = fastrand::Rng::with_seed(6);
    let (mut left, mut made) = (0, 0);
    for _ in 0..25 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_adamant"))
            .args(["backup", "store", "tuesday", "--since", "monday"])
            .current_dir(shell.path("."))
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("run the command");
        std::thread::sleep(Duration::from_micros(random.u64(..40_000)));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        left += u32::from(shell.path("tuesday.backing-up").exists());
        shell.ok(["check", "monday"]);
        if shell.path("tuesday").exists() {
            made += 1;
            shell.ok(["check", "tuesday"]);
            assert_eq!(shell.ok(["export", "tuesday", "--keyspace", "d"]), content);
            std::fs::remove_dir_all(shell.path("tuesday")).expect("it is ours");
        }
    }
    println!("{left} left, {made} made");
    shell.ok(["backup", "store", "tuesday", "--since", "monday"]);
    assert!(!shell.path("tuesday.backing-up").exists());
    shell.ok(["check", "tuesday"]);
}

#[test]
fn what_is_in_the_way_of_a_copy_is_left_alone() {
    let shell = Shell::with_sample();
    shell.ok(["backup", "store", "monday"]);
    shell.write("file", "precious");
    for verb in [["backup", "store"], ["restore", "monday"]] {
        for target in ["file", "store", "monday"] {
            let stderr = shell.fails(4, verb.into_iter().chain([target]));
            assert!(stderr.contains("already"), "{stderr}");
        }
        let inside = format!("{}/copy", verb[1]);
        assert!(shell.fails(4, verb.into_iter().chain([&*inside])).contains("within"));
        shell.fails(3, verb.into_iter().chain(["no such/copy"]));
    }
    assert_eq!(std::fs::read(shell.path("file")).expect("a file"), b"precious");
    shell.fails(3, ["backup", "nothing", "copy"]);
    shell.fails(3, ["restore", "nothing", "copy"]);
    assert!(!shell.path("copy").exists());
}

#[test]
fn nothing_is_restored_from_a_backup_that_is_damaged() {
    let shell = Shell::with_sample();
    shell.ok(["backup", "store", "monday"]);
    let pool = shell.path("monday").join("pool");
    let bytes = std::fs::read(&pool).expect("the pool");
    let at = bytes.windows(9).rposition(|bytes| bytes == b"Package: ").expect("a record");
    let file = std::fs::OpenOptions::new().write(true).open(&pool).expect("the pool");
    file.write_all_at(b"Pockage: ", at as u64).expect("write");
    let stderr = shell.fails(5, ["restore", "monday", "new"]);
    assert!(stderr.contains("monday") && stderr.contains("adamant repair"), "{stderr}");
    // A copy of it says so as well.
    let stderr = shell.fails(5, ["backup", "monday", "new"]);
    assert!(stderr.contains("pool") && stderr.contains("checksum"), "{stderr}");
    assert!(!shell.path("new").exists() && !shell.path("new.backing-up").exists());
}

#[test]
fn compacting_gives_back_what_removals_left() {
    let shell = Shell::with_sample();
    let pool = || std::fs::metadata(shell.path("store").join("pool")).expect("the pool").len();
    for keyspace in ["a", "b", "c", "d"] {
        shell.ok(["import", "store", SAMPLE, "--keyspace", keyspace]);
    }
    shell.ok(["keyspace", "create", "store", "empty", "--engine", "critbit"]);
    for keyspace in ["a", "b", "c"] {
        shell.ok(["keyspace", "drop", "store", keyspace]);
    }
    let (before, content) = (pool(), shell.ok(["export", "store"]));
    let keyspaces = shell.ok(["keyspace", "list", "store"]);
    let compacted = object(&shell.ok(["compact", "store", "--json"]));
    let number = |name: &str| compacted[name].as_u64().expect("a number");
    assert!(number("bytes_after") < number("bytes_before"), "{compacted}");
    assert!(pool() < before / 3 * 2, "{before} and {} bytes", pool());
    assert_eq!(shell.ok(["export", "store"]), content);
    assert_eq!(shell.ok(["keyspace", "list", "store"]), keyspaces);
    shell.ok(["check", "store"]);
    assert!(!shell.path("store.compacting").exists());
    assert!(shell.run(["compact", "store"]).stderr.contains("now"));
    shell.fails(3, ["compact", "nothing"]);
    shell.write("file", "precious");
    shell.fails(8, ["compact", "file"]);
}

/// Whenever it is killed, the store is there, whole, and the next run cleans up.
#[test]
fn compacting_is_killed() {
    let shell = Shell::with_sample();
    for keyspace in ["a", "b", "c", "d", "e", "f"] {
        shell.ok(["import", "store", SAMPLE, "--keyspace", keyspace]);
    }
    let content = shell.ok(["export", "store", "--keyspace", "d"]);
    let keyspaces = shell.ok(["keyspace", "list", "store"]);
    let mut random = fastrand::Rng::with_seed(5);
    let mut left = 0;
    for _ in 0..25 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_adamant"))
            .args(["compact", "store"])
            .current_dir(shell.path("."))
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("run the command");
        std::thread::sleep(Duration::from_micros(random.u64(..60_000)));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        left += u32::from(shell.path("store.compacting").exists());
        assert_eq!(shell.ok(["keyspace", "list", "store"]), keyspaces);
    }
    println!("{left} of 25 were killed in its midst");
    shell.ok(["compact", "store"]);
    assert!(!shell.path("store.compacting").exists());
    assert_eq!(shell.ok(["export", "store", "--keyspace", "d"]), content);
    shell.ok(["check", "store"]);
}

/// Beside a program that has the store open, as a server has.
#[test]
fn what_only_reads_works_beside_a_writer() {
    let shell = Shell::with_sample();
    let writer = adamant::Store::open(shell.path("store")).expect("a store");
    writer.keyspace("late").expect("made").put("key", "old").expect("put");
    let export = ["export", "store", "--keyspace", "late"];
    let before = shell.ok(export);
    assert_eq!(shell.ok(["get", "store", "key", "--keyspace", "late"]), b"old");
    shell.ok(["check", "store"]);
    shell.ok(["stat", "store"]);
    shell.ok(["scan", "store", "--keyspace", "late"]);
    shell.ok(["backup", "store", "monday"]);
    writer.keyspace("late").expect("is there").put("key", "new").expect("put");
    assert_ne!(shell.ok(export), before);
    let refused = shell.run(["put", "store", "key", "x", "--keyspace", "late"]);
    assert!(refused.code != 0 && refused.stderr.contains("held by"), "{}", refused.stderr);
    assert_eq!(shell.ok(["export", "monday", "--keyspace", "late"]), before);
}
