//! The setup of a store in crash tests.

use std::sync::Arc;

use adamant::{
    Compression, EncryptionKey, Engine, ImageKind, LsmOptions, Options, Result, Store,
    ValueCompression,
};
use adamant_sim::{SimDirectory, SimDisk};

/// The engine of the keyspaces, and how they store values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setup {
    /// The number of the engine in [`Engine::ALL`]; `None`: all of them, by name of the keyspace.
    pub engine: Option<usize>,
    /// Whether values are compressed, where a tree keeps them.
    pub packs: bool,
    /// Whether its files are encrypted.
    pub is_encrypted: bool,
}

impl Setup {
    /// One engine each, or all together; the first and all together also with compressed values,
    /// and all together encrypted.
    pub fn all() -> Vec<Setup> {
        let plain = (0..Engine::ALL.len()).map(Self::of).chain([Self::default()]);
        let packed = [Some(0), None].map(|engine| Self { engine, packs: true, ..Self::default() });
        plain.chain(packed).chain([Self::ENCRYPTED]).collect()
    }

    /// That of one engine, by its number in [`Engine::ALL`].
    pub fn of(number: usize) -> Self {
        Self { engine: Some(number), ..Self::default() }
    }

    /// All engines in one store that is encrypted.
    pub const ENCRYPTED: Self = Self { engine: None, packs: false, is_encrypted: true };

    /// The name for messages: `btree`.
    pub fn name(self) -> &'static str {
        match (self.engine, self.packs) {
            (None, _) if self.is_encrypted => "all engines, encrypted",
            (Some(0), true) => "bplus, compressed values",
            (_, true) => "compressed values",
            (engine, _) => engine.map_or("all engines", |number| Engine::ALL[number].name()),
        }
    }

    /// The compression of values in the keyspace with a name, when it is created.
    pub fn values_of(self, name: &str) -> Option<ValueCompression> {
        if !self.packs || self.engine_of(name) == Engine::Lsm {
            return None;
        }
        let compression = if name == "second" { Compression::Zstd(1) } else { Compression::Lz4 };
        Some(ValueCompression::from(compression).with_bytes_min(10))
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
