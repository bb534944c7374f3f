//! The B+ tree as an ordered map.

use std::collections::HashSet;
use std::ops::Bound;

use adamant_heap::access::{Read, Write};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use super::batch::{apply, load};
use super::check::check;
use super::clear::{clear, free_nodes};
use super::compact::compact_part;
use super::cursor::BplusCursor;
use super::estimate::estimate;
use super::find::{Path, Target, entry_of, head, leaf_of, path};
use super::insert::{insert_entry, put};
use super::layout::{HEAD_BYTES, HEAD_MAGIC, HEAD_PAIRS_AT, Head, Leaf};
use super::parts::parts;
use super::remove::take;
use super::salvage::{ORPHAN_BYTES, Salvaged, orphan_keys, salvage, salvage_orphan};
use super::tagging::Tagging;
use super::write::{add, new_leaf};
use crate::checking::Checking;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::loose::DetachedEntry;
use crate::parts::Part;
use crate::slot::{Entry, KeyHash};
use crate::tree::{Operation, OrderedMap, Pair, check_ascending};

/// A B+ tree: the heap offset of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bplus {
    head: u64,
}

impl Bplus {
    /// Puts the entry of a key into the leaf of its path; returns the one that it replaced.
    fn adopt_at<W: Write>(
        self,
        tx: &mut W,
        path: &Path,
        key: &[u8],
        entry: u64,
    ) -> Result<Option<u64>> {
        let old = insert_entry(tx, self.head, path, KeyHash::of(key), key, entry)?.old;
        if old.is_none() {
            add(tx, self.head, HEAD_PAIRS_AT, 1)?;
        }
        Ok(old)
    }

    /// Hands out, in no order, what can be read of a damaged tree whose head was at `head`, and
    /// reports what cannot. `leaves` grows by the leaves that were read. Continues after every
    /// fault. O(n).
    pub fn salvage<'r, R: Read>(
        read: &'r R,
        head: u64,
        leaves: &mut HashSet<u64>,
        each: &mut dyn FnMut(Salvaged<'r>),
    ) {
        salvage(read, head, leaves, each);
    }

    /// Bytes of the block that a head is in.
    pub const HEAD_BYTES: u64 = HEAD_BYTES as u64;

    /// Bytes of leaf blocks: [`Bplus::orphan_keys`] makes sense only for blocks of this size.
    pub const ORPHAN_BYTES: u64 = ORPHAN_BYTES;

    /// The lowest and the highest key of an allocated block if it is a leaf, of any tree: leaves
    /// hold 24 bits that depend on the key of each entry, so nothing else is taken for one.
    pub fn orphan_keys<R: Read>(read: &R, block: u64) -> Option<(&[u8], &[u8])> {
        orphan_keys(read, block)
    }

    /// As [`Bplus::salvage`], for one leaf that no tree refers to.
    ///
    /// # Errors
    /// The heap's, when the block cannot be read.
    pub fn salvage_orphan<'r, R: Read>(
        read: &'r R,
        block: u64,
        each: &mut dyn FnMut(Salvaged<'r>),
    ) -> Result<()> {
        salvage_orphan(read, block, each)
    }
}

impl OrderedMap for Bplus {
    const NAME: &'static str = "bplus";
    type Cursor<'r, R: Read + 'r> = BplusCursor<'r, R>;

    fn create<W: Write>(tx: &mut W) -> Result<Self> {
        let root = new_leaf(tx, Tagging::WHOLE, &[])?;
        let head = tx.reserve(HEAD_BYTES as u64)?;
        let contents = Head {
            magic: HEAD_MAGIC,
            root: U64::new(root),
            height: U64::ZERO,
            pairs: U64::ZERO,
            leaves: U64::new(1),
            inner_nodes: U64::ZERO,
        };
        tx.write(head, 0, HEAD_BYTES)?.copy_from_slice(contents.as_bytes());
        Ok(Self { head })
    }

    fn open<R: Read>(read: &R, head_offset: u64) -> Result<Self> {
        head(read, head_offset)?;
        Ok(Self { head: head_offset })
    }

    fn head(&self) -> u64 {
        self.head
    }

    fn len<R: Read>(&self, read: &R) -> Result<u64> {
        Ok(head(read, self.head)?.pairs.get())
    }

    #[inline]
    fn find<'r, R: Read>(&self, read: &'r R, key: &[u8]) -> Result<Option<Entry<'r>>> {
        let hash = KeyHash::of(key);
        let leaf = Leaf::at(read, leaf_of(read, self.head, key)?)?;
        Ok(entry_of(read, leaf, hash, key)?.map(|(_, entry)| entry))
    }

    fn cursor<'r, R: Read>(&self, read: &'r R) -> BplusCursor<'r, R> {
        BplusCursor::new(read, self.head)
    }

    fn insert<W: Write>(&self, tx: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        let path = path(tx, self.head, Target::Key(key))?;
        let put = put(tx, self.head, &path, KeyHash::of(key), (key, value))?;
        if !put.was_there {
            add(tx, self.head, HEAD_PAIRS_AT, 1)?;
        }
        Ok(put.was_there)
    }

    fn remove<W: Write>(&self, tx: &mut W, key: &[u8]) -> Result<bool> {
        let Some(entry) = self.take(tx, key)? else { return Ok(false) };
        entry.free(tx)?;
        Ok(true)
    }

    fn take<W: Write>(&self, tx: &mut W, key: &[u8]) -> Result<Option<DetachedEntry>> {
        let path = path(tx, self.head, Target::Key(key))?;
        let mut old = [None];
        take(tx, self.head, &path, [(KeyHash::of(key), key)].into_iter(), &mut old)?;
        if old[0].is_some() {
            add(tx, self.head, HEAD_PAIRS_AT, -1)?;
        }
        Ok(old[0].map(DetachedEntry::at))
    }

    fn insert_entry<W: Write>(
        &self,
        tx: &mut W,
        entry: DetachedEntry,
    ) -> Result<Option<DetachedEntry>> {
        let key = entry.read(tx)?.key.to_vec();
        let path = path(tx, self.head, Target::Key(&key))?;
        let block = entry.into_block(tx)?;
        Ok(self.adopt_at(tx, &path, &key, block)?.map(DetachedEntry::at))
    }

    fn apply_sorted<W: Write>(
        &self,
        tx: &mut W,
        operations: &[Operation<'_>],
        present: &mut Vec<bool>,
    ) -> Result<()> {
        apply(tx, self.head, operations, present)
    }

    fn load_sorted<W: Write>(&self, tx: &mut W, pairs: &[Pair<'_>]) -> Result<u64> {
        check_ascending(pairs)?;
        load(tx, self.head, pairs)
    }

    fn compact_part<W: Write>(
        &self,
        tx: &mut W,
        from: &[u8],
        pairs_max: usize,
    ) -> Result<Option<Vec<u8>>> {
        compact_part(tx, self.head, from, pairs_max)
    }

    fn clear<W: Write>(&self, tx: &mut W) -> Result<()> {
        clear(tx, self.head)
    }

    fn destroy<W: Write>(self, tx: &mut W) -> Result<()> {
        free_nodes(tx, self.head)?;
        Ok(tx.free(self.head)?)
    }

    fn estimate<R: Read>(
        &self,
        read: &R,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<Estimate> {
        estimate(read, self.head, (lower, upper))
    }

    fn parts<'r, R: Read>(&self, read: &'r R, each: &mut dyn FnMut(Part<'r>)) -> Result<()> {
        parts(read, self.head, each)
    }

    fn check_part<R: Read>(
        &self,
        read: &R,
        checking: &mut Checking,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<bool> {
        check(read, self.head, checking, is_wanted)
    }
}
