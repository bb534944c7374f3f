//! Bulk operations of typed maps: loads, and moves of ranges.
//!
//! Purpose: the trees' operations on sorted pairs and ranges, with keys and values of the map's
//! types.

use std::ops::RangeBounds;

use adamant_heap::Persistent;
use adamant_heap::access::Write;

use crate::error::{Error, Result};
use crate::moves::Moves;
use crate::tree::{OrderedMap, Pair};
use crate::typed::map::{Key, Map};

/// Pairs that [`Map::extend`] sorts at a time.
const EXTEND_PAIRS: usize = 1 << 16;

/// A piece of a range of a [`Map`] that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapPiece<K> {
    /// Pairs moved.
    pub moved: u64,
    /// How many of them replaced one.
    pub replaced: u64,
    /// The key after which the next piece begins; `None` when nothing was left of the range.
    pub last: Option<K>,
}

impl<K: Key, V: Persistent, T: OrderedMap> Map<K, V, T> {
    /// Inserts pairs whose keys ascend; returns how many of them replaced one. Those after all
    /// existing ones go straight into full nodes, if the tree supports that (`bplus`). O(n log n)
    /// at most; memory for a key and 32 bytes a pair.
    ///
    /// # Errors
    /// `Error::NotAscending` (nothing was changed); as [`Map::insert`].
    pub fn load_sorted<W: Write>(&self, tx: &mut W, pairs: &[(K, V)]) -> Result<u64> {
        let keys: Vec<K::Bytes> = pairs.iter().map(|(key, _)| key.to_key()).collect();
        let pairs = keys.iter().zip(pairs);
        let lent: Vec<Pair<'_>> =
            pairs.map(|(key, (_, value))| (key.as_ref(), value.as_bytes())).collect();
        self.tree(tx)?.load_sorted(tx, &lent)
    }

    /// Inserts pairs in any order, of those with the same key the last; returns how many replaced
    /// one. They are sorted some 65,000 at a time, so that memory is bounded. O(n log n).
    ///
    /// # Errors
    /// As [`Map::insert`].
    pub fn extend<W: Write>(
        &self,
        tx: &mut W,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        let mut pairs = pairs.into_iter();
        let (mut replaced, mut piece) = (0, Vec::new());
        loop {
            piece.extend(
                pairs.by_ref().take(EXTEND_PAIRS).map(|(key, value)| (key.to_key(), value)),
            );
            let count = piece.len();
            if count == 0 {
                return Ok(replaced);
            }
            // Later ones first among equal keys, of which the first is kept.
            piece.reverse();
            piece.sort_by(|left, right| left.0.as_ref().cmp(right.0.as_ref()));
            piece.dedup_by(|next, kept| next.0.as_ref() == kept.0.as_ref());
            let lent: Vec<Pair<'_>> =
                piece.iter().map(|(key, value)| (key.as_ref(), value.as_bytes())).collect();
            replaced += self.tree(tx)?.load_sorted(tx, &lent)? + (count - lent.len()) as u64;
            piece.clear();
        }
    }

    /// Moves the pairs of a range, from the lowest key up, to a map on the same heap, until
    /// `pairs_max` were moved; they replace existing pairs. The next piece begins after the last
    /// key of this one. O(log n) a pair, whatever the size of values.
    ///
    /// # Errors
    /// As [`Map::rename`].
    pub fn move_range<W: Write, U: OrderedMap>(
        &self,
        tx: &mut W,
        range: impl RangeBounds<K>,
        target: &Map<K, V, U>,
        pairs_max: usize,
    ) -> Result<MapPiece<K>> {
        let bounds = (range.start_bound().map(Key::to_key), range.end_bound().map(Key::to_key));
        let bounds = (bounds.0.as_ref().map(AsRef::as_ref), bounds.1.as_ref().map(AsRef::as_ref));
        let (source, target) = (self.tree(tx)?, target.tree(tx)?);
        let piece = source.move_range(tx, bounds, &target, pairs_max)?;
        let last = match piece.last.map(|key| K::from_key(&key)) {
            Some(None) => {
                let what = "holds a key of another size than the map's";
                return Err(Error::Damaged { block: self.head(), what });
            }
            Some(last) => last,
            None => None,
        };
        Ok(MapPiece { moved: piece.moved, replaced: piece.replaced, last })
    }
}
