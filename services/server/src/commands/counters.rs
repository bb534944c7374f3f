//! Counter commands.

use crate::protocol::number::{decimal, integer, sum};
use crate::state::call::{Call, Failure, NO_INTEGER, Outcome, refuse};

const OVERFLOW: &str = "ERR increment or decrement would overflow";
const NO_FLOAT: &str = "ERR value is not a valid float";

pub(super) fn incr(call: &mut Call<'_, '_>) -> Outcome {
    add(call, 1)
}

pub(super) fn decr(call: &mut Call<'_, '_>) -> Outcome {
    add(call, -1)
}

pub(super) fn incrby(call: &mut Call<'_, '_>) -> Outcome {
    let amount = call.integer(2)?;
    add(call, amount)
}

pub(super) fn decrby(call: &mut Call<'_, '_>) -> Outcome {
    match call.integer(2)?.checked_neg() {
        Some(amount) => add(call, amount),
        None => refuse("ERR decrement would overflow"),
    }
}

fn add(call: &mut Call<'_, '_>, amount: i64) -> Outcome {
    let found = call.get(1)?;
    let before = match &found {
        Some((value, _)) => integer(value).ok_or(Failure::Refused(NO_INTEGER.into()))?,
        None => 0,
    };
    let Some(number) = before.checked_add(amount) else { return refuse(OVERFLOW) };
    call.put(1, number.to_string().as_bytes(), found.and_then(|(_, deadline)| deadline))?;
    call.replies.integer(number);
    Ok(())
}

pub(super) fn incrbyfloat(call: &mut Call<'_, '_>) -> Outcome {
    let found = call.get(1)?;
    let before = found.as_ref().map_or(&b"0"[..], |(value, _)| value);
    let (Some(before), Some(amount)) = (decimal(before), decimal(call.argument(2))) else {
        return refuse(NO_FLOAT);
    };
    let Some(number) = sum(before, amount) else {
        return refuse("ERR increment would produce NaN or Infinity");
    };
    call.put(1, number.as_bytes(), found.and_then(|(_, deadline)| deadline))?;
    call.replies.bulk(number);
    Ok(())
}
