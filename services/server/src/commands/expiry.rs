//! Expiry commands.

use adamant::Deadline;

use crate::state::call::{Call, Outcome, refuse};

/// Only if the key has no deadline, only if it has one, only if the new one is later, or earlier.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Conditions {
    fn parse(call: &Call<'_, '_>) -> Outcome<Self> {
        let mut found = Self::default();
        for word in &call.arguments[3..] {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => found.nx = true,
                b"XX" => found.xx = true,
                b"GT" => found.gt = true,
                b"LT" => found.lt = true,
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return refuse(format!("ERR Unsupported option {word}"));
                }
            }
        }
        if found.nx && (found.xx || found.gt || found.lt) {
            return refuse("ERR NX and XX, GT or LT options at the same time are not compatible");
        }
        if found.gt && found.lt {
            return refuse("ERR GT and LT options at the same time are not compatible");
        }
        Ok(found)
    }

    /// Whether they allow a new deadline, in milliseconds since 1970.
    fn allow(self, before: Option<Deadline>, millis: i64) -> bool {
        let before = before.map(|end| i64::try_from(end.millis()).unwrap_or(i64::MAX));
        !(self.nx && before.is_some()
            || self.xx && before.is_none()
            || self.gt && before.is_none_or(|before| millis <= before)
            || self.lt && before.is_some_and(|before| millis >= before))
    }
}

pub(super) fn expire(call: &mut Call<'_, '_>) -> Outcome {
    set(call, true, false)
}

pub(super) fn pexpire(call: &mut Call<'_, '_>) -> Outcome {
    set(call, false, false)
}

pub(super) fn expireat(call: &mut Call<'_, '_>) -> Outcome {
    set(call, true, true)
}

pub(super) fn pexpireat(call: &mut Call<'_, '_>) -> Outcome {
    set(call, false, true)
}

fn set(call: &mut Call<'_, '_>, is_seconds: bool, is_moment: bool) -> Outcome {
    let conditions = Conditions::parse(call)?;
    let millis = call.moment(call.integer(2)?, is_seconds, is_moment)?;
    let found = call.get(1)?;
    let Some((value, _)) = found.filter(|(_, before)| conditions.allow(*before, millis)) else {
        call.replies.flag(false);
        return Ok(());
    };
    match u64::try_from(millis) {
        Ok(millis) if millis > call.now => {
            call.put(1, &value, Some(Deadline::from_millis(millis)))?;
        }
        _ => {
            call.remove(1)?;
        }
    }
    call.replies.flag(true);
    Ok(())
}

pub(super) fn persist(call: &mut Call<'_, '_>) -> Outcome {
    let found = call.get(1)?;
    let ends = found.filter(|(_, deadline)| deadline.is_some());
    if let Some((value, _)) = &ends {
        call.put(1, value, None)?;
    }
    call.replies.flag(ends.is_some());
    Ok(())
}

pub(super) fn ttl(call: &mut Call<'_, '_>) -> Outcome {
    tell(call, |millis, now| rounded(millis.saturating_sub(now)))
}

pub(super) fn pttl(call: &mut Call<'_, '_>) -> Outcome {
    tell(call, u64::saturating_sub)
}

pub(super) fn expiretime(call: &mut Call<'_, '_>) -> Outcome {
    tell(call, |millis, _| rounded(millis))
}

pub(super) fn pexpiretime(call: &mut Call<'_, '_>) -> Outcome {
    tell(call, |millis, _| millis)
}

fn rounded(millis: u64) -> u64 {
    millis.saturating_add(500) / 1000
}

/// -2 for an absent key, -1 for a key without a deadline, else what `made` returns for the deadline
/// and now.
fn tell(call: &mut Call<'_, '_>, made: impl FnOnce(u64, u64) -> u64) -> Outcome {
    let answer = match call.get(1)? {
        None => -2,
        Some((_, None)) => -1,
        Some((_, Some(end))) => i64::try_from(made(end.millis(), call.now)).unwrap_or(i64::MAX),
    };
    call.replies.integer(answer);
    Ok(())
}
