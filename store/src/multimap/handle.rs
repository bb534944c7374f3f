//! The multimap handle, and how it is opened.
//!
//! Purpose: one generic type for all multimaps; those of bytes have the types of bytes.
//! Invariants: only this type writes the keyspace. A handle of bytes does not write to a multimap
//! whose recorded types are others: their rows begin in another way.
//! Thread safety: as keyspaces: any number of threads.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use adamant_heap::durability::Durability;
use adamant_slice::Slice;

use super::rows;
use crate::common::keyspace_options::KeyspaceOptions;
use crate::common::state::KeyspaceState;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::kind::KeyspaceKind;
use crate::layout::KIND_MULTIMAP;
use crate::store::handle::Store;
use crate::typed::{Key, types_of};
use crate::types::KeyspaceTypes;

/// A map of keys to sets of values, both in their order, see [`crate::multimap`].
///
/// `len`, `iter` and the like are about pairs of a key and one of its values. A key and a value
/// have up to 65,535 bytes together, as they are stored: a key of bytes takes 2 bytes more than it
/// has, and one more for each zero in it.
///
/// ```
/// let store = adamant::Store::in_memory()?;
/// let towns = store.multimap("towns by country")?.typed::<String, String>()?;
/// for (country, town) in [("CH", "Chur"), ("CH", "Bern"), ("NO", "Oslo")] {
///     towns.insert(country, town)?;
/// }
/// let swiss: Result<Vec<_>, _> = towns.get("CH").collect();
/// assert_eq!(swiss?, ["Bern", "Chur"]);
/// assert_eq!((towns.count("CH")?, towns.len()?), (2, 3));
/// # Ok::<(), adamant::Error>(())
/// ```
pub struct Multimap<K = Slice, V = Slice> {
    pub(super) rows: Keyspace,
    /// The recorded types, if this handle is of others.
    others: Option<Arc<KeyspaceTypes>>,
    types: PhantomData<fn() -> (K, V)>,
}

impl Store {
    /// Opens the multimap with this name, or creates it if there is none: its keys and values are
    /// bytes. For others see [`Multimap::typed`].
    ///
    /// It is a keyspace of the kind [`KeyspaceKind::Multimap`], which [`Store::keyspace`] refuses.
    /// [`Store::rename_keyspace`], [`Store::drop_keyspace`] and the like take its name.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let tags = store.multimap("tags")?;
    /// assert!(tags.insert("rust", "adamant")?);
    /// assert!(tags.contains("rust", "adamant")?);
    /// assert!(store.keyspace("tags").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::keyspace`]; [`Error::WrongKind`] if a keyspace with this name has other entries.
    pub fn multimap(&self, name: &str) -> Result<Multimap> {
        self.multimap_with(name, KeyspaceOptions::new())
    }

    /// Like [`Store::multimap`], with options.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let words = store.multimap_with("words", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// assert_eq!(words.untyped().engine(), Engine::Lsm);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::multimap`] and [`Store::keyspace_with`].
    pub fn multimap_with(&self, name: &str, options: KeyspaceOptions) -> Result<Multimap> {
        options.check_without_merge(name, "multimaps, whose pairs are all key")?;
        let state = loop {
            if let Some(state) = self.shared.open_keyspace(name)? {
                break state;
            }
            // If another thread creates it just now, the next round finds it.
            let (engine, own) = options.of_new(name)?;
            if let Some(state) = self.shared.create_keyspace(name, (engine, KIND_MULTIMAP), &own)? {
                break state;
            }
        };
        self.multimap_of(state, options)
    }

    /// Opens an existing multimap.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// assert!(store.open_multimap("tags").is_err());
    /// store.multimap("tags")?;
    /// assert!(store.open_multimap("tags")?.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none with this name; otherwise as
    /// [`Store::multimap`].
    pub fn open_multimap(&self, name: &str) -> Result<Multimap> {
        self.multimap_of(self.shared.existing_keyspace(name)?, KeyspaceOptions::new())
    }

    fn multimap_of(&self, state: Arc<KeyspaceState>, options: KeyspaceOptions) -> Result<Multimap> {
        if state.kind != KeyspaceKind::Multimap {
            return Err(Error::WrongKind { name: (&*state.name).into(), found: state.kind });
        }
        options.give(&self.shared, &state)?;
        let recorded = self.shared.recorded_types(&state)?;
        let others = recorded.filter(|types| *types != types_of::<Slice, Slice>()).map(Arc::new);
        Ok(Multimap { others, ..Multimap::new(Keyspace::new(&self.shared, state)) })
    }
}

impl<K, V> Multimap<K, V> {
    fn new(rows: Keyspace) -> Self {
        Self { rows, others: None, types: PhantomData }
    }

    /// Its rows, for writing.
    ///
    /// # Errors
    /// [`Error::WrongTypes`]
    pub(super) fn rows_to_write(&self) -> Result<&Keyspace> {
        match &self.others {
            None => Ok(&self.rows),
            Some(recorded) => Err(Error::WrongTypes {
                name: self.name().into(),
                recorded: Box::new((**recorded).clone()),
                asked: Box::new(types_of::<Slice, Slice>()),
            }),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.rows.name()
    }

    /// The keyspace that holds the rows, to read them as they are stored: each has a pair for its
    /// key, see [`Multimap::pair_of`], and an empty value. It may not write them.
    pub fn untyped(&self) -> Keyspace {
        self.rows.to_lent()
    }

    /// A handle to the same multimap whose writes have this durability.
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        Self { rows: self.rows.with_durability(durability), ..self.clone() }
    }

    /// This multimap, with types for its keys and values. Both are keys, [`Key`]: their bytes sort
    /// as they do. The types are recorded and compared as those of [`Keyspace::typed`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// let scores = store.multimap("scores")?.typed::<String, i32>()?;
    /// scores.insert("ada", &100)?;
    /// scores.insert("ada", &-3)?;
    /// assert_eq!(scores.last_value("ada")?, Some(100));
    ///
    /// let refused = store.multimap("scores")?.typed::<String, u8>();
    /// assert!(matches!(refused, Err(Error::WrongTypes { .. })));
    /// // As bytes it is only read.
    /// assert!(matches!(store.multimap("scores")?.put("ada", "7"), Err(Error::WrongTypes { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::typed`].
    pub fn typed<A: Key, B: Key>(&self) -> Result<Multimap<A, B>> {
        self.rows.take_types(&types_of::<A, B>(), KeyspaceKind::Multimap)?;
        Ok(Multimap::new(self.rows.clone()))
    }
}

impl<K: Key, V: Key> Multimap<K, V> {
    /// The pair of a row's key, as [`Multimap::untyped`] and [`Store::changes`] show it.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Change;
    ///
    /// let scores = store.multimap("scores")?.typed::<String, i32>()?;
    /// store.record_changes(Some(1 << 20))?;
    /// scores.insert("ada", &-3)?;
    /// let commit = store.changes(0)?.try_next()?.expect("it was recorded");
    /// let Change::Put { key, .. } = &commit.changes[0] else { panic!("{commit:?}") };
    /// assert_eq!(scores.pair_of(key)?, ("ada".to_string(), -3));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Encoding`]: it is not of these types.
    pub fn pair_of(&self, row: &[u8]) -> Result<(K, V)> {
        rows::pair(self.name(), row)
    }
}

impl<K, V> Clone for Multimap<K, V> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), others: self.others.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for Multimap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Multimap").field(&self.rows).finish()
    }
}
