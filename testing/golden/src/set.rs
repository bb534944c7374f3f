//! Which golden stores there are.

use std::path::{Path, PathBuf};

use adamant::{EncryptionKey, LsmOptions, Options, Result, Store};

use crate::content::{fill, fill_engines, fill_lsm, fill_multimaps, fill_values};
use crate::operands::{self, Joined};

/// The key of the encrypted store.
const KEY: [u8; 32] = *b"a key that everyone knows, 32 by";

/// A store of which there are two images, closed and crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The default engine in several keyspaces.
    First,
    /// Every engine that is a tree on the heap.
    Engines,
    /// The same with B+ trees of format 2.
    Tagged,
    /// Log-structured merge trees of several levels, with blob files, beside a tree on the heap.
    Lsm,
    /// The same, encrypted.
    Encrypted,
    /// Trees with compressed values.
    Values,
    /// Multimaps: of bytes, and of types that were recorded.
    Multimaps,
    /// Merge operands that are not folded yet, with persistent savepoints between them, beside a
    /// multimap and entries that expire: the head of the store has format 6.
    Operands,
}

impl Set {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::First,
        Self::Engines,
        Self::Tagged,
        Self::Lsm,
        Self::Encrypted,
        Self::Values,
        Self::Multimaps,
        Self::Operands,
    ];

    /// The folder of its images.
    pub fn folder(self) -> PathBuf {
        let format = Path::new(env!("CARGO_MANIFEST_DIR")).join("stores/format-1");
        match self {
            Self::First => format,
            Self::Engines => format.join("engines"),
            Self::Tagged => format.join("bplus-2"),
            Self::Lsm => format.join("lsm-2"),
            Self::Encrypted => format.join("encrypted"),
            Self::Values => format.join("values"),
            Self::Multimaps => format.join("multimaps"),
            Self::Operands => format.join("operands"),
        }
    }

    /// How its stores are opened. Sizes of log-structured merge trees are small, so that little
    /// data makes many files.
    pub fn options(self) -> Options {
        let mut lsm = LsmOptions::default();
        // Counters are short.
        lsm.memtable_bytes_max = if self == Self::Operands { 600 } else { 3 << 10 };
        lsm.table_bytes_max = 2 << 10;
        lsm.block_bytes = 512;
        lsm.level0_tables_max = 2;
        lsm.base_bytes_min = 2 << 10;
        lsm.level_ratio = 2;
        lsm.blob_bytes_min = Some(600);
        lsm.blob_file_bytes_max = 4 << 10;
        lsm.blob_stale_percent_max = 95;
        let options = Options::new().lsm(lsm);
        match self {
            Self::Encrypted => options.encryption_key(EncryptionKey::from_bytes(&KEY)),
            Self::Operands => {
                options.merge_operator("joined", Joined::shared()).sweep_expired(false)
            }
            _ => options,
        }
    }

    /// Puts into an empty store what it is to hold.
    ///
    /// # Errors
    /// Those of writing to the store.
    pub fn fill(self, store: &Store) -> Result<()> {
        match self {
            Self::First => fill(store),
            Self::Engines | Self::Tagged => fill_engines(store),
            Self::Lsm | Self::Encrypted => fill_lsm(store),
            Self::Values => fill_values(store),
            Self::Multimaps => fill_multimaps(store),
            Self::Operands => operands::fill(store),
        }
    }
}
