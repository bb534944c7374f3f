//! How a server is started, and what it allows its clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use adamant::{Durability, Engine};

use crate::error::{Error, Result};

/// Options of a server, with their defaults by [`Options::default`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where to listen; port 0: one that the system chooses. Default: 127.0.0.1:6379.
    pub address: SocketAddr,
    /// What clients have to give with AUTH or HELLO. Default: none, which others than loopback allow only
    /// where certificates say who a client is.
    pub password: Option<String>,
    /// Where to answer HTTP: a page of status, `/status.json`, `/metrics` for Prometheus, `/health`; port 0:
    /// one that the system chooses. Encrypted, and with the password, where clients are. Default: nowhere.
    pub http: Option<SocketAddr>,
    /// Encryption of all connections. Default: none.
    pub tls: Option<Tls>,
    /// How long a client may take to agree on encryption. Default: 10 s.
    pub handshake_wait: Duration,
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

/// Files of certificates and keys, in PEM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tls {
    /// The server's certificate, and those that lead from it to one that clients trust.
    pub certificate: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
    /// Certificates of who may sign those of clients: clients without one are not let in. Default: none
    /// is asked for.
    pub client_ca: Option<PathBuf>,
}

impl Tls {
    /// The server shows this certificate; clients need none.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), client_ca: None }
    }
}

impl Default for Options {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 6379)),
            password: None,
            http: None,
            tls: None,
            handshake_wait: Duration::from_secs(10),
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
    /// An address that others can reach who need not say who they are, where clients give no password.
    /// Encryption alone does not tell.
    pub(crate) fn open_address(&self) -> Option<SocketAddr> {
        let asks_for_certificates = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let mut addresses = [Some(self.address), self.http].into_iter().flatten();
        addresses.find(|address| !address.ip().is_loopback() && !asks_for_certificates)
    }

    /// Fails unless all options are what they may be, and who can reach the server has to say who it is.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Unprotected`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.password.is_none()
            && let Some(address) = self.open_address()
        {
            return Err(Error::Unprotected { address });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_have_to_say_who_they_are() {
        let mut options = Options::default();
        assert!(options.check().is_ok());
        options.address.set_ip(Ipv4Addr::UNSPECIFIED.into());
        assert!(matches!(options.check(), Err(Error::Unprotected { .. })));
        // Encryption hides what is said, not from whom it comes.
        options.tls = Some(Tls::new("certificate", "key"));
        assert!(matches!(options.check(), Err(Error::Unprotected { .. })));
        options.password = Some("secret".into());
        assert!(options.check().is_ok());
        options.address.set_ip(Ipv4Addr::LOCALHOST.into());
        options.password = None;
        options.http = Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80)));
        assert!(matches!(options.check(), Err(Error::Unprotected { .. })), "who looks, too");
        let tls = Tls { client_ca: Some("ca".into()), ..Tls::new("certificate", "key") };
        options.tls = Some(tls);
        assert!(options.check().is_ok());
    }
}
