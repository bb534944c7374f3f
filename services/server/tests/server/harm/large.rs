//! Large values, which go from the socket to where the store keeps them.

use std::io::Write;
use std::net::TcpStream;

use adamant_server::Server;

use crate::support::connections::{Client, Value, request, serve};

const SIZE: usize = 300_000;

fn value(seed: u8) -> Vec<u8> {
    (0..SIZE).map(|at| (at % 253) as u8 ^ seed).collect()
}

/// A figure of INFO.
fn figure(client: &mut Client, section: &str, name: &str) -> u64 {
    let info = client.say(&format!("INFO {section}")).text();
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in {info}")).parse().unwrap()
}

#[test]
fn large_values_are_written_where_they_will_lie() {
    let server = serve(|_| {});
    let mut client = Client::connect(server.address());
    assert_eq!(client.call(&[b"SET", b"a", &value(1)]), Value::ok());
    assert_eq!(client.call(&[b"set", b"a", &value(2), b"NX"]), Value::Null);
    assert_eq!(client.call(&[b"SET", b"b", &value(3), b"PX", b"600000"]), Value::ok());
    assert_eq!(client.say("GET a"), Value::Bulk(value(1)));
    assert_eq!(client.call(&[b"SET", b"a", &value(4), b"GET"]), Value::Bulk(value(1)));
    assert_eq!(client.say("GET a"), Value::Bulk(value(4)));
    assert_eq!(client.say("GET b"), Value::Bulk(value(3)));
    assert!(matches!(client.say("PTTL b"), Value::Integer(1..=600_000)));
    assert_eq!(client.call(&[b"SET", b"b", &value(5), b"KEEPTTL"]), Value::ok());
    assert!(matches!(client.say("PTTL b"), Value::Integer(1..=600_000)));
    assert_eq!(figure(&mut client, "stats", "values_in_place"), 5);
    assert_eq!(figure(&mut client, "stats", "bytes_in_place"), 5 * SIZE as u64);

    assert_eq!(figure(&mut client, "clients", "held_request_bytes"), 0);

    // Within MULTI, and of other commands, values come by the ordinary way.
    assert_eq!(client.say("MULTI"), Value::ok());
    client.call(&[b"SET", b"c", &value(6)]);
    assert_eq!(client.say("EXEC"), Value::Array(vec![Value::ok()]));
    assert_eq!(client.call(&[b"MSET", b"d", &value(7)]), Value::ok());
    assert_eq!(figure(&mut client, "stats", "values_in_place"), 5);
    assert_eq!(client.say("GET c"), Value::Bulk(value(6)));
    assert_eq!(client.say("ADAMANT.CHECK"), Value::ok());
}

#[test]
fn large_values_in_pieces_between_others() {
    let server = serve(|_| {});
    let mut client = Client::connect(server.address());
    let mut bytes = Vec::new();
    for seed in 0..20_u8 {
        bytes.extend(request(&[b"SET", &[b'k', seed], &value(seed)]));
        bytes.extend(request(&[b"INCR", b"n"]));
        bytes.extend(request(&[b"STRLEN", &[b'k', seed]]));
    }
    let mut writer = client.stream.try_clone().unwrap();
    let seed = 3;
    let mut random = fastrand::Rng::with_seed(seed);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(random.usize(1..=rest.len().min(200_000)));
                writer.write_all(piece).unwrap();
                rest = behind;
            }
        });
        for number in 1..=20 {
            assert_eq!(client.reply(), Value::ok(), "seed {seed}");
            assert_eq!(client.reply(), Value::Integer(number));
            assert_eq!(client.reply(), Value::Integer(SIZE as i64));
        }
    });
    for seed in 0..20 {
        assert_eq!(client.call(&[b"GET", &[b'k', seed]]), Value::Bulk(value(seed)));
    }
}

/// What clients promise and do not send takes room of the store up to a limit, and only while they
/// are there.
#[test]
fn what_is_promised_is_counted_and_given_back() {
    let server = serve(|options| options.held_bytes_max = 4 << 20);
    let mut client = Client::connect(server.address());
    assert_eq!(client.say("SET a 1"), Value::ok());
    let promise = |server: &Server| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\nabc").unwrap();
        stream
    };
    let held = |client: &mut Client| figure(client, "clients", "held_request_bytes");
    let wait = |client: &mut Client, is_there: &dyn Fn(u64) -> bool| {
        let start = std::time::Instant::now();
        while !is_there(held(client)) {
            assert!(start.elapsed().as_secs() < 60, "{} bytes are held", held(client));
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    let mut used = Vec::new();
    for round in 0..4 {
        let waiting: Vec<_> = (0..30).map(|_| promise(&server)).collect();
        wait(&mut client, &|held| held > 3_000_000);
        assert!(held(&mut client) <= 4 << 20);
        assert!(client.say("GET a").text().len() == 1, "round {round}");
        drop(waiting);
        wait(&mut client, &|held| held == 0);
        assert_eq!(client.say(&format!("SET a {round}")), Value::ok());
        used.push(figure(&mut client, "memory", "used_memory"));
    }
    // The same room each time.
    assert!(used[3] <= used[0] + (1 << 20), "{used:?} bytes are used");
    assert_eq!(client.say("ADAMANT.CHECK"), Value::ok());
}
