//! Clients that others have made: redis-cli and redis-benchmark. (redis-py is a part of its own of
//! `cargo xtask test`.)

use adamant_server::Server;

use crate::support::certificates::Authority;
use crate::support::connections::{Client, Value, serve};
use crate::support::program::{Program, is_installed, run};

/// What redis-cli says to words, one line each.
fn cli(server: &Server, words: &[&str], input: &[u8]) -> Vec<String> {
    let port = server.address().port().to_string();
    let arguments = [&["-p", &port], words].concat();
    run("redis-cli", &arguments, input).fine().lines().map(str::to_owned).collect()
}

#[test]
fn redis_cli() {
    if !is_installed("redis-cli", "redis-tools") {
        return;
    }
    let server = serve(|_| {});
    let say = |words: &str| cli(&server, &words.split(' ').collect::<Vec<_>>(), b"");
    assert_eq!(say("SET greeting hello"), ["OK"]);
    assert_eq!(say("GET greeting"), ["hello"]);
    assert_eq!(say("-n 2 GET greeting"), [""]);
    assert_eq!(say("MSET b 2 a 1 c 3"), ["OK"]);
    assert_eq!(say("ADAMANT.RANGE - + LIMIT 2"), ["a", "1", "b", "2"]);
    assert_eq!(say("-3 ADAMANT.COUNT a c"), ["2"]);
    assert_eq!(say("--no-raw GET nothing"), ["(nil)"]);
    assert_eq!(say("--no-raw INCR a"), ["(integer) 2"]);
    assert_eq!(say("-3 --json MGET a nothing"), ["[\"2\",null]"]);
    assert_eq!(say("GETRANGE greeting 1 -1"), ["ello"]);
    let mut scanned = say("--scan --pattern [abc]");
    scanned.sort();
    assert_eq!(scanned, ["a", "b", "c"]);
    assert!(say("PEXPIRE a 90000")[0] == "1" && say("TTL a")[0].parse::<u32>().unwrap() <= 90);
    assert!(say("INFO server").iter().any(|line| line.starts_with("redis_version:7.")));
    // A conversation over one connection.
    let said = cli(&server, &[], b"MULTI\nSET t 1\nINCR t\nEXEC\nSELECT 1\nDBSIZE\n");
    assert_eq!(said, ["OK", "QUEUED", "QUEUED", "OK", "2", "OK", "0"]);
    let largest = say("--bigkeys");
    assert!(
        largest.iter().any(|line| line.contains("Sampled 5 keys in the keyspace")),
        "{largest:#?}"
    );
}

#[test]
fn redis_cli_inserts_many() {
    if !is_installed("redis-cli", "redis-tools") {
        return;
    }
    let server = serve(|_| {});
    let mut bytes = Vec::new();
    for number in 0..20_000 {
        let (key, value) = (format!("key:{number}"), "v".repeat(number % 300));
        bytes.extend(crate::support::connections::request(&[
            b"SET",
            key.as_bytes(),
            value.as_bytes(),
        ]));
    }
    let said = cli(&server, &["--pipe"], &bytes);
    assert_eq!(said.last().unwrap(), "errors: 0, replies: 20000");
    assert_eq!(Client::connect(server.address()).say("DBSIZE"), Value::Integer(20_000));
}

#[test]
fn redis_cli_encrypted_and_with_a_password() {
    if !is_installed("redis-cli", "redis-tools") {
        return;
    }
    if !run("redis-cli", &["--help"], b"").output.contains("--tls ") {
        return println!("skipped: this redis-cli cannot encrypt");
    }
    let folder = tempfile::tempdir().unwrap();
    let (authority, clients) = (Authority::new(), Authority::new());
    let tls = authority.sign().write(folder.path());
    let shown = folder.path().join("client");
    std::fs::create_dir(&shown).unwrap();
    let shown_tls = clients.sign().write(&shown);
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (trusted, asked) = (folder.path().join("trusted"), folder.path().join("asked"));
    std::fs::create_dir(&trusted).unwrap();
    std::fs::create_dir(&asked).unwrap();
    let (trusted, asked) = (authority.write(&trusted), clients.write(&asked));
    let password = folder.path().join("password");
    std::fs::write(&password, "sesame\n").unwrap();

    let options = [
        "--tls-certificate",
        &path(&tls.certificate),
        "--tls-key",
        &path(&tls.key),
        "--tls-client-ca",
        &path(&asked),
        "--password-file",
        &path(&password),
    ];
    let program = Program::start(&folder.path().join("store"), &options);
    let port = program.address.port().to_string();
    let (trusted, certificate, key) =
        (path(&trusted), path(&shown_tls.certificate), path(&shown_tls.key));
    let encrypted = [
        "-p",
        &port,
        "--no-auth-warning",
        "--tls",
        "--cacert",
        &trusted,
        "--cert",
        &certificate,
        "--key",
        &key,
    ];
    let say = |words: &[&str]| run("redis-cli", &[&encrypted[..], words].concat(), b"");
    assert_eq!(say(&["-a", "sesame", "SET", "a", "1"]).fine(), "OK\n");
    assert_eq!(say(&["-3", "-a", "sesame", "GET", "a"]).fine(), "1\n");
    assert!(say(&["GET", "a"]).output.starts_with("NOAUTH "));
    let without = run("redis-cli", &[&encrypted[..6], &["-a", "sesame", "GET", "a"]].concat(), b"");
    assert!(!without.is_success || without.output.starts_with("Error"), "{without:?}");
}

#[test]
fn redis_benchmark() {
    if !is_installed("redis-benchmark", "redis-tools") {
        return;
    }
    let server = serve(|options| options.databases = 1);
    let port = server.address().port().to_string();
    for pipelined in ["1", "16"] {
        let options = ["-p", &port, "-t", "ping,set,get,incr,mset", "-n", "3000", "-c", "30"];
        let more = ["-r", "500", "-d", "100", "--csv", "-P", pipelined];
        let said = run("redis-benchmark", &[options.as_slice(), &more].concat(), b"");
        let lines: Vec<&str> = said.output.lines().collect();
        // A line of names, two of PING, and one of each other command.
        assert!(said.is_success && lines.len() == 7, "{said:?}");
        assert!(!said.output.contains("ERR") && !said.errors.contains("rror"), "{said:?}");
    }
    let info = Client::connect(server.address()).say("INFO stats").text();
    let commands = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
    assert!(commands.unwrap().parse::<u32>().unwrap() >= 2 * 6 * 3000, "{info}");
}
