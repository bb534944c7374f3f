//! Options for creating or opening a keyspace.

use adamant_heap::durability::Durability;
use adamant_lsm::{Error as LsmError, LevelCompression, TreeOptions};

use crate::common::shared::Shared;
use crate::common::state::KeyspaceState;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::merge_operators::OperatorName;
use crate::own_options::OwnOptions;
use crate::value_compression::ValueCompression;

/// Options of a keyspace, in the builder style.
///
/// ```
/// use adamant::{Engine, KeyspaceOptions, Store};
///
/// let store = Store::in_memory()?;
/// let options = KeyspaceOptions::new().engine(Engine::Critbit);
/// let words = store.keyspace_with("words", options)?;
/// assert_eq!(words.engine(), Engine::Critbit);
/// let other = KeyspaceOptions::new().engine(Engine::Btree);
/// assert!(store.keyspace_with("words", other).is_err());
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyspaceOptions {
    pub(crate) engine: Option<Engine>,
    /// Those of the engine `lsm`.
    own: TreeOptions,
    /// Those of the other engines.
    values: Option<ValueCompression>,
    durability: Option<Option<Durability>>,
    merge: Option<OperatorName>,
}

impl KeyspaceOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// The engine of a new keyspace; an existing one must have it. Default: [`Engine::Bplus`] for a
    /// new one, any for an existing one.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    /// The compression of each level of a keyspace of the engine `lsm`: one for all, one for each
    /// of the first levels, or another one for the last. Default: that of [`Options::lsm`].
    ///
    /// Like all options of that engine here, it is recorded with the keyspace: it holds whenever
    /// the store is opened, until the keyspace is opened with another value, and stays with it
    /// when it is renamed, cleared, converted to and fro, backed up, compacted or repaired. Tables
    /// that are written from then on have it; older ones stay readable. Until the store is closed
    /// [`Keyspace::compact`] writes them anew, later [`compact`](crate::compact) does. A keyspace
    /// without it goes by the options of the store.
    ///
    /// ```
    /// use adamant::{Compression, Engine, KeyspaceOptions, LevelCompression, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let options = KeyspaceOptions::new().engine(Engine::Lsm);
    /// // Flushes write plain tables, merges compress.
    /// let visits = options.compression([Compression::None, Compression::Lz4]);
    /// let visits = store.keyspace_with("visits", visits)?;
    /// assert_eq!(visits.lsm()?.options()?.compression.level(6), Compression::Lz4);
    /// // Nine tenths of the data are on the last level: as small as possible there.
    /// let archive = LevelCompression::from(Compression::Lz4).bottommost(Compression::zstd());
    /// let archive = store.keyspace_with("archive", options.compression(archive));
    /// assert_eq!(archive.is_ok(), Compression::zstd().is_built());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// [`Options::lsm`]: crate::Options::lsm
    /// [`Keyspace::compact`]: crate::Keyspace::compact
    #[must_use]
    pub fn compression(mut self, compression: impl Into<LevelCompression>) -> Self {
        self.own.compression = Some(compression.into());
        self
    }

    /// Bytes of a data block before compression, 64 to 8 MiB, of the engine `lsm`. Larger blocks
    /// compress better and have a smaller index; a point read from the device reads and
    /// decompresses one. Recorded like [`KeyspaceOptions::compression`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let options = KeyspaceOptions::new().engine(Engine::Lsm);
    /// let log = store.keyspace_with("log", options.block_bytes(32 << 10))?;
    /// assert_eq!(log.lsm()?.options()?.block_bytes, 32 << 10);
    /// let refused = store.keyspace_with("log", options.block_bytes(0)).unwrap_err().to_string();
    /// assert!(refused.contains("expected 64 to 8388608 bytes, found 0"));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    #[must_use]
    pub fn block_bytes(mut self, bytes: u32) -> Self {
        self.own.block_bytes = Some(bytes);
        self
    }

    /// Bits of the Bloom filters per key, 30 at most, of the engine `lsm`; 0 for no filters: where
    /// keys that are looked up are there, they only cost room. Recorded like
    /// [`KeyspaceOptions::compression`].
    #[must_use]
    pub fn filter_bits_per_key(mut self, bits: u8) -> Self {
        self.own.filter_bits_per_key = Some(bits);
        self
    }

    /// Whether data blocks of the engine `lsm` have a hash index, which speeds up point reads of
    /// short values. Recorded like [`KeyspaceOptions::compression`].
    #[must_use]
    pub fn hash_index(mut self, hash_index: bool) -> Self {
        self.own.hash_index = Some(hash_index);
        self
    }

    /// Minimum bytes of a value that the engine `lsm` stores in a blob file; `None`: only values
    /// that no table can hold. Recorded like [`KeyspaceOptions::compression`].
    #[must_use]
    pub fn blob_bytes_min(mut self, bytes: Option<u32>) -> Self {
        // Both mean the same, and are recorded as one.
        self.own.blob_bytes_min = Some(bytes.filter(|bytes| *bytes != u32::MAX));
        self
    }

    /// Whether data blocks and values of blob files of the engine `lsm` stay in the block cache
    /// after they were read; its indexes and filters do in any case. Default: true. Without it, a
    /// keyspace that is read once, or scanned at random, leaves the cache
    /// ([`Options::cache_bytes_max`](crate::Options::cache_bytes_max)) to the others. Recorded like
    /// [`KeyspaceOptions::compression`]; what is in the cache already stays there until it is
    /// evicted. [`Keyspace::stats`](crate::Keyspace::stats) tells what the cache is good for.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let options = KeyspaceOptions::new().engine(Engine::Lsm).caches_data(false);
    /// let archive = store.keyspace_with("archive", options)?;
    /// assert!(!archive.lsm()?.options()?.caches_data);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    #[must_use]
    pub fn caches_data(mut self, caches_data: bool) -> Self {
        self.own.caches_data = Some(caches_data);
        self
    }

    /// The compression of values in a keyspace of any engine but `lsm`, one by one: where values
    /// are texts of some hundred bytes, they take a third to a half of the space. Recorded with the
    /// keyspace like [`KeyspaceOptions::compression`]. Default: none.
    ///
    /// A keyspace that is opened with another compression than it has stores new values by that;
    /// the others stay as they are, and readable. One that has none must be empty:
    /// [`Store::compress_values`] converts what is there, also to a compression with a dictionary,
    /// and back to none.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Compression, KeyspaceOptions, ValueCompression};
    ///
    /// let options = KeyspaceOptions::new().value_compression(Compression::Lz4);
    /// let notes = store.keyspace_with("notes", options)?;
    /// notes.put("1", "all work and no play ".repeat(40))?;
    /// assert_eq!(notes.get("1")?.map(|note| note.len()), Some(840));
    /// let longer = ValueCompression::from(Compression::Lz4).with_bytes_min(500);
    /// store.keyspace_with("notes", KeyspaceOptions::new().value_compression(longer))?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// [`Store::compress_values`]: crate::Store::compress_values
    #[must_use]
    pub fn value_compression(mut self, values: impl Into<ValueCompression>) -> Self {
        self.values = Some(values.into());
        self
    }

    /// The durability of commits to the keyspace that do not set their own; `None`: that of the
    /// store, which is the default. Recorded with the keyspace like
    /// [`KeyspaceOptions::compression`], for any engine, and holds for all of its handles at once.
    ///
    /// What [`Keyspace::with_durability`], [`Batch::durability`] or [`Transaction::durability`]
    /// says goes before it. A commit that changes several keyspaces has the strongest durability
    /// that one of them asks for. Making, renaming and dropping a keyspace waits for the device in
    /// any case.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Durability, KeyspaceOptions};
    ///
    /// // Computed again if the power fails; orders are not.
    /// let options = KeyspaceOptions::new().durability(Durability::Buffered);
    /// let (pages, orders) = (store.keyspace_with("pages", options)?, store.keyspace("orders")?);
    /// pages.put("/", "<html>")?;
    /// let mut batch = store.batch();
    /// batch.put(&pages, "/orders", "<html>")?;
    /// batch.put(&orders, "4711", "three apples")?;
    /// batch.commit()?; // which waits for the device
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// [`Keyspace::with_durability`]: crate::Keyspace::with_durability
    /// [`Batch::durability`]: crate::Batch::durability
    /// [`Transaction::durability`]: crate::Transaction::durability
    #[must_use]
    pub fn durability(mut self, durability: impl Into<Option<Durability>>) -> Self {
        self.durability = Some(durability.into());
        self
    }

    /// The merge operator of the keyspace, in any engine: one of the library
    /// ([`BuiltInOperator`]), or one that [`Options::merge_operator`] registers. Its name, of 1 to
    /// 32 bytes, is recorded with the keyspace, for good: a keyspace that has one cannot be opened
    /// with another, whose operands it does not hold. One that has none may get one; its values
    /// must be of the operator's type. Keyspaces with expiring entries and multimaps have none.
    /// Default: none.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let options = KeyspaceOptions::new().engine(Engine::Lsm).merge_operator("add");
    /// let visits = store.keyspace_with("visits", options)?;
    /// visits.merge("home", 1_u64.to_le_bytes())?;
    /// visits.merge("home", 2_u64.to_le_bytes())?;
    /// assert_eq!(visits.get("home")?, Some(3_u64.to_le_bytes()[..].into()));
    /// let other = KeyspaceOptions::new().merge_operator("append");
    /// assert!(store.keyspace_with("visits", other).is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// [`BuiltInOperator`]: crate::BuiltInOperator
    /// [`Options::merge_operator`]: crate::Options::merge_operator
    #[must_use]
    pub fn merge_operator(mut self, name: &str) -> Self {
        self.merge = Some(OperatorName::new(name));
        self
    }

    /// These, as a catalogue entry records them.
    fn asked(&self) -> OwnOptions {
        let Self { values, durability, merge, .. } = *self;
        OwnOptions { values, durability, merge, ..self.own.into() }
    }

    /// Fails if a merge operator is asked for, for a keyspace whose stored values are not those of
    /// its user: `kept` says what they are.
    pub(crate) fn check_without_merge(&self, name: &str, kept: &str) -> Result<()> {
        match self.merge {
            None => Ok(()),
            Some(merge) => Err(Error::of_lsm(name)(LsmError::InvalidOption {
                option: "merge_operator",
                expected: format!("none for {kept}"),
                found: format!("{merge:?}"),
            })),
        }
    }

    /// The engine of a new keyspace with this name, and its own options.
    pub(crate) fn of_new(&self, name: &str) -> Result<(Engine, OwnOptions)> {
        let engine = self.engine.unwrap_or_default();
        self.check_own(name, engine)?;
        let mut own = self.asked();
        // To have none is what no option says.
        own.values = own.values.filter(|values| !values.is_none());
        own.durability = own.durability.filter(Option::is_some);
        Ok((engine, own))
    }

    /// Gives an existing keyspace those of the options that it has not yet. Fails unless it has the
    /// requested engine.
    pub(crate) fn give(&self, shared: &Shared, state: &KeyspaceState) -> Result<()> {
        let found = state.engine();
        if let Some(expected) = self.engine.filter(|expected| *expected != found) {
            return Err(wrong_engine(&state.name, expected, found));
        }
        self.check_own(&state.name, found)?;
        shared.give_options(state, &self.asked())
    }

    fn check_own(&self, name: &str, engine: Engine) -> Result<()> {
        if self.own != TreeOptions::default() && engine != Engine::Lsm {
            return Err(wrong_engine(name, Engine::Lsm, engine));
        }
        if self.values.is_some() && engine == Engine::Lsm {
            return Err(wrong_engine(name, Engine::default(), engine));
        }
        self.asked().check(name)
    }
}

fn wrong_engine(name: &str, expected: Engine, found: Engine) -> Error {
    Error::WrongEngine { name: name.into(), expected: expected.name(), found: found.name() }
}
