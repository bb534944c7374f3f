//! Linearizability of what clients saw of one key.
//!
//! Purpose: tests of servers and replicas note what each client was told, and when, and ask
//! [`is_linearizable`] at last.
//!
//! J. M. Wing and C. Gong, "Testing and Verifying Concurrent Objects" (1993), with G. Lowe's memory
//! of what was tried (2017): an operation takes effect at one moment between its start and its end.
//! One of which the client does not know whether it was done has no end, and may never have taken
//! effect.

use std::collections::{BTreeSet, HashSet};

/// What was done to a key that holds a number, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sets it.
    Write(i64),
    /// What was there.
    Read(Option<i64>),
    /// Adds one; what it was told, if it was told anything.
    Add(Option<i64>),
}

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// A moment before it was asked for.
    pub start: u64,
    /// A moment after it was answered; `None`: it is not known whether it was done.
    pub end: Option<u64>,
    /// What was done, and seen.
    pub kind: Kind,
}

/// Where a search is: which operations have taken effect, and what they have made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    /// All that are known to be done before this one have.
    first: usize,
    /// And these behind it.
    beyond: Vec<usize>,
    /// And these of those that are not known to be done.
    unknown: u128,
    value: Option<i64>,
}

fn step(kind: Kind, value: Option<i64>) -> Option<Option<i64>> {
    match kind {
        Kind::Write(written) => Some(Some(written)),
        Kind::Read(read) => (read == value).then_some(value),
        Kind::Add(told) => {
            let sum = value.unwrap_or(0) + 1;
            told.is_none_or(|told| told == sum).then_some(Some(sum))
        }
    }
}

fn seen(kind: Kind) -> Option<i64> {
    match kind {
        Kind::Read(value) | Kind::Add(value) => value,
        Kind::Write(_) => None,
    }
}

/// Whether there is an order of these operations in which each of them did what its client saw.
///
/// # Panics
/// If more than 128 are of unknown outcome, and may matter.
pub fn is_linearizable(operations: &[Operation]) -> bool {
    let (mut known, unknown): (Vec<Operation>, Vec<Operation>) =
        operations.iter().partition(|operation| operation.end.is_some());
    // What nobody has seen may as well not have been done.
    let adds = operations.iter().filter(|it| matches!(it.kind, Kind::Add(_))).count() as i64;
    let seen: BTreeSet<i64> = known.iter().filter_map(|it| seen(it.kind)).collect();
    let counts = |it: &Operation| match it.kind {
        Kind::Read(_) => false,
        Kind::Add(_) => true,
        Kind::Write(value) => seen.range(value..=value + adds).next().is_some(),
    };
    let unknown: Vec<_> = unknown.into_iter().filter(counts).collect();
    assert!(unknown.len() <= 128, "too many of unknown outcome: {}", unknown.len());
    known.sort_by_key(|operation| operation.start);
    let mut places = vec![Place { first: 0, beyond: Vec::new(), unknown: 0, value: None }];
    let mut tried = HashSet::new();
    while let Some(place) = places.pop() {
        if place.first == known.len() {
            return true;
        }
        if tried.insert(place.clone()) {
            places.extend(next(&place, &known, &unknown));
        }
    }
    false
}

/// Where the search can go on.
fn next(place: &Place, known: &[Operation], unknown: &[Operation]) -> Vec<Place> {
    // An operation can be the next one if it began before any that is left has ended.
    let left = || (place.first..known.len()).filter(|at| !place.beyond.contains(at));
    let mut first_end = u64::MAX;
    for at in left() {
        if known[at].start > first_end {
            break;
        }
        first_end = first_end.min(known[at].end.unwrap_or(u64::MAX));
    }
    let mut found = Vec::new();
    for (bit, operation) in unknown.iter().enumerate() {
        let is_open = place.unknown >> bit & 1 == 0 && operation.start < first_end;
        if let Some(value) = step(operation.kind, place.value).filter(|_| is_open) {
            found.push(Place { unknown: place.unknown | 1 << bit, value, ..place.clone() });
        }
    }
    // Those that are surely done are tried first: they come off the end.
    for at in left().take_while(|&at| known[at].start < first_end) {
        let Some(value) = step(known[at].kind, place.value) else { continue };
        let mut place = Place { value, ..place.clone() };
        place.beyond.push(at);
        place.beyond.sort_unstable();
        while place.beyond.first() == Some(&place.first) {
            place.beyond.remove(0);
            place.first += 1;
        }
        found.push(place);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(start: u64, end: u64, kind: Kind) -> Operation {
        Operation { start, end: (end > 0).then_some(end), kind }
    }

    #[test]
    fn histories_that_can_be_and_that_cannot() {
        use Kind::{Add, Read, Write};
        let can = |operations: &[(u64, u64, Kind)]| {
            let all: Vec<_> =
                operations.iter().map(|&(start, end, kind)| operation(start, end, kind)).collect();
            is_linearizable(&all)
        };
        assert!(can(&[]));
        assert!(can(&[(1, 2, Read(None)), (3, 4, Write(1)), (5, 6, Read(Some(1)))]));
        assert!(
            !can(&[(1, 2, Write(1)), (3, 4, Read(None))]),
            "a write that is acknowledged is there"
        );
        assert!(can(&[(1, 9, Write(1)), (2, 3, Read(None)), (4, 5, Read(Some(1)))]));
        let back = [(1, 9, Write(1)), (2, 3, Read(Some(1))), (4, 5, Read(None))];
        assert!(!can(&back), "what was seen stays");
        // Two at once, seen in one order by all.
        let both = [(1, 9, Write(1)), (1, 9, Write(2)), (10, 11, Read(Some(1)))];
        assert!(can(&both));
        assert!(!can(&[&both[..], &[(12, 13, Read(Some(2)))]].concat()));
        // Of unknown outcome: it may take effect late, or never, but not before it began, nor
        // twice.
        assert!(can(&[(1, 2, Write(1)), (3, 0, Write(2)), (4, 5, Read(Some(1)))]));
        assert!(can(&[(3, 0, Write(2)), (4, 5, Read(None)), (6, 7, Read(Some(2)))]));
        assert!(!can(&[(5, 0, Write(2)), (2, 3, Read(Some(2)))]));
        let twice =
            [(1, 0, Write(2)), (2, 3, Read(Some(2))), (4, 5, Write(3)), (6, 7, Read(Some(2)))];
        assert!(!can(&twice));
        assert!(can(&[(1, 2, Add(Some(1))), (3, 0, Add(None)), (5, 6, Add(Some(3)))]));
        assert!(!can(&[(1, 2, Add(Some(1))), (3, 4, Add(Some(1)))]), "nothing is added twice");
        assert!(!can(&[(1, 2, Add(Some(1))), (3, 4, Add(Some(3)))]));
    }

    /// A long one of many clients, true and with one lie.
    #[test]
    fn a_lie_is_found_among_thousands() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut all = Vec::new();
        let mut value = None;
        for moment in 0..4000_u64 {
            let kind = match random.u8(..3) {
                0 => Kind::Write(i64::try_from(moment).unwrap() * 1_000_000),
                1 => Kind::Read(value),
                _ => Kind::Add(Some(value.unwrap_or(0) + 1)),
            };
            value = step(kind, value).unwrap();
            let at = 1000 + moment * 10;
            all.push(operation(at - random.u64(..40), at + 1 + random.u64(..40), kind));
            if random.u8(..100) == 0 {
                // Never done, and nobody knows.
                let value = (i64::try_from(moment).unwrap() + 10_000) * 1_000_000;
                all.push(operation(at, 0, Kind::Write(value)));
            }
        }
        assert!(is_linearizable(&all));
        let lie = operation(30_000, 30_001, Kind::Read(Some(-1)));
        all.push(lie);
        assert!(!is_linearizable(&all));
    }
}
