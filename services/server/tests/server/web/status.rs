//! The status by HTTP: what Prometheus, those who send clients here, and people ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use adamant_server::{Engine, Options, Server};
use serde_json::Value as Json;

use crate::support::certificates::Authority;
use crate::support::connections::{Client, Value, connect, serve};
use crate::web::health::{address, ask, ask_over, parse};

/// A server that tells.
pub(crate) fn told(change: impl FnOnce(&mut Options)) -> Server {
    serve(|options| {
        options.http = Some(([127, 0, 0, 1], 0).into());
        change(options);
    })
}

/// Samples by name and labels, after a look whether all is said as the format wants it.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut found, mut families) = (BTreeMap::new(), BTreeSet::new());
    let (mut family, mut kind, mut helped) = ("", "", "");
    for line in text.strip_suffix('\n').unwrap().split('\n') {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(help.ends_with('.') && name.starts_with("adamant_"), "{line}");
            helped = name;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            (family, kind) = rest.split_once(' ').unwrap();
            assert!(families.insert(family) && helped == family, "{line}");
            assert!(["gauge", "counter", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", family.ends_with("_total"), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let suffix = name.strip_prefix(family).unwrap();
            let parts = ["_bucket", "_sum", "_count"];
            assert!(suffix.is_empty() || kind == "histogram" && parts.contains(&suffix), "{line}");
            assert!(found.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{line}");
        }
    }
    found
}

pub(crate) fn metrics(server: &Server) -> BTreeMap<String, f64> {
    let answer = ask(server, "/metrics");
    assert_eq!(answer.code, 200);
    assert!(answer.head.contains("\r\ncontent-type: text/plain; version=0.0.4"), "{}", answer.head);
    samples(&answer.body)
}

fn status(server: &Server) -> Json {
    let answer = ask(server, "/status.json");
    assert_eq!(answer.code, 200);
    assert!(answer.head.contains("\r\ncontent-type: application/json"), "{}", answer.head);
    serde_json::from_str(&answer.body).unwrap()
}

#[test]
fn figures_for_prometheus() {
    let server = told(|_| {});
    let mut client = Client::connect(server.address());
    let before = metrics(&server);
    for number in 0..30 {
        assert_eq!(client.say(&format!("SET k{number} 1 EX 1000")), Value::ok());
    }
    client.say("SELECT 2");
    client.say("SET a 1");
    let after = metrics(&server);
    let grown = |name: &str| after[name] - before[name];
    assert_eq!(grown("adamant_commands_total"), 32.0);
    assert!(grown("adamant_commits_total") >= 31.0);
    assert_eq!(after["adamant_keys{database=\"0\"}"], 30.0);
    assert_eq!(after["adamant_keys_with_deadline{database=\"0\"}"], 30.0);
    assert_eq!(after["adamant_keys{database=\"2\"}"], 1.0);
    assert_eq!((after["adamant_clients"], after["adamant_writable"]), (1.0, 1.0));
    assert!(after["adamant_info{version=\"0.1.0\",durability=\"sync\"}"] == 1.0);
    assert!(after["adamant_heap_pool_bytes"] > 0.0 && after["adamant_log_records_total"] > 31.0);

    // Each bucket has what the one before it has, the last one all.
    let name = "adamant_commit_seconds";
    let buckets = after.iter().filter_map(|(series, &count)| {
        let bound = series.strip_prefix("adamant_commit_seconds_bucket{waits=\"device\",le=\"")?;
        Some((bound.strip_suffix("\"}")?.replace("+Inf", "inf").parse::<f64>().unwrap(), count))
    });
    let mut buckets: Vec<(f64, f64)> = buckets.collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert!(buckets.len() > 10 && buckets.is_sorted_by_key(|bucket| bucket.1), "{buckets:?}");
    let count = after[&format!("{name}_count{{waits=\"device\"}}")];
    assert_eq!(buckets.last().unwrap(), &(f64::INFINITY, count));
    assert!(count >= 31.0 && after[&format!("{name}_sum{{waits=\"device\"}}")] > 0.0);
}

#[test]
fn the_status_of_all_parts() {
    let server = told(|options| options.engine = Engine::Lsm);
    let mut client = Client::connect(server.address());
    client.say("CLIENT SETNAME <b>me</b>");
    for number in 0..20 {
        client.say(&format!("SET k{number} {}", "v".repeat(100)));
    }
    let found = status(&server);
    assert!(found["trouble"].is_null() && found["durability"] == "sync", "{found}");
    assert_eq!(found["clients"]["connected"], 1);
    let shown = &found["clients"]["shown"][0];
    assert_eq!((&shown["name"], &shown["command"]), (&"<b>me</b>".into(), &"set".into()));
    assert_eq!(shown["address"], client.stream.local_addr().unwrap().to_string());
    assert_eq!(found["databases"][0]["keys"], 20);
    assert_eq!(found["databases"][0]["engine"], "lsm");
    assert!(found["commits"]["synced"]["count"].as_u64() >= Some(20), "{found}");
    let buckets = found["commits"]["synced"]["buckets"].as_array().unwrap();
    let counted: u64 = buckets.iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
    let slower = found["commits"]["synced"]["slower"].as_u64().unwrap();
    assert_eq!(Some(counted + slower), found["commits"]["synced"]["count"].as_u64());
    let of_first = found["lsm"].as_array().unwrap().iter().find(|one| one["keyspace"] == "db0");
    assert!(of_first.unwrap()["memtable_entries"].as_u64() >= Some(20), "{found}");
    let usage = found["heap"]["usage"].as_str().unwrap();
    assert!(usage.starts_with('s') && usage.len() == found["heap"]["fill"].as_str().unwrap().len());
    assert!(found["heap"]["fragmentation"].as_f64().unwrap() <= 1.0);
    assert_eq!(found["snapshots"]["expired"], 0);

    let metrics = metrics(&server);
    assert!(metrics["adamant_lsm_memtable_bytes{keyspace=\"db0\"}"] > 2000.0);
    assert_eq!(metrics["adamant_lsm_level_tables{keyspace=\"db0\",level=\"0\"}"], 0.0);
}

#[test]
fn paths_and_what_is_none() {
    let server = told(|_| {});
    let page = ask(&server, "/");
    assert_eq!(page.code, 200);
    assert!(page.body.starts_with("<!DOCTYPE html>") && page.body.is_ascii());
    assert!(page.head.contains("content-security-policy: default-src 'none';"), "{}", page.head);
    let health = ask(&server, "/health");
    assert_eq!((health.code, &*health.body), (200, "ok\n"));
    assert_eq!(ask(&server, "/nothing").code, 404);
    let mut stream = connect(address(&server));
    stream.write_all(b"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(parse(&answer).code, 405);
    // A server that was not asked to does not.
    assert_eq!(serve(|_| {}).http_address(), None);
}

#[test]
fn who_has_no_password_learns_one_word() {
    let server = told(|options| options.password = Some("sesame".into()));
    let with = |path, encoded| {
        let header = format!("Authorization: Basic {encoded}\r\n");
        ask_over(connect(address(&server)), path, &header).code
    };
    for path in ["/", "/status.json", "/metrics"] {
        let answer = ask(&server, path);
        assert_eq!(answer.code, 401);
        assert!(answer.head.contains("\r\nwww-authenticate: basic "), "{}", answer.head);
        // default:sesame, default:sesam, other:sesame, nothing that could be decoded.
        assert_eq!(with(path, "ZGVmYXVsdDpzZXNhbWU="), 200);
        assert_eq!(with(path, "ZGVmYXVsdDpzZXNhbQ=="), 401);
        assert_eq!(with(path, "b3RoZXI6c2VzYW1l"), 401);
        assert_eq!(with(path, "%%%"), 401);
    }
    assert_eq!(ask(&server, "/health").body, "ok\n");
    server.ask_for_end();
    let ending = ask(&server, "/health");
    assert_eq!((ending.code, &*ending.body), (503, "ending\n"));
}

#[test]
fn encrypted_as_clients_are() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let tls = authority.sign().write(folder.path());
    let server = told(|options| options.tls = Some(tls));
    let answer = ask_over(authority.connect(address(&server), None).stream, "/health", "");
    assert_eq!((answer.code, &*answer.body), (200, "ok\n"));
    let mut plain = connect(address(&server));
    plain.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(bytes.is_empty() || bytes[0] == 21, "{bytes:?}");
}

#[test]
fn what_is_no_request_harms_nobody() {
    let server = told(|_| {});
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(100_000));
    let garbage: [&[u8]; 4] = [b"\0\xff\r\n\r\n", b"*1\r\n$4\r\nPING\r\n", long.as_bytes(), b"GET"];
    let mut silent = Vec::new();
    for bytes in garbage.iter().cycle().take(40) {
        let mut stream = connect(address(&server));
        let _ = stream.write_all(bytes);
        silent.push(stream);
    }
    assert_eq!(ask(&server, "/health").code, 200);
    drop(silent);
    // Many who ask at once, more than are served at once.
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| assert_eq!(ask(&server, "/metrics").code, 200));
        }
    });
    assert_eq!(Client::connect(server.address()).say("PING"), Value::Simple("PONG".into()));
}
