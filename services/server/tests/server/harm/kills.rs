//! The program, killed under load: what was acknowledged is there.

use std::io::Write;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::connections::{Client, Value, request};
use crate::support::program::Program;

const CLIENTS: usize = 4;

/// Each client counts up a key of its own, by SET, INCR and MULTI in turn, pipelined by 4, and
/// notes what was acknowledged.
fn count_up(address: SocketAddr, key: &str, acknowledged: &AtomicU64) {
    let mut client = Client::connect(address);
    let mut number = acknowledged.load(Ordering::Relaxed);
    loop {
        let mut bytes = Vec::new();
        for step in 1..=4 {
            let value = (number + step).to_string();
            match (number + step) % 3 {
                0 => bytes.extend(request(&[b"SET", key.as_bytes(), value.as_bytes()])),
                1 => bytes.extend(request(&[b"INCR", key.as_bytes()])),
                _ => {
                    bytes.extend(b"MULTI\r\n");
                    bytes.extend(request(&[b"SET", key.as_bytes(), value.as_bytes()]));
                    bytes.extend(b"EXEC\r\n");
                }
            }
        }
        if client.stream.write_all(&bytes).is_err() {
            return;
        }
        for _ in 1..=4 {
            let replies =
                if (number + 1).is_multiple_of(3) || (number + 1) % 3 == 1 { 1 } else { 3 };
            for _ in 0..replies {
                let Some(reply) = client.try_reply() else { return };
                assert!(!reply.is_error(), "{reply:?}");
            }
            number += 1;
            acknowledged.store(number, Ordering::Relaxed);
        }
    }
}

fn kill_under_load(durability: &str) {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    let acknowledged: [AtomicU64; CLIENTS] = Default::default();
    for round in 0..3_u64 {
        let mut program = Program::start(&store, &["--databases", "2", "--durability", durability]);
        let address = program.address;
        let mut client = Client::connect(address);
        for (number, acknowledged) in acknowledged.iter().enumerate() {
            let found = match client.say(&format!("GET n{number}")) {
                Value::Null => 0,
                value => value.text().parse::<u64>().unwrap(),
            };
            let least = acknowledged.load(Ordering::Relaxed);
            assert!(found >= least && found <= least + 4, "{found} of {least} in round {round}");
            acknowledged.store(found, Ordering::Relaxed);
        }
        assert_eq!(client.say("ADAMANT.CHECK"), Value::ok());
        std::thread::scope(|scope| {
            for (number, acknowledged) in acknowledged.iter().enumerate() {
                scope.spawn(move || count_up(address, &format!("n{number}"), acknowledged));
            }
            let start = Instant::now();
            let target = acknowledged[0].load(Ordering::Relaxed) + 40;
            while acknowledged[0].load(Ordering::Relaxed) < target {
                assert!(start.elapsed() < Duration::from_secs(120), "nothing is acknowledged");
                std::thread::sleep(Duration::from_millis(5));
            }
            program.child.kill().unwrap();
        });
    }
}

#[test]
fn killed_with_commits_on_the_device() {
    kill_under_load("sync");
}

#[test]
fn killed_with_commits_in_the_system() {
    kill_under_load("buffered");
}

#[test]
fn a_signal_closes_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    let mut program = Program::start(&store, &[]);
    assert_eq!(Client::connect(program.address).say("SET a 1"), Value::ok());
    let killed = Command::new("kill").arg(program.child.id().to_string()).status().unwrap();
    assert!(killed.success());
    assert!(program.child.wait().unwrap().success());
    assert!(adamant::Store::open(&store).unwrap().recovery().was_closed);
    let again = Command::new(env!("CARGO_BIN_EXE_adamant-server"))
        .arg(&store)
        .args(["--port", "0", "--bind", "0.0.0.0"])
        .output()
        .unwrap();
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("--password-file"));
    std::io::stdout().flush().unwrap();
}
