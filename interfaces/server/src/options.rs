//! How a server is started, and what it allows its clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use adamant::{Durability, Engine};

use crate::error::{Error, Result};

/// Options of a server, with their defaults by [`Options::default`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where to listen; port 0: one that the system chooses. Default: 127.0.0.1:6379.
    pub address: SocketAddr,
    /// What clients have to give with AUTH or HELLO. Default: none, which only loopback allows.
    pub password: Option<String>,
    /// Databases, 1 to 1,024: number N is the keyspace `dbN` of entries that end. Default: 16.
    pub databases: usize,
    /// What a write is before its reply is sent. With [`Durability::Buffered`] the device has it
    /// a second later. Default: [`Durability::Sync`].
    pub durability: Durability,
    /// The engine of databases that do not exist yet. Default: [`Engine::Bplus`].
    pub engine: Engine,
    /// Clients at once; who comes after them is told so. Default: 10,000.
    pub clients_max: usize,
    /// Bytes of one argument of a request. Default: 512 MiB.
    pub argument_bytes_max: usize,
    /// Arguments of one request. Default: 1,048,576.
    pub arguments_max: usize,
    /// Bytes of requests that are held for all clients together, those that have not wholly arrived
    /// and those queued by MULTI; what a client holds of up to 64 KiB does not count. Default: 1 GiB.
    pub held_bytes_max: usize,
    /// Bytes of the reply to one command. Default: 512 MiB.
    pub reply_bytes_max: usize,
    /// Commands that one client queues by MULTI. Default: 65,536.
    pub queued_max: usize,
    /// Keys that one client watches. Default: 16,384.
    pub watched_max: usize,
    /// After how long a client that sends nothing is let go. Default: never.
    pub idle: Option<Duration>,
    /// How long a client may take none of its replies. Default: 60 s.
    pub reply_wait: Duration,
    /// Threads that serve clients, 1 to 256. Default: one a processor.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 6379)),
            password: None,
            databases: 16,
            durability: Durability::Sync,
            engine: Engine::default(),
            clients_max: 10_000,
            argument_bytes_max: 512 << 20,
            arguments_max: 1 << 20,
            held_bytes_max: 1 << 30,
            reply_bytes_max: 512 << 20,
            queued_max: 1 << 16,
            watched_max: 1 << 14,
            idle: None,
            reply_wait: Duration::from_secs(60),
            threads: processors.min(256),
        }
    }
}

impl Options {
    /// Fails unless all options are what they may be, and who can reach the server needs a password.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Unprotected`].
    pub(crate) fn check(&self) -> Result<()> {
        if !self.address.ip().is_loopback() && self.password.is_none() {
            return Err(Error::Unprotected { address: self.address });
        }
        if self.password.as_deref() == Some("") {
            return Err(Error::Option { name: "--password-file", expected: "one line, not empty" });
        }
        if !(1..=1024).contains(&self.databases) {
            return Err(Error::Option { name: "--databases", expected: "1 to 1024" });
        }
        if !(1..=256).contains(&self.threads) {
            return Err(Error::Option { name: "--threads", expected: "1 to 256" });
        }
        if self.clients_max == 0 {
            return Err(Error::Option { name: "--clients-max", expected: "at least 1" });
        }
        Ok(())
    }
}
