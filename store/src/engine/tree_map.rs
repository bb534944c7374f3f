//! A tree of a keyspace, and how its values are stored.
//!
//! Purpose: the border between plain values, which are all that the rest of the store sees, and
//! stored ones, which are all that a tree sees. Only salvage reads the trees of keyspaces below it.
//! Invariants: without a codec, stored values are plain ones, and nothing is done but a branch.
//! Values move between two trees as they are stored only if the target decodes them.
//! Thread safety: as of [`Tree`].

use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant_heap::View;
use adamant_heap::access::{Read, Write};
use adamant_lsm::{Error as LsmError, NamedOperator};
use adamant_slice::Slice;
use adamant_trees::slot::VALUE_INLINE_BYTES_MAX;
use adamant_trees::{Operation, Pair};

use crate::bounds::Direction;
use crate::engine::tree::Tree;
use crate::engine::value_codec::{Found, Prepared, PreparedRun, ValueCodec};
use crate::error::Result;

/// A tree, with the codec of its values if they are compressed.
#[derive(Clone, Debug)]
pub(crate) struct TreeMap {
    tree: Tree,
    codec: Option<Arc<ValueCodec>>,
    operator: Option<Arc<NamedOperator>>,
}

impl TreeMap {
    pub(crate) fn new(
        tree: Tree,
        codec: Option<Arc<ValueCodec>>,
        operator: Option<Arc<NamedOperator>>,
    ) -> Self {
        Self { tree, codec, operator }
    }

    /// The merge operator.
    ///
    /// # Errors
    /// `NoOperator` if the keyspace records none.
    pub(crate) fn operator(&self) -> adamant_lsm::Result<Arc<NamedOperator>> {
        self.operator.clone().ok_or(LsmError::NoOperator { operator: None })
    }

    /// The tree, for what does not look at values.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The codec of its values.
    #[inline]
    pub(crate) fn codec(&self) -> Option<&Arc<ValueCodec>> {
        self.codec.as_ref()
    }

    /// The value of a key, given as it is stored.
    #[inline]
    pub(crate) fn plain<'a>(&self, key: &[u8], stored: &'a [u8]) -> Result<Found<'a>> {
        match &self.codec {
            None => Ok(Found::Lent(stored)),
            Some(codec) => codec.decode(key, stored),
        }
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn find<'a, R: Read>(&self, heap: &'a R, key: &[u8]) -> Result<Option<Found<'a>>> {
        match self.tree.find(heap, key)? {
            Some(stored) => self.plain(key, stored).map(Some),
            None => Ok(None),
        }
    }

    /// The value of a key, and the offset of its block if it is the first of a block of its own.
    #[inline]
    pub(crate) fn find_with_block<'a, R: Read>(
        &self,
        heap: &'a R,
        key: &[u8],
    ) -> Result<Option<(Found<'a>, Option<u64>)>> {
        let Some((stored, block)) = self.tree.find_with_block(heap, key)? else { return Ok(None) };
        let found = self.plain(key, stored)?;
        let block = block.filter(|_| matches!(found, Found::Lent(_)));
        Ok(Some((found, block)))
    }

    /// The value of a key as a slice of its own: decoded, a copy, or its block borrowed if it has
    /// one.
    #[inline]
    pub(crate) fn get(&self, view: &View<'_>, key: &[u8]) -> Result<Option<Slice>> {
        Ok(match self.find_with_block(view, key)? {
            None => None,
            Some((value, Some(block))) => Some(view.lend(block, value.len())?),
            Some((value, None)) => Some(value.into_slice()),
        })
    }

    /// As [`Tree::scan`]; an error of a value ends it.
    pub(crate) fn scan<'a, R: Read>(
        &self,
        heap: &'a R,
        direction: Direction,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        entries_min: usize,
        mut each: impl FnMut(&'a [u8], Found<'a>) -> ControlFlow<()>,
    ) -> Result<Option<Bound<&'a [u8]>>> {
        let mut failed = Ok(());
        let each = |(key, stored): Pair<'a>| match self.plain(key, stored) {
            Ok(found) => each(key, found),
            Err(error) => {
                failed = Err(error);
                ControlFlow::Break(())
            }
        };
        let rest = self.tree.scan(heap, direction, bounds, entries_min, each)?;
        failed.map(|()| rest)
    }

    /// Whether this tree decodes what the other one stores, so that entries can move here as they
    /// are.
    pub(crate) fn takes_from(&self, other: &Self) -> bool {
        match (&self.codec, &other.codec) {
            (None, None) => true,
            (Some(own), Some(other)) => own.decodes_all_of(other),
            _ => false,
        }
    }

    /// What the tree is to store for a value. Encodes under the lock only what was not prepared for
    /// this codec: the keyspace was converted since, or the value comes from another keyspace.
    #[inline]
    fn stored<'p>(&self, value: &'p Prepared<'_>) -> Result<Cow<'p, [u8]>> {
        let Some(codec) = &self.codec else { return Ok(Cow::Borrowed(value.plain())) };
        if let Some(stored) = value.stored_for(codec) {
            return Ok(Cow::Borrowed(stored));
        }
        let mut stored = Vec::new();
        codec.encode(value.plain(), &mut stored)?;
        Ok(Cow::Owned(stored))
    }

    /// Sets the value of a key; true if the key had one.
    #[inline]
    pub(crate) fn insert<W: Write>(
        &self,
        heap: &mut W,
        key: &[u8],
        value: &Prepared<'_>,
    ) -> Result<bool> {
        let stored = self.stored(value)?;
        self.tree.insert(heap, key, &stored)
    }

    /// Whether a value allocated in place, of so many bytes, can become that of a key as it is.
    pub(crate) fn takes_blocks_of(&self, bytes: usize) -> bool {
        self.codec.is_none() && bytes > VALUE_INLINE_BYTES_MAX
    }

    /// Applies the changes of a batch, whose keys are strictly ascending. `ahead`: their values as
    /// they were prepared, and the index of the first among those. `present` is scratch space.
    pub(crate) fn apply<W: Write>(
        &self,
        heap: &mut W,
        operations: &[Operation<'_>],
        ahead: Option<(&PreparedRun, usize)>,
        present: &mut Vec<bool>,
    ) -> Result<()> {
        let Some(codec) = &self.codec else { return self.tree.apply(heap, operations, present) };
        let values = operations.iter().map(|operation| operation.value);
        let stored = Run::new(codec, values, ahead)?;
        let stored: Vec<Operation<'_>> = operations
            .iter()
            .zip(stored.values())
            .map(|(operation, stored)| Operation {
                key: operation.key,
                value: operation.value.map(|_| stored),
            })
            .collect();
        self.tree.apply(heap, &stored, present)
    }

    /// Inserts pairs with strictly ascending keys; returns how many replaced one. `ahead`: as for
    /// [`TreeMap::apply`].
    pub(crate) fn load_sorted<W: Write>(
        &self,
        heap: &mut W,
        pairs: &[Pair<'_>],
        ahead: Option<&PreparedRun>,
    ) -> Result<u64> {
        let Some(codec) = &self.codec else { return self.tree.load_sorted(heap, pairs) };
        let values = pairs.iter().map(|(_, value)| Some(*value));
        let stored = Run::new(codec, values, ahead.map(|ahead| (ahead, 0)))?;
        let stored: Vec<Pair<'_>> =
            pairs.iter().zip(stored.values()).map(|((key, _), stored)| (*key, stored)).collect();
        self.tree.load_sorted(heap, &stored)
    }
}

/// The stored values of a run of writes: those that were prepared, or made now, as
/// [`TreeMap::stored`] does.
struct Run<'r> {
    codec: &'r Arc<ValueCodec>,
    ahead: Option<(&'r PreparedRun, usize)>,
    made: Option<PreparedRun>,
    len: usize,
}

impl<'r> Run<'r> {
    fn new<'v>(
        codec: &'r Arc<ValueCodec>,
        values: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
        ahead: Option<(&'r PreparedRun, usize)>,
    ) -> Result<Self> {
        let len = values.len();
        let ahead = ahead
            .filter(|(run, first)| len == 0 || run.stored_for(codec, first + len - 1).is_some());
        let made = match ahead {
            Some(_) => None,
            None => PreparedRun::new(Some(Arc::clone(codec)), values)?,
        };
        Ok(Self { codec, ahead, made, len })
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let (run, first) = match (&self.ahead, &self.made) {
            (Some((run, first)), _) => (Some(*run), *first),
            (None, made) => (made.as_ref(), 0),
        };
        let stored = move |index| run.and_then(|run| run.stored_for(self.codec, first + index));
        (0..self.len).map(move |index| stored(index).unwrap_or_default())
    }
}
