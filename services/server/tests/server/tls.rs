//! Encrypted connections: the same server behind them, and clients that do not get that far.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use adamant_server::{Error, Options, Server, Tls};

use crate::support::certificates::{Authority, Encrypted, Signed};
use crate::support::connections::{Client, Value, connect, request, serve, until};

/// A server that encrypts, who has signed its certificate, and the folder of its files.
fn encrypted(change: impl FnOnce(&mut Options, &Path)) -> (Server, Authority, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let tls = authority.sign().write(folder.path());
    let server = serve(|options| {
        options.tls = Some(tls);
        change(options, folder.path());
    });
    (server, authority, folder)
}

fn is_served(client: Client<Encrypted>) -> bool {
    client.try_ping().is_some()
}

#[test]
fn the_same_server_behind_it() {
    let (server, authority, _folder) = encrypted(|_, _| {});
    let mut client = authority.connect(server.address(), None);
    // More than all buffers on the way.
    let value: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    assert_eq!(client.call(&[b"SET", b"large", &value]), Value::ok());
    assert_eq!(client.say("GET large"), Value::Bulk(value));
    assert!(matches!(client.say("HELLO 3"), Value::Map(_)));
    let mut pipeline = b"INCR n\r\n".repeat(3000);
    pipeline.extend(b"MULTI\r\nINCR n\r\nGET n\r\nEXEC\r\n");
    client.send(&pipeline);
    for number in 1..=3000 {
        assert_eq!(client.reply(), Value::Integer(number));
    }
    let last = (0..4).map(|_| client.reply()).last().unwrap();
    assert_eq!(last, Value::Array(vec![Value::Integer(3001), Value::bulk("3001")]));
    assert!(client.say("INFO").text().contains("tls:1\r\n"));
}

#[test]
fn the_end_is_said() {
    let (server, authority, _folder) = encrypted(|_, _| {});
    let mut client = authority.connect(server.address(), None);
    assert_eq!(client.say("SET a 1"), Value::ok());
    let mut other = authority.connect(server.address(), None);
    assert_eq!(other.say("QUIT"), Value::ok());
    // Not an error: nobody has cut these connections off.
    assert_eq!(other.stream.read(&mut [0]).unwrap(), 0);
    server.end().unwrap();
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_server_that_nobody_trusts() {
    let (server, authority, _folder) = encrypted(|_, _| {});
    assert!(!is_served(Authority::new().connect(server.address(), None)));
    let mut client = authority.connect(server.address(), None);
    until("the handshake that failed is counted", || {
        client.say("INFO").text().contains("failed_handshakes:1\r\n")
    });
}

#[test]
fn clients_that_show_certificates() {
    let clients = Authority::new();
    let (server, authority, _folder) = encrypted(|options, folder| {
        options.tls.as_mut().unwrap().client_ca = Some(clients.write(folder));
    });
    assert!(is_served(authority.connect(server.address(), Some(&clients.sign()))));
    assert!(!is_served(authority.connect(server.address(), None)));
    // Who is trusted as a server is not trusted as a client for that.
    assert!(!is_served(authority.connect(server.address(), Some(&authority.sign()))));
    assert!(is_served(authority.connect(server.address(), Some(&clients.sign()))));
}

#[test]
fn files_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let (mine, other) = (Authority::new().sign(), Authority::new().sign());
    let with = |change: &dyn Fn(&mut Tls)| {
        let mut tls = mine.write(folder.path());
        change(&mut tls);
        tls
    };
    let garbage = folder.path().join("garbage.pem");
    std::fs::write(&garbage, "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
        .unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let missing = folder.path().join("missing.pem");
    let refused = |tls: Tls, file: &Path| {
        let mut options = crate::support::connections::options();
        options.tls = Some(tls);
        let error = Server::start_on(adamant::Store::in_memory().unwrap(), options).unwrap_err();
        assert!(matches!(error, Error::Tls { .. }), "{error}");
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    };
    for file in [&garbage, &empty, &missing] {
        refused(with(&|tls| tls.certificate.clone_from(file)), file);
        refused(with(&|tls| tls.key.clone_from(file)), file);
        refused(with(&|tls| tls.client_ca = Some(file.clone())), file);
    }
    // The key of another certificate.
    let mixed = Signed { certificate: mine.certificate.clone(), key: other.key };
    let mixed = mixed.write(folder.path());
    let key = mixed.key.clone();
    refused(mixed, &key);
}

#[test]
fn who_does_not_encrypt_is_not_answered() {
    let (server, authority, _folder) = encrypted(|_, _| {});
    for bytes in [&b"PING\r\n"[..], &request(&[b"SET", b"a", b"1"]), &[b'*'; 20_000]] {
        let mut stream = connect(server.address());
        // It may have hung up before all of it was sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        // At most a message of TLS that something is wrong, which begins so.
        assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    }
    let mut client = authority.connect(server.address(), None);
    assert_eq!(client.say("EXISTS a"), Value::Integer(0));
}

#[test]
fn a_handshake_that_never_ends() {
    let (server, authority, _folder) = encrypted(|options, _| {
        options.handshake_wait = Duration::from_millis(300);
    });
    // Nothing, and the beginning of a greeting that promises more.
    for bytes in [&b""[..], &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]] {
        let mut stream = connect(server.address());
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
    }
    drop(server);
    drop(authority);
}

#[test]
fn who_shakes_hands_counts_as_a_client() {
    let (server, authority, _folder) = encrypted(|options, _| options.clients_max = 2);
    let mut client = authority.connect(server.address(), None);
    assert_eq!(client.say("PING"), Value::Simple("PONG".into()));
    let silent = connect(server.address());
    until("the silent one is counted", || client.say("CLIENT LIST").text().lines().count() == 2);
    assert!(!is_served(authority.connect(server.address(), None)));
    drop(silent);
    until("there is room again", || is_served(authority.connect(server.address(), None)));
    // The end does not wait for somebody who never says anything.
    let _silent = connect(server.address());
    drop(client);
    server.end().unwrap();
}

#[test]
fn who_takes_no_replies_is_let_go_as_without_it() {
    let (server, authority, _folder) = encrypted(|options, _| {
        options.reply_wait = Duration::from_millis(300);
    });
    let mut client = authority.connect(server.address(), None);
    assert_eq!(client.call(&[b"SET", b"a", &vec![b'v'; 1 << 20]]), Value::ok());
    let mut greedy = authority.connect(server.address(), None);
    greedy.send(&b"GET a\r\n".repeat(1000));
    until("it has gone", || client.say("CLIENT LIST").text().lines().count() == 1);
}
