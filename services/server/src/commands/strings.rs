//! String commands: setting and getting whole values.

use adamant::Deadline;
use bytes::Bytes;

use crate::protocol::number::integer;
use crate::state::call::{Call, NO_INTEGER, Outcome, SYNTAX, is_word, refuse};

/// The time options of SET and GETEX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time<'a> {
    /// None.
    Unsaid,
    /// Keep the deadline.
    Keep,
    /// Remove the deadline.
    Persist,
    /// An amount: in seconds or milliseconds, relative or since 1970.
    Given { amount: &'a Bytes, is_seconds: bool, is_moment: bool },
}

/// Whether SET requires an absent or a present key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Any,
    Absent,
    Present,
}

struct SetOptions<'a> {
    time: Time<'a>,
    wanted: Wanted,
    gets: bool,
}

impl<'a> SetOptions<'a> {
    /// Parses the options of SET, or of GETEX.
    fn parse(mut words: &'a [Bytes], is_set: bool) -> Outcome<Self> {
        let mut options = Self { time: Time::Unsaid, wanted: Wanted::Any, gets: false };
        while let Some((word, rest)) = words.split_first() {
            words = rest;
            let given = [
                ("EX", true, false),
                ("PX", false, false),
                ("EXAT", true, true),
                ("PXAT", false, true),
            ];
            let is_free = options.time == Time::Unsaid;
            if is_set && is_word(word, "NX") && options.wanted != Wanted::Present {
                options.wanted = Wanted::Absent;
            } else if is_set && is_word(word, "XX") && options.wanted != Wanted::Absent {
                options.wanted = Wanted::Present;
            } else if is_set && is_word(word, "GET") {
                options.gets = true;
            } else if is_set && is_word(word, "KEEPTTL") && (is_free || options.time == Time::Keep)
            {
                options.time = Time::Keep;
            } else if !is_set
                && is_word(word, "PERSIST")
                && (is_free || options.time == Time::Persist)
            {
                options.time = Time::Persist;
            } else if let Some(&(_, is_seconds, is_moment)) =
                given.iter().find(|(name, ..)| is_word(word, name))
                && let Some((amount, rest)) = words.split_first()
                && is_free
            {
                words = rest;
                options.time = Time::Given { amount, is_seconds, is_moment };
            } else {
                return refuse(SYNTAX);
            }
        }
        Ok(options)
    }
}

/// The deadline for an amount of time, in a command of that name.
fn deadline(
    call: &Call<'_, '_>,
    amount: &[u8],
    is_seconds: bool,
    is_moment: bool,
) -> Outcome<Deadline> {
    let Some(amount) = integer(amount) else { return refuse(NO_INTEGER) };
    if amount <= 0 {
        return Err(call.no_time());
    }
    let millis = call.moment(amount, is_seconds, is_moment)?;
    Ok(Deadline::from_millis(millis.unsigned_abs()))
}

pub(super) fn get(call: &mut Call<'_, '_>) -> Outcome {
    let found = call.get(1)?;
    call.replies.bulk_or_null(found.map(|(value, _)| value));
    Ok(())
}

pub(super) fn set(call: &mut Call<'_, '_>) -> Outcome {
    let options = SetOptions::parse(&call.arguments[3..], true)?;
    let given = match options.time {
        Time::Given { amount, is_seconds, is_moment } => {
            Some(deadline(call, amount, is_seconds, is_moment)?)
        }
        _ => None,
    };
    let needs_found = options.gets || options.wanted != Wanted::Any || options.time == Time::Keep;
    let found = if needs_found { call.get(1)? } else { None };
    let is_wanted = match options.wanted {
        Wanted::Any => true,
        Wanted::Absent => found.is_none(),
        Wanted::Present => found.is_some(),
    };
    let kept = match options.time {
        Time::Keep => found.as_ref().and_then(|(_, deadline)| *deadline),
        _ => given,
    };
    if is_wanted {
        call.put_given(kept)?;
    }
    match (options.gets, is_wanted) {
        (true, _) => call.replies.bulk_or_null(found.map(|(value, _)| value)),
        (false, true) => call.replies.ok(),
        (false, false) => call.replies.null(),
    }
    Ok(())
}

pub(super) fn setnx(call: &mut Call<'_, '_>) -> Outcome {
    let is_free = call.get(1)?.is_none();
    if is_free {
        call.put(1, call.argument(2), None)?;
    }
    call.replies.flag(is_free);
    Ok(())
}

pub(super) fn setex(call: &mut Call<'_, '_>) -> Outcome {
    set_for(call, true)
}

pub(super) fn psetex(call: &mut Call<'_, '_>) -> Outcome {
    set_for(call, false)
}

fn set_for(call: &mut Call<'_, '_>, is_seconds: bool) -> Outcome {
    let deadline = deadline(call, call.argument(2), is_seconds, false)?;
    call.put(1, call.argument(3), Some(deadline))?;
    call.replies.ok();
    Ok(())
}

pub(super) fn getset(call: &mut Call<'_, '_>) -> Outcome {
    let found = call.get(1)?;
    call.put(1, call.argument(2), None)?;
    call.replies.bulk_or_null(found.map(|(value, _)| value));
    Ok(())
}

pub(super) fn getdel(call: &mut Call<'_, '_>) -> Outcome {
    let found = call.get(1)?;
    if found.is_some() {
        call.remove(1)?;
    }
    call.replies.bulk_or_null(found.map(|(value, _)| value));
    Ok(())
}

pub(super) fn getex(call: &mut Call<'_, '_>) -> Outcome {
    let options = SetOptions::parse(&call.arguments[2..], false)?;
    let Some((value, before)) = call.get(1)? else {
        call.replies.null();
        return Ok(());
    };
    match options.time {
        Time::Given { amount, is_seconds, is_moment } => {
            let end = deadline(call, amount, is_seconds, is_moment)?;
            if end.millis() <= call.now {
                call.remove(1)?;
            } else {
                call.put(1, &value, Some(end))?;
            }
        }
        Time::Persist if before.is_some() => call.put(1, &value, None)?,
        _ => {}
    }
    call.replies.bulk(value);
    Ok(())
}

pub(super) fn mget(call: &mut Call<'_, '_>) -> Outcome {
    let start = call.replies.len();
    call.replies.array(call.arguments.len() - 1);
    for at in 1..call.arguments.len() {
        get_one(call, at)?;
        call.check_reply(start)?;
    }
    Ok(())
}

fn get_one(call: &mut Call<'_, '_>, at: usize) -> Outcome {
    let found = call.get(at)?;
    call.replies.bulk_or_null(found.map(|(value, _)| value));
    Ok(())
}

pub(super) fn mset(call: &mut Call<'_, '_>) -> Outcome {
    check_pairs(call)?;
    set_all(call)?;
    call.replies.ok();
    Ok(())
}

pub(super) fn msetnx(call: &mut Call<'_, '_>) -> Outcome {
    check_pairs(call)?;
    let mut are_free = true;
    for at in (1..call.arguments.len()).step_by(2) {
        are_free &= !call.data.contains(call.database, call.argument(at))?;
    }
    if are_free {
        set_all(call)?;
    }
    call.replies.flag(are_free);
    Ok(())
}

/// Refuses pairs if the last key has no value.
fn check_pairs(call: &Call<'_, '_>) -> Outcome {
    if call.arguments.len().is_multiple_of(2) {
        return refuse(format!("ERR wrong number of arguments for '{}' command", call.name()));
    }
    Ok(())
}

fn set_all(call: &mut Call<'_, '_>) -> Outcome {
    for at in (1..call.arguments.len()).step_by(2) {
        call.put(at, call.argument(at + 1), None)?;
    }
    Ok(())
}
