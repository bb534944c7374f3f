//! The tree as an ordered map.

use adamant_heap::access::{Read, Write};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use super::batch::apply;
use super::check::check;
use super::clear::{clear, free_nodes};
use super::cursor::BplusCursor;
use super::find::{Target, entry_of, head, leaf_of, path};
use super::insert::insert;
use super::layout::{HEAD_BYTES, HEAD_MAGIC, HEAD_PAIRS_AT, Head, Leaf};
use super::remove::remove;
use super::write::{add, new_leaf};
use crate::error::Result;
use crate::slot::{Entry, KeyHash};
use crate::tree::{Operation, OrderedMap, Report};

/// A B+ tree: the heap offset of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bplus {
    head: u64,
}

impl Bplus {
    fn find<'r, R: Read>(self, read: &'r R, key: &[u8]) -> Result<Option<Entry<'r>>> {
        let hash = KeyHash::of(key);
        let leaf = Leaf::at(read, leaf_of(read, self.head, key)?)?;
        Ok(entry_of(read, leaf, hash, key)?.map(|(_, entry)| entry))
    }
}

impl OrderedMap for Bplus {
    type Cursor<'r, R: Read + 'r> = BplusCursor<'r, R>;

    fn create<W: Write>(tx: &mut W) -> Result<Self> {
        let root = new_leaf(tx, &[])?;
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

    fn get<'r, R: Read>(&self, read: &'r R, key: &[u8]) -> Result<Option<&'r [u8]>> {
        self.find(read, key)?.map(|entry| entry.value(read)).transpose()
    }

    fn contains<R: Read>(&self, read: &R, key: &[u8]) -> Result<bool> {
        Ok(self.find(read, key)?.is_some())
    }

    fn cursor<'r, R: Read>(&self, read: &'r R) -> BplusCursor<'r, R> {
        BplusCursor::new(read, self.head)
    }

    fn insert<W: Write>(&self, tx: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        let path = path(tx, self.head, Target::Key(key))?;
        let present = insert(tx, self.head, &path, KeyHash::of(key), key, value)?.present;
        if !present {
            add(tx, self.head, HEAD_PAIRS_AT, 1)?;
        }
        Ok(present)
    }

    fn remove<W: Write>(&self, tx: &mut W, key: &[u8]) -> Result<bool> {
        let path = path(tx, self.head, Target::Key(key))?;
        let present = remove(tx, self.head, &path, KeyHash::of(key), key)?.present;
        if present {
            add(tx, self.head, HEAD_PAIRS_AT, -1)?;
        }
        Ok(present)
    }

    fn apply_sorted<W: Write>(
        &self,
        tx: &mut W,
        operations: &[Operation<'_>],
        present: &mut Vec<bool>,
    ) -> Result<()> {
        apply(tx, self.head, operations, present)
    }

    fn clear<W: Write>(&self, tx: &mut W) -> Result<()> {
        clear(tx, self.head)
    }

    fn destroy<W: Write>(self, tx: &mut W) -> Result<()> {
        free_nodes(tx, self.head)?;
        Ok(tx.free(self.head)?)
    }

    fn check<R: Read>(&self, read: &R) -> Result<Report> {
        check(read, self.head)
    }
}
