//! The trait of all trees, and its cursors.
//!
//! Purpose: the one trait behind which the trees are interchangeable.
//! Thread safety: a tree is a heap offset; the holder of the heap's `Read` or `Write` decides which
//! threads may read and which may change it (S1).

use std::ops::{Bound, ControlFlow};

use adamant_heap::access::{Read, Write};

use crate::checking::{Checking, Report};
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::loose::DetachedEntry;
use crate::parts::Part;
use crate::slot::Entry;

/// Bytes of keys and values after which a part of a compaction ends with the next node: some 500
/// us of work.
pub(crate) const COMPACTED_BYTES_MAX: usize = 512 << 10;

/// A key and its value, borrowed from the heap.
pub type Pair<'r> = (&'r [u8], &'r [u8]);

/// One change of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value to insert; `None` removes the key.
    pub value: Option<&'a [u8]>,
}

/// Where to put a cursor: always in a gap between two pairs, or before or after all.
#[derive(Clone, Copy, Debug)]
pub enum Seek<'a> {
    /// Before the first pair.
    First,
    /// After the last pair.
    Last,
    /// Between the keys below this one and this one.
    Before(&'a [u8]),
    /// Between this key and those above it.
    After(&'a [u8]),
}

impl<'a> Seek<'a> {
    /// The gap at which the range with this lower bound starts.
    pub fn lower(bound: Bound<&'a [u8]>) -> Self {
        match bound {
            Bound::Included(key) => Self::Before(key),
            Bound::Excluded(key) => Self::After(key),
            Bound::Unbounded => Self::First,
        }
    }

    /// The gap at which the range with this upper bound ends.
    pub fn upper(bound: Bound<&'a [u8]>) -> Self {
        match bound {
            Bound::Included(key) => Self::After(key),
            Bound::Excluded(key) => Self::Before(key),
            Bound::Unbounded => Self::Last,
        }
    }
}

/// Where a walk over the pairs of a node stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk<'r> {
    /// After the last pair of a node, or after 64 pairs of a tree without nodes of many: a good
    /// place to pause.
    Edge,
    /// At the bound, or at the end of the tree.
    End,
    /// Where the closure broke: after the pair with this key.
    Broken(&'r [u8]),
}

/// A cursor: a gap between two pairs of a tree that does not change meanwhile.
pub trait Cursor<'r> {
    /// Goes to a gap. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn seek(&mut self, seek: Seek<'_>) -> Result<()>;

    /// Steps over the pair above the gap and returns it; `None` at the end. O(1) amortised.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn next(&mut self) -> Result<Option<Pair<'r>>>;

    /// Steps over the pair below the gap and returns it; `None` at the start. O(1) amortised.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn previous(&mut self) -> Result<Option<Pair<'r>>>;

    /// Whether the next step in a direction goes to another node.
    fn is_at_edge(&self, forward: bool) -> bool;

    /// Steps over pairs in a direction up to [`Walk::Edge`], but not beyond `until`, and hands each
    /// to `each` until that breaks. O(1) a pair, and cheaper than single steps.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn walk(
        &mut self,
        forward: bool,
        until: Bound<&[u8]>,
        each: &mut impl FnMut(Pair<'r>) -> ControlFlow<()>,
    ) -> Result<Walk<'r>>;

    /// The key from which a later scan continues after [`Walk::Edge`]: upwards, the lowest that may
    /// lie beyond the node; downwards, the lowest that may lie in it. `None` when nothing lies
    /// beyond.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn resume_key(&self, forward: bool) -> Result<Option<&'r [u8]>>;
}

/// Refuses pairs that are not in the order of their keys, or have duplicate keys.
pub(crate) fn check_ascending(pairs: &[Pair<'_>]) -> Result<()> {
    match pairs.windows(2).position(|two| two[0].0 >= two[1].0) {
        Some(before) => Err(Error::NotAscending { position: before as u64 + 1 }),
        None => Ok(()),
    }
}

/// An ordered map of byte strings on a heap. Keys are ordered bytewise.
///
/// A failed change may leave a part of it behind: the transaction must then fail, too.
pub trait OrderedMap: Copy {
    /// The name of this kind of tree.
    const NAME: &'static str;
    /// The cursor type.
    type Cursor<'r, R: Read + 'r>: Cursor<'r>;

    /// Creates an empty tree. O(1).
    ///
    /// # Errors
    /// The heap's, out of space among them.
    fn create<W: Write>(tx: &mut W) -> Result<Self>;

    /// Creates an empty tree that will only hold keys of 8 bytes with values of 8 bytes. Trees that
    /// have a form for them hold such pairs in their nodes, and refuse all others
    /// (`Error::NotWords`). O(1).
    ///
    /// # Errors
    /// The heap's, out of space among them.
    fn create_of_words<W: Write>(tx: &mut W) -> Result<Self> {
        Self::create(tx)
    }

    /// The tree whose head block lies at this heap offset. O(1).
    ///
    /// # Errors
    /// `Error::NotThisTree`, or the heap's.
    fn open<R: Read>(read: &R, head: u64) -> Result<Self>;

    /// Heap offset of the head block; it never changes.
    fn head(&self) -> u64;

    /// Number of pairs. O(1).
    ///
    /// # Errors
    /// The heap's.
    fn len<R: Read>(&self, read: &R) -> Result<u64>;

    /// Whether there is no pair. O(1).
    ///
    /// # Errors
    /// The heap's.
    fn is_empty<R: Read>(&self, read: &R) -> Result<bool> {
        Ok(self.len(read)? == 0)
    }

    /// The entry of a key. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's. A key that cannot be stored is simply absent.
    fn find<'r, R: Read>(&self, read: &'r R, key: &[u8]) -> Result<Option<Entry<'r>>>;

    /// The value of a key. O(log n).
    ///
    /// # Errors
    /// As [`OrderedMap::find`].
    #[inline]
    fn get<'r, R: Read>(&self, read: &'r R, key: &[u8]) -> Result<Option<&'r [u8]>> {
        self.find(read, key)?.map(|entry| entry.value(read)).transpose()
    }

    /// The value of a key, and the heap offset of its block if it has one of its own: such a block
    /// can be borrowed. O(log n).
    ///
    /// # Errors
    /// As [`OrderedMap::find`].
    fn get_with_block<'r, R: Read>(
        &self,
        read: &'r R,
        key: &[u8],
    ) -> Result<Option<(&'r [u8], Option<u64>)>> {
        let Some(entry) = self.find(read, key)? else { return Ok(None) };
        Ok(Some((entry.value(read)?, entry.value_block())))
    }

    /// Whether a key is there. O(log n).
    ///
    /// # Errors
    /// As [`OrderedMap::find`].
    fn contains<R: Read>(&self, read: &R, key: &[u8]) -> Result<bool> {
        Ok(self.find(read, key)?.is_some())
    }

    /// The pair with the lowest key. O(log n).
    ///
    /// # Errors
    /// As [`OrderedMap::find`].
    fn first<'r, R: Read>(&self, read: &'r R) -> Result<Option<Pair<'r>>> {
        let mut cursor = self.cursor(read);
        cursor.seek(Seek::First)?;
        cursor.next()
    }

    /// The pair with the highest key. O(log n).
    ///
    /// # Errors
    /// As [`OrderedMap::find`].
    fn last<'r, R: Read>(&self, read: &'r R) -> Result<Option<Pair<'r>>> {
        let mut cursor = self.cursor(read);
        cursor.seek(Seek::Last)?;
        cursor.previous()
    }

    /// A cursor before the first pair.
    fn cursor<'r, R: Read>(&self, read: &'r R) -> Self::Cursor<'r, R>;

    /// Inserts a pair; returns whether it replaced one. O(log n + key + value).
    ///
    /// # Errors
    /// `Error::KeyTooLong`, `Error::ValueTooLong` (nothing was changed);
    /// `Error::Damaged`, or the heap's, out of space among them.
    fn insert<W: Write>(&self, tx: &mut W, key: &[u8], value: &[u8]) -> Result<bool>;

    /// Removes a key; returns whether it was there. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn remove<W: Write>(&self, tx: &mut W, key: &[u8]) -> Result<bool>;

    /// Takes the entry of a key out of the tree, without freeing it. O(log n), and needs no space.
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn take<W: Write>(&self, tx: &mut W, key: &[u8]) -> Result<Option<DetachedEntry>>;

    /// Puts an entry into the tree under its key, unchanged; returns the one that it replaced,
    /// which the caller must then free. O(log n + key).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's, out of space among them.
    fn insert_entry<W: Write>(
        &self,
        tx: &mut W,
        entry: DetachedEntry,
    ) -> Result<Option<DetachedEntry>>;

    /// Makes many changes, one after the other; fastest when sorted by key. Appends to `present`
    /// for each whether its key was there before it.
    ///
    /// # Errors
    /// As [`OrderedMap::insert`]; those before the failing one were made.
    fn apply_sorted<W: Write>(
        &self,
        tx: &mut W,
        operations: &[Operation<'_>],
        present: &mut Vec<bool>,
    ) -> Result<()>;

    /// Inserts pairs whose keys ascend strictly, and fills nodes as it goes, also in a tree that is
    /// not empty; returns how many of them replaced one. O(n log n) at most, and O(n) for those
    /// after all existing ones.
    ///
    /// # Errors
    /// `Error::NotAscending` (nothing was changed); as [`OrderedMap::insert`].
    fn load_sorted<W: Write>(&self, tx: &mut W, pairs: &[Pair<'_>]) -> Result<u64> {
        check_ascending(pairs)?;
        let operation = |&(key, value)| Operation { key, value: Some(value) };
        let operations: Vec<Operation<'_>> = pairs.iter().map(operation).collect();
        let mut present = Vec::with_capacity(pairs.len());
        self.apply_sorted(tx, &operations, &mut present)?;
        Ok(present.into_iter().map(u64::from).sum())
    }

    /// Compacts a part of the tree: copies its pairs from a key on, about `pairs_max` of them or
    /// 512 KiB, in the order of their keys, with the nodes that refer to them. Leaves of the B+
    /// tree become full, nodes of other trees as full as inserts make them. In a transaction that
    /// packs (`adamant_heap::Transaction::pack`) the copies lie side by side. Values above 40 KiB
    /// stay in place. Returns the key at which the next part begins, `None` behind the last one;
    /// the first begins at the empty key. O(log n) and a copy for each pair.
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's, out of space among them.
    fn compact_part<W: Write>(
        &self,
        tx: &mut W,
        from: &[u8],
        pairs_max: usize,
    ) -> Result<Option<Vec<u8>>>;

    /// Removes all pairs. O(n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn clear<W: Write>(&self, tx: &mut W) -> Result<()>;

    /// Frees all blocks of the tree, its head too. O(n).
    ///
    /// # Errors
    /// As [`OrderedMap::clear`].
    fn destroy<W: Write>(self, tx: &mut W) -> Result<()>;

    /// An estimate of the entries between two bounds and of their bytes, without visiting them. The
    /// B+ tree reads O(log^2 n) nodes: ranges of a leaf or two are counted, others are right within
    /// some tenths. The other trees read O(log n) nodes and up to 1,000 entries: ranges of no more
    /// are counted, others are right within a tenth of the whole tree, except in a crit-bit
    /// tree of skewed keys, whose shape is theirs: there they are no more than hints.
    ///
    /// # Errors
    /// Damage.
    fn estimate<R: Read>(
        &self,
        read: &R,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<Estimate>;

    /// Hands out every block of the tree but its head, and every value, in no order, to a caller
    /// that accounts for the blocks of a heap. O(n); memory for 8 bytes and bookkeeping per block.
    ///
    /// # Errors
    /// `Error::Damaged` with the first fault, after which nothing is handed out; or the heap's.
    fn parts<'r, R: Read>(&self, read: &'r R, each: &mut dyn FnMut(Part<'r>)) -> Result<()>;

    /// Verifies every rule of the tree's structure. O(n log n) time; memory for 8 bytes and
    /// bookkeeping per block of the tree.
    ///
    /// # Errors
    /// `Error::Damaged` with the first fault, or the heap's.
    fn check<R: Read>(&self, read: &R) -> Result<Report> {
        let mut checking = Checking::default();
        self.check_part(read, &mut checking, &|| false)?;
        Ok(checking.report())
    }

    /// The same in parts, between which the tree may change, or be replaced by another one of its
    /// kind: each continues where the one before ended, and verifies the current state. A part ends
    /// some 2,048 pairs on as soon as `is_wanted` says that others want the tree. Returns whether
    /// it was the last.
    ///
    /// # Errors
    /// As [`OrderedMap::check`].
    fn check_part<R: Read>(
        &self,
        read: &R,
        checking: &mut Checking,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<bool>;
}
