//! Length limits of keys, values and names, and their checks.

use adamant::{KEY_BYTES_MAX, NAME_BYTES_MAX};

use crate::error::{Error, Result};

/// Maximum bytes of a value: 256 MiB. It is in memory as a whole, several times, and in one object.
pub const VALUE_BYTES_MAX: u64 = 256 << 20;

/// Fails unless this is a valid key.
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    match key.len() {
        ..=KEY_BYTES_MAX => Ok(()),
        len => Err(Error::KeyTooLong { bytes: len as u64, bytes_max: KEY_BYTES_MAX as u64 }),
    }
}

/// Fails unless this is a valid value.
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    let bytes = value.len() as u64;
    if bytes > VALUE_BYTES_MAX {
        return Err(Error::ValueTooLong { bytes, bytes_max: VALUE_BYTES_MAX });
    }
    Ok(())
}

/// Fails unless this is a valid name of a keyspace.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let (bytes, bytes_max) = (name.len() as u64, NAME_BYTES_MAX as u64);
        return Err(Error::KeyspaceName { bytes, bytes_max });
    }
    Ok(())
}
