//! The names of files in the directory of savepoints.
//!
//! Thread safety: pure functions.

/// What the name of a savepoint's file ends in.
const SAVEPOINT_SUFFIX: &str = ".savepoint";
/// The same, once it is lost.
const LOST_SUFFIX: &str = ".lost";
/// The same, once it was deleted, until the file is.
const DELETED_SUFFIX: &str = ".deleted";
/// What the name of a file of kept pages ends in.
const KEPT_SUFFIX: &str = ".pages";
/// What the name of a file ends in that is not whole yet.
const NEW_SUFFIX: &str = ".new";

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) enum Named {
    Savepoint(u64),
    Lost(u64),
    Deleted(u64),
    Kept(u64),
    /// Of no use, and not ours.
    Other,
}

pub(in crate::journal) fn savepoint_name(number: u64) -> String {
    format!("{number:016x}{SAVEPOINT_SUFFIX}")
}

pub(in crate::journal) fn lost_name(number: u64) -> String {
    format!("{number:016x}{LOST_SUFFIX}")
}

pub(in crate::journal) fn deleted_name(number: u64) -> String {
    format!("{number:016x}{DELETED_SUFFIX}")
}

pub(in crate::journal) fn kept_name(number: u64) -> String {
    format!("{number:016x}{KEPT_SUFFIX}")
}

/// The name of a file that is not whole yet.
pub(in crate::journal) fn new_name(name: &str) -> String {
    format!("{name}{NEW_SUFFIX}")
}

/// Whether a name is that of a file that never became whole.
pub(in crate::journal) fn is_new(name: &str) -> bool {
    name.ends_with(NEW_SUFFIX)
}

/// What a name says.
pub(in crate::journal) fn named(name: &str) -> Named {
    let number_before = |suffix| {
        let digits = name.strip_suffix(suffix).filter(|digits: &&str| digits.len() == 16)?;
        u64::from_str_radix(digits, 16).ok().filter(|number| (1..u64::MAX / 2).contains(number))
    };
    number_before(SAVEPOINT_SUFFIX)
        .map(Named::Savepoint)
        .or_else(|| number_before(LOST_SUFFIX).map(Named::Lost))
        .or_else(|| number_before(DELETED_SUFFIX).map(Named::Deleted))
        .or_else(|| number_before(KEPT_SUFFIX).map(Named::Kept))
        .unwrap_or(Named::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        assert_eq!(named(&savepoint_name(7)), Named::Savepoint(7));
        assert_eq!(named(&lost_name(7)), Named::Lost(7));
        assert_eq!(named(&deleted_name(0xABC)), Named::Deleted(0xABC));
        assert_eq!(named(&kept_name(7)), Named::Kept(7));
        for other in [new_name(&kept_name(7)), "7.pages".into(), savepoint_name(0), ".lost".into()]
        {
            assert_eq!(named(&other), Named::Other, "{other}");
        }
        assert!(is_new(&new_name(&kept_name(7))) && !is_new(&kept_name(7)));
    }
}
