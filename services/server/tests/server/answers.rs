//! What commands answer: examples, of both versions of the protocol.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use adamant_server::{Error, Server};

use crate::support::connections::{Client, Value, options, request, serve, server_and_client};

/// Says each line, and compares with what is behind its arrow.
fn talk(client: &mut Client, lines: &[(&str, &str)]) {
    for (words, expected) in lines {
        let reply = client.say(words);
        let found = match &reply {
            Value::Null => "nil".to_string(),
            Value::Integer(number) => format!(":{number}"),
            Value::Array(parts) => parts.iter().map(Value::text).collect::<Vec<_>>().join(" "),
            other => other.text(),
        };
        assert_eq!(found, *expected, "{words}");
    }
}

#[test]
fn strings() {
    let (_server, mut client) = server_and_client();
    talk(
        &mut client,
        &[
            ("SET a 1", "OK"),
            ("GET a", "1"),
            ("GET b", "nil"),
            ("SET a 2 NX", "nil"),
            ("SET b 2 XX", "nil"),
            ("SET a 3 XX GET", "1"),
            ("SETNX a 4", ":0"),
            ("GETSET a 5", "3"),
            ("APPEND a 67", ":3"),
            ("STRLEN a", ":3"),
            ("GETRANGE a 1 -1", "67"),
            ("SETRANGE a 4 x", ":5"),
            ("GET a", "567\0x"),
            ("MSET a 1 b 2", "OK"),
            ("MSET a 1 b", "ERR wrong number of arguments for 'mset' command"),
            ("MSETNX b 7 c 8", ":0"),
            ("MGET a b c", "1 2 Null"),
            ("INCR a", ":2"),
            ("DECRBY a 5", ":-3"),
            ("INCRBYFLOAT a 0.1", "-2.9"),
            ("INCR a", "ERR value is not an integer or out of range"),
            ("GETDEL a", "-2.9"),
            ("GETDEL a", "nil"),
            ("SET a 1 EX 0", "ERR invalid expire time in 'set' command"),
            ("SET a 1 EX 1 PX 1", "ERR syntax error"),
            ("SET a", "ERR wrong number of arguments for 'set' command"),
            ("NOPE a b", "ERR unknown command 'NOPE', with args beginning with: 'a' 'b' "),
        ],
    );
    assert_eq!(client.call(&[b"SET", b"", b"1"]), Value::ok(), "the empty key is one as any other");
    assert_eq!(client.call(&[b"GET", b""]), Value::Bulk(b"1".to_vec()));
    assert_eq!(client.call(&[b"DEL", b""]), Value::Integer(1));
    let too_long = [b'k'; 65_528];
    assert!(client.call(&[b"SET", &too_long, b"1"]).is_error());
    assert!(client.call(&[b"MSET", b"m", b"1", &too_long, b"2"]).is_error());
    assert_eq!(client.say("EXISTS m"), Value::Integer(0), "what fails changes nothing");
    let large = vec![7; 3 << 20];
    assert_eq!(client.call(&[b"SET", b"large", &large]), Value::ok());
    assert_eq!(client.say("GET large"), Value::Bulk(large));
}

#[test]
fn keys() {
    let (_server, mut client) = server_and_client();
    talk(
        &mut client,
        &[
            ("MSET user:1 a user:2 b cat c", "OK"),
            ("KEYS user:*", "user:1 user:2"),
            ("KEYS *[2t]", "cat user:2"),
            ("DBSIZE", ":3"),
            ("EXISTS cat cat dog", ":2"),
            ("TYPE cat", "string"),
            ("TYPE dog", "none"),
            ("RENAME dog cow", "ERR no such key"),
            ("RENAME cat cow", "OK"),
            ("RENAMENX cow user:1", ":0"),
            ("COPY cow user:1", ":0"),
            ("COPY cow user:1 REPLACE", ":1"),
            ("COPY cow cow", "ERR source and destination objects are the same"),
            ("MOVE cow 1", ":1"),
            ("MOVE cow 9", "ERR DB index is out of range"),
            ("SELECT 1", "OK"),
            ("GET cow", "c"),
            ("FLUSHDB", "OK"),
            ("DBSIZE", ":0"),
            ("RANDOMKEY", "nil"),
            ("SELECT 0", "OK"),
            ("DEL user:1 user:2 user:3", ":2"),
            ("SET b 1", "OK"),
            ("RANDOMKEY", "b"),
            ("FLUSHALL nope", "ERR syntax error"),
            ("FLUSHALL", "OK"),
            ("DBSIZE", ":0"),
            ("SELECT x", "ERR value is not an integer or out of range"),
        ],
    );
}

#[test]
fn scans_find_each_key_once_while_others_write() {
    let (_server, mut client) = server_and_client();
    for number in 0..300 {
        client.say(&format!("SET key:{number:03} {number}"));
    }
    let (mut cursor, mut found, mut round) = ("0".to_string(), Vec::new(), 0);
    loop {
        let reply = client.say(&format!("SCAN {cursor} MATCH key:* COUNT 17"));
        let parts = reply.parts();
        found.extend(parts[1].parts().iter().map(Value::text));
        cursor = parts[0].text();
        if cursor == "0" {
            break;
        }
        client.say(&format!("SET other:{round} 1"));
        client.say(&format!("DEL other:{}", round - 1));
        round += 1;
    }
    let expected: Vec<String> = (0..300).map(|number| format!("key:{number:03}")).collect();
    assert_eq!(found, expected);
    assert!(client.say("SCAN 12345").text().starts_with("ERR invalid cursor"));
    assert_eq!(client.say("SCAN 0 COUNT 0"), Value::Error("ERR syntax error".into()));
}

#[test]
fn ranges_in_order() {
    let (_server, mut client) = server_and_client();
    client.say("MSET a 1 b 2 c 3 d 4");
    talk(
        &mut client,
        &[
            ("ADAMANT.RANGE - +", "a 1 b 2 c 3 d 4"),
            ("ADAMANT.RANGE b d", "b 2 c 3"),
            ("ADAMANT.RANGE (b [d", "c 3 d 4"),
            ("ADAMANT.RANGE - + REV LIMIT 2", "d 4 c 3"),
            ("ADAMANT.RANGE d b", ""),
            ("ADAMANT.RANGE - + LIMIT -1", "ERR value is not an integer or out of range"),
            ("ADAMANT.RANGE - + NOPE", "ERR syntax error"),
            ("ADAMANT.COUNT b +", ":3"),
            ("ADAMANT.CHECK", "OK"),
        ],
    );
}

#[test]
fn keys_end() {
    let (_server, mut client) = server_and_client();
    talk(
        &mut client,
        &[
            ("SET a 1 PX 50", "OK"),
            ("SET b 1 EX 1000", "OK"),
            ("SET b 2 KEEPTTL", "OK"),
            ("PERSIST b", ":1"),
            ("TTL b", ":-1"),
            ("TTL c", ":-2"),
            ("EXPIREAT b 4000000000", ":1"),
            ("EXPIRETIME b", ":4000000000"),
            ("EXPIRE b 10 NX", ":0"),
            (
                "EXPIRE b 10 NX XX",
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ),
            ("PEXPIREAT b 5000000000000 LT", ":0"),
            ("PEXPIREAT b 5000000000000 GT", ":1"),
            ("PEXPIRETIME b", ":5000000000000"),
            ("EXPIRE b -1", ":1"),
            ("EXISTS b", ":0"),
        ],
    );
    let start = Instant::now();
    while client.say("GET a") != Value::Null {
        assert!(start.elapsed() < Duration::from_secs(30), "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(client.say("DBSIZE"), Value::Integer(0));
}

#[test]
fn both_versions_of_the_protocol() {
    let (_server, mut client) = server_and_client();
    let greeting = client.say("HELLO 3 SETNAME tester");
    let parts = greeting.parts();
    assert!(matches!(greeting, Value::Map(_)));
    assert_eq!((parts[4].text(), &parts[5]), ("proto".into(), &Value::Integer(3)));
    client.send(&request(&[b"GET", b"nothing"]));
    client.send(b"CONFIG GET appendonly\r\n");
    assert_eq!(client.reply(), Value::Null);
    assert_eq!(client.reply(), Value::Map(vec![Value::bulk("appendonly"), Value::bulk("yes")]));
    assert!(matches!(client.say("INFO server"), Value::Text(_)));
    assert!(matches!(client.say("COMMAND DOCS get"), Value::Map(_)));
    let info = client.say("COMMAND INFO get nope");
    assert!(matches!(&info.parts()[0].parts()[2], Value::Set(_)));
    assert_eq!(info.parts()[1], Value::Null);
    assert_eq!(client.say("CLIENT GETNAME"), Value::bulk("tester"));
    assert_eq!(client.say("HELLO 4"), Value::Error("NOPROTO unsupported protocol version".into()));
    assert_eq!(client.say("RESET"), Value::Simple("RESET".into()));
    assert!(matches!(client.say("CONFIG GET *"), Value::Array(_)));
    assert_eq!(client.say("CLIENT GETNAME"), Value::Null);
    assert_eq!(client.say("QUIT"), Value::ok());
    assert_eq!(client.try_reply(), None);
}

#[test]
fn pipelines_are_answered_in_order() {
    let (_server, mut client) = server_and_client();
    let mut bytes = Vec::new();
    for number in 0..3000 {
        let (key, value) = (format!("k{}", number % 7), format!("{number}"));
        bytes.extend(request(&[b"SET", key.as_bytes(), value.as_bytes()]));
        bytes.extend(b"PING\r\n");
        bytes.extend(request(&[b"GET", key.as_bytes()]));
        bytes.extend(format!("SELECT {}\r\n", number % 2).bytes());
    }
    // Larger than what sockets hold: replies have to be taken meanwhile.
    let mut writer = client.stream.try_clone().unwrap();
    let sends = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &bytes).unwrap());
    for number in 0..3000 {
        assert_eq!(client.reply(), Value::ok());
        assert_eq!(client.reply(), Value::Simple("PONG".into()));
        assert_eq!(client.reply(), Value::bulk(&number.to_string()));
        assert_eq!(client.reply(), Value::ok());
    }
    sends.join().unwrap();
}

#[test]
fn clients_are_listed_and_killed_and_silent() {
    let (server, mut client) = server_and_client();
    let mut other = Client::connect(server.address());
    let id = other.say("CLIENT ID").text();
    let id = id.trim_start_matches("Integer(").trim_end_matches(')').to_string();
    assert_eq!(client.say("CLIENT SETNAME me"), Value::ok());
    assert!(client.call(&[b"CLIENT", b"SETNAME", b"a b"]).is_error());
    assert_eq!(client.say("CLIENT SETINFO LIB-NAME tests"), Value::ok());
    let list = client.say("CLIENT LIST").text();
    assert!(list.contains("name=me") && list.contains("lib-name=tests"), "{list}");
    assert_eq!(list.lines().count(), 2);
    assert_eq!(client.say(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
    assert_eq!(other.try_reply(), None);
    let refused = Value::Error("ERR client-id should be greater than 0".into());
    assert_eq!(client.say("CLIENT KILL ID 0"), refused);
    assert_eq!(client.say("CLIENT KILL 1.2.3.4:5"), Value::Error("ERR No such client".into()));
    client.send(b"CLIENT REPLY OFF\r\nSET a 1\r\nPING\r\nCLIENT REPLY ON\r\n");
    assert_eq!(client.reply(), Value::ok());
    client.send(b"CLIENT REPLY SKIP\r\nSET a 2\r\nGET a\r\n");
    assert_eq!(client.reply(), Value::bulk("2"));
}

#[test]
fn passwords() {
    let server = serve(|options| options.password = Some("secret".into()));
    let mut client = Client::connect(server.address());
    let refused = Value::Error("NOAUTH Authentication required.".into());
    assert_eq!(client.say("GET a"), refused);
    assert!(client.say("HELLO 3").text().starts_with("NOAUTH"));
    for wrong in ["AUTH secre", "AUTH secret2", "AUTH nobody secret", "AUTH default x"] {
        assert!(client.say(wrong).text().starts_with("WRONGPASS"), "{wrong}");
    }
    assert_eq!(client.say("GET a"), refused);
    assert_eq!(client.say("AUTH secret"), Value::ok());
    assert_eq!(client.say("GET a"), Value::Null);
    let mut other = Client::connect(server.address());
    assert!(matches!(other.say("HELLO 3 AUTH default secret"), Value::Map(_)));
    assert_eq!(other.say("RESET"), Value::Simple("RESET".into()));
    assert_eq!(other.say("GET a"), refused);
}

#[test]
fn nobody_else_can_reach_it_without_a_password() {
    let mut open = options();
    open.address.set_ip([0, 0, 0, 0].into());
    let store = adamant::Store::in_memory().unwrap();
    let error = Server::start_on(store, open).unwrap_err();
    assert!(matches!(error, Error::Unprotected { .. }), "{error}");
}

#[test]
fn shutdown_closes_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let server = Server::start(&path, options()).unwrap();
    let mut client = Client::connect(server.address());
    assert_eq!(client.say("SET a 1"), Value::ok());
    assert_eq!(client.say("SET b 1 EX 1000"), Value::ok());
    // What was sent before it is done.
    client.send(b"SET c 1\r\nSHUTDOWN\r\n");
    assert_eq!(client.reply(), Value::ok());
    server.wait().unwrap();
    // The connection ends when the store is closed, and not before.
    client.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let open = client.stream.read(&mut [0]).unwrap_err();
    assert!(matches!(open.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{open}");
    server.end().unwrap();
    assert_eq!(client.try_reply(), None);
    let store = adamant::Store::open(&path).unwrap();
    assert!(store.recovery().was_closed);
    assert_eq!(store.expiring("db0").unwrap().get("a").unwrap(), Some("1".into()));
    let server = Server::start_on(store, options()).unwrap();
    let mut client = Client::connect(server.address());
    assert_eq!(client.say("TTL a"), Value::Integer(-1));
    assert!(matches!(client.say("TTL b"), Value::Integer(900..=1000)));
}
