//! Random bytes of the system, for identities.

use std::io;

/// Fills a buffer from the system's generator.
pub(crate) fn random(buffer: &mut [u8]) -> io::Result<()> {
    getrandom::fill(buffer).map_err(io::Error::from)
}
