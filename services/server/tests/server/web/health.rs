//! A client of HTTP that says no more than it must.

use std::io::{Read, Write};
use std::net::SocketAddr;

use adamant_server::Server;

use crate::support::connections::connect;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// In small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Asks for a path, over a stream that ends with the answer.
pub(crate) fn ask_over(mut stream: impl Read + Write, path: &str, headers: &str) -> Answer {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&String::from_utf8(bytes).unwrap())
}

pub(crate) fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_ascii_lowercase();
    // Written by someone who knew how long it would be.
    let length = format!("content-length: {}", body.len());
    assert!(head.lines().any(|line| line == length), "{head}");
    Answer { code, head, body: body.to_owned() }
}

/// Where a server answers.
pub(crate) fn address(server: &Server) -> SocketAddr {
    server.http_address().unwrap()
}

/// Asks a server for a path.
pub(crate) fn ask(server: &Server, path: &str) -> Answer {
    ask_over(connect(address(server)), path, "")
}
