//! Commands that Redis lacks: ranges of keys in order, and a check of everything.

use std::ops::{Bound, ControlFlow};

use crate::protocol::number::integer;
use crate::protocol::reply::Replies;
use crate::state::call::{Call, NO_INTEGER, Outcome, SYNTAX, is_word, refuse};
use crate::state::data::Bounds;

/// Maximum number of findings of a check in a reply.
const FINDINGS_MAX: usize = 100;

/// `-` and `+` are the ends, `[key` includes and `(key` excludes it, as in ZRANGEBYLEX; a bare key
/// is included where the range begins and excluded where it ends, as ranges of Rust are.
fn bounds<'a>(call: &Call<'a, '_>) -> Bounds<'a> {
    let bound = |text: &'a [u8], bare: fn(&'a [u8]) -> Bound<&'a [u8]>| match text {
        b"-" | b"+" => Bound::Unbounded,
        [b'[', key @ ..] => Bound::Included(key),
        [b'(', key @ ..] => Bound::Excluded(key),
        key => bare(key),
    };
    (bound(call.argument(1), Bound::Included), bound(call.argument(2), Bound::Excluded))
}

pub(super) fn range(call: &mut Call<'_, '_>) -> Outcome {
    let (mut is_down, mut limit) = (false, usize::MAX);
    let mut words = &call.arguments[3..];
    loop {
        words = match words {
            [] => break,
            [word, rest @ ..] if is_word(word, "REV") => {
                is_down = true;
                rest
            }
            [word, count, rest @ ..] if is_word(word, "LIMIT") => {
                match integer(count).map(usize::try_from) {
                    Some(Ok(count)) => limit = count,
                    _ => return refuse(NO_INTEGER),
                }
                rest
            }
            _ => return refuse(SYNTAX),
        };
    }
    let bytes_max = call.surroundings.reply_bytes_max;
    let (mut entries, mut count) = (Replies::new(call.replies.version), 0);
    if limit > 0 {
        call.data.visit(call.database, bounds(call), is_down, &mut |key, value| {
            entries.bulk(key);
            entries.bulk(value);
            count += 1;
            if count == limit || entries.len() > bytes_max {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
    }
    let start = call.replies.len();
    call.replies.array(count * 2);
    call.replies.raw(&entries.take());
    call.check_reply(start)
}

pub(super) fn count(call: &mut Call<'_, '_>) -> Outcome {
    let mut count = 0;
    call.data.visit(call.database, bounds(call), false, &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    call.replies.count(count);
    Ok(())
}

/// Verifies the whole store: `OK`, or all that is wrong.
pub(super) fn check(call: &mut Call<'_, '_>) -> Outcome {
    let report = call.data.store().check()?;
    if report.is_clean() {
        call.replies.ok();
        return Ok(());
    }
    let told = report.findings.len().min(FINDINGS_MAX);
    call.replies.array(told);
    for finding in &report.findings[..told] {
        call.replies.bulk(finding.to_string());
    }
    Ok(())
}
