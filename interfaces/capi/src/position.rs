//! Where a cursor stands, and what lies on either side of it.

use std::ops::Bound;

use adamant::Slice;

use crate::range::{Bounds, KeyBound, earlier, later};

/// Which way a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// Where a cursor stands.
#[derive(Clone, Debug)]
pub(crate) enum Position {
    /// Nowhere yet: before the first entry and behind the last one at once.
    Nowhere,
    /// On the entry of this key, or where it was if it is there no more.
    At(Slice),
    /// Just before this key, whether it is there or not.
    Before(Slice),
    /// Behind the last entry.
    Top,
    /// Before the first entry.
    Bottom,
}

impl Position {
    /// What a step in a direction can come to; `None`: nothing any more.
    pub(crate) fn rest(&self, direction: Direction, bounds: &Bounds) -> Option<Bounds> {
        let Bounds { lower, upper } = bounds.clone();
        let bound: KeyBound = match (self, direction) {
            (Self::Top, Direction::Up) | (Self::Bottom, Direction::Down) => return None,
            (Self::Nowhere | Self::Top | Self::Bottom, _) => Bound::Unbounded,
            (Self::Before(key), Direction::Up) => Bound::Included(key.to_vec()),
            (Self::At(key) | Self::Before(key), _) => Bound::Excluded(key.to_vec()),
        };
        Some(match direction {
            Direction::Up => Bounds { lower: later(lower, bound), upper },
            Direction::Down => Bounds { lower, upper: earlier(upper, bound) },
        })
    }

    /// The one that a step came to which found nothing.
    pub(crate) fn end(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Top,
            Direction::Down => Self::Bottom,
        }
    }
}
