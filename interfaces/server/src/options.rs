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
    /// The part that the server has in a cluster. Default: none.
    pub cluster: Option<Cluster>,
}

/// The part of a server in a cluster: which node it is, and how it reaches the others.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cluster {
    /// The node's number, which no other node of the cluster has or had.
    pub node: u64,
    /// Where other nodes reach it, from wherever they are. Others than loopback need a secret.
    pub address: SocketAddr,
    /// What all nodes know, and nobody else. Default: nothing.
    pub secret: Option<String>,
    /// How it becomes a part of the cluster, if it is none yet. Default: it waits to be joined.
    pub start: ClusterStart,
    /// How often the leader tells the others that it is there. Who hears nothing for three to seven times
    /// as long wants to lead. Default: 150 ms.
    pub heartbeat: Duration,
    /// How long a client waits while nobody leads. Default: 10 s.
    pub patience: Duration,
    /// Entries of the log after which a snapshot takes their place. Default: 100,000.
    pub snapshot_entries: u64,
}

/// How a node becomes a part of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterStart {
    /// It is one, or another node is told of it.
    Member,
    /// It is the first one. An error where it is one of a cluster already.
    First,
    /// It asks a node at this address, `HOST:PORT`.
    Join(String),
}

impl Cluster {
    /// A node of that number, which others reach at that address.
    pub fn new(node: u64, address: SocketAddr) -> Self {
        Self {
            node,
            address,
            secret: None,
            start: ClusterStart::Member,
            heartbeat: Duration::from_millis(150),
            patience: Duration::from_secs(10),
            snapshot_entries: 100_000,
        }
    }
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
            cluster: None,
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
        match &self.cluster {
            Some(cluster) => self.check_cluster(cluster),
            None => Ok(()),
        }
    }

    fn check_cluster(&self, cluster: &Cluster) -> Result<()> {
        let refuse = |name, expected| Err(Error::Option { name, expected });
        let address = cluster.address;
        match cluster.secret.as_deref() {
            None if !address.ip().is_loopback() => return Err(Error::UnprotectedNode { address }),
            Some("") => return refuse("--cluster-secret-file", "one line, not empty"),
            _ => {}
        }
        if address.ip().is_unspecified() || address.port() == 0 {
            return refuse("--cluster-listen", "an address and a port at which others reach it");
        }
        if !(10..=60_000).contains(&cluster.heartbeat.as_millis()) {
            return refuse("--cluster-heartbeat-ms", "10 to 60000");
        }
        if cluster.snapshot_entries == 0 {
            return refuse("--cluster-snapshot-entries", "at least 1");
        }
        if self.durability != Durability::Sync {
            return refuse("--durability", "sync in a cluster: a node promises what it has");
        }
        if self.engine != Engine::Bplus {
            return refuse("--engine", "bplus in a cluster");
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
        let mut cluster = Cluster::new(1, SocketAddr::from(([192, 0, 2, 1], 7001)));
        options.cluster = Some(cluster.clone());
        assert!(matches!(options.check(), Err(Error::UnprotectedNode { .. })), "other nodes, too");
        cluster.secret = Some("secret".into());
        options.cluster = Some(cluster.clone());
        assert!(options.check().is_ok());
        cluster.address.set_ip(Ipv4Addr::UNSPECIFIED.into());
        options.cluster = Some(cluster);
        assert!(matches!(options.check(), Err(Error::Option { name: "--cluster-listen", .. })));
    }
}
