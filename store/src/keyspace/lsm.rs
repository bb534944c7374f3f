//! What only a keyspace of the engine `lsm` has: statistics, tables.
//!
//! Purpose: methods that make sense for one engine stand behind `Keyspace::lsm`, which fails for
//! the others.
//! Thread safety: as the keyspace: any number of threads.

use std::fmt;
use std::sync::Arc;

use adamant_lsm::{Lsm, LsmStats, Options as LsmOptions, TableMeta as LsmTable};

use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;

/// A keyspace of the engine `lsm`: see [`Keyspace::lsm`].
#[derive(Clone, Copy)]
pub struct LsmKeyspace<'k> {
    keyspace: &'k Keyspace,
}

impl Keyspace {
    /// The methods that only a keyspace of the engine `lsm` has: statistics. O(1).
    ///
    /// ```
    /// use adamant::{Engine, Error, KeyspaceOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let visits = store.keyspace_with("visits", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// visits.put("today", "1")?;
    /// assert_eq!(visits.lsm()?.stats()?.memtables[0].entries, 1);
    /// let refused = store.keyspace("towns")?.lsm().map(drop);
    /// assert!(matches!(refused, Err(Error::WrongEngine { expected: "lsm", found: "bplus", .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongEngine`], with the expected and the found engine, for every other engine; a
    /// keyspace that was dropped, a store that is closed.
    pub fn lsm(&self) -> Result<LsmKeyspace<'_>> {
        let lsm = LsmKeyspace { keyspace: self };
        lsm.tree()?;
        Ok(lsm)
    }
}

impl LsmKeyspace<'_> {
    /// Statistics since the store was opened. O(tables), reads no file.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let visits = store.keyspace_with("visits", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// visits.put("today", "1")?;
    /// assert_eq!(visits.lsm()?.stats()?.memtables[0].entries, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// Damage, a keyspace that was dropped or converted, a store that is closed.
    pub fn stats(&self) -> Result<LsmStats> {
        Ok(self.tree()?.stats())
    }

    /// The options by which its next tables are written: those of the store, with the keyspace's
    /// own ([`KeyspaceOptions::compression`](crate::KeyspaceOptions::compression) and others) in
    /// place of them. O(1).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let options = KeyspaceOptions::new().engine(Engine::Lsm).filter_bits_per_key(14);
    /// let visits = store.keyspace_with("visits", options)?.lsm()?.options()?;
    /// assert_eq!((visits.filter_bits_per_key, visits.block_bytes), (14, 4096));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`LsmKeyspace::stats`].
    pub fn options(&self) -> Result<LsmOptions> {
        Ok((*self.tree()?.options()).clone())
    }

    /// The tables by level: those of level 0 from the newest to the oldest, the others by key.
    /// O(tables), reads no file.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let visits = store.keyspace_with("visits", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// visits.put("today", "1")?;
    /// visits.compact()?;
    /// assert_eq!(visits.lsm()?.levels()?.iter().map(Vec::len).sum::<usize>(), 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// Damage, a keyspace that was dropped or converted, a store that is closed.
    pub fn levels(&self) -> Result<Vec<Vec<LsmTable>>> {
        Ok(self.tree()?.levels())
    }

    /// The tree that holds the entries now: clearing or converting the keyspace replaces it.
    fn tree(&self) -> Result<Arc<Lsm>> {
        let map = self.keyspace.map()?;
        match map.lsm() {
            Some(tree) => Ok(Arc::clone(tree)),
            None => Err(Error::WrongEngine {
                name: self.keyspace.name().into(),
                expected: Engine::Lsm.name(),
                found: map.engine().name(),
            }),
        }
    }
}

impl fmt::Debug for LsmKeyspace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LsmKeyspace").field(&self.keyspace).finish()
    }
}
