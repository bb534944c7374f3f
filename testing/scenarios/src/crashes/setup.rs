//! The setup of a store in crash tests.

use std::sync::Arc;

use adamant::{EncryptionKey, Engine, ImageKind, LsmOptions, Options, Result, Store};
use adamant_sim::{SimDirectory, SimDisk};

/// The engine of the keyspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setup {
    /// The number of the engine in [`Engine::ALL`]; `None`: all of them, by name of the keyspace.
    pub engine: Option<usize>,
    /// Whether its files are encrypted.
    pub is_encrypted: bool,
}

impl Setup {
    /// One engine each, or all together, encrypted or not.
    pub fn all() -> Vec<Setup> {
        let engines = (0..Engine::ALL.len()).map(Some).chain([None]);
        let plain = engines.map(|engine| Self { engine, is_encrypted: false });
        plain.chain([Self::ENCRYPTED]).collect()
    }

    /// All engines in one store that is encrypted.
    pub const ENCRYPTED: Self = Self { engine: None, is_encrypted: true };

    /// The name for messages: `btree`.
    pub fn name(self) -> &'static str {
        match self.engine {
            Some(number) => Engine::ALL[number].name(),
            None if self.is_encrypted => "all engines, encrypted",
            None => "all engines",
        }
    }

    /// The engine of the keyspace with a name.
    pub fn engine_of(self, name: &str) -> Engine {
        match (self.engine, name) {
            (Some(number), _) => Engine::ALL[number],
            (None, "second") => Engine::Btree,
            (None, "..") => Engine::Critbit,
            (None, "/") => Engine::Redblack,
            (None, "log") => Engine::Lsm,
            (None, _) => Engine::Bplus,
        }
    }

    /// Options with all work within the calls, the smallest possible log, and memtables and tables
    /// so small that a few commits fill them. The image is filled if engines are together.
    pub fn options(self) -> Options {
        let mut lsm = LsmOptions::default();
        lsm.memtable_bytes_max = 1 << 10;
        lsm.table_bytes_max = 2 << 10;
        lsm.base_bytes_min = 4 << 10;
        lsm.level0_tables_max = 4;
        lsm.blob_bytes_min = Some(60);
        let image = if self.engine.is_none() { ImageKind::Filled } else { ImageKind::default() };
        let options = match self.is_encrypted {
            true => Options::new().encryption_key(EncryptionKey::from_bytes(&[3; 32])),
            false => Options::new(),
        };
        options
            .image(image)
            .log_bytes_max(4 << 20)
            .deferred_bytes_max(64 << 10)
            .lsm(lsm)
            .background(false)
    }

    /// Opens the store on a disk.
    ///
    /// # Errors
    /// As [`Store::open_directory`].
    pub fn open(self, disk: &SimDisk) -> Result<Store> {
        Store::open_directory(Arc::new(SimDirectory::root(disk)), self.options())
    }
}
