//! Loading many entries: in order straight into full nodes, or in any order by sorting them first.
//!
//! Purpose: `load_sorted` and `extend`. Both take entries from an iterator into memory, with no lock
//! held, and commit them in pieces: so what they take of memory is bounded, readers and writers come
//! in between, and the iterator may read the same store.
//! Invariants: all entries of pieces that were committed are there, nothing of the others. What came
//! before stays as it is but for the keys that were loaded.

use std::ops::Bound;

use adamant_heap::Transaction;
use adamant_heap::durability::Durability;
use adamant_slice::Slice;
use adamant_trees::Pair;

use crate::common::chunked::piece_len;
use crate::common::content::Content;
use crate::common::shared::KeyVisitor;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::limits::{check_key, check_value};

/// Entries and bytes of a piece: some 500 microseconds during which readers wait.
const PIECE_ENTRIES: usize = 1024;
const PIECE_BYTES: usize = 1 << 20;
/// Bytes of entries that are written to a table of the engine `lsm` at once, and from which on it is worth
/// one of its own.
const TABLE_BYTES_MAX: usize = 32 << 20;
const TABLE_BYTES_MIN: usize = 1 << 20;
/// Bytes and entries that `extend` sorts at once: with the entries' places some 100 MiB.
const SORTED_BYTES: usize = 64 << 20;
const SORTED_ENTRIES: usize = 1 << 20;

/// What a load did.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let towns = store.keyspace("towns")?;
/// towns.insert("Bern", "1")?;
/// let loaded = towns.load_sorted([("Basel", "173,000"), ("Bern", "134,000")])?;
/// assert_eq!((loaded.entries, loaded.replaced), (2, 1));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// Entries taken from the iterator.
    pub entries: u64,
    /// How many of them replaced one, of the keyspace or of the same load.
    pub replaced: u64,
}

impl Keyspace {
    /// Inserts entries whose keys ascend strictly, which fills the nodes of the tree as it goes: the
    /// fastest way to fill a keyspace, and the one that leaves it smallest. It need not be empty:
    /// runs of keys that fall between two neighbours go in as new leaves, others one by one.
    ///
    /// The entries are committed in pieces of up to 1,024, or 1 MiB, so the whole is not atomic (of the engine
    /// `lsm` up to 32 MiB, which become tables where nothing is between the first and the last of them; others
    /// that write wait for each): what
    /// an error or a crash leaves is a start of the entries, in whole pieces. All of them are as
    /// durable as this handle asks for when it returns `Ok`; the pieces before the last one do not
    /// wait for the device. Loading the same entries again is harmless.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let squares = store.keyspace("squares")?;
    /// let entries = (0..5_000_u32).map(|n| (format!("{n:04}"), (n * n).to_string()));
    /// assert_eq!(squares.load_sorted(entries)?.entries, 5_000);
    /// assert_eq!(squares.get("0012")?, Some("144".into()));
    ///
    /// let error = squares.load_sorted([("2", "4"), ("1", "1")]).unwrap_err();
    /// assert!(matches!(error, adamant::Error::NotAscending { position: 1 }));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAscending`] where a key is not above the one before it; else as
    /// [`Keyspace::insert`]. The pieces before are there.
    pub fn load_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Loaded> {
        self.check_writes()?;
        let is_tree = self.engine() != Engine::Lsm;
        let mut loaded = Loaded::default();
        let mut piece = Content::default();
        let mut last: Option<Vec<u8>> = None;
        for (key, value) in entries {
            let (key, value) = (key.as_ref(), value.as_ref());
            check_key(key)?;
            check_value(value)?;
            if last.as_ref().is_some_and(|last| key <= &last[..]) {
                if !is_tree {
                    // Its pieces are large: what came before shall not be lost with them.
                    self.load_pairs(&piece.pairs(), Durability::Deferred)?;
                }
                return Err(Error::NotAscending { position: loaded.entries });
            }
            let is_full = match is_tree {
                true => piece.len() >= PIECE_ENTRIES || piece.bytes() >= PIECE_BYTES,
                false => piece.bytes() >= TABLE_BYTES_MAX,
            };
            if is_full {
                loaded.replaced += self.load_pairs(&piece.pairs(), Durability::Deferred)?;
                piece.clear();
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            piece.push(0, key, Some(value));
            loaded.entries += 1;
        }
        loaded.replaced += self.load_pairs(&piece.pairs(), self.durability)?;
        Ok(loaded)
    }

    /// Inserts entries in any order; of several with the same key the last one holds. They are sorted
    /// in memory, up to 64 MiB or a million at a time, and loaded as [`Keyspace::load_sorted`] does,
    /// which is faster than inserting them as they come, and leaves a smaller keyspace: the more so
    /// the more of them are sorted at once.
    ///
    /// The entries are committed in pieces, so the whole is not atomic, and since they are sorted, what
    /// an error or a crash leaves is not a start of them, but some of them. All of them are as durable
    /// as this handle asks for when it returns `Ok`. Doing it again is harmless.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let words = store.keyspace("words")?;
    /// words.extend([("one", "1"), ("two", "2"), ("three", "3"), ("two", "II")])?;
    /// assert_eq!(words.len()?, 3);
    /// assert_eq!(words.get("two")?, Some("II".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::insert`]; some of the entries before are there.
    pub fn extend<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Loaded> {
        self.check_writes()?;
        let mut loaded = Loaded::default();
        let mut sorted = Content::default();
        for (key, value) in entries {
            let (key, value) = (key.as_ref(), value.as_ref());
            check_key(key)?;
            check_value(value)?;
            if sorted.len() >= SORTED_ENTRIES || sorted.bytes() >= SORTED_BYTES {
                loaded.replaced += self.load_run(&mut sorted, Durability::Deferred)?;
            }
            sorted.push(0, key, Some(value));
            loaded.entries += 1;
        }
        loaded.replaced += self.load_run(&mut sorted, self.durability)?;
        Ok(loaded)
    }

    /// Sorts entries and loads them, the last piece with this durability, which those before it then
    /// have too. Forgets them.
    fn load_run(&self, run: &mut Content, durability: Durability) -> Result<u64> {
        let entries = run.len();
        run.sort();
        let pairs = run.pairs();
        let replaced = (entries - pairs.len()) as u64 + self.load_pairs(&pairs, durability)?;
        run.clear();
        Ok(replaced)
    }

    /// Commits pairs, whose keys ascend, in pieces; how many replaced one.
    fn load_pairs(&self, pairs: &[Pair<'_>], durability: Durability) -> Result<u64> {
        if self.load_table(pairs, durability)? {
            return Ok(0);
        }
        let (mut replaced, mut rest) = (0, pairs);
        loop {
            let bytes = rest.iter().map(|(key, value)| key.len() + value.len());
            let (piece, behind) = rest.split_at(piece_len(bytes, PIECE_ENTRIES, PIECE_BYTES));
            let durability = if behind.is_empty() { durability } else { Durability::Deferred };
            replaced += self.load_piece(piece, durability)?;
            if behind.is_empty() {
                return Ok(replaced);
            }
            rest = behind;
        }
    }

    /// Commits pairs as a table of the engine `lsm`, where nothing is between the first and the last of them,
    /// and they are many; else false. Others that write wait until the table is on the device.
    fn load_table(&self, pairs: &[Pair<'_>], durability: Durability) -> Result<bool> {
        let (Some((first, _)), Some((last, _))) = (pairs.first(), pairs.last()) else {
            return Ok(false);
        };
        let bytes: usize = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes < TABLE_BYTES_MIN || self.engine() != Engine::Lsm {
            return Ok(false);
        }
        let turn = self.shared.take_write_permit()?;
        let map = self.map()?;
        let bounds = (Bound::Included(*first), Bound::Included(*last));
        let Some(tree) = map.lsm().filter(|tree| !tree.may_hold(bounds)) else {
            return Ok(false);
        };
        let pairs: Vec<_> =
            pairs.iter().map(|(key, value)| (Slice::from(*key), Slice::from(*value))).collect();
        let load = tree.prepare_load(&pairs).map_err(Error::of_lsm(self.name()))?;
        let Some(load) = load else { return Ok(false) };
        let commit = |transaction: &mut Transaction<'_>| {
            load.commit(transaction).map_err(Error::of_lsm(self.name()))
        };
        let (no_keys, no_check) =
            (|_: &mut KeyVisitor<'_>| Ok(()), |_: &mut Transaction<'_>| Ok(()));
        let done =
            self.shared.change_after(Some(turn), durability, false, no_keys, no_check, commit);
        if done.is_err() {
            // Its files go at once, unless it cannot be told whether the commit is in the log.
            let _ = self.shared.catalogue().lsm_trees().bury(self.shared.heap()?);
        }
        done.map(|()| true)
    }

    /// Commits pairs, whose keys ascend; how many replaced one.
    fn load_piece(&self, pairs: &[Pair<'_>], durability: Durability) -> Result<u64> {
        let keys = |each: &mut KeyVisitor<'_>| {
            pairs.iter().try_for_each(|(key, _)| each(&self.state, key))
        };
        self.shared.change(durability, keys, |transaction| {
            let map = self.state.map(transaction, self.shared.catalogue())?;
            map.load_sorted(transaction, pairs)
        })
    }
}
