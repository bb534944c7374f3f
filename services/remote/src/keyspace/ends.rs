//! A double-ended scan: a range that is walked from both ends, which meet.
//!
//! Purpose: SlateDB scans a range in one direction. This combines two of its scans, each begun when
//! it is first used, with the last key that each has handed out, beyond which the other does not
//! go.
//! Invariants: no entry is handed out twice, and none after an error.

use std::ops::{Bound, RangeBounds};

use slatedb::bytes::Bytes;
use slatedb::config::ScanOptions;
use slatedb::{DbIterator, DbReadOps, IterationOrder};

use crate::keyspace::bounds::{Range, may_hold_a_key};

/// Bytes that a scan fetches ahead.
const READ_AHEAD_BYTES: usize = 1 << 20;

type Result<T> = std::result::Result<T, slatedb::Error>;

/// A key and its value.
pub(crate) type Pair = (Bytes, Bytes);

/// The rest of a range.
pub(crate) struct Ends {
    lower: Bound<Bytes>,
    upper: Bound<Bytes>,
    up: Option<DbIterator>,
    down: Option<DbIterator>,
    is_over: bool,
}

impl Ends {
    /// A whole range; empty for `None`.
    pub(crate) fn new(range: Option<Range>) -> Self {
        let is_over = range.is_none();
        let (lower, upper) = range.unwrap_or((Bound::Unbounded, Bound::Unbounded));
        Self { lower, upper, up: None, down: None, is_over }
    }

    /// Whether the next step from an end begins its scan.
    pub(crate) fn begins(&self, is_up: bool) -> bool {
        if is_up { self.up.is_none() } else { self.down.is_none() }
    }

    /// Whether nothing can be left: SlateDB accepts no range in which no key can lie.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over || !may_hold_a_key(&self.lower, &self.upper)
    }

    /// Ends the scan.
    pub(crate) fn end(&mut self) {
        *self = Self::new(None);
    }

    /// The lowest entry that is left.
    pub(crate) async fn next(&mut self, reader: &(impl DbReadOps + Sync)) -> Result<Option<Pair>> {
        if self.is_over() {
            return Ok(None);
        }
        if self.up.is_none() {
            self.up = Some(self.scan(reader, IterationOrder::Ascending).await?);
        }
        let Some(up) = &mut self.up else { return Ok(None) };
        let found = up.next().await?.map(|found| (found.key, found.value));
        // The scan began before the other end moved down.
        let found = found.filter(|(key, _)| {
            RangeBounds::<Bytes>::contains(&(Bound::Unbounded, self.upper.as_ref()), key)
        });
        match &found {
            Some((key, _)) => self.lower = Bound::Excluded(key.clone()),
            None => self.end(),
        }
        Ok(found)
    }

    /// The highest entry that is left.
    pub(crate) async fn next_back(
        &mut self,
        reader: &(impl DbReadOps + Sync),
    ) -> Result<Option<Pair>> {
        if self.is_over() {
            return Ok(None);
        }
        if self.down.is_none() {
            self.down = Some(self.scan(reader, IterationOrder::Descending).await?);
        }
        let Some(down) = &mut self.down else { return Ok(None) };
        let found = down.next().await?.map(|found| (found.key, found.value));
        let found = found.filter(|(key, _)| {
            RangeBounds::<Bytes>::contains(&(self.lower.as_ref(), Bound::Unbounded), key)
        });
        match &found {
            Some((key, _)) => self.upper = Bound::Excluded(key.clone()),
            None => self.end(),
        }
        Ok(found)
    }

    async fn scan(
        &self,
        reader: &(impl DbReadOps + Sync),
        order: IterationOrder,
    ) -> Result<DbIterator> {
        let options = ScanOptions::default()
            .with_order(order)
            .with_read_ahead_bytes(READ_AHEAD_BYTES)
            .with_cache_blocks(true);
        let range = (self.lower.clone(), self.upper.clone());
        reader.scan_with_options(range, &options).await
    }
}
