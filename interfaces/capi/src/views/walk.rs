//! The entries of a cursor: all of a keyspace, or those of an expiring one that have not expired.
//!
//! Invariants: expiry is decided at one moment for all of a map, that at which it was made.

use std::collections::VecDeque;

use adamant::expiring::Living;
use adamant::{Deadline, Entries, Entry, Expiring, Iter, Keyspace, Slice, Snapshot, Transaction};

use crate::border::failure::Result;
use crate::border::range::Bounds;
use crate::views::position::Direction;

/// A keyspace with either kind of entries.
#[derive(Debug)]
pub(crate) enum Map {
    Plain(Keyspace),
    Ending(Expiring),
}

/// An entry that was found.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its value is read lazily.
    Plain(Entry),
    /// Key, value and deadline; the deadline is stored before the value, so both were read.
    Ending(Slice, Slice, Option<Deadline>),
}

/// A walk over entries, in one direction.
#[derive(Debug)]
pub(crate) enum Walk {
    Plain(Box<Entries>),
    Ending(Box<Living<Iter>>),
}

impl Map {
    /// The entries that have not expired now.
    pub(crate) fn ending(expiring: &Expiring) -> Self {
        let now = expiring.now();
        Self::Ending(expiring.with_clock(move || now))
    }

    /// A walk over a part of it, in its current state or as a snapshot sees it.
    pub(crate) fn walk(&self, snapshot: Option<&Snapshot>, bounds: &Bounds) -> Walk {
        let bounds = bounds.pair();
        match self {
            Self::Plain(keyspace) => {
                let iter = match snapshot {
                    Some(snapshot) => snapshot.range(keyspace, bounds),
                    None => keyspace.range(bounds),
                };
                Walk::Plain(Box::new(iter.entries()))
            }
            Self::Ending(expiring) => Walk::Ending(Box::new(match snapshot {
                Some(snapshot) => expiring.at(snapshot).range(bounds),
                None => expiring.range(bounds),
            })),
        }
    }

    /// The first entries of a part of it in a direction, as a transaction sees it.
    pub(crate) fn first(
        &self,
        transaction: &mut Transaction,
        bounds: &Bounds,
        (direction, entries_max): (Direction, usize),
    ) -> Result<VecDeque<Found>> {
        let bounds = bounds.pair();
        match self {
            Self::Plain(keyspace) => {
                let mut iter = transaction.range(keyspace, bounds).entries();
                let entries = std::iter::from_fn(|| toward(&mut iter, direction));
                entries.map(|entry| Ok(Found::Plain(entry?))).take(entries_max).collect()
            }
            Self::Ending(expiring) => {
                let mut within = expiring.within(transaction);
                let mut iter = within.range(bounds);
                let entries = std::iter::from_fn(|| toward(&mut iter, direction));
                entries.map(Found::ending).take(entries_max).collect()
            }
        }
    }
}

impl Walk {
    /// The next entry in a direction.
    pub(crate) fn next(&mut self, direction: Direction) -> Result<Option<Found>> {
        match self {
            Self::Plain(entries) => {
                Ok(toward(entries.as_mut(), direction).transpose()?.map(Found::Plain))
            }
            Self::Ending(living) => {
                toward(living.as_mut(), direction).map(Found::ending).transpose()
            }
        }
    }
}

impl Found {
    fn ending(entry: adamant::Result<(Slice, Slice, Option<Deadline>)>) -> Result<Self> {
        let (key, value, deadline) = entry?;
        Ok(Self::Ending(key, value, deadline))
    }

    /// The key.
    pub(crate) fn key(&self) -> &Slice {
        match self {
            Self::Plain(entry) => entry.key(),
            Self::Ending(key, ..) => key,
        }
    }

    /// The value.
    pub(crate) fn value(&self) -> Result<Slice> {
        match self {
            Self::Plain(entry) => Ok(entry.value()?),
            Self::Ending(_, value, _) => Ok(value.clone()),
        }
    }

    /// Its deadline.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        match self {
            Self::Plain(_) => None,
            Self::Ending(.., deadline) => *deadline,
        }
    }
}

/// The next item from the end that a direction comes from.
fn toward<I: DoubleEndedIterator>(iter: &mut I, direction: Direction) -> Option<I::Item> {
    match direction {
        Direction::Up => iter.next(),
        Direction::Down => iter.next_back(),
    }
}
