//! Commands that look through all keys of a database.

use std::ops::{Bound, ControlFlow};

use adamant::{Slice, prefix_end};

use crate::protocol::number::integer;
use crate::protocol::pattern::Pattern;
use crate::state::call::{Call, NO_INTEGER, Outcome, SYNTAX, is_word, refuse};
use crate::state::data::Bounds;
use crate::state::fences::{APART, BETWEEN_MAX};

/// Keys that SCAN visits by default. As in Redis.
const SCANNED: usize = 10;
/// Maximum keys that one SCAN visits: writers never wait for a scan, but its own client does.
const SCANNED_MAX: usize = 100_000;

/// Keys of a database that RANDOMKEY walks over to choose one: some 100 microseconds.
const WALKED_MAX: u64 = 1024;
/// Ranges that it tries; about every second one gives a key.
const STRETCHES_MAX: usize = 64;

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

/// The keys with a prefix, or all after one of them.
fn bounds<'b>(prefix: &'b [u8], end: Option<&'b [u8]>, after: Option<&'b [u8]>) -> Bounds<'b> {
    let low = match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ if prefix.is_empty() => Bound::Unbounded,
        _ => Bound::Included(prefix),
    };
    (low, end.map_or(Bound::Unbounded, Bound::Excluded))
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

/// A random key of all, each with the same probability: a random range between fences, and a random
/// number below the maximum of keys in a range. That key of the range, or another try if it has
/// fewer.
pub(super) fn randomkey(call: &mut Call<'_, '_>) -> Outcome {
    let len = call.data.len(call.database)?;
    if len <= WALKED_MAX {
        return any_of_few(call);
    }
    for _ in 0..STRETCHES_MAX {
        let Some((low, high)) = call.surroundings.fences.any(call.database, len) else {
            let fences = fences_in(call, (Bound::Unbounded, Bound::Unbounded))?;
            call.surroundings.fences.set(call.database, fences, len);
            continue;
        };
        let bounds = (low.as_ref().map(|key| &key[..]), high.as_ref().map(|key| &key[..]));
        let (wanted, mut found, mut count) = (fastrand::usize(..BETWEEN_MAX), None, 0);
        call.data.visit(call.database, bounds, false, &mut |key, _| {
            if count == wanted {
                found = Some(Slice::from(key));
            }
            count += 1;
            if count > BETWEEN_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match found {
            _ if count > BETWEEN_MAX => {
                let more = fences_in(call, bounds)?;
                call.surroundings.fences.add(call.database, more);
            }
            Some(key) => {
                call.replies.bulk(key);
                return Ok(());
            }
            None => {}
        }
    }
    // Keys were removed, most of them between the same fences.
    any_of_few(call)
}

/// A random key of all, by one walk over all.
fn any_of_few(call: &mut Call<'_, '_>) -> Outcome {
    let (mut found, mut count) = (None, 0);
    let all = (Bound::Unbounded, Bound::Unbounded);
    call.data.visit(call.database, all, false, &mut |key, _| {
        if fastrand::usize(..=count) == 0 {
            found = Some(Slice::from(key));
        }
        count += 1;
        ControlFlow::Continue(())
    })?;
    call.replies.bulk_or_null(found);
    Ok(())
}

/// Fences within bounds: about every [`APART`]-th key.
fn fences_in(call: &mut Call<'_, '_>, bounds: Bounds<'_>) -> Outcome<Vec<Slice>> {
    let (mut fences, mut count) = (Vec::new(), 0);
    call.data.visit(call.database, bounds, false, &mut |key, _| {
        count += 1;
        if count > APART {
            fences.push(Slice::from(key));
            count = 1;
        }
        ControlFlow::Continue(())
    })?;
    Ok(fences)
}
