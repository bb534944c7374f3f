//! Numbers of the feed of changes that going back to a savepoint has taken out of it.
//!
//! Purpose: going back undoes commits whose numbers others may have kept. It takes a number of its
//! own, above all that were ever given, of which there is no commit; see `docs/format/changes.md`.
//! Invariants: the feed goes from the last number that is left to behind that one. A position
//! between them is that of a reader who has seen what was undone.
//! Thread safety: pure functions, and calls within views and transactions.

use std::ops::{Bound, ControlFlow};

use adamant_heap::Transaction;
use adamant_heap::access::Read;
use zerocopy::{FromBytes, IntoBytes, big_endian, little_endian};

use crate::bounds::Direction;
use crate::common::history::{read_head, write_head};
use crate::engine::map::Map;
use crate::error::{Error, Result};

/// First byte of the keys, behind which the number of the going back follows.
const UNDONE: u8 = 3;
/// Commits of the feed that share one commit of the heap, at most: the heap takes 64 along.
const SHARED_MAX: u64 = 1 << 10;

/// Numbers of the feed of which there are no commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undone {
    /// The last number before them.
    pub(crate) left: u64,
    /// The last of them, which is that of the going back.
    pub(crate) last: u64,
}

fn key_of(number: u64) -> [u8; 9] {
    let mut key = [UNDONE; 9];
    key[1..].copy_from_slice(big_endian::U64::new(number).as_bytes());
    key
}

/// A number above all that the feed of a store can have given, by the number of its last commit.
pub(crate) fn first_change_behind(last_commit: u64) -> u64 {
    last_commit.saturating_add(1).saturating_mul(SHARED_MAX)
}

/// The first numbers without commits of which the last one is above a number.
pub(crate) fn undone_behind<R: Read>(heap: &R, map: &Map, number: u64) -> Result<Option<Undone>> {
    let (first, end) = (key_of(number), [UNDONE + 1]);
    let range = (Bound::Excluded(&first[..]), Bound::Excluded(&end[..]));
    let mut found = None;
    if let Some(tree) = map.tree() {
        tree.scan(heap, Direction::Up, range, 1, |key, value| {
            found = Some((key.to_vec(), value.to_vec()));
            ControlFlow::Break(())
        })?;
    }
    let Some((key, value)) = found else { return Ok(None) };
    let last = key.get(1..).and_then(|bytes| big_endian::U64::read_from_bytes(bytes).ok());
    let left = little_endian::U64::read_from_bytes(&value).ok();
    let found = last.zip(left).map(|(last, left)| Undone { left: left.get(), last: last.get() });
    found.map(Some).ok_or_else(|| Error::Damaged {
        what: format!(
            "expected two numbers of the history of changes, found {key:?} and {value:?}; have \
             changes recorded anew"
        ),
    })
}

/// Gives the next number above one, and above all of the feed, to the going back.
pub(crate) fn skip_to(transaction: &mut Transaction<'_>, map: &Map, given: u64) -> Result<()> {
    let mut head = read_head(transaction, map)?;
    let left = head.next - 1;
    let last = given.max(left) + 1;
    map.write(transaction, &key_of(last), Some(little_endian::U64::new(left).as_bytes()))?;
    head.next = last + 1;
    write_head(transaction, map, &head)
}
