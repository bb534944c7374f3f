//! Values with a deadline, written where they will lie.
//!
//! Purpose: as `ReservedValue`, with room for the deadline in front, which is known last.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::deadline::{DEADLINE_BYTES, Deadline, write};
use super::keyspace::Expiring;
use crate::error::{Error, Result};
use crate::reserved::ReservedValue;

/// Room for the value of an entry that may end, see [`Expiring::reserve`].
pub struct ReservedExpiring(ReservedValue);

impl Expiring {
    /// Room for a value of so many bytes, in the place where a commit will leave it: as
    /// [`Store::reserve`](crate::Store::reserve), for
    /// [`ExpiringTransaction::insert_reserved`](super::ExpiringTransaction::insert_reserved) of any
    /// keyspace of entries that end.
    ///
    /// # Errors
    /// As [`Store::reserve`](crate::Store::reserve); [`Error::ValueTooLong`] above 4 GiB - 9.
    pub fn reserve(&self, bytes: usize) -> Result<ReservedExpiring> {
        let all = bytes.saturating_add(DEADLINE_BYTES);
        Ok(ReservedExpiring(self.store.reserve(all).map_err(|error| match error {
            Error::ValueTooLong { bytes_max, .. } => {
                let deadline = DEADLINE_BYTES as u64;
                Error::ValueTooLong { bytes: bytes as u64, bytes_max: bytes_max - deadline }
            }
            error => error,
        })?))
    }
}

impl ReservedExpiring {
    /// As it is stored.
    pub(super) fn ending(mut self, deadline: Option<Deadline>) -> ReservedValue {
        write(deadline, &mut self.0);
        self.0
    }
}

impl Deref for ReservedExpiring {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0[DEADLINE_BYTES..]
    }
}

impl DerefMut for ReservedExpiring {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0[DEADLINE_BYTES..]
    }
}

impl fmt::Debug for ReservedExpiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReservedExpiring").field("bytes", &self.len()).finish_non_exhaustive()
    }
}
