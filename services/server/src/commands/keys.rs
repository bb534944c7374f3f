//! Commands on keys with any value: removal, counting, moves.

use crate::protocol::number::integer;
use crate::state::call::{
    Call, NO_SUCH_KEY, Outcome, SAME_OBJECTS, SYNTAX, check_key, is_word, refuse,
};

pub(super) fn del(call: &mut Call<'_, '_>) -> Outcome {
    let mut removed = 0;
    for at in 1..call.arguments.len() {
        removed += usize::from(call.remove(at)?);
    }
    call.replies.count(removed);
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_, '_>) -> Outcome {
    let mut found = 0;
    for at in 1..call.arguments.len() {
        found += usize::from(call.data.contains(call.database, call.argument(at))?);
    }
    call.replies.count(found);
    Ok(())
}

pub(super) fn kind(call: &mut Call<'_, '_>) -> Outcome {
    let is_there = call.data.contains(call.database, call.argument(1))?;
    call.replies.simple(if is_there { "string" } else { "none" });
    Ok(())
}

pub(super) fn rename(call: &mut Call<'_, '_>) -> Outcome {
    let Some((value, deadline)) = call.get(1)? else { return refuse(NO_SUCH_KEY) };
    check_key(call.argument(2))?;
    if call.argument(1) != call.argument(2) {
        call.remove(1)?;
        call.put(2, &value, deadline)?;
    }
    call.replies.ok();
    Ok(())
}

pub(super) fn renamenx(call: &mut Call<'_, '_>) -> Outcome {
    let Some((value, deadline)) = call.get(1)? else { return refuse(NO_SUCH_KEY) };
    check_key(call.argument(2))?;
    // Also for the same key.
    let is_free = call.get(2)?.is_none();
    if is_free {
        call.remove(1)?;
        call.put(2, &value, deadline)?;
    }
    call.replies.flag(is_free);
    Ok(())
}

pub(super) fn copy(call: &mut Call<'_, '_>) -> Outcome {
    let (mut target, mut replaces) = (call.database, false);
    let mut at = 3;
    while at < call.arguments.len() {
        if is_word(call.argument(at), "REPLACE") {
            replaces = true;
            at += 1;
        } else if is_word(call.argument(at), "DB") && at + 1 < call.arguments.len() {
            target = call.database(at + 1)?;
            at += 2;
        } else {
            return refuse(SYNTAX);
        }
    }
    let (key, new_key) = (call.argument(1), call.argument(2));
    if target == call.database && key == new_key {
        return refuse(SAME_OBJECTS);
    }
    let found = call.get(1)?;
    let is_free = replaces || !call.data.contains(target, new_key)?;
    if let (Some((value, deadline)), true) = (&found, is_free) {
        call.data.put(target, new_key, value, *deadline)?;
    }
    call.replies.flag(found.is_some() && is_free);
    Ok(())
}

pub(super) fn move_to(call: &mut Call<'_, '_>) -> Outcome {
    let target = call.database(2)?;
    if target == call.database {
        return refuse(SAME_OBJECTS);
    }
    let key = call.argument(1);
    let found = call.get(1)?;
    let is_free = !call.data.contains(target, key)?;
    if let (Some((value, deadline)), true) = (&found, is_free) {
        call.data.put(target, key, value, *deadline)?;
        call.remove(1)?;
    }
    call.replies.flag(found.is_some() && is_free);
    Ok(())
}

pub(super) fn dbsize(call: &mut Call<'_, '_>) -> Outcome {
    let entries = call.data.len(call.database)?;
    call.replies.integer(i64::try_from(entries).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn flushdb(call: &mut Call<'_, '_>) -> Outcome {
    check_flush(call)?;
    call.data.remove_all(call.database)?;
    call.replies.ok();
    Ok(())
}

pub(super) fn flushall(call: &mut Call<'_, '_>) -> Outcome {
    check_flush(call)?;
    for database in 0..call.data.databases() {
        call.data.remove_all(database)?;
    }
    call.replies.ok();
    Ok(())
}

pub(super) fn swapdb(call: &mut Call<'_, '_>) -> Outcome {
    let (one, other) = check_swap(call)?;
    call.data.swap_all(one, other)?;
    call.replies.ok();
    Ok(())
}

/// The databases that are swapped.
pub(crate) fn check_swap(call: &Call<'_, '_>) -> Outcome<(usize, usize)> {
    for (at, words) in [(1, "ERR invalid first DB index"), (2, "ERR invalid second DB index")] {
        if integer(call.argument(at)).is_none() {
            return refuse(words);
        }
    }
    Ok((call.database(1)?, call.database(2)?))
}

/// The arguments of both: none, ASYNC or SYNC.
pub(crate) fn check_flush(call: &Call<'_, '_>) -> Outcome {
    match call.arguments {
        [_] => Ok(()),
        [_, how] if is_word(how, "ASYNC") || is_word(how, "SYNC") => Ok(()),
        _ => refuse(SYNTAX),
    }
}
