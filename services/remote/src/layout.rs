//! Key and value layout of a store on objects.
//!
//! Purpose: maps entries of keyspaces to keys of SlateDB's one map, and defines the records under
//! the reserved number. See `docs/format/remote.md`; the objects themselves are SlateDB's.

use crate::error::{Error, Result};

/// Bytes of a keyspace's number, with which each key begins: most significant byte first, so that
/// keyspaces are adjacent.
pub const ID_BYTES: usize = 4;
/// The number that no keyspace has: the store's own records.
pub const OWN_ID: u32 = 0;
/// The number of the first keyspace.
pub const FIRST_ID: u32 = 1;
/// First bytes of the head.
pub const MAGIC: [u8; 8] = *b"AdamRemo";
/// The format version that this code writes.
pub const FORMAT: u32 = 1;

/// After `OWN_ID`: the kind of the head.
const KIND_HEAD: u8 = 0;
/// The name of a keyspace.
const KIND_KEYSPACE: u8 = 1;
/// The number of a keyspace that was dropped, whose entries are being removed.
const KIND_DOOMED: u8 = 2;
/// Singleton: a copy into this store has begun and not ended.
const KIND_UNFINISHED: u8 = 3;

/// The head: magic, format, the number of the next keyspace.
const HEAD_BYTES: usize = MAGIC.len() + 4 + 4;

/// Encodes a keyspace's number as a key prefix.
pub(crate) fn id_bytes(id: u32) -> [u8; ID_BYTES] {
    id.swap_bytes().to_le_bytes()
}

/// Decodes the number that a key begins with.
///
/// # Errors
/// It is too short for one.
pub(crate) fn id_of(key: &[u8]) -> Result<u32> {
    let id = key.first_chunk().map(|id| u32::from_le_bytes(*id).swap_bytes());
    id.ok_or_else(|| Error::damaged("a key", "the number of a keyspace", key))
}

/// The key of an entry.
pub(crate) fn entry_key(id: u32, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ID_BYTES + key.len());
    bytes.extend_from_slice(&id_bytes(id));
    bytes.extend_from_slice(key);
    bytes
}

fn own_key(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = id_bytes(OWN_ID).to_vec();
    bytes.push(kind);
    bytes.extend_from_slice(rest);
    bytes
}

/// The key of the head.
pub(crate) fn head_key() -> Vec<u8> {
    own_key(KIND_HEAD, &[])
}

/// The key of a keyspace in the catalogue; for the empty name, the prefix of all of them.
pub(crate) fn keyspace_key(name: &str) -> Vec<u8> {
    own_key(KIND_KEYSPACE, name.as_bytes())
}

/// The key of a doomed record: entries of a keyspace are to be removed.
pub(crate) fn doomed_key(id: u32) -> Vec<u8> {
    own_key(KIND_DOOMED, &id_bytes(id))
}

/// The prefix of all of those.
pub(crate) fn doomed_prefix() -> Vec<u8> {
    own_key(KIND_DOOMED, &[])
}

/// The key of the mark of an unfinished copy.
pub(crate) fn unfinished_key() -> Vec<u8> {
    own_key(KIND_UNFINISHED, &[])
}

/// Encodes the head, with the number of the next keyspace.
pub(crate) fn encode_head(next_id: u32) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&next_id.to_le_bytes());
    bytes
}

/// Decodes the number of the next keyspace.
///
/// # Errors
/// It is no head, or one of another format.
pub(crate) fn decode_head(bytes: &[u8]) -> Result<u32> {
    let damaged = || Error::damaged("the store's head", &format!("{HEAD_BYTES} bytes"), bytes);
    let rest = bytes.strip_prefix(&MAGIC).ok_or_else(damaged)?;
    let (format, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
    let format = u32::from_le_bytes(*format);
    if format != FORMAT {
        return Err(Error::Format { found: format, known: FORMAT });
    }
    let next_id = rest.try_into().map_err(|_| damaged())?;
    Ok(u32::from_le_bytes(next_id))
}

/// Encodes a keyspace's number, followed by the name of the engine that it is to have on a machine
/// (and of its kind).
pub(crate) fn encode_keyspace(id: u32, engine: &str) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend_from_slice(engine.as_bytes());
    bytes
}

/// Decodes a keyspace's number and the name of its engine.
///
/// # Errors
/// It is neither.
pub(crate) fn decode_keyspace(bytes: &[u8]) -> Result<(u32, String)> {
    let damaged = || Error::damaged("an entry of the catalogue", "a number and a name", bytes);
    let (id, engine) = bytes.split_first_chunk().ok_or_else(damaged)?;
    let engine = str::from_utf8(engine).map_err(|_| damaged())?;
    Ok((u32::from_le_bytes(*id), engine.to_owned()))
}

/// Decodes the name in a key of the catalogue.
///
/// # Errors
/// It is none.
pub(crate) fn decode_keyspace_key(key: &[u8]) -> Result<String> {
    let prefix = keyspace_key("");
    let name = key.strip_prefix(&prefix[..]).and_then(|name| str::from_utf8(name).ok());
    let damaged = || Error::damaged("a key of the catalogue", "a name in UTF-8", key);
    name.map(str::to_owned).ok_or_else(damaged)
}

/// Decodes the number in a doomed key.
///
/// # Errors
/// It is none.
pub(crate) fn decode_doomed_key(key: &[u8]) -> Result<u32> {
    let id = key.strip_prefix(&doomed_prefix()[..]).and_then(|id| id.try_into().ok());
    let damaged = || Error::damaged("a key of what was dropped", "the number of a keyspace", key);
    id.map(|id| u32::from_le_bytes(id).swap_bytes()).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspaces_lie_in_the_order_of_their_numbers() {
        let keys: Vec<_> = [1, 255, 256, 65_536, u32::MAX].map(|id| entry_key(id, b"k")).into();
        assert!(keys.is_sorted());
        assert_eq!(entry_key(258, b"k"), [0, 0, 1, 2, b'k']);
        assert!(doomed_key(u32::MAX) < entry_key(FIRST_ID, &[]));
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(decode_head(&encode_head(7)).unwrap(), 7);
        let entry = encode_keyspace(9, "lsm");
        assert_eq!(decode_keyspace(&entry).unwrap(), (9, "lsm".to_owned()));
        assert_eq!(decode_keyspace_key(&keyspace_key("\u{e9}")).unwrap(), "\u{e9}");
        assert_eq!(decode_doomed_key(&doomed_key(258)).unwrap(), 258);
    }

    #[test]
    fn anything_else_is_an_error() {
        assert!(matches!(decode_head(b"AdamRem"), Err(Error::Damaged { .. })));
        assert!(matches!(decode_head(b"AdamRemo\x01\0\0\0\0\0\0"), Err(Error::Damaged { .. })));
        let newer = [&MAGIC[..], &[2, 0, 0, 0], &[0; 40]].concat();
        assert!(matches!(decode_head(&newer), Err(Error::Format { found: 2, .. })));
        assert!(matches!(decode_keyspace(&[1, 2, 3]), Err(Error::Damaged { .. })));
        assert!(matches!(decode_keyspace(&[1, 2, 3, 4, 0xff]), Err(Error::Damaged { .. })));
        assert!(matches!(decode_keyspace_key(&[0; 5]), Err(Error::Damaged { .. })));
        assert!(matches!(decode_doomed_key(&doomed_prefix()), Err(Error::Damaged { .. })));
    }
}
