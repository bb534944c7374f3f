//! Copies to objects, which another program makes.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::Shell;

/// Puts the command into a folder, where it finds no program beside it that this test has not put
/// there. By another process: what this one writes cannot be run while a child of another test has
/// it open.
fn install(folder: &Path) {
    let own = env!("CARGO_BIN_EXE_adamant");
    let copied = Command::new("cp").arg(own).arg(folder.join("adamant")).status().expect("run cp");
    assert!(copied.success());
}

/// Runs it; it looks for programs in that folder alone.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(folder.join("adamant"));
    command.args(arguments).env("PATH", folder).output().expect("run the command")
}

#[test]
fn a_copy_is_left_to_its_program() {
    let shell = Shell::new();
    let folder = shell.path(".");
    install(&folder);
    let missing = run(&folder, &["copy", "store", "slatedb+s3://bucket/app"]);
    let words = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(8), "{words}");
    assert!(words.contains("adamant-remote") && words.contains("cargo install"), "{words}");

    let script = "printf '#!/bin/sh\\nprintf \"<%%s>\" \"$@\"\\n/bin/cat; exit 6\\n' > adamant-remote \
                  && chmod +x adamant-remote";
    let made = Command::new("sh").args(["-c", script]).current_dir(&folder).status();
    assert!(made.expect("run sh").success());
    let arguments = ["copy", "my store", "slatedb+s3://b/p", "--replace", "--engine", "lsm"];
    let ran = run(&folder, &[&["--json"], &arguments[..]].concat());
    assert_eq!(ran.status.code(), Some(6), "{}", String::from_utf8_lossy(&ran.stderr));
    let told = "<--json><copy><--replace><--engine><lsm><--><my store><slatedb+s3://b/p>";
    assert_eq!(String::from_utf8_lossy(&ran.stdout), told);
    let plain = run(&folder, &["copy", "a", "b"]);
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "<copy><--><a><b>");
    // The key goes by standard input.
    let key = "07".repeat(32);
    let file = shell.write("key", &key).display().to_string();
    let keyed = run(&folder, &["copy", "a", "b", "--key-file", &file, "--json"]);
    let told = format!("<--key-file><-><--json><copy><--><a><b>{key}");
    assert_eq!(String::from_utf8_lossy(&keyed.stdout), told);
}
