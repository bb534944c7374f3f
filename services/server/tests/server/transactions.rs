//! MULTI, EXEC and WATCH: as one, or not at all.

use adamant_server::Server;

use crate::support::connections::{Client, Value, seed, serve, server_and_client};

fn error(words: &str) -> Value {
    Value::Error(words.into())
}

#[test]
fn commands_run_as_one() {
    let (_server, mut client) = server_and_client();
    assert_eq!(client.say("EXEC"), error("ERR EXEC without MULTI"));
    assert_eq!(client.say("DISCARD"), error("ERR DISCARD without MULTI"));
    assert_eq!(client.say("MULTI"), Value::ok());
    assert_eq!(client.say("MULTI"), error("ERR MULTI calls can not be nested"));
    for words in ["SET a 1", "INCR a", "SELECT 1", "SET b 2", "DBSIZE", "PING", "LPUSH2"] {
        let expected = if words == "LPUSH2" {
            error("ERR unknown command 'LPUSH2', with args beginning with: ")
        } else {
            Value::Simple("QUEUED".into())
        };
        assert_eq!(client.say(words), expected);
    }
    let aborted = error("EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(client.say("EXEC"), aborted);
    assert_eq!(client.say("GET a"), Value::Null);

    client.say("MULTI");
    for words in ["SET a x", "INCR a", "SELECT 1", "SET b 2", "DBSIZE", "PING", "FLUSHDB", "DBSIZE"]
    {
        client.say(words);
    }
    let done = client.say("EXEC");
    let expected = [
        Value::ok(),
        error("ERR value is not an integer or out of range"),
        Value::ok(),
        Value::ok(),
        Value::Integer(1),
        Value::Simple("PONG".into()),
        Value::ok(),
        Value::Integer(0),
    ];
    assert_eq!(done.parts(), expected);
    assert_eq!(client.say("GET b"), Value::Null, "it is in database 1, which was emptied");
    client.say("SELECT 0");
    assert_eq!(client.say("GET a"), Value::bulk("x"), "one that fails does not undo the others");
    client.say("MULTI");
    client.say("SET a y");
    assert_eq!(client.say("DISCARD"), Value::ok());
    assert_eq!(client.say("GET a"), Value::bulk("x"));
}

#[test]
fn what_is_watched_and_changes_ends_it() {
    let (server, mut client) = server_and_client();
    let mut other = Client::connect(server.address());
    let changes = [
        ("SET a 1", true),
        ("SET b 1", false),
        ("DEL a", false),
        ("SET a 2 XX", false),
        ("APPEND a x", true),
        ("EXPIRE a 1000", true),
        ("FLUSHDB", true),
        ("FLUSHDB", false),
        ("MSET b 1 a 1", true),
        ("RENAME a b", true),
    ];
    for (words, is_change) in changes {
        assert_eq!(client.say("WATCH a"), Value::ok());
        let reply = other.say(words);
        assert!(!reply.is_error(), "{words}: {reply:?}");
        let is_change = is_change || words == "DEL a" && reply == Value::Integer(1);
        let is_change = is_change || words == "SET a 2 XX" && reply == Value::ok();
        client.say("MULTI");
        client.say("PING");
        let done = client.say("EXEC");
        assert_eq!(done == Value::Null, is_change, "{words}: {done:?}");
    }
    // What is over has changed, without anybody doing anything.
    loop {
        client.say("SET a 1 PX 50");
        client.say("WATCH a");
        // It was there when it was watched, however slow this machine is.
        if client.say("EXISTS a") == Value::Integer(1) {
            break;
        }
        client.say("UNWATCH");
    }
    std::thread::sleep(std::time::Duration::from_millis(60));
    client.say("MULTI");
    client.say("PING");
    assert_eq!(client.say("EXEC"), Value::Null);
    // What is not watched any more may change.
    client.say("WATCH a");
    client.say("UNWATCH");
    other.say("SET a 5");
    client.say("MULTI");
    assert_eq!(client.say("WATCH a"), error("ERR WATCH inside MULTI is not allowed"));
    client.say("SELECT 1");
    assert_eq!(client.say("EXEC"), Value::Array(vec![Value::ok()]));
    // A database that was chosen in vain was not chosen.
    client.say("SELECT 0");
    client.say("WATCH a");
    other.say("SET a 6");
    client.send(b"MULTI\r\nSELECT 1\r\nEXEC\r\nGET a\r\n");
    let replies: Vec<Value> = (0..4).map(|_| client.reply()).collect();
    assert_eq!(replies[2..], [Value::Null, Value::bulk("6")]);
}

/// Clients move amounts between accounts, each by a transaction that watches what it read, while
/// others add up all accounts by one MGET in MULTI: the sum is the same at every moment.
#[test]
fn transfers_lose_nothing() {
    const ACCOUNTS: usize = 4;
    let seed = seed(1);
    let server = serve(|_| {});
    let mut first = Client::connect(server.address());
    for account in 0..ACCOUNTS {
        first.say(&format!("SET account:{account} 100"));
    }
    let (mut moved, mut conflicts) = (0, 0);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..4)
            .map(|number| {
                scope.spawn({
                    let server = &server;
                    move || transfer(server, seed + number)
                })
            })
            .collect();
        let adder = scope.spawn(|| {
            let mut client = Client::connect(server.address());
            for _ in 0..100 {
                client.send(b"MULTI\r\nMGET account:0 account:1 account:2 account:3\r\nEXEC\r\n");
                client.reply();
                client.reply();
                let all = client.reply();
                let amounts = all.parts()[0].parts().iter();
                let sum: i64 = amounts.map(|one| one.text().parse::<i64>().unwrap()).sum();
                assert_eq!(sum, 400);
            }
        });
        adder.join().unwrap();
        for mover in movers {
            let (done, lost) = mover.join().unwrap();
            moved += done;
            conflicts += lost;
        }
    });
    println!("{moved} transfers, {conflicts} conflicts");
    assert!(moved > 0);
}

fn transfer(server: &Server, seed: u64) -> (u32, u32) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut client = Client::connect(server.address());
    let (mut done, mut lost) = (0, 0);
    for _ in 0..60 {
        let (source, target) = (random.usize(..4), random.usize(..4));
        if source == target {
            continue;
        }
        let (source, target) = (format!("account:{source}"), format!("account:{target}"));
        client.say(&format!("WATCH {source} {target}"));
        let amount = random.i64(1..10);
        let number = |value: Value| value.text().parse::<i64>().unwrap();
        let (has, gets) = (
            number(client.say(&format!("GET {source}"))),
            number(client.say(&format!("GET {target}"))),
        );
        client.say("MULTI");
        client.say(&format!("SET {source} {}", has - amount));
        client.say(&format!("SET {target} {}", gets + amount));
        match client.say("EXEC") {
            Value::Null => lost += 1,
            reply => {
                assert_eq!(reply, Value::Array(vec![Value::ok(), Value::ok()]));
                done += 1;
            }
        }
    }
    (done, lost)
}

#[test]
fn counters_count_each_increment_once() {
    let server = serve(|_| {});
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(server.address());
                for _ in 0..10 {
                    client.send("INCR a\r\nINCRBY b 2\r\n".repeat(20).as_bytes());
                    for _ in 0..40 {
                        assert!(matches!(client.reply(), Value::Integer(_)));
                    }
                }
            });
        }
    });
    let mut client = Client::connect(server.address());
    assert_eq!(client.say("MGET a b"), Value::Array(vec![Value::bulk("800"), Value::bulk("1600")]));
}
