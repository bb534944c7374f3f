//! A directory on a disk that is full: a commit waits for room, fails when it has waited long
//! enough, and nothing that returned is lost; with room the store goes on.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adamant_remote::{Error, Options, Store};

/// A file system in memory, of a size; none where mounting is not allowed.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(kib: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], folder.path()).then_some(Self(folder))
    }

    fn grow(&self) {
        assert!(mount(&["-o", "remount,size=64m"], self.0.path()));
    }

    fn open(&self, wait_ms_max: u64) -> Store {
        let url = format!("slatedb+file://{}/store", self.0.path().display());
        Store::open_with(&url, Options::new().flush_ms(2).wait_ms_max(wait_ms_max)).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What a thread of a store still has open goes with the last of them.
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

fn mount(options: &[&str], path: &Path) -> bool {
    let output = Command::new("mount").args(options).arg(path).output();
    output.is_ok_and(|output| output.status.success())
}

fn key(number: u64) -> String {
    format!("key {number:06}")
}

#[test]
fn a_full_disk_loses_nothing_that_returned() {
    for kib in [2 << 10, 3 << 10] {
        let Some(disk) = Disk::new(kib) else {
            println!("skipped: a full disk: mounting needs the privilege");
            return;
        };
        let store = disk.open(3_000);
        let keyspace = store.keyspace("main").unwrap();
        let value = vec![7; 40_000];
        let mut returned = 0;
        let error = loop {
            match keyspace.put(key(returned), &value) {
                Ok(()) => returned += 1,
                Err(error) => break error,
            }
            assert!(returned < 1_000, "{kib} KiB hold {returned} values");
        };
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(returned > 10, "{returned}: {error}");
        drop(keyspace);
        let _ = store.close();

        disk.grow();
        let store = disk.open(120_000);
        let keyspace = store.open_keyspace("main").unwrap();
        for number in 0..returned {
            let found = keyspace.get(key(number)).unwrap();
            assert!(
                found.is_some_and(|found| found[..] == value[..]),
                "{kib} KiB: {number} is lost"
            );
        }
        assert!(keyspace.len().unwrap() <= returned + 1);
        keyspace.put("after", "v").unwrap();
        store.close().unwrap();
    }
}

/// Whoever waits for room goes on when there is some.
#[test]
fn a_commit_waits_for_room() {
    let Some(disk) = Disk::new(2 << 10) else {
        println!("skipped: a full disk: mounting needs the privilege");
        return;
    };
    let store = disk.open(120_000);
    let keyspace = store.keyspace("main").unwrap();
    let value = vec![7; 40_000];
    std::thread::scope(|scope| {
        let writer =
            scope.spawn(|| (0..80).try_for_each(|number| keyspace.put(key(number), &value)));
        std::thread::sleep(Duration::from_secs(2));
        assert!(!writer.is_finished(), "the disk did not get full");
        disk.grow();
        writer.join().unwrap().unwrap();
    });
    assert_eq!(keyspace.len().unwrap(), 80);
    drop(keyspace);
    store.close().unwrap();
}
