//! Looking through all keys of a database.

use std::ops::{Bound, ControlFlow};

use adamant::Slice;

use crate::call::{Call, NO_INTEGER, Outcome, SYNTAX, is_word, refuse};
use crate::data::Bounds;
use crate::number::integer;
use crate::pattern::Pattern;

/// Keys that SCAN looks at unless it is told another number. As in Redis.
const SCANNED: usize = 10;
/// Keys that one SCAN looks at, whatever it is told: others that write wait for none of it, but its
/// own client does.
const SCANNED_MAX: usize = 100_000;

struct ScanOptions<'a> {
    pattern: Option<Pattern<'a>>,
    count: usize,
    wants_strings: bool,
}

impl<'a> ScanOptions<'a> {
    fn parse(call: &Call<'a, '_>) -> Outcome<Self> {
        let mut options = Self { pattern: None, count: SCANNED, wants_strings: true };
        let mut words = &call.arguments[2..];
        while let [word, value, rest @ ..] = words {
            words = rest;
            if is_word(word, "MATCH") {
                options.pattern = Some(Pattern::new(value));
            } else if is_word(word, "COUNT") {
                let Some(count) = integer(value) else { return refuse(NO_INTEGER) };
                match usize::try_from(count) {
                    Ok(0) | Err(_) => return refuse(SYNTAX),
                    Ok(count) => options.count = count.min(SCANNED_MAX),
                }
            } else if is_word(word, "TYPE") {
                options.wants_strings = is_word(value, "string");
            } else {
                return refuse(SYNTAX);
            }
        }
        if words.is_empty() { Ok(options) } else { refuse(SYNTAX) }
    }
}

/// The keys that begin with a prefix, or all behind one of them.
fn bounds<'b>(prefix: &'b [u8], end: Option<&'b [u8]>, after: Option<&'b [u8]>) -> Bounds<'b> {
    let low = match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ if prefix.is_empty() => Bound::Unbounded,
        _ => Bound::Included(prefix),
    };
    (low, end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// The lowest bytes above all that begin with a prefix; `None` if there are none.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

pub(super) fn scan(call: &mut Call<'_, '_>) -> Outcome {
    let cursor = std::str::from_utf8(call.argument(1)).ok().and_then(|text| text.parse().ok());
    let Some(cursor) = cursor else { return refuse("ERR invalid cursor") };
    let options = ScanOptions::parse(call)?;
    let after = match cursor {
        0 => None,
        _ => match call.surroundings.cursors.key(cursor) {
            Some(key) => Some(key),
            None => {
                return refuse(
                    "ERR invalid cursor: it is not one of those that were given last; begin again with 0",
                );
            }
        },
    };
    let pattern = options.pattern.unwrap_or(Pattern::new(b"*"));
    let end = prefix_end(pattern.prefix());
    let bounds = bounds(pattern.prefix(), end.as_deref(), after.as_deref());
    let (mut keys, mut looked, mut last) = (Vec::new(), 0, None);
    call.data.visit(call.database, bounds, false, &mut |key, _| {
        if options.wants_strings && pattern.matches(key) {
            keys.push(Slice::from(key));
        }
        looked += 1;
        if looked == options.count {
            last = Some(call.surroundings.cursors.give(key));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    call.replies.array(2);
    call.replies.bulk(last.unwrap_or(0).to_string());
    call.replies.array(keys.len());
    keys.iter().for_each(|key| call.replies.bulk(key));
    Ok(())
}

pub(super) fn keys(call: &mut Call<'_, '_>) -> Outcome {
    let pattern = Pattern::new(call.argument(1));
    let end = prefix_end(pattern.prefix());
    let bytes_max = call.surroundings.reply_bytes_max;
    let (mut keys, mut bytes) = (Vec::new(), 0);
    let bounds = bounds(pattern.prefix(), end.as_deref(), None);
    call.data.visit(call.database, bounds, false, &mut |key, _| {
        if pattern.matches(key) {
            bytes += key.len();
            keys.push(Slice::from(key));
        }
        if bytes > bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let start = call.replies.len();
    call.replies.array(keys.len());
    for key in &keys {
        call.replies.bulk(key);
        call.check_reply(start)?;
    }
    Ok(())
}

/// A key near a place that is chosen at random between the first and the last one: all can be chosen,
/// those behind large gaps more often.
pub(super) fn randomkey(call: &mut Call<'_, '_>) -> Outcome {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let Some(first) = nearest(call, all, false)? else {
        call.replies.null();
        return Ok(());
    };
    let last = nearest(call, all, true)?.unwrap_or_else(|| first.clone());
    let place = between(&first, &last);
    let found = nearest(call, (Bound::Included(&place), Bound::Unbounded), false)?;
    call.replies.bulk(found.unwrap_or(last));
    Ok(())
}

/// The first key within bounds, up or down.
fn nearest(call: &mut Call<'_, '_>, bounds: Bounds<'_>, is_down: bool) -> Outcome<Option<Slice>> {
    let mut found = None;
    call.data.visit(call.database, bounds, is_down, &mut |key, _| {
        found = Some(Slice::from(key));
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Bytes at random that are in order between two others.
fn between(first: &[u8], last: &[u8]) -> Vec<u8> {
    let common = first.iter().zip(last).take_while(|(one, other)| one == other).count();
    // What both have, and then a number of 8 bytes between theirs.
    let number = |key: &[u8]| {
        let bytes = key[common..].iter().copied().chain(std::iter::repeat(0));
        bytes.take(8).fold(0, |number, byte| number << 8 | u64::from(byte))
    };
    let (low, high) = (number(first), number(last));
    let place = fastrand::u64(low.min(high)..=high.max(low));
    let digits = (0..8).rev().map(|digit| (place >> (8 * digit)) as u8);
    first[..common].iter().copied().chain(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_prefixes() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\xff\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }

    #[test]
    fn a_place_between_two_keys() {
        for (first, last) in [("a", "a"), ("user:1", "user:9"), ("", "z"), ("ab", "b")] {
            for _ in 0..100 {
                let place = between(first.as_bytes(), last.as_bytes());
                let above = [last.as_bytes(), &[0; 9]].concat();
                assert!(place.as_slice() >= first.as_bytes() && place <= above, "{first} {last}");
            }
        }
    }
}
