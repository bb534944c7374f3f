//! How much of everything `transactions` does.

use std::path::PathBuf;
use std::time::Duration;

/// Bytes of values.
pub(super) const VALUE_BYTES: usize = 100;

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Entries of 20 + 100 bytes.
    pub entries: u64,
    /// Bytes of keys and values of the large batch.
    pub batch_bytes: u64,
    /// Rounds; a figure is the median over them.
    pub rounds: u32,
    /// Time of a row of gets or transactions.
    pub row_time: Duration,
    /// Time of the load that lasts.
    pub load_time: Duration,
    /// Turns of the disk and the engine in a round.
    pub turns: u32,
    /// Time of a row in a turn.
    pub turn_time: Duration,
    /// Bytes of log that a store may keep.
    pub log_bytes_max: u64,
    /// The same where it is to be full: twice as many are written.
    pub full_log_bytes: u64,
    /// Where everything random comes from.
    pub seed: u64,
    /// A directory to work in; what is made there is removed at the end.
    pub path: PathBuf,
}

impl Settings {
    /// Everything, as judged: about two minutes.
    pub fn full() -> Self {
        Self {
            entries: 1_000_000,
            batch_bytes: 100_000_000,
            rounds: 3,
            row_time: Duration::from_millis(500),
            load_time: Duration::from_secs(15),
            turns: 3,
            turn_time: Duration::from_millis(300),
            log_bytes_max: 128 << 20,
            full_log_bytes: 128 << 20,
            seed: 1,
            path: PathBuf::from("."),
        }
    }

    /// Under 20 seconds.
    pub fn quick() -> Self {
        Self {
            entries: 200_000,
            batch_bytes: 20_000_000,
            rounds: 1,
            row_time: Duration::from_millis(150),
            load_time: Duration::from_secs(2),
            ..Self::full()
        }
    }
}
