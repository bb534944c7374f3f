//! What a store that crashes is made of.

use std::sync::Arc;

use adamant::{Durability, Engine, Flushing, JournalKind, LsmOptions, Options, Result, Store};
use adamant_sim::{SimDirectory, SimDisk};

/// A journal, and the engine of the keyspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setup {
    /// How commits become durable.
    pub is_undo: bool,
    /// The number of the engine in [`Engine::ALL`]; `None`: all of them, by name of the keyspace.
    pub engine: Option<usize>,
}

impl Setup {
    /// One engine each or all together, with either journal.
    pub fn all() -> Vec<Setup> {
        let engines = (0..Engine::ALL.len()).map(Some).chain([None]);
        let setups =
            engines.flat_map(|engine| [false, true].map(|is_undo| Self { is_undo, engine }));
        setups.collect()
    }

    /// For people: `btree undo`.
    pub fn name(self) -> String {
        let engine = self.engine.map_or("all engines", |number| Engine::ALL[number].name());
        format!("{engine} {}", if self.is_undo { "undo" } else { "redo" })
    }

    /// The engine of the keyspace of a name.
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

    /// What a commit of this durability is: by the undo journal all that is visible is durable.
    pub fn durability(self, asked: Durability) -> Durability {
        if self.is_undo { Durability::Sync } else { asked }
    }

    /// Options with everything within the calls, the smallest log there can be, and memtables and
    /// tables so small that a few commits fill them.
    pub fn options(self) -> Options {
        let mut lsm = LsmOptions::default();
        lsm.memtable_bytes_max = 1 << 10;
        lsm.table_bytes_max = 2 << 10;
        lsm.base_bytes_min = 4 << 10;
        lsm.level0_tables_max = 4;
        lsm.blob_bytes_min = Some(60);
        Options::new()
            .journal(if self.is_undo { JournalKind::Undo } else { JournalKind::Redo })
            .flushing(Flushing::Volatile)
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
