//! Values with a deadline, allocated in place.
//!
//! Purpose: a `ReservedValue` with room in front for the deadline, which is known last.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::deadline::{Deadline, write};
use super::keyspace::Expiring;
use crate::error::{Error, Result};
use crate::layout::DEADLINE_BYTES;
use crate::reserved::ReservedValue;

/// The value of an expiring entry, allocated in place, see [`Expiring::reserve`].
pub struct ReservedExpiring(ReservedValue);

impl Expiring {
    /// Allocates a value of this length in place: like [`Store::reserve`](crate::Store::reserve),
    /// for [`ExpiringTransaction::put_reserved`](super::ExpiringTransaction::put_reserved) of
    /// any expiring keyspace.
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
    /// The stored form.
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
