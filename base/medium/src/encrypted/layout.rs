//! Layout of encrypted files: heads, units, the key file. See docs/format/encryption.md.

use std::ops::Range;

/// Bytes of the nonce of AES-256-GCM-SIV.
pub(super) const NONCE_BYTES: usize = 12;
/// Bytes of its tag.
pub(super) const TAG_BYTES: usize = 16;
/// Bytes of a key, and of the data key.
pub(super) const KEY_BYTES: usize = 32;
/// Bytes of the identity of a file, and of that of a data key.
pub(super) const ID_BYTES: usize = 16;

/// What a file begins with that is encrypted.
pub(super) const HEAD_MAGIC: [u8; 8] = *b"ADAMENC\x01";
/// Version of this page of the format.
pub(super) const FORMAT_VERSION: u32 = 1;
/// Bytes of a file before its first unit: two pages, so that units do not straddle pages.
pub(super) const HEAD_BYTES: u64 = 8192;
/// Parts of the head: version, bytes of a unit, identity of the data key, identity of the file,
/// nonce and tag that authenticate what is before them. All are within one sector.
pub(super) const HEAD_VERSION: Range<usize> = 8..12;
pub(super) const HEAD_UNIT_BYTES: Range<usize> = 12..16;
pub(super) const HEAD_KEY_ID: Range<usize> = 16..32;
pub(super) const HEAD_FILE_ID: Range<usize> = 32..48;
pub(super) const HEAD_NONCE: Range<usize> = 48..60;
pub(super) const HEAD_TAG: Range<usize> = 60..76;
/// Where these are: in two pages, in case that one of them is damaged. Without them nothing of the
/// file can be read.
pub(super) const HEAD_OFFSETS: [usize; 2] = [0, 4096];
/// Where a bell is in the head, whatever place in the plain file was asked for.
pub(super) const HEAD_BELL: u64 = 2048;

/// Parts of a unit: nonce, tag, bytes of its payload, and the payload, which is encrypted. All
/// other bytes are zero.
pub(super) const UNIT_NONCE: Range<usize> = 0..NONCE_BYTES;
pub(super) const UNIT_TAG: Range<usize> = 12..28;
pub(super) const UNIT_LENGTH: Range<usize> = 28..30;
pub(super) const UNIT_PAYLOAD: usize = 32;

/// What the key file begins with.
pub(super) const KEY_MAGIC: [u8; 8] = *b"ADAMKEY\x01";
/// Parts of a record of the key file: version, identity of the data key, nonce and tag of its
/// encryption, the data key encrypted by the user's, CRC32C of all before.
pub(super) const KEY_VERSION: Range<usize> = 8..12;
pub(super) const KEY_ID: Range<usize> = 16..32;
pub(super) const KEY_NONCE: Range<usize> = 32..44;
pub(super) const KEY_TAG: Range<usize> = 44..60;
pub(super) const KEY_WRAPPED: Range<usize> = 60..92;
pub(super) const KEY_CHECKSUM: Range<usize> = 92..96;
/// Bytes of a record.
pub(super) const KEY_RECORD_BYTES: usize = 96;
/// Where the record is: twice, in case that one of them is damaged.
pub(super) const KEY_OFFSETS: [usize; 2] = [0, 4096];
/// Bytes of the key file.
pub(super) const KEY_FILE_BYTES: usize = KEY_OFFSETS[1] + KEY_RECORD_BYTES;

/// How plain bytes lie in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Geometry {
    /// Units of a sector, which a crash leaves old or new: for files that are overwritten. Nine of
    /// them hold a page of 4,096 bytes, so that pages have units of their own.
    Sectors,
    /// Units of 4 KiB, for files that are written once: 1 % more than the plain bytes, for 12 %.
    Pages,
}

impl Geometry {
    /// Units that hold as many bytes as `group_bytes`.
    const GROUP_UNITS: u64 = 9;
    /// Plain bytes of a group of nine units.
    const GROUP_BYTES: u64 = 4096;
    /// Plain bytes of each unit of a group but the last.
    const SECTOR_BYTES: u64 = 456;
    /// Bytes of the longest payload.
    pub(super) const CAPACITY_MAX: usize = 4096 - UNIT_PAYLOAD;

    /// The geometry with units of that many bytes.
    pub(super) fn of_unit_bytes(bytes: u32) -> Option<Self> {
        [Self::Sectors, Self::Pages].into_iter().find(|it| it.unit_bytes() == bytes as usize)
    }

    /// Bytes of a unit in the file.
    pub(super) const fn unit_bytes(self) -> usize {
        match self {
            Self::Sectors => 512,
            Self::Pages => 4096,
        }
    }

    /// Plain bytes that a unit holds at most.
    pub(super) const fn capacity(self, unit: u64) -> usize {
        match self {
            Self::Sectors if unit % Self::GROUP_UNITS == Self::GROUP_UNITS - 1 => {
                (Self::GROUP_BYTES - (Self::GROUP_UNITS - 1) * Self::SECTOR_BYTES) as usize
            }
            Self::Sectors => Self::SECTOR_BYTES as usize,
            Self::Pages => Self::CAPACITY_MAX,
        }
    }

    /// The unit with the plain byte at `offset`.
    pub(super) const fn unit_at(self, offset: u64) -> u64 {
        match self {
            Self::Sectors => {
                let within = offset % Self::GROUP_BYTES / Self::SECTOR_BYTES;
                offset / Self::GROUP_BYTES * Self::GROUP_UNITS + within
            }
            Self::Pages => offset / Self::CAPACITY_MAX as u64,
        }
    }

    /// Where in the plain file a unit's bytes are.
    pub(super) const fn plain_start(self, unit: u64) -> u64 {
        match self {
            Self::Sectors => {
                let group = unit / Self::GROUP_UNITS * Self::GROUP_BYTES;
                group + unit % Self::GROUP_UNITS * Self::SECTOR_BYTES
            }
            Self::Pages => unit * Self::CAPACITY_MAX as u64,
        }
    }

    /// Where in the file a unit is.
    pub(super) const fn file_start(self, unit: u64) -> u64 {
        HEAD_BYTES + unit * self.unit_bytes() as u64
    }

    /// Whole units in a file of that many bytes.
    pub(super) const fn units_in(self, file_bytes: u64) -> u64 {
        file_bytes.saturating_sub(HEAD_BYTES) / self.unit_bytes() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plain_byte_has_one_place() {
        for geometry in [Geometry::Sectors, Geometry::Pages] {
            let mut next = 0;
            for unit in 0..100 {
                assert_eq!(geometry.plain_start(unit), next, "units follow each other");
                next += geometry.capacity(unit) as u64;
                assert_eq!(geometry.unit_at(next - 1), unit);
                assert_eq!(geometry.unit_at(next), unit + 1);
                assert!(geometry.capacity(unit) + UNIT_PAYLOAD <= geometry.unit_bytes());
            }
        }
        assert_eq!(Geometry::Sectors.plain_start(9), 4096, "pages have units of their own");
    }
}
