//! The state of pops at one end of a keyspace, in a transaction.
//!
//! Invariants: as far as the walk has come, no entry is left, and no key behind that, up to a
//! limit, has a write of the transaction.

use adamant_slice::Slice;

use crate::keyspace::iterate::Iter;

/// Pops at one end of a keyspace.
pub(crate) struct Popping {
    /// 0 the low end, 1 the high one.
    pub(crate) end: usize,
    pub(crate) last: Slice,
    /// The snapshot's entries behind that, from the second pop on.
    pub(crate) inner: Option<Iter>,
    /// The next key behind it with a write of the transaction.
    pub(crate) limit: Option<Slice>,
}

impl Popping {
    /// Whether one key comes before another, seen from the end.
    pub(crate) fn is_before(&self, one: &[u8], other: &[u8]) -> bool {
        if self.end == 0 { one < other } else { one > other }
    }

    /// Notes that a key is about to be written; false if the walk was there already.
    pub(crate) fn note_write(&mut self, key: &[u8]) -> bool {
        let is_behind = self.is_before(&self.last, key);
        if is_behind && self.limit.as_ref().is_none_or(|limit| self.is_before(key, limit)) {
            self.limit = Some(key.into());
        }
        is_behind
    }
}
