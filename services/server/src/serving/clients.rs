//! The registry of connected clients, as CLIENT LIST shows them.
//!
//! Thread safety: a client's own task updates its entry; all others read it, and may kill the
//! client.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::commands::ALL;
use crate::state::clock;

/// A client that is connected.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) address: SocketAddr,
    pub(crate) local: SocketAddr,
    since: u64,
    used: AtomicU64,
    pub(crate) database: AtomicUsize,
    /// Commands queued by MULTI; -1 outside of it.
    pub(crate) queued: AtomicI64,
    pub(crate) watched: AtomicUsize,
    pub(crate) is_three: AtomicBool,
    /// Its last command, by its index in the table.
    command: AtomicUsize,
    pub(crate) names: Mutex<Names>,
    is_killed: AtomicBool,
    killed: Notify,
}

/// The name of a client, and its library.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) name: Bytes,
    pub(crate) library: Bytes,
    pub(crate) version: Bytes,
}

impl Client {
    /// Notes the client's last command.
    pub(crate) fn note(&self, name: &str) {
        let at = ALL.binary_search_by(|command| command.name.cmp(name)).unwrap_or(usize::MAX);
        self.command.store(at, Ordering::Relaxed);
        self.used.store(clock::now(), Ordering::Relaxed);
    }

    /// Its connection is to end.
    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::Release);
        self.killed.notify_one();
    }

    /// Whether its connection is to end.
    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// Waits until its connection is to end.
    pub(crate) async fn killed(&self) {
        while !self.is_killed() {
            self.killed.notified().await;
        }
    }

    /// Seconds since it connected, and since its last command.
    pub(crate) fn seconds(&self) -> (u64, u64) {
        let (now, used) = (clock::now(), self.used.load(Ordering::Relaxed));
        (now.saturating_sub(self.since) / 1000, now.saturating_sub(used) / 1000)
    }

    /// Its last command.
    pub(crate) fn command(&self) -> Option<&'static str> {
        ALL.get(self.command.load(Ordering::Relaxed)).map(|command| command.name)
    }

    /// One line of CLIENT LIST.
    pub(crate) fn line(&self) -> String {
        let (age, idle) = self.seconds();
        let names = self.names.lock().clone();
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let queued = self.queued.load(Ordering::Relaxed);
        let flags = if queued >= 0 { "x" } else { "N" };
        let command = self.command().unwrap_or("NULL");
        format!(
            "id={} addr={} laddr={} fd=-1 name={} age={age} idle={idle} flags={flags} db={} sub=0 \
             psub=0 ssub=0 multi={queued} watch={} cmd={command} user=default lib-name={} \
             lib-ver={} resp={}\n",
            self.id,
            self.address,
            self.local,
            text(&names.name),
            self.database.load(Ordering::Relaxed),
            self.watched.load(Ordering::Relaxed),
            text(&names.library),
            text(&names.version),
            if self.is_three.load(Ordering::Relaxed) { 3 } else { 2 },
        )
    }
}

/// All clients that are connected.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    last_id: AtomicU64,
    /// Connections that were refused because there were too many.
    pub(crate) refused: AtomicU64,
    /// Connections whose TLS handshake failed.
    pub(crate) unshaken: AtomicU64,
}

impl Clients {
    /// Registers a client that has just connected; `None` if there are too many.
    pub(crate) fn enter(
        &self,
        address: SocketAddr,
        local: SocketAddr,
        clients_max: usize,
    ) -> Option<Arc<Client>> {
        let mut all = self.all.lock();
        if all.len() >= clients_max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let now = clock::now();
        let client = Arc::new(Client {
            id,
            address,
            local,
            since: now,
            used: AtomicU64::new(now),
            database: AtomicUsize::new(0),
            queued: AtomicI64::new(-1),
            watched: AtomicUsize::new(0),
            is_three: AtomicBool::new(false),
            command: AtomicUsize::new(usize::MAX),
            names: Mutex::default(),
            is_killed: AtomicBool::new(false),
            killed: Notify::new(),
        });
        all.insert(id, Arc::clone(&client));
        Some(client)
    }

    /// Removes a client.
    pub(crate) fn leave(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    /// All clients, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    /// Number of clients.
    pub(crate) fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// Number of all clients that ever connected.
    pub(crate) fn entered(&self) -> u64 {
        self.last_id.load(Ordering::Relaxed)
    }
}
