//! SWAPDB: two databases exchange what they have, at one moment for all.

use std::sync::atomic::{AtomicBool, Ordering};

use adamant_server::Engine;

use crate::support::connections::{Client, Value, serve, server_and_client};
use crate::support::program::Program;

#[test]
fn databases_exchange_all_they_have() {
    let (server, mut client) = server_and_client();
    assert_eq!(client.say("MSET a zero b zero"), Value::ok());
    assert_eq!(client.say("EXPIRE b 1000"), Value::Integer(1));
    let mut other = Client::connect(server.address());
    assert_eq!(other.say("SELECT 1"), Value::ok());
    assert_eq!(other.say("SET a one"), Value::ok());
    assert_eq!(client.say("SWAPDB 0 1"), Value::ok());
    assert_eq!(
        (client.say("GET a"), other.say("GET a")),
        (Value::bulk("one"), Value::bulk("zero"))
    );
    assert_eq!((client.say("DBSIZE"), other.say("DBSIZE")), (Value::Integer(1), Value::Integer(2)));
    assert!(matches!(other.say("TTL b"), Value::Integer(990..=1000)));
    assert_eq!(client.say("SWAPDB 1 1"), Value::ok());
    // As a part of a transaction, whose other parts see it.
    client.send(b"MULTI\r\nSET c new\r\nSWAPDB 0 1\r\nGET b\r\nDBSIZE\r\nEXEC\r\n");
    let last = (0..6).map(|_| client.reply()).last().unwrap();
    let two = Value::Integer(2);
    assert_eq!(
        last,
        Value::Array(vec![Value::ok(), Value::ok(), Value::bulk("zero"), two.clone()])
    );
    assert_eq!((other.say("GET c"), other.say("DBSIZE")), (Value::bulk("new"), two));
    for (words, expected) in [
        ("SWAPDB x 1", "ERR invalid first DB index"),
        ("SWAPDB 0 1.5", "ERR invalid second DB index"),
        ("SWAPDB 0 4", "ERR DB index is out of range"),
        ("SWAPDB -1 0", "ERR DB index is out of range"),
    ] {
        assert_eq!(client.say(words), Value::Error(expected.into()), "{words}");
    }
    assert_eq!(client.say("ADAMANT.CHECK"), Value::ok());
}

#[test]
fn who_watches_is_told() {
    let (server, mut client) = server_and_client();
    let mut other = Client::connect(server.address());
    client.say("SELECT 1");
    client.say("SET there 1");
    client.say("SELECT 0");
    // What neither of the two has does not change; what the other one has does.
    for (key, changes) in [("nothing", false), ("there", true)] {
        client.say(&format!("WATCH {key}"));
        assert_eq!(other.say("SWAPDB 0 1"), Value::ok());
        assert_eq!(other.say("SWAPDB 0 1"), Value::ok());
        client.say("MULTI");
        client.say("PING");
        assert_eq!(client.say("EXEC") == Value::Null, changes, "{key}");
    }
}

/// Whoever looks at both sees one of each, never the same one twice.
#[test]
fn at_one_moment_for_all() {
    for engine in [Engine::Bplus, Engine::Lsm] {
        let server = serve(|options| options.engine = engine);
        let mut client = Client::connect(server.address());
        client.say("SET name zero");
        client.say("SELECT 1");
        client.say("SET name one");
        let is_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for pipelined in [true, false] {
                let (address, is_ended) = (server.address(), &is_ended);
                scope.spawn(move || {
                    let mut client = Client::connect(address);
                    while !is_ended.load(Ordering::Relaxed) {
                        let (zero, one) = if pipelined {
                            client.send(b"SELECT 0\r\nGET name\r\nSELECT 1\r\nGET name\r\n");
                            let replies: Vec<Value> = (0..4).map(|_| client.reply()).collect();
                            (replies[1].text(), replies[3].text())
                        } else {
                            client.send(b"MULTI\r\nSELECT 0\r\nGET name\r\nSELECT 1\r\nGET name\r\nEXEC\r\n");
                            let last = (0..6).map(|_| client.reply()).last().unwrap();
                            (last.parts()[1].text(), last.parts()[3].text())
                        };
                        let mut both = [zero.as_str(), one.as_str()];
                        both.sort_unstable();
                        assert_eq!(both, ["one", "zero"]);
                    }
                });
            }
            for _ in 0..60 {
                assert_eq!(client.say("SWAPDB 1 0"), Value::ok());
            }
            is_ended.store(true, Ordering::Relaxed);
        });
        assert_eq!(client.say("GET name"), Value::bulk("one"));
    }
}

#[test]
fn it_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    for round in 0..3 {
        let program = Program::start(&store, &["--databases", "2"]);
        let mut client = Client::connect(program.address);
        if round == 0 {
            client.say("SET number 0");
            client.say("SELECT 1");
            client.say("SET number 1");
            client.say("SELECT 0");
        }
        assert_eq!(client.say("GET number"), Value::bulk(&(round % 2).to_string()));
        assert_eq!(client.say("SWAPDB 0 1"), Value::ok());
        drop(program);
    }
}
