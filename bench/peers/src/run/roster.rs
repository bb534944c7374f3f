//! Which engines take part.
//!
//! Purpose: from an engine's name, as it stands in arguments of child processes, to its type.

use adamant_bench::engines::adamant::AdamantEngine;
use adamant_bench::engines::btree_map::BTreeMapEngine;
use adamant_bench::harness::engine::Engine;
use adamant_bench::harness::error::Result;

use crate::engines::fjall2::Fjall2Engine;
use crate::engines::fjall3::Fjall3Engine;
use crate::engines::lmdb::LmdbEngine;
use crate::engines::null::NullEngine;
use crate::engines::redb::RedbEngine;
use crate::peer::{Facts, Peer};

/// Name of the engine that is compared with the others.
pub const JUDGED: &str = AdamantEngine::NAME;

/// What is done with an engine whose type is known only at run time.
pub trait Task {
    /// What comes of it.
    type Output;

    /// Does it.
    ///
    /// # Errors
    /// Those of the task.
    fn run<P: Peer>(self) -> Result<Self::Output>;
}

/// An entry of the roster.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name in reports and arguments.
    pub name: &'static str,
    /// What is known of it.
    pub facts: Facts,
    /// Whether it has transactions that see their own writes.
    pub has_transactions: bool,
}

const fn entry<P: Peer>() -> Entry {
    Entry { name: P::NAME, facts: P::FACTS, has_transactions: P::HAS_TRANSACTIONS }
}

/// All engines, in the order in which the first round takes them.
pub const ENTRIES: &[Entry] = &[
    entry::<AdamantEngine>(),
    entry::<Fjall3Engine>(),
    entry::<Fjall2Engine>(),
    entry::<RedbEngine>(),
    entry::<LmdbEngine>(),
    #[cfg(feature = "libmdbx")]
    entry::<crate::engines::libmdbx::LibmdbxEngine>(),
    #[cfg(feature = "sqlite")]
    entry::<crate::engines::sqlite::SqliteEngine>(),
    #[cfg(feature = "canopydb")]
    entry::<crate::engines::canopydb::CanopydbEngine>(),
    #[cfg(feature = "rocksdb")]
    entry::<crate::engines::rocksdb::RocksDbEngine>(),
    #[cfg(feature = "sled")]
    entry::<crate::engines::sled::SledEngine>(),
    entry::<BTreeMapEngine>(),
    entry::<NullEngine>(),
];

/// Does `task` with the engine of that name.
///
/// # Errors
/// Those of the task, and when there is no such engine.
pub fn with_engine<T: Task>(name: &str, task: T) -> Result<T::Output> {
    match name {
        AdamantEngine::NAME => task.run::<AdamantEngine>(),
        Fjall3Engine::NAME => task.run::<Fjall3Engine>(),
        Fjall2Engine::NAME => task.run::<Fjall2Engine>(),
        RedbEngine::NAME => task.run::<RedbEngine>(),
        LmdbEngine::NAME => task.run::<LmdbEngine>(),
        BTreeMapEngine::NAME => task.run::<BTreeMapEngine>(),
        NullEngine::NAME => task.run::<NullEngine>(),
        #[cfg(feature = "libmdbx")]
        "libmdbx" => task.run::<crate::engines::libmdbx::LibmdbxEngine>(),
        #[cfg(feature = "sqlite")]
        "sqlite" => task.run::<crate::engines::sqlite::SqliteEngine>(),
        #[cfg(feature = "canopydb")]
        "canopydb" => task.run::<crate::engines::canopydb::CanopydbEngine>(),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => task.run::<crate::engines::rocksdb::RocksDbEngine>(),
        #[cfg(feature = "sled")]
        "sled" => task.run::<crate::engines::sled::SledEngine>(),
        _ => {
            let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
            Err(format!("there is no engine {name} here; there are {}", names.join(", ")).into())
        }
    }
}

/// The entry of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}
