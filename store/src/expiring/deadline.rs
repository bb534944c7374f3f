//! Deadlines and their encoding.

use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

use adamant_slice::Slice;

use crate::error::{Error, Result};
use crate::layout::DEADLINE_BYTES;

/// The moment at which an entry expires: milliseconds since 1970, UTC, without leap seconds.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use adamant::Deadline;
///
/// let end = Deadline::from(SystemTime::UNIX_EPOCH + Duration::from_millis(1_900_000_000_000));
/// assert_eq!(end, Deadline::from_millis(1_900_000_000_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(NonZeroU64);

impl Deadline {
    /// The deadline at so many milliseconds since 1970. 0 counts as 1: both have passed.
    ///
    /// ```
    /// use adamant::expiring::Deadline;
    ///
    /// let end = Deadline::from_millis(1_900_000_000_000);
    /// assert_eq!(end.millis(), 1_900_000_000_000);
    /// assert!(end < Deadline::from_millis(1_900_000_000_001));
    /// ```
    pub fn from_millis(millis: u64) -> Self {
        Self(NonZeroU64::new(millis).unwrap_or(NonZeroU64::MIN))
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> u64 {
        self.0.get()
    }

    pub(super) fn after(now: u64, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self::from_millis(now.saturating_add(millis))
    }

    pub(super) fn is_over(self, now: u64) -> bool {
        self.millis() <= now
    }
}

impl From<SystemTime> for Deadline {
    /// Whole milliseconds; a time before 1970 has passed, as 1970 has.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::after(0, since)
    }
}

/// Most significant byte first: in the order of the numbers.
fn ordered(millis: u64) -> [u8; DEADLINE_BYTES] {
    millis.swap_bytes().to_le_bytes()
}

/// The stored form of a value: behind its deadline.
pub(super) fn join(deadline: Option<Deadline>, value: &[u8]) -> Slice {
    Slice::fused(&ordered(deadline.map_or(0, Deadline::millis)), value)
}

/// Writes a deadline to the start of a stored value.
pub(super) fn write(deadline: Option<Deadline>, stored: &mut [u8]) {
    stored[..DEADLINE_BYTES].copy_from_slice(&ordered(deadline.map_or(0, Deadline::millis)));
}

/// A value and its deadline, from a stored value of the keyspace with this name.
pub(crate) fn split(name: &str, stored: &Slice) -> Result<(Slice, Option<Deadline>)> {
    let deadline = deadline_of(name, stored)?;
    Ok((stored.slice(DEADLINE_BYTES..), deadline))
}

/// The deadline of a stored value of the keyspace with this name.
pub(crate) fn deadline_of(name: &str, stored: &[u8]) -> Result<Option<Deadline>> {
    let Some(bytes) = stored.first_chunk::<DEADLINE_BYTES>() else {
        return Err(Error::Encoding {
            keyspace: name.into(),
            expected: "a value behind the 8 bytes of its deadline".into(),
            found: format!("{} bytes", stored.len()),
        });
    };
    Ok(NonZeroU64::new(u64::from_le_bytes(*bytes).swap_bytes()).map(Deadline))
}

/// The key of the row for an entry's deadline.
pub(crate) fn row(deadline: Deadline, key: &[u8]) -> Slice {
    Slice::fused(&ordered(deadline.millis()), key)
}

/// The key above those of all rows whose deadline has passed; `None` at the end of time.
pub(crate) fn rows_end(now: u64) -> Option<[u8; DEADLINE_BYTES]> {
    now.checked_add(1).map(ordered)
}
