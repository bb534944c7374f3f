//! Settings of `transactions`.

use std::path::PathBuf;
use std::time::Duration;

/// Bytes of values.
pub(super) const VALUE_BYTES: usize = 100;

/// The settings.
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
    /// Time of the lasting load.
    pub load_time: Duration,
    /// Turns of the disk and the engine in a round.
    pub turns: u32,
    /// Time of a row in a turn.
    pub turn_time: Duration,
    /// Maximum bytes of a store's log.
    pub log_bytes_max: u64,
    /// The same for the rows of a full log: twice as many are written.
    pub full_log_bytes: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// A working directory, whose content is removed at the end.
    pub path: PathBuf,
}

impl Settings {
    /// The full run, as rated: about two minutes.
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
