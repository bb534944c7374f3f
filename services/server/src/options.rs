//! Server options: how it starts, and its limits for clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use adamant::{Durability, EncryptionKey, Engine};

use crate::error::{Error, Result};

/// Options of a server, with their defaults by [`Options::default`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where to listen; port 0: one that the system chooses. Default: 127.0.0.1:6379.
    pub address: SocketAddr,
    /// The password that clients must give with AUTH or HELLO. Default: none, which addresses other
    /// than loopback allow only if certificates identify the clients.
    pub password: Option<String>,
    /// Where to answer HTTP: a page of status, `/status.json`, `/metrics` for Prometheus,
    /// `/health`; port 0: one that the system chooses. Encrypted, and with the password, where
    /// clients are. Default: nowhere.
    pub http: Option<SocketAddr>,
    /// Encryption of all connections. Default: none.
    pub tls: Option<Tls>,
    /// How long a client may take to agree on encryption. Default: 10 s.
    pub handshake_wait: Duration,
    /// Databases, 1 to 1,024: number N is the keyspace `dbN` of expiring entries. Default: 16.
    pub databases: usize,
    /// The key of the store, which is encrypted by it if it is created. Not for a node of a
    /// cluster, whose snapshots go to other nodes. Default: none.
    pub encryption_key: Option<EncryptionKey>,
    /// How durable a write is before its reply is sent. With [`Durability::Buffered`] the device
    /// has it a second later. Default: [`Durability::Sync`].
    pub durability: Durability,
    /// The engine of databases that do not exist yet. Default: [`Engine::Bplus`].
    pub engine: Engine,
    /// Maximum number of clients; those that come after them are told so. Default: 10,000.
    pub clients_max: usize,
    /// Bytes of one argument of a request. Default: 512 MiB.
    pub argument_bytes_max: usize,
    /// Arguments of one request. Default: 1,048,576.
    pub arguments_max: usize,
    /// Bytes of requests that are held for all clients together, including incomplete ones and
    /// those queued by MULTI; up to 64 KiB of each client do not count. Default: 1 GiB.
    pub held_bytes_max: usize,
    /// Bytes of the reply to one command. Default: 512 MiB.
    pub reply_bytes_max: usize,
    /// Commands that one client may queue by MULTI. Default: 65,536.
    pub queued_max: usize,
    /// Keys that one client may watch. Default: 16,384.
    pub watched_max: usize,
    /// Time after which an idle client is disconnected. Default: never.
    pub idle: Option<Duration>,
    /// How long a client may take none of its replies. Default: 60 s.
    pub reply_wait: Duration,
    /// Threads that serve clients, 1 to 256. Default: one a processor.
    pub threads: usize,
    /// The cluster membership of the server. Default: none.
    pub cluster: Option<Cluster>,
}

/// The cluster membership of a server: its node, and how it reaches the others.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cluster {
    /// The node's number, unique in the cluster for ever.
    pub node: u64,
    /// The address at which all other nodes reach it. Addresses other than loopback need a secret.
    pub address: SocketAddr,
    /// The secret that all nodes share. Default: none.
    pub secret: Option<String>,
    /// How it becomes a member of the cluster, if it is none yet. Default: it waits to be joined.
    pub start: ClusterStart,
    /// How often the leader sends a heartbeat. A node that receives none for three to seven times
    /// as long stands for election. Default: 150 ms.
    pub heartbeat: Duration,
    /// How long a client waits while there is no leader. Default: 10 s.
    pub patience: Duration,
    /// Entries of the log after which a snapshot replaces them. Default: 100,000.
    pub snapshot_entries: u64,
}

/// How a node becomes a member of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterStart {
    /// It is one, or an administrator joins it through another node.
    Member,
    /// It is the first one. An error if it is a member of a cluster already.
    First,
    /// It asks the node at this address, `HOST:PORT`.
    Join(String),
}

impl Cluster {
    /// The node with that number, which others reach at that address.
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
    /// The server's certificate, and the chain from it to one that clients trust.
    pub certificate: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
    /// Certificates of the authorities that sign client certificates: clients without one are
    /// refused. Default: none are required.
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
            encryption_key: None,
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
    /// An address that others can reach without identifying themselves, unless clients need a
    /// password. Encryption alone does not identify them.
    pub(crate) fn open_address(&self) -> Option<SocketAddr> {
        let asks_for_certificates = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let mut addresses = [Some(self.address), self.http].into_iter().flatten();
        addresses.find(|address| !address.ip().is_loopback() && !asks_for_certificates)
    }

    /// Verifies that all options are valid, and that all clients that can reach the server must
    /// identify themselves.
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
        if self.encryption_key.is_some() {
            return refuse("--key-file or --key-command", "left out in a cluster");
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
        // Encryption hides the content of messages, but does not identify their sender.
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
