//! Stores in S3, as `moto` plays it, on a port of this machine.
//!
//! `ADAMANT_MOTO` names a Python that has it; `cargo xtask remote` makes one. Without it the test
//! says that it was skipped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use adamant_remote::object_store::ObjectStore;
use adamant_remote::object_store::aws::AmazonS3Builder;
use adamant_remote::{Error, Options, Store};

const PYTHON: &str = "ADAMANT_MOTO";
const BUCKET: &str = "stores";
/// What it says when it listens.
const LISTENS: &str = "Running on http://127.0.0.1:";

/// A server that ends with the test.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(python: &str) -> Self {
        let mut child = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("moto should start");
        let (sender, lines) = channel();
        let stderr = child.stderr.take().unwrap();
        // It writes a line for each request: somebody has to read on.
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut said = Vec::new();
        let port = loop {
            let line = lines.recv_timeout(Duration::from_secs(300)).unwrap_or_else(|_| {
                let _ = child.kill();
                panic!("moto did not say where it listens: {said:?}")
            });
            if let Some((_, port)) = line.split_once(LISTENS) {
                break port.trim().parse::<u16>().expect("a port");
            }
            said.push(line);
        };
        let server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        server.make_bucket();
        server
    }

    fn make_bucket(&self) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!(
            "PUT /{BUCKET} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    fn objects(&self) -> Arc<dyn ObjectStore> {
        let builder = AmazonS3Builder::new()
            .with_endpoint(self.endpoint())
            .with_allow_http(true)
            .with_bucket_name(BUCKET)
            .with_region("us-east-1")
            .with_access_key_id("anybody")
            .with_secret_access_key("anything");
        Arc::new(builder.build().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn server() -> Option<Server> {
    let Ok(python) = std::env::var(PYTHON) else {
        println!("skipped: S3 by moto: {PYTHON} names no Python that has it (cargo xtask remote)");
        return None;
    };
    Some(Server::start(&python))
}

#[test]
fn a_store_in_s3() {
    let Some(server) = server() else { return };
    let open = |path: &str, options: Options| {
        Store::open_objects(server.objects(), path, options.flush_ms(5).poll_ms(3_600_000))
    };
    let refused = open("a/store", Options::new().create(false)).unwrap_err();
    assert!(matches!(refused, Error::Missing { .. }), "{refused}");

    let first = open("a/store", Options::new().memtable_bytes_max(16 << 10)).unwrap();
    let towns = first.keyspace("towns").unwrap();
    for number in 0..20 {
        let mut batch = first.batch();
        for place in 0..20 {
            batch.put(&towns, format!("{number:02}{place:02}"), vec![number; 100]).unwrap();
        }
        batch.commit().unwrap();
    }
    assert_eq!(towns.iter().rev().count(), 400);

    let reader = open("a/store", Options::new().read_only(true)).unwrap();
    assert_eq!(reader.open_keyspace("towns").unwrap().len().unwrap(), 400);
    reader.close().unwrap();

    // The place is taken: the first one's commit must not return.
    let second = open("a/store", Options::new()).unwrap();
    let late = towns.put("late", "v");
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    drop((first, towns));
    let towns = second.open_keyspace("towns").unwrap();
    assert!(!towns.contains("late").unwrap());
    assert!(towns.insert("0000", "new").unwrap());
    assert_eq!(towns.len().unwrap(), 400);

    // Another store in the same bucket.
    let other = open("a/stor", Options::new()).unwrap();
    assert!(other.keyspaces().unwrap().is_empty());
    other.close().unwrap();
    second.close().unwrap();
}

#[test]
fn a_copy_to_s3_and_back() {
    let Some(server) = server() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let store = adamant::Store::open(path("made")).unwrap();
    let keyspace = store.keyspace("towns").unwrap();
    keyspace.extend((0..2_000).map(|number| (format!("{number}"), vec![7; 500]))).unwrap();
    keyspace.insert("large", vec![9; 3 << 20]).unwrap();
    store.close().unwrap();
    let copy = |source: &str, target: &str| {
        let done = Command::new(env!("CARGO_BIN_EXE_adamant-remote"))
            .args(["--json", "copy", source, target])
            .env("AWS_ENDPOINT", server.endpoint())
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "anybody")
            .env("AWS_SECRET_ACCESS_KEY", "anything")
            .output()
            .unwrap();
        let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert!(done.status.success(), "{said}");
        let (_, checksum) = said.split_once("\"checksum\":\"").unwrap();
        checksum[..32].to_owned()
    };
    let url = format!("slatedb+s3://{BUCKET}/copies/one");
    let there = copy(&path("made"), &url);
    let back = copy(&url, &path("back"));
    assert_eq!(there, back);
    let back = adamant::Store::open(path("back")).unwrap();
    assert_eq!(back.open_keyspace("towns").unwrap().len().unwrap(), 2_001);
}
