//! What all connections share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::clients::Clients;
use crate::committer::Queue;
use crate::ending::Ending;
use crate::options::Options;
use crate::world::World;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// As it was started; what CONFIG SET changes is in `settings`.
    pub(crate) options: Options,
    pub(crate) settings: Mutex<Settings>,
    pub(crate) world: World,
    pub(crate) clients: Clients,
    pub(crate) queue: Queue,
    pub(crate) ending: Ending,
    pub(crate) held: Held,
    pub(crate) commands: AtomicU64,
    /// Values that went from the socket to where the store keeps them, and their bytes.
    pub(crate) values_in_place: AtomicU64,
    pub(crate) bytes_in_place: AtomicU64,
    pub(crate) started: Instant,
    /// Where it listens.
    pub(crate) port: u16,
}

/// What CONFIG SET may change.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) password: Option<String>,
    pub(crate) clients_max: usize,
    pub(crate) idle: Option<Duration>,
}

/// Bytes that clients hold beyond what each may.
#[derive(Debug, Default)]
pub(crate) struct Held(AtomicUsize);

impl Held {
    /// Makes what one client holds so many bytes instead of as many as before; false, and nothing is
    /// changed, if there would be more than `bytes_max` of all.
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
