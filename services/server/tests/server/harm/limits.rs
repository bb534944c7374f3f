//! Clients that do what they should not: the server stays what it is, and small.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use adamant_server::Server;

use crate::support::connections::{Client, Value, request, seed, serve, until};

/// All that a server sends to these bytes, until it hangs up.
fn answer_to(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // It may have hung up before all of it was sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn is_alive(server: &Server) {
    assert_eq!(Client::connect(server.address()).say("PING"), Value::Simple("PONG".into()));
}

/// The system's timer of the server's end of a connection, by `proc_net_tcp(5)`: 2 is that of
/// keepalive.
fn timer_of(server: &Server, client: &TcpStream) -> Option<String> {
    let [here, there] = [server.address(), client.local_addr().unwrap()]
        .map(|address| format!("0100007F:{:04X}", address.port()));
    let all = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let line = all.lines().find(|line| line.contains(&format!("{here} {there}")))?;
    Some(line.split_whitespace().nth(5)?.to_owned())
}

#[test]
fn who_vanishes_without_a_word_is_asked() {
    let server = serve(|_| {});
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    client.read_exact(&mut [0; 7]).unwrap();
    // What was sent is confirmed a moment later; before that another timer runs.
    until("the timer is that of keepalive", || {
        timer_of(&server, &client).expect("the system lists the connection").starts_with("02:")
    });
}

#[test]
fn what_is_no_request_ends_the_connection() {
    let server = serve(|_| {});
    let cases = [
        ("*1\r\n$99999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        ("*99999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        ("PING\r\n*1\r\n:1\r\n", "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n"),
        // Requests are flat: what looks nested is no request.
        ("*1\r\n*1\r\n*1\r\n", "-ERR Protocol error: expected '$', got '*'\r\n"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(answer_to(&server, bytes.as_bytes()), expected, "{bytes:?}");
    }
    is_alive(&server);
}

#[test]
fn garbage_harms_nobody() {
    let server = serve(|_| {});
    let seed = seed(2);
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..60 {
        let length = random.usize(1..3000);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        for _ in 0..20 {
            let at = random.usize(..length);
            bytes[at] = *random.choice(b"*$\r\n019-\"'").unwrap();
        }
        bytes[0] = if random.bool() { b'*' } else { bytes[0] };
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let _ = stream.write_all(&bytes);
    }
    is_alive(&server);
}

#[test]
fn what_a_header_promises_takes_no_memory() {
    let server = serve(|options| options.held_bytes_max = 1 << 20);
    let mut waiting = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"*1000000\r\n$500000000\r\nabc").unwrap();
        waiting.push(stream);
    }
    is_alive(&server);
    let info = Client::connect(server.address()).say("INFO clients").text();
    assert!(info.contains("held_request_bytes:0\r\n"), "{info}");
    drop(waiting);
    // What is really sent is counted, and too much of it refused.
    let large = vec![b'x'; 8 << 20];
    let answer = answer_to(&server, &request(&[b"SET", b"a", &large]));
    assert!(answer.is_empty() || answer.contains("--held-bytes-max"), "{answer}");
    is_alive(&server);
}

#[test]
fn who_takes_no_replies_is_let_go() {
    let server = serve(|options| options.reply_wait = Duration::from_millis(300));
    let mut client = Client::connect(server.address());
    let value = vec![b'v'; 1 << 20];
    assert_eq!(client.call(&[b"SET", b"a", &value]), Value::ok());
    let mut greedy = TcpStream::connect(server.address()).unwrap();
    // 2 GiB of replies, none of which is read; by one that writes, too.
    greedy.write_all(&b"GET a\r\n".repeat(1000)).unwrap();
    greedy.write_all(&b"INCR n\r\nGET a\r\n".repeat(1000)).unwrap();
    // Others go on meanwhile.
    for _ in 0..50 {
        assert_eq!(client.say("SET b 1"), Value::ok());
    }
    let start = Instant::now();
    while client.say("CLIENT LIST").text().lines().count() > 1 {
        assert!(start.elapsed() < Duration::from_secs(60), "it is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_says_nothing_is_let_go() {
    let server = serve(|options| options.idle = Some(Duration::from_millis(100)));
    let mut client = Client::connect(server.address());
    assert_eq!(client.try_reply(), None);
}

#[test]
fn so_many_clients_and_no_more() {
    let server = serve(|options| options.clients_max = 20);
    let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        assert_eq!(client.say("PING"), Value::Simple("PONG".into()));
    }
    let refused = answer_to(&server, b"");
    assert_eq!(refused, "-ERR max number of clients reached\r\n");
    drop(clients);
    let start = Instant::now();
    while Client::connect(server.address()).try_ping().is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "there is still no room");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn many_clients_at_once() {
    let server = serve(|_| {});
    let mut clients: Vec<Client> = (0..400).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        client.send(b"INCR n\r\nGET n\r\n");
    }
    for client in &mut clients {
        assert!(matches!(client.reply(), Value::Integer(_)) && !client.reply().is_error());
    }
    assert_eq!(clients[0].say("GET n"), Value::bulk("400"));
}

#[test]
fn limits_of_one_client() {
    let server = serve(|options| {
        options.arguments_max = 10;
        options.argument_bytes_max = 1000;
        options.queued_max = 3;
        options.watched_max = 2;
        options.reply_bytes_max = 500;
    });
    let mut client = Client::connect(server.address());
    assert_eq!(client.call(&[b"SET", b"a", &[b'x'; 1000]]), Value::ok());
    assert!(client.say("APPEND a x").text().starts_with("ERR string exceeds maximum"));
    assert!(client.say("SETRANGE b 1000 x").text().starts_with("ERR string exceeds maximum"));
    assert!(client.say("MGET a a").text().contains("--reply-bytes-max"));
    assert!(client.say("ADAMANT.RANGE - +").text().contains("--reply-bytes-max"));
    assert_eq!(client.say("WATCH a b"), Value::ok());
    assert!(client.say("WATCH c").is_error());
    client.say("MULTI");
    for _ in 0..3 {
        assert_eq!(client.say("INCR n"), Value::Simple("QUEUED".into()));
    }
    assert!(client.say("INCR n").is_error());
    assert!(client.say("EXEC").text().starts_with("EXECABORT"));
    let many = answer_to(&server, b"*11\r\n");
    assert_eq!(many, "-ERR Protocol error: invalid multibulk length\r\n");
}
