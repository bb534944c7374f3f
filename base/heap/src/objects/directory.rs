//! The codec of the directory of named roots.
//!
//! Purpose: read and write `docs/format/roots.md`. The bytes are validated in full before anything
//! of them is used, so that damage is an error and never another object.
//! Invariants: entries are in the order of their names, no two alike.

use adamant_wire::checksum::crc32c;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Error, Result};
use crate::layout::{
    DIRECTORY_MAGIC, DirectoryEntry, DirectoryHeader, NAME_BYTES_MAX, NAMED_ROOT_COUNT_MAX,
};
use crate::objects::persistent::{Layout, write_layout};

/// Byte order of this machine, as in the header.
const BYTE_ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };
/// Bytes of the header before its checksum.
const SUMMED_BYTES: usize = size_of::<DirectoryHeader>() - 4;

/// A named root, as stored in a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedRoot {
    /// The name.
    pub name: String,
    /// Heap offset of the object.
    pub offset: u64,
    /// Name of the object's type.
    pub type_name: String,
    /// Version of the type.
    pub version: u32,
    /// Bytes of the object.
    pub bytes: u64,
    /// Id of the type.
    pub type_id: u64,
}

impl NamedRoot {
    pub(crate) fn new(name: &str, offset: u64, layout: Layout) -> Self {
        Self {
            name: name.into(),
            offset,
            type_name: layout.name().into(),
            version: layout.version(),
            bytes: layout.bytes(),
            type_id: layout.id(),
        }
    }

    /// The layout of the object, in words.
    pub(crate) fn layout(&self) -> String {
        let mut words = String::new();
        // Writing to a string cannot fail.
        let _ = write_layout(&mut words, &self.type_name, self.version, self.bytes);
        words
    }

    /// Checks that the object has the layout that the caller asks for.
    pub(crate) fn expect(&self, layout: Layout) -> Result<()> {
        if self.type_id == layout.id() {
            return Ok(());
        }
        let (mut expected, mut found) = (layout.to_string(), self.layout());
        let advice = if self.type_name != layout.name() {
            "ask for it by the type that it has, or use another name for the root"
        } else if self.version > layout.version() {
            "use the newer version of the program that stored it"
        } else if self.version < layout.version() {
            "read it as its old version, store the new one, and put that under the name: \
             `remove_named_root`, then `set_named_root`"
        } else if self.bytes != layout.bytes() {
            "the type was changed without a new version: restore it, and raise `VERSION` for the \
             changed one"
        } else {
            expected += &format!(" (id {:#x})", layout.id());
            found += &format!(" (id {:#x})", self.type_id);
            "a type within it is another one than was stored; restore that"
        };
        let place = format!("root \"{}\"", self.name);
        Err(Error::WrongLayout { place, expected, found, advice })
    }
}

/// Refuses names that no root can have.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(Error::Misuse { what: "the name of a root has 1 to 255 bytes" })
}

/// Decodes a directory from its block.
pub(crate) fn decode(block: &[u8], offset: u64) -> Result<Vec<NamedRoot>> {
    let damaged = |what| Error::InvalidPointer { offset, what };
    let Ok((header, _)) = DirectoryHeader::ref_from_prefix(block) else {
        return Err(damaged("is too short for the directory of named roots"));
    };
    if header.magic != DIRECTORY_MAGIC {
        return Err(damaged("is no directory of named roots: its first bytes are others"));
    }
    let bytes = block.get(..header.bytes.get() as usize);
    let Some(entries) = bytes.and_then(|bytes| bytes.get(size_of::<DirectoryHeader>()..)) else {
        return Err(damaged("is a directory of named roots that is cut off"));
    };
    if checksum(&block[..SUMMED_BYTES], entries) != header.checksum.get() {
        return Err(damaged("is a directory of named roots whose checksum differs"));
    }
    if header.byte_order != BYTE_ORDER {
        let name = |order| if order == 1 { "little-endian" } else { "big-endian" };
        return Err(Error::WrongLayout {
            place: "the named roots".into(),
            expected: format!("{} objects", name(BYTE_ORDER)),
            found: format!("{} ones", name(header.byte_order)),
            advice: "open the pool on a machine of that byte order",
        });
    }
    let count = header.count.get() as usize;
    if count > NAMED_ROOT_COUNT_MAX {
        return Err(damaged("is a directory of more named roots than there can be"));
    }
    let mut roots: Vec<NamedRoot> = Vec::with_capacity(count);
    let mut rest = entries;
    for _ in 0..count {
        let (root, after) =
            decode_entry(rest).ok_or_else(|| damaged("is a directory with a broken entry"))?;
        if roots.last().is_some_and(|last| last.name >= root.name) {
            return Err(damaged("is a directory whose names are not in order"));
        }
        roots.push(root);
        rest = after;
    }
    if !rest.is_empty() {
        return Err(damaged("is a directory with bytes beyond its last entry"));
    }
    Ok(roots)
}

fn decode_entry(bytes: &[u8]) -> Option<(NamedRoot, &[u8])> {
    let (entry, rest) = DirectoryEntry::ref_from_prefix(bytes).ok()?;
    let (name, rest) = rest.split_at_checked(entry.name_bytes.into())?;
    let (type_name, rest) = rest.split_at_checked(entry.type_name_bytes.into())?;
    if name.is_empty() || type_name.is_empty() || entry.offset.get() == 0 {
        return None;
    }
    let root = NamedRoot {
        name: std::str::from_utf8(name).ok()?.into(),
        offset: entry.offset.get(),
        type_name: std::str::from_utf8(type_name).ok()?.into(),
        version: entry.version.get(),
        bytes: entry.object_bytes.get(),
        type_id: entry.type_id.get(),
    };
    Some((root, rest))
}

/// Encodes a directory. The names were checked.
pub(crate) fn encode(roots: &[NamedRoot]) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<DirectoryHeader>()];
    for root in roots {
        let entry = DirectoryEntry {
            offset: U64::new(root.offset),
            type_id: U64::new(root.type_id),
            object_bytes: U64::new(root.bytes),
            version: U32::new(root.version),
            name_bytes: root.name.len() as u8,
            type_name_bytes: root.type_name.len() as u8,
            reserved: [0; 2],
        };
        bytes.extend_from_slice(entry.as_bytes());
        bytes.extend_from_slice(root.name.as_bytes());
        bytes.extend_from_slice(root.type_name.as_bytes());
    }
    let mut header = DirectoryHeader {
        magic: DIRECTORY_MAGIC,
        bytes: U32::new(bytes.len() as u32),
        count: U32::new(roots.len() as u32),
        byte_order: BYTE_ORDER,
        reserved: [0; 3],
        checksum: U32::new(0),
    };
    let (head, entries) = bytes.split_at_mut(size_of::<DirectoryHeader>());
    header.checksum.set(checksum(&header.as_bytes()[..SUMMED_BYTES], entries));
    head.copy_from_slice(header.as_bytes());
    bytes
}

fn checksum(head: &[u8], entries: &[u8]) -> u32 {
    crc32c(crc32c(0, head), entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::persistent::Persistent;

    fn some(count: usize) -> Vec<NamedRoot> {
        (0..count)
            .map(|n| NamedRoot::new(&format!("root {n:04}"), 8192 + n as u64, u64::STORED))
            .collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for count in [0, 1, 2, NAMED_ROOT_COUNT_MAX] {
            let mut bytes = encode(&some(count));
            bytes.resize(bytes.len() + 100, 0xEE);
            assert_eq!(decode(&bytes, 8).expect("whole"), some(count));
        }
        assert!(decode(&encode(&some(NAMED_ROOT_COUNT_MAX + 1)), 8).is_err());
    }

    #[test]
    fn no_damage_is_overlooked() {
        let bytes = encode(&some(5));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(decode(&damaged, 8).is_err(), "bit {bit} of byte {at}");
            }
            assert!(decode(&bytes[..at], 8).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn hostile_bytes_under_a_fitting_checksum_are_no_panic() {
        let bytes = encode(&some(5));
        for seed in 0..20_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut hostile = bytes.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(8..hostile.len());
                hostile[at] = [0, 0xFF, random.u8(..)][random.usize(..3)];
            }
            let len = (u32::from_le_bytes(hostile[8..12].try_into().expect("four")) as usize)
                .clamp(24, hostile.len());
            let crc = checksum(&hostile[..SUMMED_BYTES], &hostile[24..len]);
            hostile[20..24].copy_from_slice(&crc.to_le_bytes());
            // Names in order and offsets that are not null, or an error.
            if let Ok(roots) = decode(&hostile, 8) {
                assert!(roots.is_sorted_by(|a, b| a.name < b.name), "seed {seed}");
            }
        }
    }
}
