//! What INFO tells, what bounds the store, and keys at random.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::support::connections::{Client, Value, request, server_and_client};

/// Figures of a section of INFO, by name.
fn info(client: &mut Client, section: &str) -> BTreeMap<String, String> {
    let text = client.say(&format!("INFO {section}")).text();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.into(), value.trim().into())).collect()
}

/// As a client does that puts many commands into one piece.
fn say_all(client: &mut Client, commands: impl Iterator<Item = Vec<u8>>) -> Vec<Value> {
    let commands: Vec<_> = commands.collect();
    client.send(&commands.concat());
    commands.iter().map(|_| client.reply()).collect()
}

/// The one key behind a large gap was what RANDOMKEY gave nearly always.
#[test]
fn a_key_at_random_is_any_of_them() {
    const KEYS: usize = 5_000;
    const ASKED: usize = 1_000;
    let (_server, mut client) = server_and_client();
    let set = |key: String| request(&[b"SET", key.as_bytes(), b"1"]);
    for before in [0, KEYS / 2] {
        // Half of them at first, so that the others lie between fences that were set before.
        let keys = (before..before + KEYS / 2).map(|number| set(format!("a{number:06}")));
        say_all(&mut client, keys.chain([set("zzz".into())]));
        let found = say_all(&mut client, (0..ASKED).map(|_| request(&[b"RANDOMKEY"])));
        let mut quarters = [0; 4];
        for key in found {
            let key = key.text();
            let number = key.strip_prefix('a').map_or(KEYS, |it| it.parse::<usize>().unwrap());
            quarters[(number * 4 / (before + KEYS / 2 + 1)).min(3)] += 1;
        }
        // 250 each, of which 60 is more than four standard deviations.
        assert!(quarters.iter().all(|count| (180..=320).contains(count)), "{quarters:?}");
    }
    say_all(
        &mut client,
        (0..KEYS - 3).map(|it| request(&[b"DEL", format!("a{it:06}").as_bytes()])),
    );
    let few = say_all(&mut client, (0..200).map(|_| request(&[b"RANDOMKEY"])));
    let few: std::collections::BTreeSet<_> = few.iter().map(Value::text).collect();
    assert_eq!(few.len(), 4, "{few:?}");
}

#[test]
fn what_is_read_and_run_is_counted() {
    let (_server, mut client) = server_and_client();
    for command in ["SET a 1", "GET a", "GET b", "MGET a b c", "EXISTS a", "GET \"\"", "INCR a"] {
        client.say(command);
    }
    assert!(client.say("GET a b").is_error());
    client.say("SET word x");
    assert!(client.say("INCR word").is_error());
    let stats = info(&mut client, "stats");
    assert_eq!((&*stats["keyspace_hits"], &*stats["keyspace_misses"]), ("3", "4"));
    assert_eq!(stats["evicted_keys"], "0");
    let commands = info(&mut client, "commandstats");
    assert!(commands["cmdstat_get"].starts_with("calls=3,usec="), "{commands:?}");
    assert!(commands["cmdstat_get"].ends_with(",rejected_calls=1,failed_calls=0"), "{commands:?}");
    assert!(commands["cmdstat_incr"].ends_with(",rejected_calls=0,failed_calls=1"), "{commands:?}");
    assert!(commands["cmdstat_info"].starts_with("calls=1,"), "{commands:?}");
    assert!(!client.say("INFO").text().contains("cmdstat_"), "only for who asks for it");
    assert!(client.say("INFO everything").text().contains("cmdstat_get:"));
    assert_eq!(client.say("CONFIG RESETSTAT"), Value::ok());
    let stats = info(&mut client, "stats");
    assert_eq!((&*stats["keyspace_hits"], &*stats["keyspace_misses"]), ("0", "0"));
    if cfg!(target_os = "linux") {
        let cpu = info(&mut client, "cpu");
        let used = |name: &str| cpu[name].parse::<f64>().unwrap();
        assert!(used("used_cpu_user") + used("used_cpu_sys") > 0.0, "{cpu:?}");
        assert!(used("used_cpu_user_children") >= 0.0);
    }
}

/// What redis-py's own tests ask for before they begin.
#[test]
fn clients_find_what_they_choose_their_tests_by() {
    let (_server, mut client) = server_and_client();
    let all = info(&mut client, "default");
    assert_eq!((&*all["arch_bits"], &*all["cluster_enabled"]), ("64", "0"));
    assert!(all.contains_key("redis_version") && all.contains_key("redis_mode"));
    assert_eq!(info(&mut client, "cluster").len(), 1);
}

/// Entries that were over were no keys any more, but counted as keys with a deadline.
#[test]
fn there_are_no_more_deadlines_than_keys() {
    let (_server, mut client) = server_and_client();
    client.say("SET stays 1");
    client.say("SET ends 1 EX 1000");
    for round in 0..20 {
        let keys = (0..200).map(|key| format!("short:{round}:{key}"));
        say_all(&mut client, keys.map(|key| request(&[b"SET", key.as_bytes(), b"1", b"PX", b"1"])));
        let text = client.say("INFO keyspace").text();
        let line = text.lines().find_map(|line| line.strip_prefix("db0:")).unwrap();
        let mut figures = line.split(',').map(|it| it.split_once('=').unwrap().1);
        let mut figure = || figures.next().unwrap().parse::<u64>().unwrap();
        let (keys, expires) = (figure(), figure());
        assert!(keys > expires, "{line}");
    }
    let begun = Instant::now();
    while info(&mut client, "stats")["expired_keys"] != "4000" {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", info(&mut client, "stats"));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn memory_may_be_bounded() {
    let (_server, mut client) = server_and_client();
    client.say("SET a 1");
    assert_eq!(client.say("CONFIG SET maxmemory 100"), Value::ok());
    assert_eq!(client.say("CONFIG GET maxmemory").parts()[1], Value::bulk("100"));
    assert_eq!(info(&mut client, "memory")["maxmemory"], "100");
    let refused = "OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(client.say("SET b 1"), Value::Error(refused.into()));
    assert_eq!(client.say("GET a"), Value::bulk("1"));
    assert_eq!(client.say("DEL a"), Value::Integer(1));
    assert_eq!(client.say("CONFIG SET maxmemory 1gb"), Value::ok());
    assert_eq!(client.say("CONFIG GET maxmemory").parts()[1], Value::bulk("1073741824"));
    assert_eq!(client.say("SET b 1"), Value::ok());
    assert!(client.say("CONFIG SET maxmemory much").is_error());
    assert!(client.say("CONFIG SET maxmemory -1").is_error());
    assert_eq!(client.say("CONFIG SET maxmemory 0"), Value::ok());
    assert_eq!(client.say("SET b 2"), Value::ok());
}
