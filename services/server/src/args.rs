//! Command line arguments.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adamant_server::{
    Cluster, ClusterStart, Durability, EncryptionKey, Engine, Error, Options, Result, Tls,
};
use clap::{Parser, ValueEnum};

/// Serves an Adamant store to Redis clients.
#[derive(Debug, Parser)]
#[command(name = "adamant-server", version, max_term_width = 100)]
pub(crate) struct Args {
    /// The store's directory, made if it is not there
    store: PathBuf,
    /// The key of an encrypted store: a file with 64 hexadecimal digits or 32 bytes; a store that
    /// is made is encrypted by it
    #[arg(long, value_name = "FILE", conflicts_with = "cluster")]
    key_file: Option<PathBuf>,
    /// The same by a command of the shell, which prints the key
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["key_file", "cluster"])]
    key_command: Option<OsString>,
    /// Where to listen; anything but loopback needs a password, or client certificates
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// The port; 0: one that is free, printed on standard output
    #[arg(long, default_value_t = 6379)]
    port: u16,
    /// A file whose first line clients have to give with AUTH
    #[arg(long)]
    password_file: Option<PathBuf>,
    /// The port of a page of status, with /metrics for Prometheus and /health; 0: one that is free
    /// [default: none]
    #[arg(long, value_name = "PORT")]
    http: Option<u16>,
    /// Where to listen for that; anything but loopback needs what --bind does
    #[arg(long, value_name = "ADDRESS", requires = "http", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    http_bind: IpAddr,
    /// The server's certificate in PEM, with its chain in the same file: all connections are
    /// encrypted
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The key of that certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Certificates in PEM of the authorities that sign client certificates; clients without one
    /// are refused
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_client_ca: Option<PathBuf>,
    /// Seconds that a client may take to agree on encryption
    #[arg(long, default_value_t = 10)]
    tls_handshake_seconds: u64,
    /// How durable a write is before its reply is sent: on the device, or with the system, which
    /// has it on the device a second later
    #[arg(long, value_enum, default_value_t = Waits::Sync)]
    durability: Waits,
    /// The engine of databases that do not exist yet
    #[arg(long, value_parser = |name: &str| name.parse::<Engine>().map_err(|error| error.to_string()))]
    engine: Option<Engine>,
    /// Databases
    #[arg(long, default_value_t = 16)]
    databases: usize,
    /// Clients at once
    #[arg(long, default_value_t = 10_000)]
    clients_max: usize,
    /// Bytes of one argument of a request
    #[arg(long, default_value_t = 512 << 20)]
    argument_bytes_max: usize,
    /// Maximum number of concurrent clients
    #[arg(long, default_value_t = 1 << 20)]
    arguments_max: usize,
    /// Bytes of requests that are held for all clients together
    #[arg(long, default_value_t = 1 << 30)]
    held_bytes_max: usize,
    /// Bytes of the reply to one command
    #[arg(long, default_value_t = 512 << 20)]
    reply_bytes_max: usize,
    /// Commands that one client may queue by MULTI
    #[arg(long, default_value_t = 1 << 16)]
    queued_max: usize,
    /// Keys that one client may watch
    #[arg(long, default_value_t = 1 << 14)]
    watched_max: usize,
    /// Seconds after which an idle client is disconnected; 0: never
    #[arg(long, default_value_t = 0)]
    idle_seconds: u64,
    /// Seconds for which a client may take none of its replies
    #[arg(long, default_value_t = 60)]
    reply_seconds: u64,
    /// Threads that serve clients [default: one a processor]
    #[arg(long)]
    threads: Option<usize>,
    /// Makes the server a node of a cluster, of this number; the directory is the node's
    #[arg(long, value_name = "NODE", requires = "cluster_listen")]
    cluster: Option<u64>,
    /// Where the other nodes reach this one; anything but loopback needs a secret
    #[arg(long, value_name = "ADDRESS:PORT", requires = "cluster")]
    cluster_listen: Option<SocketAddr>,
    /// A file whose first line is the secret that all nodes share
    #[arg(long, value_name = "FILE", requires = "cluster")]
    cluster_secret_file: Option<PathBuf>,
    /// Makes a new cluster of this node alone: once, for its first node
    #[arg(long, requires = "cluster", conflicts_with = "cluster_join")]
    cluster_init: bool,
    /// Joins the cluster of the node there, unless this one is in it already
    #[arg(long, value_name = "HOST:PORT", requires = "cluster")]
    cluster_join: Option<String>,
    /// How often the leader sends a heartbeat; a node that receives none for three to seven times
    /// as long stands for election
    #[arg(long, value_name = "MILLISECONDS", requires = "cluster", default_value_t = 150)]
    cluster_heartbeat_ms: u64,
    /// Seconds that a client waits while there is no leader
    #[arg(long, value_name = "SECONDS", requires = "cluster", default_value_t = 10)]
    cluster_patience_seconds: u64,
    /// Entries of the log after which a snapshot replaces them
    #[arg(long, value_name = "ENTRIES", requires = "cluster", default_value_t = 100_000)]
    cluster_snapshot_entries: u64,
}

/// The durability that a write waits for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Waits {
    /// The device.
    Sync,
    /// The system.
    Buffered,
}

impl Args {
    /// The store's path and the server's options.
    ///
    /// # Errors
    /// A file of a password, secret or key cannot be read, or a command gives no key.
    pub(crate) fn options(self) -> Result<(PathBuf, Options)> {
        let mut options = Options::default();
        options.address = SocketAddr::new(self.bind, self.port);
        options.http = self.http.map(|port| SocketAddr::new(self.http_bind, port));
        options.password = self.password_file.as_deref().map(first_line).transpose()?;
        options.cluster = self.cluster()?;
        options.encryption_key = self.encryption_key()?;
        if let (Some(certificate), Some(key)) = (self.tls_certificate, self.tls_key) {
            let mut tls = Tls::new(certificate, key);
            tls.client_ca = self.tls_client_ca;
            options.tls = Some(tls);
        }
        options.handshake_wait = Duration::from_secs(self.tls_handshake_seconds.max(1));
        options.durability = match self.durability {
            Waits::Sync => Durability::Sync,
            Waits::Buffered => Durability::Buffered,
        };
        options.engine = self.engine.unwrap_or_default();
        options.databases = self.databases;
        options.clients_max = self.clients_max;
        options.argument_bytes_max = self.argument_bytes_max;
        options.arguments_max = self.arguments_max;
        options.held_bytes_max = self.held_bytes_max;
        options.reply_bytes_max = self.reply_bytes_max;
        options.queued_max = self.queued_max;
        options.watched_max = self.watched_max;
        options.idle = (self.idle_seconds > 0).then(|| Duration::from_secs(self.idle_seconds));
        options.reply_wait = Duration::from_secs(self.reply_seconds.max(1));
        options.threads = self.threads.unwrap_or(options.threads);
        Ok((self.store, options))
    }

    fn encryption_key(&self) -> Result<Option<EncryptionKey>> {
        let key = match (&self.key_file, &self.key_command) {
            (Some(file), _) => EncryptionKey::read(file),
            (None, Some(command)) => EncryptionKey::from_command(command),
            (None, None) => return Ok(None),
        };
        key.map(Some).map_err(|error| Error::Store(error.into()))
    }

    fn cluster(&self) -> Result<Option<Cluster>> {
        let (Some(node), Some(address)) = (self.cluster, self.cluster_listen) else {
            return Ok(None);
        };
        let mut cluster = Cluster::new(node, address);
        cluster.secret = self.cluster_secret_file.as_deref().map(first_line).transpose()?;
        cluster.start = match &self.cluster_join {
            Some(address) => ClusterStart::Join(address.clone()),
            None if self.cluster_init => ClusterStart::First,
            None => ClusterStart::Member,
        };
        cluster.heartbeat = Duration::from_millis(self.cluster_heartbeat_ms);
        cluster.patience = Duration::from_secs(self.cluster_patience_seconds.max(1));
        cluster.snapshot_entries = self.cluster_snapshot_entries;
        Ok(Some(cluster))
    }
}

fn first_line(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(Error::System)?;
    Ok(text.lines().next().unwrap_or_default().to_string())
}
