//! The setup of a store in crash tests.

use std::sync::Arc;

use adamant::{
    Compression, Engine, ImageKind, LsmOptions, Options, Result, Store, ValueCompression,
};
use adamant_sim::{SimDirectory, SimDisk};

/// The engine of the keyspaces, and how they store values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setup {
    /// The number of the engine in [`Engine::ALL`]; `None`: all of them, by name of the keyspace.
    pub engine: Option<usize>,
    /// Whether values are compressed, where a tree keeps them.
    pub packs: bool,
}

impl Setup {
    /// One engine each, or all together; the first and all together also with compressed values.
    pub fn all() -> Vec<Setup> {
        let engines = (0..Engine::ALL.len()).map(Some).chain([None]);
        let plain = engines.map(|engine| Self { engine, packs: false });
        let packed = [Some(0), None].map(|engine| Self { engine, packs: true });
        plain.chain(packed).collect()
    }

    /// That of one engine, by its number in [`Engine::ALL`].
    pub fn of(number: usize) -> Self {
        Self { engine: Some(number), packs: false }
    }

    /// The name for messages: `btree`.
    pub fn name(self) -> &'static str {
        match (self.engine, self.packs) {
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
        Options::new()
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
