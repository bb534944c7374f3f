//! The handle of a tree of single pairs.
//!
//! Purpose: the common part of `btree`, `critbit` and `redblack` as ordered maps.
//! Thread safety: the handle is a number; the heap's `Read` or `Write` carries the locks.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;

use adamant_heap::access::{Read, Write};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use crate::bplus::Salvaged;
use crate::checking::Checking;
use crate::compact::rewrite_part;
use crate::cursor::PairCursor;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::kind::{Kind, head};
use crate::layout::{HEAD_BYTES, HEAD_HEIGHT_AT, HEAD_PAIRS_AT, HEAD_ROOT_AT, Head};
use crate::loose::DetachedEntry;
use crate::parts::Part;
use crate::sample::estimate;
use crate::slot::{Entry, free_entry};
use crate::tree::{Operation, OrderedMap};
use crate::visit::{free_all, parts, salvage};
use crate::words::{Form, Item, New, Old};

/// A tree of single pairs: the heap offset of its head.
pub struct Tree<K> {
    head: u64,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Tree<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Tree<K> {}

impl<K> PartialEq for Tree<K> {
    fn eq(&self, other: &Self) -> bool {
        self.head == other.head
    }
}

impl<K> Eq for Tree<K> {}

impl<K: Kind> fmt::Debug for Tree<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:#x})", K::LABEL.name, self.head)
    }
}

impl<K: Kind> Tree<K> {
    /// Bytes of a head block.
    pub const HEAD_BYTES: u64 = HEAD_BYTES as u64;

    /// Creates an empty tree of a form, whose head has this order.
    pub(crate) fn create_of<W: Write>(tx: &mut W, form: Form, order: u64) -> Result<Self> {
        let head = tx.reserve(HEAD_BYTES as u64)?;
        let contents = Head {
            magic: K::LABEL.magic_of(form),
            root: U64::ZERO,
            pairs: U64::ZERO,
            height: U64::ZERO,
            order: U64::new(order),
            spare: U64::ZERO,
        };
        tx.write(head, 0, HEAD_BYTES)?.copy_from_slice(contents.as_bytes());
        Ok(Self { head, kind: PhantomData })
    }

    /// Changes the count of pairs. A damaged count may wrap: it is then as wrong as before.
    fn add<W: Write>(&self, tx: &mut W, change: i64) -> Result<()> {
        let pairs = head(tx, self.head, K::LABEL)?.pairs.get();
        Ok(tx.update_u64(self.head, HEAD_PAIRS_AT, pairs.wrapping_add_signed(change))?)
    }

    /// Hands out, in no order, what can be read of a damaged tree whose head was at `head`, and
    /// reports what cannot. Continues after every fault. O(n).
    pub fn salvage<'r, R: Read>(read: &'r R, head: u64, each: &mut dyn FnMut(Salvaged<'r>)) {
        salvage::<K, R>(read, head, each);
    }
}

impl<K: Kind> OrderedMap for Tree<K> {
    const NAME: &'static str = K::LABEL.name;
    type Cursor<'r, R: Read + 'r> = PairCursor<'r, R, K::Trail>;

    fn create<W: Write>(tx: &mut W) -> Result<Self> {
        Self::create_of(tx, Form::Entries, K::ORDER)
    }

    fn create_of_words<W: Write>(tx: &mut W) -> Result<Self> {
        let form = if K::LABEL.has_words { Form::Words } else { Form::Entries };
        Self::create_of(tx, form, K::ORDER)
    }

    fn open<R: Read>(read: &R, head_offset: u64) -> Result<Self> {
        head(read, head_offset, K::LABEL)?;
        Ok(Self { head: head_offset, kind: PhantomData })
    }

    fn head(&self) -> u64 {
        self.head
    }

    fn len<R: Read>(&self, read: &R) -> Result<u64> {
        Ok(head(read, self.head, K::LABEL)?.pairs.get())
    }

    #[inline]
    fn find<'r, R: Read>(&self, read: &'r R, key: &[u8]) -> Result<Option<Entry<'r>>> {
        K::find(read, self.head, key)
    }

    fn cursor<'r, R: Read>(&self, read: &'r R) -> Self::Cursor<'r, R> {
        PairCursor::new(read, self.head)
    }

    fn insert<W: Write>(&self, tx: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        let present = insert::<K, W>(tx, self.head, key, value)?;
        if !present {
            self.add(tx, 1)?;
        }
        Ok(present)
    }

    fn remove<W: Write>(&self, tx: &mut W, key: &[u8]) -> Result<bool> {
        let present = remove::<K, W>(tx, self.head, key)?;
        if present {
            self.add(tx, -1)?;
        }
        Ok(present)
    }

    fn take<W: Write>(&self, tx: &mut W, key: &[u8]) -> Result<Option<DetachedEntry>> {
        let Some(item) = K::take(tx, self.head, key)? else { return Ok(None) };
        self.add(tx, -1)?;
        Ok(Some(item.loose(key)))
    }

    fn insert_entry<W: Write>(
        &self,
        tx: &mut W,
        entry: DetachedEntry,
    ) -> Result<Option<DetachedEntry>> {
        let key = entry.read(tx)?.key.to_vec();
        let item = match form::<K, W>(tx, self.head)? {
            Form::Entries => Item::Entry(entry.into_block(tx)?),
            Form::Words => {
                let item = Item::word(&key, entry.read(tx)?.value(tx)?)?;
                entry.free(tx)?;
                item
            }
        };
        match K::insert_entry(tx, self.head, &key, New::Item(item))? {
            Old::Replaced(old) => return Ok(Some(old.loose(&key))),
            Old::Overwritten => {}
            Old::None => self.add(tx, 1)?,
        }
        Ok(None)
    }

    fn apply_sorted<W: Write>(
        &self,
        tx: &mut W,
        operations: &[Operation<'_>],
        present: &mut Vec<bool>,
    ) -> Result<()> {
        let mut change = 0;
        for operation in operations {
            let was_there = match operation.value {
                Some(value) => insert::<K, W>(tx, self.head, operation.key, value)?,
                None => remove::<K, W>(tx, self.head, operation.key)?,
            };
            change += i64::from(operation.value.is_some()) - i64::from(was_there);
            present.push(was_there);
        }
        if change == 0 { Ok(()) } else { self.add(tx, change) }
    }

    fn compact_part<W: Write>(
        &self,
        tx: &mut W,
        from: &[u8],
        pairs_max: usize,
    ) -> Result<Option<Vec<u8>>> {
        rewrite_part(tx, self, from, pairs_max)
    }

    fn clear<W: Write>(&self, tx: &mut W) -> Result<()> {
        free_all::<K, W>(tx, self.head)?;
        for at in [HEAD_ROOT_AT, HEAD_PAIRS_AT, HEAD_HEIGHT_AT] {
            tx.update_u64(self.head, at, 0)?;
        }
        Ok(())
    }

    fn destroy<W: Write>(self, tx: &mut W) -> Result<()> {
        free_all::<K, W>(tx, self.head)?;
        Ok(tx.free(self.head)?)
    }

    fn estimate<R: Read>(
        &self,
        read: &R,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<Estimate> {
        estimate::<K, R>(read, self.head, (lower, upper))
    }

    fn parts<'r, R: Read>(&self, read: &'r R, each: &mut dyn FnMut(Part<'r>)) -> Result<()> {
        parts::<K, R>(read, self.head, each)
    }

    fn check_part<R: Read>(
        &self,
        read: &R,
        checking: &mut Checking,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<bool> {
        if read.block(self.head)?.len() < HEAD_BYTES {
            return crate::kind::damaged(self.head, "is too small for a head");
        }
        K::check(read, self.head, checking, is_wanted)
    }
}

/// Inserts a pair; returns whether it replaced one. The caller updates the count of pairs.
fn insert<K: Kind, W: Write>(tx: &mut W, tree: u64, key: &[u8], value: &[u8]) -> Result<bool> {
    let new = match form::<K, W>(tx, tree)? {
        Form::Entries => New::Value(value),
        Form::Words => New::Item(Item::word(key, value)?),
    };
    let old = K::insert_entry(tx, tree, key, new)?;
    if let Old::Replaced(item) = old {
        free(tx, Some(item))?;
    }
    Ok(old != Old::None)
}

/// The form of a tree.
fn form<K: Kind, R: Read>(read: &R, tree: u64) -> Result<Form> {
    Ok(Form::of(head(read, tree, K::LABEL)?))
}

/// Frees an item that a tree no longer holds.
fn free<W: Write>(tx: &mut W, item: Option<Item>) -> Result<()> {
    match item {
        Some(Item::Entry(block)) => free_entry(tx, block),
        Some(Item::Word(_)) | None => Ok(()),
    }
}

/// Removes a key; returns whether it was there. The caller updates the count of pairs.
fn remove<K: Kind, W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<bool> {
    let old = K::take(tx, tree, key)?;
    free(tx, old)?;
    Ok(old.is_some())
}
