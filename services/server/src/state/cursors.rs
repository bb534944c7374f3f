//! SCAN cursors: numbers for the keys at which scans continue.
//!
//! Purpose: clients expect a cursor to be a number of 64 bits, but a position in an ordered map is
//! a key. So the last cursors are kept, bounded in count and bytes. One that was forgotten, or that
//! another run of the server gave, is an error, never a scan that skips keys.
//! Thread safety: one lock, held for a lookup.

use std::collections::VecDeque;

use adamant::Slice;
use parking_lot::Mutex;

/// Maximum number of kept cursors.
const CURSORS_MAX: usize = 16_384;
/// Maximum bytes of their keys.
const BYTES_MAX: usize = 16 << 20;
/// Some clients cannot handle the sign bit.
const NUMBERS_MAX: u64 = 1 << 62;

/// The cursors that were given last.
#[derive(Debug)]
pub(crate) struct Cursors(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    /// The number of the first one.
    first: u64,
    keys: VecDeque<Slice>,
    bytes: usize,
}

impl Cursors {
    /// The first number comes from the time, in milliseconds since 1970: each run of a server has
    /// room for a million cursors a millisecond before its numbers are those of a later one.
    pub(crate) fn new(now: u64) -> Self {
        let first = (now << 20) % NUMBERS_MAX + 1;
        Self(Mutex::new(Kept { first, keys: VecDeque::new(), bytes: 0 }))
    }

    /// The cursor that continues after a key.
    pub(crate) fn give(&self, key: &[u8]) -> u64 {
        let mut kept = self.0.lock();
        kept.bytes += key.len();
        kept.keys.push_back(Slice::from(key));
        while kept.keys.len() > CURSORS_MAX || kept.bytes > BYTES_MAX {
            let Some(key) = kept.keys.pop_front() else { break };
            kept.bytes -= key.len();
            kept.first += 1;
        }
        kept.first + kept.keys.len() as u64 - 1
    }

    /// The key of a cursor, if it is kept.
    pub(crate) fn key(&self, number: u64) -> Option<Slice> {
        let kept = self.0.lock();
        let at = usize::try_from(number.checked_sub(kept.first)?).ok()?;
        kept.keys.get(at).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let cursors = Cursors::new(1_700_000_000_000);
        let numbers: Vec<u64> = (0..CURSORS_MAX + 10)
            .map(|number| cursors.give(number.to_string().as_bytes()))
            .collect();
        for (number, &cursor) in numbers.iter().enumerate() {
            assert!(cursor > 0 && cursor < NUMBERS_MAX * 2);
            let kept = cursors.key(cursor);
            assert_eq!(kept.is_some(), number >= 10, "{number}");
            assert!(kept.is_none_or(|key| *key == *number.to_string().as_bytes()));
        }
        assert_eq!(cursors.key(0), None);
        assert_eq!(cursors.key(u64::MAX), None);
        for _ in 0..1000 {
            cursors.give(&[7; 60_000]);
        }
        assert!(cursors.0.lock().bytes <= BYTES_MAX);
    }
}
