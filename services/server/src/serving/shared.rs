//! The state that all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_rustls::rustls::ServerConfig;

use crate::Member;
use crate::commit::committer::Queue;
use crate::commit::ending::Ending;
use crate::commit::health::Trouble;
use crate::commit::world::World;
use crate::options::Options;
use crate::serving::clients::Clients;

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// As at the start; CONFIG SET changes `settings`.
    pub(crate) options: Options,
    pub(crate) settings: Mutex<Settings>,
    /// Certificates and keys, if connections are encrypted.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) world: Arc<World>,
    /// The cluster membership, if there is one.
    pub(crate) member: Option<Arc<Member>>,
    pub(crate) clients: Clients,
    pub(crate) queue: Arc<Queue>,
    pub(crate) ending: Arc<Ending>,
    pub(crate) held: Held,
    pub(crate) commands: AtomicU64,
    /// Values that went from the socket to where the store keeps them, and their bytes.
    pub(crate) values_in_place: AtomicU64,
    pub(crate) bytes_in_place: AtomicU64,
    pub(crate) started: Instant,
    /// The port on which it listens.
    pub(crate) port: u16,
}

impl Shared {
    /// Ends the server because a thread panicked.
    pub(crate) fn fail_for_panic(&self) {
        self.ending.begin(Some("a thread of the server panicked".into()));
        self.queue.end();
    }

    /// Why the store accepts no writes, if it does not.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        if let Some(words) = self.ending.failure() {
            return Some(Trouble { kind: "failed", words });
        }
        if self.ending.has_begun() {
            return Some(Trouble { kind: "ending", words: "the server ends".into() });
        }
        if let Err(error) = self.world.databases.store().check_writable() {
            return Some(Trouble { kind: "failed", words: error.to_string() });
        }
        self.world.health.trouble()
    }
}

/// The settings that CONFIG SET may change.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) password: Option<String>,
    pub(crate) clients_max: usize,
    pub(crate) idle: Option<Duration>,
}

impl Settings {
    /// Whether a user is admitted. There is only the one called default, with any password if none
    /// is set.
    pub(crate) fn admits(&self, user: &[u8], password: &[u8]) -> bool {
        let Some(right) = &self.password else { return user == b"default" };
        // In constant time.
        let same = right.bytes().zip(password.iter().copied().chain(std::iter::repeat(0)));
        let difference = same.fold(0, |difference, (one, other)| difference | (one ^ other));
        difference == 0 && right.len() == password.len() && user == b"default"
    }
}

/// Bytes that clients hold beyond their allowance.
#[derive(Debug, Default)]
pub(crate) struct Held(AtomicUsize);

impl Held {
    /// Changes the bytes that one client holds from `before` to `bytes`; false, and nothing is
    /// changed, if the total would exceed `bytes_max`.
    pub(crate) fn change(&self, before: usize, bytes: usize, bytes_max: usize) -> bool {
        if bytes <= before {
            self.0.fetch_sub(before - bytes, Ordering::Relaxed);
            return true;
        }
        let more = bytes - before;
        if self.0.fetch_add(more, Ordering::Relaxed) + more <= bytes_max {
            return true;
        }
        self.0.fetch_sub(more, Ordering::Relaxed);
        false
    }

    /// Bytes of all clients.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
