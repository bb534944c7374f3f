//! A disk that fills up during an import: a file system of 16 MB in memory.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{SAMPLE, Shell, records};

/// A tmpfs in a shell's folder, unmounted on drop.
struct Mounted {
    path: PathBuf,
}

impl Mounted {
    /// `None` where mounting is not allowed.
    fn new(shell: &Shell) -> Option<Self> {
        let path = shell.path("disk");
        std::fs::create_dir(&path).expect("a folder");
        let arguments = ["-t", "tmpfs", "-o", "size=16m", "tmpfs"];
        let output = Command::new("mount").args(arguments).arg(&path).output();
        output.is_ok_and(|output| output.status.success()).then_some(Self { path })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // If it fails, the folder that holds it cannot be removed, which is seen.
        let _ = Command::new("umount").arg(&self.path).output();
    }
}

#[test]
fn a_disk_that_fills_up_during_an_import() {
    let shell = Shell::new();
    let Some(_mounted) = Mounted::new(&shell) else {
        println!("skipped: mounting a tmpfs needs the privilege");
        return;
    };
    // The sample again and again under new keys, in the order of the keys.
    let sample = records(SAMPLE);
    let line = |number: usize| {
        let value = &sample[number % sample.len()].1;
        serde_json::json!({"key": format!("{number:06}"), "value": value}).to_string() + "\n"
    };
    let text: String = (0..30_000).map(line).collect();
    shell.write("large.jsonl", text);
    let words = shell.fails(7, ["import", "disk/store", "large.jsonl", "--batch", "100"]);
    assert!(words.contains("No space"), "{words}");

    let count = String::from_utf8(shell.ok(["scan", "disk/store", "--count"])).expect("UTF-8");
    let count: usize = count.trim_end().parse().expect("a number");
    assert!(count >= 2_000 && count.is_multiple_of(100), "{count} of the batches of 100 are there");
    let reported: String = words.chars().filter(|&sign| sign != ',').collect();
    assert!(reported.contains(&format!(" {count} records were imported")), "{words}");

    // What was acknowledged is there, and can be read and removed.
    let exported = shell.ok(["export", "disk/store"]);
    let exported: Vec<serde_json::Value> = String::from_utf8(exported)
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    assert_eq!(exported.len(), count);
    for (number, record) in exported.iter().enumerate() {
        assert_eq!(record["key"], format!("{number:06}"));
        assert_eq!(record["value"], sample[number % sample.len()].1);
    }
    for number in 0..50 {
        shell.ok(["delete", "disk/store", &format!("{number:06}")]);
    }
    shell.ok(["check", "disk/store"]);
    shell.ok(["put", "disk/store", "after", "all"]);
}
