//! A client that says what it is told to, and a server beside it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use adamant::Store;
use adamant_server::{Options, Server};

/// How long a reply may take before a test gives up: far beyond what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Value>),
    Map(Vec<Value>),
    Set(Vec<Value>),
    Text(String),
}

impl Value {
    pub(crate) fn bulk(text: &str) -> Self {
        Self::Bulk(text.as_bytes().to_vec())
    }

    pub(crate) fn ok() -> Self {
        Self::Simple("OK".into())
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Simple(text) | Self::Error(text) | Self::Text(text) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    pub(crate) fn parts(&self) -> &[Value] {
        match self {
            Self::Array(parts) | Self::Map(parts) | Self::Set(parts) => parts,
            other => panic!("{other:?} has no parts"),
        }
    }
}

/// Bytes of a request.
pub(crate) fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(word.iter().chain(b"\r\n"));
    }
    bytes
}

/// A connection over anything that bytes go through.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    buffer: Vec<u8>,
    at: usize,
}

/// A stream that does not wait for ever.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(connect(address))
    }

    /// As long as there is somebody.
    pub(crate) fn try_connect(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(Self::over(stream))
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), at: 0 }
    }

    /// Sends words that a space separates, and returns the reply.
    pub(crate) fn say(&mut self, words: &str) -> Value {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        self.call(&words)
    }

    pub(crate) fn call(&mut self, words: &[&[u8]]) -> Value {
        self.send(&request(words));
        self.reply()
    }

    /// The reply; `None` if the connection ends before.
    pub(crate) fn try_call(&mut self, words: &[&[u8]]) -> Option<Value> {
        self.stream.write_all(&request(words)).ok()?;
        self.try_reply()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn reply(&mut self) -> Value {
        self.try_reply().expect("the server has a reply")
    }

    /// The next reply; `None` if the connection ends before.
    pub(crate) fn try_reply(&mut self) -> Option<Value> {
        let line = self.line()?;
        let (kind, rest) = (line[0], String::from_utf8(line[1..].to_vec()).unwrap());
        let number = || rest.parse::<i64>().unwrap();
        Some(match kind {
            b'+' => Value::Simple(rest),
            b'-' => Value::Error(rest),
            b':' => Value::Integer(number()),
            b'_' => Value::Null,
            b'$' | b'*' if rest == "-1" => Value::Null,
            b'$' => Value::Bulk(self.bytes(number())?),
            b'=' => Value::Text(String::from_utf8(self.bytes(number())?[4..].to_vec()).unwrap()),
            b'*' => Value::Array(self.values(number())?),
            b'~' => Value::Set(self.values(number())?),
            b'%' => Value::Map(self.values(number() * 2)?),
            other => panic!("no reply begins with {:?}", char::from(other)),
        })
    }

    fn values(&mut self, count: i64) -> Option<Vec<Value>> {
        (0..count).map(|_| self.try_reply()).collect()
    }

    fn bytes(&mut self, count: i64) -> Option<Vec<u8>> {
        let count = usize::try_from(count).unwrap();
        while self.buffer.len() < self.at + count + 2 {
            self.read()?;
        }
        let bytes = self.buffer[self.at..self.at + count].to_vec();
        assert_eq!(&self.buffer[self.at + count..self.at + count + 2], b"\r\n");
        self.at += count + 2;
        Some(bytes)
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = &self.buffer[self.at..];
            if let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
                let line = rest[..end].to_vec();
                self.at += end + 2;
                return Some(line);
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Option<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let mut bytes = [0; 16 << 10];
        // A connection that is reset has ended, too.
        let read = self.stream.read(&mut bytes).ok().filter(|&read| read > 0)?;
        self.buffer.extend(&bytes[..read]);
        Some(())
    }
}

/// Options for a test: a free port of loopback.
pub(crate) fn options() -> Options {
    let mut options = Options::default();
    options.address.set_port(0);
    options.threads = 2;
    options.databases = 4;
    options
}

/// A server of a store in memory.
pub(crate) fn serve(change: impl FnOnce(&mut Options)) -> Server {
    let mut options = options();
    change(&mut options);
    Server::start_on(Store::in_memory().unwrap(), options).unwrap()
}

/// Waits until something is so, which a machine with much to do may take long for.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The seed of a test, or the one that `ADAMANT_SERVER_SEED` gives; to be printed.
pub(crate) fn seed(number: u64) -> u64 {
    let seed = std::env::var("ADAMANT_SERVER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(number);
    println!("seed {seed}");
    seed
}

/// A server of a store in memory, and a client of it.
pub(crate) fn server_and_client() -> (Server, Client) {
    let server = serve(|_| {});
    let client = Client::connect(server.address());
    (server, client)
}

impl<S: Read + Write> Client<S> {
    /// Whether it is answered: not if the server has refused it.
    pub(crate) fn try_ping(mut self) -> Option<()> {
        self.stream.write_all(b"PING\r\n").ok()?;
        (self.try_reply()? == Value::Simple("PONG".into())).then_some(())
    }
}
