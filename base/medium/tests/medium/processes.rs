//! Properties that need another process: locks across processes, and the limits of the system.
//!
//! The children are the ignored tests of this file, run by name from the others.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use adamant_medium::address::region::Region;
use adamant_medium::error::Error;
use adamant_medium::storage::Directory;
use adamant_medium::system::os::OsDirectory;

const FOLDER: &str = "ADAMANT_TEST_FOLDER";

/// Runs one of the ignored tests below.
fn child(test: &str, folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("processes::{test}"), "--ignored", "--nocapture"]);
    spawned(&mut command, folder)
}

/// The same in a shell, after `setup`.
#[cfg(unix)]
fn child_after(setup: &str, test: &str, folder: &Path) -> Child {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!(r#"{setup} exec "$0" --exact "$1" --ignored --nocapture"#))
        .arg(std::env::current_exe().unwrap())
        .arg(format!("processes::{test}"));
    spawned(&mut command, folder)
}

fn spawned(command: &mut Command, folder: &Path) -> Child {
    command.env(FOLDER, folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The directory that the parent named; `None` when run without one, by `--include-ignored`.
fn directory_of_child() -> Option<OsDirectory> {
    Some(OsDirectory::open(std::env::var_os(FOLDER)?).unwrap())
}

#[test]
fn a_lock_excludes_other_processes_and_dies_with_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();

    let lock = directory.lock("lock").unwrap();
    let refused = child("child_is_refused", folder.path()).wait_with_output().unwrap();
    assert!(refused.status.success(), "{refused:?}");
    drop(lock);

    let mut holder = child("child_holds_the_lock", folder.path());
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("locked")));
    match directory.lock("lock").unwrap_err() {
        Error::Locked { holder: Some(name), .. } => {
            assert!(name.starts_with(&format!("process {} (", holder.id())), "{name}");
        }
        other => panic!("expected a lock held by the child, found {other:?}"),
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    directory.lock("lock").unwrap();
}

#[test]
#[ignore = "runs as a child of the test above"]
fn child_is_refused() {
    let Some(directory) = directory_of_child() else { return };
    assert!(matches!(directory.lock("lock"), Err(Error::Locked { holder: Some(_), .. })));
}

#[test]
#[ignore = "runs as a child of the test above"]
fn child_holds_the_lock() {
    let Some(directory) = directory_of_child() else { return };
    let _lock = directory.lock("lock").unwrap();
    println!("locked");
    // Until the parent kills us; its end of the pipe closes if it dies instead.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
#[cfg(unix)]
fn space_beyond_the_limit_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let setup = "trap '' XFSZ; ulimit -f 100;";
    let done =
        child_after(setup, "child_runs_out_of_space", folder.path()).wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
#[ignore = "runs as a child of the test above"]
fn child_runs_out_of_space() {
    let Some(directory) = directory_of_child() else { return };
    let file = directory.create("data").unwrap();
    file.allocate(0, 4096).unwrap();
    let error = file.allocate(4096, 1 << 20).unwrap_err();
    assert!(error.is_out_of_space(), "{error:?}");
    assert!(error.to_string().contains("1048576 bytes"), "{error}");
    assert_eq!(file.len().unwrap(), 4096);
    assert!(file.write_at(&[1; 100], 1 << 20).unwrap_err().is_out_of_space());
    assert!(file.set_len(1 << 20).unwrap_err().is_out_of_space());
    file.write_at(&[1; 100], 0).unwrap();
    file.sync().unwrap();
}

#[test]
#[cfg(unix)]
fn a_region_takes_what_the_limits_allow() {
    let folder = tempfile::tempdir().unwrap();
    let setup = "ulimit -v 4000000;";
    let done = child_after(setup, "child_gets_less_address_space", folder.path());
    let done = done.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
#[ignore = "runs as a child of the test above"]
fn child_gets_less_address_space() {
    let Some(_) = directory_of_child() else { return };
    let region = Region::reserve(1 << 40, 1 << 20).unwrap();
    assert!((1 << 30..4 << 30).contains(&region.bytes()), "{}", region.bytes());
    region.commit(0, 4096).unwrap();
    let error = Region::reserve(1 << 40, 8 << 30).unwrap_err();
    assert!(matches!(error, Error::AddressSpace { needed_bytes, .. } if needed_bytes == 8 << 30));
}
