//! Bulk loading: sorted entries straight into full nodes, or in any order by sorting them first.
//!
//! Purpose: `load_sorted` and `extend`. Both take entries from an iterator into memory, with no
//! lock held, and commit them chunked: memory is bounded, readers and writers run between the
//! chunks, and the iterator may read the same store.
//! Invariants: all entries of committed chunks are there, and none of the others. Older entries
//! stay, except those whose keys were loaded.

use std::ops::Bound;

use adamant_heap::Transaction;
use adamant_heap::durability::Durability;
use adamant_trees::Pair;

use crate::common::chunked::piece_len;
use crate::common::content::Content;
use crate::common::shared::KeyVisitor;
use crate::engine::tree::Engine;
use crate::engine::value_codec::PreparedRun;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::limits::{check_key, check_value};

/// Entries and bytes of a chunk: some 500 microseconds during which readers wait.
const PIECE_ENTRIES: usize = 1024;
const PIECE_BYTES: usize = 1 << 20;
/// Bytes of entries that are written to tables of the engine `lsm` at once, and the least that is
/// worth a table of its own.
const TABLE_BYTES_MAX: usize = 64 << 20;
const TABLE_BYTES_MIN: usize = 1 << 20;
/// Bytes and entries that `extend` sorts at once: some 100 MiB, with the entries' index.
const SORTED_BYTES: usize = 64 << 20;
const SORTED_ENTRIES: usize = 1 << 20;

/// The result of a load.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let towns = store.keyspace("towns")?;
/// towns.put("Bern", "1")?;
/// let loaded = towns.load_sorted([("Basel", "173,000"), ("Bern", "134,000")])?;
/// assert_eq!((loaded.entries, loaded.replaced), (2, 1));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// Entries taken from the iterator.
    pub entries: u64,
    /// How many of them replaced an entry of the keyspace, or of the same load.
    pub replaced: u64,
}

impl Keyspace {
    /// Inserts entries whose keys are strictly ascending, which fills the nodes of the tree as it
    /// goes: the fastest way to fill a keyspace, and the one that leaves it smallest. It need not
    /// be empty: runs of keys that fall between two neighbours become new leaves, others go in one
    /// by one.
    ///
    /// The entries are committed in chunks of up to 1,024, or 1 MiB, so the whole is not atomic.
    /// For the engine `lsm` chunks have up to 64 MiB; a chunk becomes tables, written by up to four
    /// threads, if no entry lies between its first and its last key, and other writers wait for
    /// each. An error or a crash
    /// leaves the first entries, in whole chunks. When this returns `Ok`, all entries are as
    /// durable as this handle asks for; the chunks before the last do not wait for the device.
    /// Loading the same entries again is harmless.
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
    /// [`Error::NotAscending`] if a key is not above the one before it; otherwise as
    /// [`Keyspace::put`]. The chunks before are there.
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
                    // Its chunks are large: do not lose the entries before the failing one.
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
        loaded.replaced += self.load_pairs(&piece.pairs(), self.durability())?;
        Ok(loaded)
    }

    /// Inserts entries in any order; of several with the same key the last one wins. They are
    /// sorted in memory, up to 64 MiB or a million at a time, and loaded as by
    /// [`Keyspace::load_sorted`]. This is faster than inserting them one by one and leaves a
    /// smaller keyspace, the more so the more of them are sorted at once.
    ///
    /// The entries are committed in chunks, so the whole is not atomic. Since they are sorted, an
    /// error or a crash leaves some of the entries, not the first ones. When this returns `Ok`, all
    /// of them are as durable as this handle asks for. Doing it again is harmless.
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
    /// As [`Keyspace::put`]; some of the entries before are there.
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
        loaded.replaced += self.load_run(&mut sorted, self.durability())?;
        Ok(loaded)
    }

    /// Sorts entries, loads them and clears the run. The last chunk has this durability, which then
    /// covers those before it.
    fn load_run(&self, run: &mut Content, durability: Durability) -> Result<u64> {
        let entries = run.len();
        run.sort();
        let pairs = run.pairs();
        let replaced = (entries - pairs.len()) as u64 + self.load_pairs(&pairs, durability)?;
        run.clear();
        Ok(replaced)
    }

    /// Commits pairs in ascending order, chunked; returns how many replaced one.
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

    /// Commits pairs as tables of the engine `lsm` if they are many and no entry lies between the
    /// first and the last of them; otherwise false. Other writers wait until the tables are on the
    /// device.
    fn load_table(&self, pairs: &[Pair<'_>], durability: Durability) -> Result<bool> {
        let (Some((first, _)), Some((last, _))) = (pairs.first(), pairs.last()) else {
            return Ok(false);
        };
        let bytes: usize = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes < TABLE_BYTES_MIN || self.engine() != Engine::Lsm {
            return Ok(false);
        }
        let permit = self.shared.take_write_permit()?;
        let map = self.map()?;
        let bounds = (Bound::Included(*first), Bound::Included(*last));
        let Some(tree) = map.lsm().filter(|tree| !tree.may_hold(bounds)) else {
            return Ok(false);
        };
        let threads = self.shared.workers().load_threads();
        let load = tree.prepare_load(pairs, threads).map_err(Error::of_lsm(self.name()))?;
        let Some(load) = load else { return Ok(false) };
        let commit = |transaction: &mut Transaction<'_>| {
            load.commit(transaction).map_err(Error::of_lsm(self.name()))?;
            self.shared.record(transaction, |recording, transaction| {
                recording.say(transaction, &self.state, |encoder, keyspace| {
                    encoder.loaded(keyspace, first, last);
                })
            })
        };
        let (no_keys, no_check) =
            (|_: &mut KeyVisitor<'_>| Ok(()), |_: &mut Transaction<'_>| Ok(()));
        let done =
            self.shared.change_after(Some(permit), durability, false, no_keys, no_check, commit);
        if done.is_err() {
            // Deletes its files at once, unless the commit may be in the log.
            let _ = self.shared.catalogue().lsm_trees().delete_obsolete(self.shared.heap()?);
        }
        self.state.counts().note_writes(if done.is_ok() { pairs.len() as u64 } else { 0 });
        done.map(|()| true)
    }

    /// Commits pairs in ascending order; returns how many replaced one.
    fn load_piece(&self, pairs: &[Pair<'_>], durability: Durability) -> Result<u64> {
        let keys = |each: &mut KeyVisitor<'_>| {
            pairs.iter().try_for_each(|(key, _)| each(&self.state, key))
        };
        let values = pairs.iter().map(|(_, value)| Some(*value));
        let ahead = PreparedRun::new(self.state.codec(), values)?;
        self.shared.change(None, durability, keys, |transaction| {
            let map = self.state.map(transaction, self.shared.catalogue())?;
            map.load_sorted(transaction, pairs, ahead.as_ref())
        })
    }
}
