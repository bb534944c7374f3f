//! Estimates of a range: its entries and bytes, without visiting them.
//!
//! Purpose: what a planner asks before it chooses between two ways to answer a query. Invariants:
//! nothing is changed or counted. Thread safety: any thread. A tree is read under the shared lock,
//! in one hold; an LSM tree without it.

use crate::bounds::{KeyBounds, KeyRange};
use crate::engine::map::Map;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;

/// An estimate of a range: [`Keyspace::estimate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeEstimate {
    /// Entries.
    pub entries: u64,
    /// Bytes of their keys and values: as they are stored in a tree, where values may be
    /// compressed; in the engine `lsm` before compression, except for values in blob files.
    pub bytes: u64,
    /// Whether the number of entries was counted, and is no estimate.
    pub is_exact: bool,
}

impl Keyspace {
    /// An estimate of the entries in a range and of their bytes, as it is now, without visiting
    /// them: for a planner that chooses between two ways to answer a query, or to divide work.
    ///
    /// - `bplus` counts the leaves at both ends and samples those between: O(log^2 n), some 300
    ///   blocks. Ranges of some 50 entries are exact, others right within some tenths, mostly
    ///   within some hundredths.
    /// - `btree`, `critbit` and `redblack` count up to 1,000 entries and sample the whole tree for
    ///   more: O(log n), some milliseconds at most. More than 1,000 are right within a tenth of all
    ///   entries; but in `critbit`, whose shape is that of the keys, no more than a hint if most
    ///   keys share a start that few starts share.
    /// - `lsm` reads the indexes of the tables in which the range begins or ends, and no data
    ///   block: O(log n) for each of those. Right within a block or two of each table where entries
    ///   have about the same length, and within some tenths of the memtables. Versions that are not
    ///   merged yet count one by one, and what [`Keyspace::delete_range`] deleted counts until it
    ///   is merged away.
    ///
    /// The whole keyspace, `..`, has its exact number in all engines but `lsm`.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let people = store.keyspace("people by town")?;
    /// people.extend((0..10_000).map(|n| (format!("{}/{n:05}", ["Bern", "Chur"][n % 2]), "")))?;
    /// let found = people.estimate("Bern/".."Bern0")?;
    /// assert!((3_500..6_500).contains(&found.entries), "{found:?}");
    /// assert!(found.bytes >= 10 * found.entries);
    /// let few = people.estimate("Bern/00002"..="Bern/00010")?;
    /// assert_eq!((few.entries, few.is_exact), (5, true));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn estimate(&self, range: impl KeyBounds) -> Result<RangeEstimate> {
        let range = KeyRange::new(&range);
        let view = self.shared.long_view()?;
        let map = self.state.map(&view, self.shared.catalogue())?;
        let Some(range) = range else {
            return Ok(RangeEstimate { is_exact: true, ..RangeEstimate::default() });
        };
        match map.as_ref() {
            Map::Tree(tree) => {
                let found = tree.tree().estimate(&view, range.bounds())?;
                let (entries, bytes, is_exact) = (found.entries, found.bytes, found.is_exact);
                Ok(RangeEstimate { entries, bytes, is_exact })
            }
            Map::Lsm(lsm) => {
                drop(view);
                let found = lsm.tree.estimate(range.bounds()).map_err(lsm.wrong())?;
                let (entries, bytes) = (found.entries, found.bytes);
                Ok(RangeEstimate { entries, bytes, is_exact: false })
            }
        }
    }
}
