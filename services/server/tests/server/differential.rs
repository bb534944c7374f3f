//! The same random commands to this server and to redis-server: the same replies.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::connections::{Client, Value, request, seed, serve};

const COMMANDS: usize = 6000;

struct Redis(Child);

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A redis-server that listens on a socket of this file system only; `None` where there is none.
fn start(folder: &Path) -> Option<Redis> {
    let child = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--databases", "4", "--unixsocket"])
        .arg(folder.join("socket"))
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .ok()?;
    Some(Redis(child))
}

fn connect(folder: &Path) -> Client<UnixStream> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(folder.join("socket")) {
            Ok(stream) => return Client::over(stream),
            Err(error) => assert!(start.elapsed() < Duration::from_secs(60), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes commands: mostly ones that can be done, on few keys.
struct Maker(fastrand::Rng);

impl Maker {
    fn one_of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        self.0.choice(words).unwrap()
    }

    fn key(&mut self) -> &'static str {
        self.one_of(&["a", "b", "c", "key:1", "key:2", "key:10"])
    }

    fn value(&mut self) -> &'static str {
        self.one_of(&["", "0", "7", "-1", "9223372036854775807", "abc", "1.5", " 1", "hello world"])
    }

    fn integer(&mut self) -> &'static str {
        self.one_of(&[
            "0",
            "1",
            "-1",
            "3",
            "-4",
            "100",
            "9223372036854775807",
            "-9223372036854775808",
            "x",
        ])
    }

    /// Times are over already, or not for long: none ends while commands run.
    fn time(&mut self) -> &'static str {
        self.one_of(&[
            "0",
            "-1",
            "1000",
            "100000",
            "9223372036854775807",
            "-9223372036854775808",
            "x",
        ])
    }

    fn words(&mut self) -> Vec<String> {
        let (key, other, value, integer, next) =
            (self.key(), self.key(), self.value(), self.integer(), self.integer());
        let time = self.time();
        // What is over when it is set counts there until it is taken away.
        let later = self.one_of(&["4000000000000", "5000000000000", "-5", "x", "0"]);
        let far = self.one_of(&["4000000000000", "5000000000000", "1000", "-5", "x", "0"]);
        let option =
            self.one_of(&["NX", "XX", "GET", "KEEPTTL", "GT", "LT", "EX", "PERSIST", "xx", "get"]);
        let pattern = self.one_of(&["*", "key:*", "key:?", "[ab]", "[^a]", "k*1*", "\\a"]);
        let float = self.one_of(&["0.1", "2.5", "-1.25", "3e1", "abc", "-7", "inf"]);
        let database = self.one_of(&["0", "1", "3", "4", "-1", "x"]);
        let one = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        match self.0.u8(..61) {
            0..4 => one(&["SET", key, value]),
            4..6 => one(&["SET", key, value, option]),
            6 => one(&["SET", key, value, "PXAT", later, option]),
            7 => one(&["SET", key, value, "EX", time]),
            8..11 => one(&["GET", key]),
            11 => one(&["SETNX", key, value]),
            12 => one(&["SETEX", key, "1000", value]),
            13 => one(&["PSETEX", key, self.one_of(&["0", "-7", "1000000", "x"]), value]),
            14 => one(&["GETSET", key, value]),
            15 => one(&["GETDEL", key]),
            16 => one(&["GETEX", key, option]),
            17 => one(&["GETEX", key, "PXAT", far]),
            18 => one(&["APPEND", key, value]),
            19 => one(&["STRLEN", key]),
            20 => one(&["GETRANGE", key, integer, next]),
            21 => one(&["SETRANGE", key, self.one_of(&["0", "3", "-1", "600000000", "x"]), value]),
            22 => one(&["MSET", key, value, other, value]),
            23 => one(&["MSETNX", key, value, other, value]),
            24 => one(&["MGET", key, other, key]),
            25..27 => one(&["INCR", key]),
            27 => one(&["DECRBY", key, integer]),
            28 => one(&["INCRBY", key, integer]),
            29 => one(&["INCRBYFLOAT", "float", float]),
            30 => one(&["SET", "float", float]),
            31 => one(&["DEL", key, other]),
            32 => one(&["EXISTS", key, other, "nothing"]),
            33 => one(&["TYPE", key]),
            34 => one(&["RENAME", key, other]),
            35 => one(&["RENAMENX", key, other]),
            36 => one(&["COPY", key, other, self.one_of(&["REPLACE", "DB", "nope"])]),
            37 => one(&["COPY", key, other, "DB", database]),
            38 => one(&["MOVE", key, database]),
            39 => one(&["PEXPIREAT", key, far]),
            40 => one(&["PEXPIREAT", key, far, option]),
            41 => one(&["EXPIREAT", key, "4000000000", option]),
            42 => one(&["EXPIRE", key, time]),
            43 => one(&["EXPIRE", key, "1000"]),
            44 => one(&["PERSIST", key]),
            45 => one(&["PEXPIRETIME", key]),
            46 => one(&["EXPIRETIME", key]),
            47 => one(&["TTL", key]),
            48 => one(&["DBSIZE"]),
            49 => one(&["KEYS", pattern]),
            50 => one(&["SELECT", database]),
            51 => one(&["WATCH", key, other]),
            52 => one(&["UNWATCH"]),
            53..55 => one(&["MULTI"]),
            55..57 => one(&["EXEC"]),
            57 => one(&["DISCARD"]),
            58 => {
                one(&[self.one_of(&["FLUSHDB", "FLUSHALL", "GET", "SET", "MSET", "NOPE", "PING"])])
            }
            59 => one(&["SWAPDB", database, self.one_of(&["0", "1", "2", "4", "x"])]),
            _ => one(&[
                self.one_of(&["GET", "ECHO", "TOUCH", "SUBSTR", "PING", "EXPIRE"]),
                key,
                value,
            ]),
        }
    }
}

/// Keys come in no order there, and moments that are relative to now are about the same.
fn comparable(words: &[String], value: Value) -> Value {
    match value {
        Value::Array(parts) => {
            let mut parts: Vec<_> = parts.into_iter().map(|part| comparable(&[], part)).collect();
            // Of EXEC's the nested ones, which are those of KEYS and MGET.
            if words.is_empty() || words[0] == "KEYS" {
                parts.sort();
            }
            Value::Array(parts)
        }
        Value::Integer(900..=1000) => Value::Integer(1000),
        Value::Integer(99_900..=100_000) => Value::Integer(100_000),
        // The moments themselves, in seconds and milliseconds: of this century, before those that
        // are given.
        Value::Integer(1_000_000_000..=3_999_999_999) => Value::Integer(1_000_000_000),
        Value::Integer(1_000_000_000_000..=3_999_999_999_999) => Value::Integer(1_000_000_000_000),
        other => other,
    }
}

fn run(seed: u64, version: &str) {
    println!("seed {seed}, {version}");
    let folder = tempfile::tempdir().unwrap();
    let Some(_redis) = start(folder.path()) else {
        return println!("skipped: there is no redis-server");
    };
    let server = serve(|_| {});
    let mut pairs: Vec<_> =
        (0..2).map(|_| (Client::connect(server.address()), connect(folder.path()))).collect();
    for (ours, theirs) in &mut pairs {
        for client in [&mut ours.say(version), &mut theirs.say(version)] {
            assert!(!client.is_error());
        }
    }
    let mut maker = Maker(fastrand::Rng::with_seed(seed));
    let mut history: Vec<String> = Vec::new();
    for number in 0..COMMANDS {
        let words = maker.words();
        let who = maker.0.usize(..2);
        let arguments: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let (ours, theirs) = &mut pairs[who];
        ours.send(&request(&arguments));
        theirs.send(&request(&arguments));
        let (found, expected) = (ours.reply(), theirs.reply());
        history.push(format!("{who} {words:?} -> {found:?}"));
        let (found, expected) = (comparable(&words, found), comparable(&words, expected));
        if found != expected {
            let last = history.len().saturating_sub(40);
            let lately = history[last..].join("\n");
            panic!(
                "seed {seed}, command {number}: expected {expected:?}, found {found:?}\n{lately}"
            );
        }
    }
}

#[test]
fn as_redis_version_2() {
    run(seed(3), "HELLO 2");
}

#[test]
fn as_redis_version_3() {
    run(seed(4), "HELLO 3");
}
