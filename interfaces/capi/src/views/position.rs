//! The position of a cursor, and the range on either side of it.

use std::ops::Bound;

use adamant::Slice;

use crate::border::range::{Bounds, KeyBound, earlier, later};

/// The direction of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// The position of a cursor.
#[derive(Clone, Debug)]
pub(crate) enum Position {
    /// No position yet: before the first entry and behind the last one at once.
    Nowhere,
    /// On the entry of this key, or where it was if it is gone.
    At(Slice),
    /// Just before this key, whether it exists or not.
    Before(Slice),
    /// Behind the last entry.
    Top,
    /// Before the first entry.
    Bottom,
}

impl Position {
    /// The range that a step in a direction can reach; `None`: nothing is left.
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

    /// The position after a step that found nothing.
    pub(crate) fn end(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Top,
            Direction::Down => Self::Bottom,
        }
    }
}
