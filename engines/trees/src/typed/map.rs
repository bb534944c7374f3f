//! Typed maps: ordered maps of plain data.
//!
//! Purpose: `Map<u64, Ptr<T>>`, `Map<u64, AnyPtr>` and the like, for direct users of the heap, on
//! any of the trees. A map is 8 bytes, plain data itself, so that it can be a field of an object or
//! a named root; its type names the types of its keys and values and its tree.
//! Invariants: keys are stored as bytes that have the order of the keys.
//! Thread safety: the handle is a number; the heap's `Read` or `Write` carries the locks.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use adamant_heap::access::{Read, Write};
use adamant_heap::{Layout, Persistent, Ptr};
use adamant_wire::key::{is_above, is_below};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bplus::Bplus;
use crate::error::{Error, Result};
use crate::tree::{Cursor, OrderedMap, Pair, Seek};
use crate::words::WORD_BYTES;

/// A type that can be the key of a [`Map`]: plain data with an order.
pub trait Key: Persistent {
    /// The type of its bytes in the map.
    type Bytes: AsRef<[u8]> + Copy;

    /// Encodes the key to at least one byte, in the order of the keys.
    fn to_key(&self) -> Self::Bytes;

    /// Decodes a key; `None` for invalid bytes, which only damage leaves.
    fn from_key(bytes: &[u8]) -> Option<Self>;
}

macro_rules! keys {
    ($($kind:ty, $flip:expr, $len:literal;)*) => {$(
        impl Key for $kind {
            type Bytes = [u8; $len];

            #[inline]
            fn to_key(&self) -> Self::Bytes {
                // The sign of a negative number would put it above the others.
                (*self ^ $flip).swap_bytes().to_le_bytes()
            }

            #[inline]
            fn from_key(bytes: &[u8]) -> Option<Self> {
                Some(<$kind>::from_le_bytes(bytes.try_into().ok()?).swap_bytes() ^ $flip)
            }
        }
    )*};
}

keys! {
    u8, 0, 1; u16, 0, 2; u32, 0, 4; u64, 0, 8;
    i8, i8::MIN, 1; i16, i16::MIN, 2; i32, i32::MIN, 4; i64, i64::MIN, 8;
}

macro_rules! little_endian_keys {
    ($($kind:ty, $native:ty;)*) => {$(
        impl Key for $kind {
            type Bytes = <$native as Key>::Bytes;

            fn to_key(&self) -> Self::Bytes {
                self.get().to_key()
            }

            fn from_key(bytes: &[u8]) -> Option<Self> {
                <$native>::from_key(bytes).map(Self::new)
            }
        }
    )*};
}

little_endian_keys! { U16, u16; U32, u32; U64, u64; }

impl<const N: usize> Key for [u8; N] {
    type Bytes = Self;

    fn to_key(&self) -> Self {
        *self
    }

    fn from_key(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

/// The types of a map, without values of them.
type Kinds<K, V, T> = fn() -> (K, V, T);

/// An ordered map of plain data: 8 bytes that name a tree. It does not own the targets of its
/// values: they are not destroyed with it. [`adamant_heap::Heap::leaks`] follows it where a value
/// is [`adamant_heap::Trace`].
///
/// ```
/// use std::sync::Arc;
///
/// use adamant_heap::{Durability, Heap, MemoryDirectory, Options, Ptr, TypedRead, TypedWrite};
/// use adamant_trees::{Critbit, Error, Map};
///
/// let (heap, _) = Heap::open(Arc::new(MemoryDirectory::new()), Options::default())?;
/// let map = heap.transaction(Durability::Sync, |tx| {
///     let map = Map::<u64, Ptr<f64>, Critbit>::create(tx)?;
///     for (key, value) in [(7, 0.5), (3, 0.25)] {
///         let value = tx.create(value)?;
///         map.insert(tx, &key, &value)?;
///     }
///     Ok::<_, Error>(map)
/// })?;
/// let view = heap.view()?;
/// let first = map.first(&view)?.expect("there are two");
/// assert_eq!((first.0, *view.get(first.1)?), (3, 0.25));
/// assert_eq!(map.entries(&view, 4..)?.count(), 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Map<K, V, T = Bplus> {
    head: U64,
    kind: PhantomData<Kinds<K, V, T>>,
}

impl<K, V, T> Clone for Map<K, V, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, T> Copy for Map<K, V, T> {}

impl<K, V, T> fmt::Debug for Map<K, V, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({:#x})", self.head.get())
    }
}

impl<K: Key, V: Persistent, T: OrderedMap> Persistent for Map<K, V, T> {
    const NAME: &'static str = "adamant.map";
    const VERSION: u32 = 1;
    const STORED: Layout = Layout::holding::<Self>(
        Self::NAME,
        1,
        // Rotated, so that swapping key and value types gives another number.
        name_word(T::NAME) ^ K::STORED.id().rotate_left(21) ^ V::STORED.id().rotate_left(42),
    );
}

/// The first 8 bytes of a tree's name.
const fn name_word(name: &str) -> u64 {
    let (mut word, mut at) = (0, 0);
    while at < name.len() && at < 8 {
        word = word << 8 | name.as_bytes()[at] as u64;
        at += 1;
    }
    word
}

impl<K: Key, V: Persistent, T: OrderedMap> Map<K, V, T> {
    /// Creates an empty map. If keys and values have 8 bytes each and the tree can hold such pairs
    /// in its nodes (`btree`, `redblack`), it does: see [`OrderedMap::create_of_words`].
    ///
    /// # Errors
    /// The heap's, out of space among them.
    pub fn create<W: Write>(tx: &mut W) -> Result<Self> {
        let is_of_words = size_of::<K::Bytes>() == WORD_BYTES && size_of::<V>() == WORD_BYTES;
        let tree = if is_of_words { T::create_of_words(tx)? } else { T::create(tx)? };
        Ok(Self { head: U64::new(tree.head()), kind: PhantomData })
    }

    /// Heap offset of the tree's head.
    pub(crate) fn head(&self) -> u64 {
        self.head.get()
    }

    /// Its tree of byte strings.
    ///
    /// # Errors
    /// `Error::NotThisTree`, or the heap's.
    #[inline]
    pub fn tree<R: Read>(&self, read: &R) -> Result<T> {
        T::open(read, self.head.get())
    }

    /// Number of pairs. O(1).
    ///
    /// # Errors
    /// The heap's.
    pub fn len<R: Read>(&self, read: &R) -> Result<u64> {
        self.tree(read)?.len(read)
    }

    /// Whether there is no pair. O(1).
    ///
    /// # Errors
    /// The heap's.
    pub fn is_empty<R: Read>(&self, read: &R) -> Result<bool> {
        Ok(self.len(read)? == 0)
    }

    /// The value of a key. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    #[inline]
    pub fn get<R: Read>(&self, read: &R, key: &K) -> Result<Option<V>> {
        match self.tree(read)?.get(read, key.to_key().as_ref())? {
            Some(bytes) => Ok(Some(self.value(bytes)?)),
            None => Ok(None),
        }
    }

    /// Whether a key is there. O(log n).
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn contains<R: Read>(&self, read: &R, key: &K) -> Result<bool> {
        self.tree(read)?.contains(read, key.to_key().as_ref())
    }

    /// Inserts a pair; returns whether it replaced one. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's, out of space among them.
    pub fn insert<W: Write>(&self, tx: &mut W, key: &K, value: &V) -> Result<bool> {
        self.tree(tx)?.insert(tx, key.to_key().as_ref(), value.as_bytes())
    }

    /// Removes a key and returns its value, if it was there. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    pub fn remove<W: Write>(&self, tx: &mut W, key: &K) -> Result<Option<V>> {
        let value = self.get(tx, key)?;
        if value.is_some() {
            self.tree(tx)?.remove(tx, key.to_key().as_ref())?;
        }
        Ok(value)
    }

    /// The pair with the lowest key. O(log n).
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn first<R: Read>(&self, read: &R) -> Result<Option<(K, V)>> {
        self.tree(read)?.first(read)?.map(|pair| self.pair(pair)).transpose()
    }

    /// The pair with the highest key. O(log n).
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn last<R: Read>(&self, read: &R) -> Result<Option<(K, V)>> {
        self.tree(read)?.last(read)?.map(|pair| self.pair(pair)).transpose()
    }

    /// The pairs of a range, from the lowest key up. O(log n), then O(1) each, amortised.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn entries<'r, R: Read>(
        &self,
        read: &'r R,
        range: impl RangeBounds<K>,
    ) -> Result<Entries<K, V, T, T::Cursor<'r, R>>> {
        self.walk(read, true, range.start_bound(), range.end_bound())
    }

    /// The pairs of a range, from the highest key down.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn entries_back<'r, R: Read>(
        &self,
        read: &'r R,
        range: impl RangeBounds<K>,
    ) -> Result<Entries<K, V, T, T::Cursor<'r, R>>> {
        self.walk(read, false, range.end_bound(), range.start_bound())
    }

    fn walk<'r, R: Read>(
        &self,
        read: &'r R,
        forward: bool,
        from: Bound<&K>,
        until: Bound<&K>,
    ) -> Result<Entries<K, V, T, T::Cursor<'r, R>>> {
        let from = from.map(Key::to_key);
        let from = from.as_ref().map(AsRef::as_ref);
        let mut cursor = self.tree(read)?.cursor(read);
        cursor.seek(if forward { Seek::lower(from) } else { Seek::upper(from) })?;
        Ok(Entries { map: *self, cursor, forward, until: until.map(Key::to_key), is_done: false })
    }

    /// Removes all pairs. O(n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    pub fn clear<W: Write>(&self, tx: &mut W) -> Result<()> {
        self.tree(tx)?.clear(tx)
    }

    /// Frees all of the map, but not the targets of its values. O(n).
    ///
    /// # Errors
    /// As [`Map::clear`].
    pub fn destroy<W: Write>(self, tx: &mut W) -> Result<()> {
        self.tree(tx)?.destroy(tx)
    }

    #[inline]
    fn value(&self, bytes: &[u8]) -> Result<V> {
        let what = "holds a value of another size than the map's";
        V::read_from_bytes(bytes).map_err(|_| Error::Damaged { block: self.head.get(), what })
    }

    fn pair(&self, (key, value): Pair<'_>) -> Result<(K, V)> {
        let what = "holds a key of another size than the map's";
        let damaged = Error::Damaged { block: self.head.get(), what };
        Ok((K::from_key(key).ok_or(damaged)?, self.value(value)?))
    }
}

impl<K: Key, V: Persistent, T: OrderedMap> Map<K, Ptr<V>, T> {
    /// The object that a key's value points to. O(log n).
    ///
    /// # Errors
    /// As [`Map::get`]; the heap's when the pointer leads to no such object.
    pub fn object<'r, R: Read>(&self, read: &'r R, key: &K) -> Result<Option<&'r V>> {
        match self.get(read, key)? {
            Some(object) => Ok(Some(read.read(object)?)),
            None => Ok(None),
        }
    }
}

/// An iterator over pairs of a map; it ends after an error.
pub struct Entries<K: Key, V, T, C> {
    map: Map<K, V, T>,
    cursor: C,
    forward: bool,
    until: Bound<K::Bytes>,
    is_done: bool,
}

impl<'r, K: Key, V: Persistent, T: OrderedMap, C: Cursor<'r>> Entries<K, V, T, C> {
    fn step(&mut self) -> Result<Option<(K, V)>> {
        let pair = if self.forward { self.cursor.next() } else { self.cursor.previous() };
        let Some(pair) = pair? else { return Ok(None) };
        let until = self.until.as_ref().map(AsRef::as_ref);
        let is_within =
            if self.forward { is_below(pair.0, until) } else { is_above(pair.0, until) };
        if is_within { self.map.pair(pair).map(Some) } else { Ok(None) }
    }
}

impl<'r, K: Key, V: Persistent, T: OrderedMap, C: Cursor<'r>> Iterator for Entries<K, V, T, C> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let step = self.step();
        self.is_done = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}
