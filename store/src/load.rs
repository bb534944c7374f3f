//! Loading many entries: in order straight into full nodes, or in any order by sorting them first.
//!
//! Purpose: `load_sorted` and `extend`. Both take entries from an iterator into memory, with no lock
//! held, and commit them in pieces: so what they take of memory is bounded, readers and writers come
//! in between, and the iterator may read the same store.
//! Invariants: all entries of pieces that were committed are there, nothing of the others. What came
//! before stays as it is but for the keys that were loaded.

use adamant_heap::durability::Durability;
use adamant_trees::Pair;

use crate::content::Content;
use crate::error::{Error, Result};
use crate::keyspace::Keyspace;
use crate::limits::{check_key, check_value};
use crate::pieces::piece_len;
use crate::shared::KeyVisitor;

/// Entries and bytes of a piece: some 500 microseconds during which readers wait.
const PIECE_ENTRIES: usize = 1024;
const PIECE_BYTES: usize = 1 << 20;
/// Bytes and entries that `extend` sorts at once: with the entries' places some 100 MiB.
const SORTED_BYTES: usize = 64 << 20;
const SORTED_ENTRIES: usize = 1 << 20;

/// What a load did.
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
    /// The entries are committed in pieces of up to 1,024, or 1 MiB, so the whole is not atomic: what
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
        let mut loaded = Loaded::default();
        let mut piece = Content::default();
        let mut last = Vec::new();
        for (key, value) in entries {
            let (key, value) = (key.as_ref(), value.as_ref());
            check_key(key)?;
            check_value(value)?;
            if key <= &last[..] {
                return Err(Error::NotAscending { position: loaded.entries });
            }
            if piece.len() >= PIECE_ENTRIES || piece.bytes() >= PIECE_BYTES {
                loaded.replaced += self.load_piece(&piece.pairs(), Durability::Deferred)?;
                piece.clear();
            }
            last.clear();
            last.extend_from_slice(key);
            piece.push(0, key, Some(value));
            loaded.entries += 1;
        }
        loaded.replaced += self.load_piece(&piece.pairs(), self.durability)?;
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
        let mut replaced = (entries - pairs.len()) as u64;
        let mut rest = &pairs[..];
        loop {
            let bytes = rest.iter().map(|(key, value)| key.len() + value.len());
            let (piece, behind) = rest.split_at(piece_len(bytes, PIECE_ENTRIES, PIECE_BYTES));
            let durability = if behind.is_empty() { durability } else { Durability::Deferred };
            replaced += self.load_piece(piece, durability)?;
            if behind.is_empty() {
                break;
            }
            rest = behind;
        }
        run.clear();
        Ok(replaced)
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
