//! Substring commands: lengths, appends and ranges.

use crate::state::call::{Call, Outcome, TOO_LONG, refuse};

pub(super) fn strlen(call: &mut Call<'_, '_>) -> Outcome {
    let found = call.get(1)?;
    call.replies.count(found.map_or(0, |(value, _)| value.len()));
    Ok(())
}

pub(super) fn append(call: &mut Call<'_, '_>) -> Outcome {
    let found = call.get(1)?;
    let (before, deadline) = found.as_ref().map_or((&[][..], None), |(value, end)| (value, *end));
    let end = call.argument(2);
    check_length(call, before.len().saturating_add(end.len()))?;
    let value = [before, end].concat();
    call.put(1, &value, deadline)?;
    call.replies.count(value.len());
    Ok(())
}

pub(super) fn getrange(call: &mut Call<'_, '_>) -> Outcome {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let found = call.get(1)?;
    let value = found.as_ref().map_or(&[][..], |(value, _)| value);
    call.replies.bulk(part(value, start, end));
    Ok(())
}

/// The part from `start` to `end`, both included; negative positions count from the end.
fn part(value: &[u8], start: i64, end: i64) -> &[u8] {
    let length = i64::try_from(value.len()).unwrap_or(i64::MAX);
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let place = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    let (start, end) = (place(start), place(end).min(length - 1));
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end => &value[start..=end],
        _ => &[],
    }
}

pub(super) fn setrange(call: &mut Call<'_, '_>) -> Outcome {
    let Ok(offset) = usize::try_from(call.integer(2)?) else {
        return refuse("ERR offset is out of range");
    };
    let part = call.argument(3);
    let found = call.get(1)?;
    let (before, deadline) = found.as_ref().map_or((&[][..], None), |(value, end)| (value, *end));
    if part.is_empty() {
        call.replies.count(before.len());
        return Ok(());
    }
    let end = offset.saturating_add(part.len());
    check_length(call, end)?;
    let mut value = before.to_vec();
    value.resize(value.len().max(end), 0);
    value[offset..end].copy_from_slice(part);
    call.put(1, &value, deadline)?;
    call.replies.count(value.len());
    Ok(())
}

fn check_length(call: &Call<'_, '_>, bytes: usize) -> Outcome {
    if bytes > call.surroundings.value_bytes_max { refuse(TOO_LONG) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_of_a_string() {
        let value = b"This is a string";
        assert_eq!(part(value, 0, 3), b"This");
        assert_eq!(part(value, -3, -1), b"ing");
        assert_eq!(part(value, 0, -1), value);
        assert_eq!(part(value, 10, 100), b"string");
        assert_eq!(part(value, -100, 100), value);
        for (start, end) in [(5, 3), (-1, -5), (16, 20), (0, -17), (i64::MAX, i64::MIN)] {
            let expected: &[u8] = if (start, end) == (0, -17) { b"T" } else { b"" };
            assert_eq!(part(value, start, end), expected, "{start} {end}");
        }
        assert_eq!(part(b"", 0, -1), b"");
    }
}
