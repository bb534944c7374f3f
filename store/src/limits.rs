//! Size limits of keys, values and names, and their checks.

use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;

/// Bytes that a key may have. The empty key is a key like any other; it sorts first.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Bytes that a value may have: 4 GiB - 1.
pub const VALUE_BYTES_MAX: u64 = u32::MAX as u64;
/// Bytes that a keyspace's name may have. The empty name is an error.
pub const NAME_BYTES_MAX: usize = 255;

/// Fails unless this is a valid key. Only writes check: a read of an invalid key finds nothing.
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    match key.len() {
        ..=KEY_BYTES_MAX => Ok(()),
        len => Err(Error::KeyTooLong { bytes: len as u64, bytes_max: KEY_BYTES_MAX as u64 }),
    }
}

/// Fails unless this is a valid value.
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    check_value_bytes(value.len() as u64)
}

pub(crate) fn check_value_bytes(bytes: u64) -> Result<()> {
    if bytes > VALUE_BYTES_MAX {
        return Err(Error::ValueTooLong { bytes, bytes_max: VALUE_BYTES_MAX });
    }
    Ok(())
}

/// Fails unless a keyspace of this kind may be opened for plain entries.
pub(crate) fn check_plain(name: &str, kind: KeyspaceKind) -> Result<()> {
    match kind {
        KeyspaceKind::Plain => Ok(()),
        found => Err(Error::WrongKind { name: name.into(), found }),
    }
}

/// Fails unless this is a valid name of a keyspace. All characters are allowed: a name is never
/// used as the name of a file.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::KeyspaceName {
            bytes: name.len() as u64,
            bytes_max: NAME_BYTES_MAX as u64,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_up_to_65535_bytes() {
        assert!(check_key(b"").is_ok());
        assert!(check_key(b"k").is_ok());
        assert!(check_key(&vec![7; KEY_BYTES_MAX]).is_ok());
        let error = check_key(&vec![7; KEY_BYTES_MAX + 1]).unwrap_err();
        assert!(error.to_string().contains("65535"), "{error}");
        assert!(error.to_string().contains("65536"), "{error}");
    }

    #[test]
    fn values_have_up_to_4_gib_less_1() {
        assert!(check_value(b"").is_ok());
        assert!(check_value_bytes(VALUE_BYTES_MAX).is_ok());
        let error = check_value_bytes(VALUE_BYTES_MAX + 1).unwrap_err();
        assert!(error.to_string().contains("4294967296"), "{error}");
    }

    #[test]
    fn names_have_1_to_255_bytes_and_any_characters() {
        assert!(matches!(check_name(""), Err(Error::KeyspaceName { bytes: 0, .. })));
        for name in ["/", "..", "\0", "default", "\u{1f980}"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
        assert!(check_name(&"n".repeat(255)).is_ok());
        assert!(check_name(&"n".repeat(256)).is_err());
    }
}
