//! Thousands of clients that hold what they can: the program stays small, and goes on.

use std::io::Write;
use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::connections::{Client, Value, connect, request, until};
use crate::support::program::Program;

const CONNECTIONS: usize = 5000;
/// Memory that each of them may cost: its buffer of 16 KiB, and what the rest takes.
const BYTES_EACH: u64 = 32 << 10;

/// Lets this process, and those that it starts, have so many files open; false if it may not.
fn allow_files(files: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= files);
    if enough(limit.current) {
        return true;
    }
    let raised = Rlimit { current: Some(files), maximum: limit.maximum };
    enough(limit.maximum) && setrlimit(Resource::Nofile, raised).is_ok()
}

#[test]
fn five_thousand_connections() {
    // Other tests of this process have files open, too.
    if !allow_files(CONNECTIONS as u64 + 2000) {
        return println!(
            "skipped: the limit of open files cannot be raised to {}",
            CONNECTIONS + 2000
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store"), &["--durability", "buffered"]);
    let mut client = Client::connect(program.address);
    assert_eq!(client.say("SET a 1"), Value::ok());
    let before = program.resident_bytes().0;

    let ping = request(&[b"PING"]);
    let half = &request(&[b"SET", b"half", &[b'x'; 6000]])[..5000];
    let many: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|number| {
            let mut stream = connect(program.address);
            let bytes: &[u8] = match number % 5 {
                0 => b"",
                1 => &ping,
                2 => b"*1000000\r\n$500000000\r\nabc",
                3 => half,
                // A transaction that is never run.
                _ => b"MULTI\r\nSET b 1\r\nGET b\r\n",
            };
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    until("all are clients", || {
        let info = client.say("INFO clients").text();
        info.contains(&format!("connected_clients:{}\r\n", CONNECTIONS + 1))
    });
    for stream in many.iter().skip(1).step_by(5) {
        let mut one = Client::over(stream);
        assert_eq!(one.reply(), Value::Simple("PONG".into()));
    }
    // Others go on meanwhile.
    for number in 1..=200 {
        assert_eq!(client.say("INCR n"), Value::Integer(number));
    }
    let (now, most) = program.resident_bytes();
    let each = most.saturating_sub(before) / CONNECTIONS as u64;
    println!("{before} bytes resident before, {now} with all of them, {most} at most: {each} each");
    assert!(each <= BYTES_EACH, "{each} bytes for each connection");

    drop(many);
    until("all have gone", || {
        client.say("INFO clients").text().contains("connected_clients:1\r\n")
    });
    assert_eq!(
        client.say("MGET a b half"),
        Value::Array(vec![Value::bulk("1"), Value::Null, Value::Null])
    );
}

/// Clients leave the store the files that it needs, whatever is asked for.
#[test]
fn fewer_clients_where_fewer_files_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let server = env!("CARGO_BIN_EXE_adamant-server");
    let script = format!("ulimit -n 600 && exec {server} \"$0\" --port 0");
    let mut command = std::process::Command::new("sh");
    let program = Program::started(command.args(["-c", &script]).arg(&store));
    let mut client = Client::connect(program.address);
    assert_eq!(client.say("CONFIG GET maxclients").parts()[1], Value::bulk("88"));
    let many: Vec<Client> = (0..87).map(|_| Client::connect(program.address)).collect();
    for mut one in many {
        assert!(!one.say("INCR n").is_error());
    }
    assert_eq!(client.say("ADAMANT.CHECK"), Value::ok());
}

#[test]
fn large_requests_of_many_are_bounded_together() {
    let folder = tempfile::tempdir().unwrap();
    let held_bytes_max = 32 << 20;
    let options = ["--durability", "buffered", "--held-bytes-max", &held_bytes_max.to_string()];
    let program = Program::start(&folder.path().join("store"), &options);
    let mut client = Client::connect(program.address);
    let before = program.resident_bytes().0;
    // Each sends 4 MiB of what it says is one of 400 MB, and waits: 400 MiB of all.
    let mut begun = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$400000000\r\n".to_vec();
    begun.resize(begun.len() + (4 << 20), b'x');
    let many: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = connect(program.address);
            // It is refused before all of it was sent, when there are too many.
            let _ = stream.write_all(&begun);
            stream
        })
        .collect();
    assert_eq!(client.say("SET b 1"), Value::ok());
    let held = || {
        let info = Client::connect(program.address).say("INFO clients").text();
        let line = info.lines().find_map(|line| line.strip_prefix("held_request_bytes:"));
        line.unwrap().parse::<u64>().unwrap()
    };
    assert!(held() <= held_bytes_max, "{} bytes are held", held());
    let most = program.resident_bytes().1.saturating_sub(before);
    println!("{most} bytes more were resident at most");
    // Buffers grow by doubling, and one that is refused was there for a moment.
    assert!(most <= 6 * held_bytes_max, "{most} bytes more were resident");
    drop(many);
    until("nothing is held any more", || held() == 0);
}
