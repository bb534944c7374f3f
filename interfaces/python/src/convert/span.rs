//! Key ranges from Python: a start, a stop that is excluded, a prefix.

use std::ops::{Bound, RangeBounds};

use adamant::prefix_end;

/// Keys between two bounds.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) lower: Bound<Vec<u8>>,
    pub(crate) upper: Bound<Vec<u8>>,
}

impl Span {
    /// The intersection of the keys from `start` on, those before `stop`, and those that begin with
    /// `prefix`, as far as given.
    pub(crate) fn new(start: Option<&[u8]>, stop: Option<&[u8]>, prefix: Option<&[u8]>) -> Self {
        let past = prefix.and_then(prefix_end);
        let lower = start.max(prefix);
        let upper = match (stop, past.as_deref()) {
            (Some(stop), Some(past)) => Some(stop.min(past)),
            (stop, past) => stop.or(past),
        };
        Self {
            lower: lower.map_or(Bound::Unbounded, |key| Bound::Included(key.to_vec())),
            upper: upper.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec())),
        }
    }

    /// Cuts it to the rest behind a key, seen from the end that a scan came from.
    pub(crate) fn behind(&mut self, key: &[u8], reverse: bool) {
        let bound = Bound::Excluded(key.to_vec());
        if reverse {
            self.upper = bound;
        } else {
            self.lower = bound;
        }
    }

    /// Whether a key is in it.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        RangeBounds::<[u8]>::contains(&self.bounds(), key)
    }

    /// Both bounds, for the store.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.lower.as_ref().map(Vec::as_slice), self.upper.as_ref().map(Vec::as_slice))
    }
}
