//! Disks that are full, and that fail: what clients and those who look after the server are told.

use std::path::Path;
use std::process::Command;

use adamant_server::Error;
use adamant_sim::{Call, Fault};

use crate::harm::disk;
use crate::support::connections::{Client, Value, connect, until};
use crate::support::program::Program;
use crate::web::health::{ask, ask_over};

const VALUE_BYTES: usize = 10_000;

/// Sets keys until there is no space; how many were set.
fn fill(client: &mut Client) -> usize {
    let value = vec![b'v'; VALUE_BYTES];
    for number in 0..100_000 {
        let reply = client.call(&[b"SET", format!("k{number}").as_bytes(), &value]);
        if reply != Value::ok() {
            assert!(reply.text().starts_with("MISCONF nothing was changed: "), "{reply:?}");
            return number;
        }
    }
    panic!("there is space without end");
}

/// What has to hold of a full server: reads go on, removing works, and then writing.
fn use_when_full(client: &mut Client, set: usize) {
    assert_eq!(client.say("DBSIZE"), Value::Integer(set as i64));
    for number in 0..set {
        let found = client.say(&format!("STRLEN k{number}"));
        assert_eq!(found, Value::Integer(VALUE_BYTES as i64), "k{number}");
    }
    let last = client.say(&format!("EXISTS k{set}"));
    assert_eq!(last, Value::Integer(0), "what was refused is not there");
    for number in (0..set).filter(|number| number % 3 != 0) {
        assert_eq!(client.say(&format!("DEL k{number}")), Value::Integer(1), "k{number}");
    }
    for number in 0..set / 5 {
        let reply = client.call(&[b"SET", format!("n{number}").as_bytes(), &[b'n'; VALUE_BYTES]]);
        assert_eq!(reply, Value::ok(), "n{number}");
    }
    assert_eq!(client.say("ADAMANT.CHECK"), Value::ok());
}

#[test]
fn a_full_disk() {
    let (disk, server) = disk::serve(|options| options.http = Some(([127, 0, 0, 1], 0).into()));
    let mut client = Client::connect(server.address());
    assert_eq!(client.say("SET before 1"), Value::ok());
    assert_eq!(client.say("DEL before"), Value::Integer(1));
    assert_eq!(ask(&server, "/health").code, 200);
    disk.set_space_bytes(Some(disk.space_used_bytes() + (8 << 20)));
    let set = fill(&mut client);

    let health = ask(&server, "/health");
    assert_eq!(health.code, 503);
    assert!(health.body.starts_with("no space: "), "{}", health.body);
    assert!(client.say("INFO persistence").text().contains("aof_last_write_status:err\r\n"));
    assert!(ask(&server, "/metrics").body.contains("\nadamant_writable 0\n"));
    let status: serde_json::Value =
        serde_json::from_str(&ask(&server, "/status.json").body).unwrap();
    assert!(status["trouble"].is_string(), "{status}");

    use_when_full(&mut client, set);
    // It finds out by itself, and leaves nothing that can be seen.
    until("the server knows that there is space", || ask(&server, "/health").code == 200);
    assert!(client.say("INFO persistence").text().contains("aof_last_write_status:ok\r\n"));
    let keys = (set.div_ceil(3) + set / 5) as i64;
    assert_eq!(client.say("DBSIZE"), Value::Integer(keys));
    assert_eq!(client.say("KEYS *").parts().len() as i64, keys);
    server.end().unwrap();
}

#[test]
fn one_that_asks_for_too_much_fails_alone() {
    let (disk, server) = disk::serve(|_| {});
    disk.set_space_bytes(Some(disk.space_used_bytes() + (8 << 20)));
    let large = vec![b'v'; 32 << 20];
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (address, large) = (server.address(), &large);
            scope.spawn(move || {
                let mut client = Client::connect(address);
                let key = format!("small{number}");
                for count in 0..50 {
                    if number == 0 && count % 10 == 0 {
                        let reply = client.call(&[b"SET", b"large", large]);
                        assert!(reply.text().starts_with("MISCONF"), "{reply:?}");
                    }
                    assert_eq!(client.say(&format!("INCR {key}")), Value::Integer(count + 1));
                }
            });
        }
    });
    assert_eq!(Client::connect(server.address()).say("DBSIZE"), Value::Integer(4));
    server.end().unwrap();
}

/// A tmpfs, unmounted on drop.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// `None` where mounting is not allowed.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        mount("mount", &["-t", "tmpfs", "-o", "size=24m", "tmpfs"], folder.path())
            .then_some(Self(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        mount("umount", &[], self.0.path());
    }
}

fn mount(program: &str, arguments: &[&str], path: &Path) -> bool {
    let output = Command::new(program).args(arguments).arg(path).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn the_program_on_a_full_file_system() {
    let Some(mounted) = Mounted::new() else {
        return println!("skipped: mounting a tmpfs needs the privilege");
    };
    let store = mounted.0.path().join("store");
    let program = Program::start(&store, &["--durability", "buffered"]);
    let mut client = Client::connect(program.address);
    let set = fill(&mut client);
    assert!(set > 200, "only {set} values of {VALUE_BYTES} bytes fit");
    use_when_full(&mut client, set);
    assert_eq!(client.say("DBSIZE"), Value::Integer((set.div_ceil(3) + set / 5) as i64));
    drop(client);
    drop(program);
    // Killed as it is: what was acknowledged is there.
    let program = Program::start(&store, &[]);
    let mut client = Client::connect(program.address);
    assert_eq!(client.say("DBSIZE"), Value::Integer((set.div_ceil(3) + set / 5) as i64));
    assert_eq!(client.say("ADAMANT.CHECK"), Value::ok());
}

#[test]
fn a_disk_that_fails() {
    let (disk, server) = disk::serve(|options| options.http = Some(([127, 0, 0, 1], 0).into()));
    let mut client = Client::connect(server.address());
    assert_eq!(client.say("SET a 1"), Value::ok());
    let watching = connect(server.http_address().unwrap());
    disk.fail(disk.operation_count()..u64::MAX);
    let reply = client.say("SET a 2");
    assert!(reply.text().starts_with("MISCONF the device failed"), "{reply:?}");
    // Without being asked to.
    server.wait().unwrap();
    let health = ask_over(watching, "/health", "");
    assert_eq!(health.code, 503);
    assert!(health.body.starts_with("failed: "), "{}", health.body);
    let error = server.end().unwrap_err();
    assert!(matches!(error, Error::Poisoned { .. }), "{error}");
    assert!(error.to_string().contains("what was acknowledged is there"), "{error}");

    disk.repair();
    let directory = std::sync::Arc::new(adamant_sim::SimDirectory::root(&disk));
    let store = adamant::Store::open_directory(directory, adamant::Options::new()).unwrap();
    let found = store.expiring("db0").unwrap().get("a").unwrap().unwrap();
    assert!(*found == *b"1" || *found == *b"2", "{found:?}");
}

#[test]
fn nothing_of_a_pipeline_is_acknowledged_that_the_device_does_not_have() {
    let (disk, server) = disk::serve(|_| {});
    let mut client = Client::connect(server.address());
    assert_eq!(client.say("SET a 1"), Value::ok());
    disk.fail_call(Call::Sync, disk.call_count(Call::Sync) + 1, Fault::Device);
    // The one in the middle is done alone, and refused: what is before and behind it is in groups
    // of their own.
    client.send(b"SET a 2\r\nFLUSHALL NEVER\r\nSET a 3\r\n");
    let replies = [client.reply(), client.reply(), client.reply()];
    assert!(replies.iter().all(Value::is_error), "{replies:?}");
    server.wait().unwrap();
    assert!(matches!(server.end(), Err(Error::Poisoned { .. })));
}

#[test]
fn a_disk_that_fails_while_nobody_writes() {
    let (disk, server) = disk::serve(|_| {});
    let mut client = Client::connect(server.address());
    // A deadline that comes is what the server writes by itself: long after the disk has failed,
    // also on a machine that has much to do.
    assert_eq!(client.say("SET a 1 PX 3000"), Value::ok());
    disk.fail(disk.operation_count()..u64::MAX);
    server.wait().unwrap();
    let ended = server.end();
    assert!(matches!(ended, Err(Error::Poisoned { .. })), "{ended:?}");
}

#[test]
fn a_disk_that_fails_before_the_server_is_told_to_end() {
    let (disk, server) = disk::serve(|_| {});
    assert_eq!(Client::connect(server.address()).say("SET a 1"), Value::ok());
    disk.fail(disk.operation_count()..u64::MAX);
    let ended = server.end();
    assert!(matches!(ended, Err(Error::Poisoned { .. })), "{ended:?}");
}
