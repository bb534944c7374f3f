//! Every persistent byte of the file of lanes, and nothing volatile. See `docs/format/lanes.md`.

use adamant_wire::checksum::crc32c;
use adamant_wire::mutants::is_planted;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of the file of lanes.
pub(super) const LANES_MAGIC: [u8; 8] = *b"ADAMLANE";
/// Bytes before the first lane: a page.
pub(super) const LANES_HEAD_BYTES: u64 = 4096;
/// Where the watermark lies: on a cache line of its own.
pub(super) const WATERMARK_OFFSET: u64 = 64;
/// Lanes of a new pool: more threads than that wait for each other.
pub(super) const LANE_COUNT: u32 = 32;
/// Bytes of a lane of a new pool: a thousand small commits before it starts over. 32 of them are
/// 2 MiB, which with a new pool stay below the 4 MiB that an empty store may take.
pub(super) const LANE_BYTES: u64 = 64 << 10;
/// A transaction may hold one until it ends, and others must go on meanwhile, itself among them.
pub(super) const LANE_COUNT_MIN: u32 = 2;
/// Most lanes that a file may have.
pub(super) const LANE_COUNT_MAX: u32 = 1024;
/// Largest lane that a file may have.
pub(super) const LANE_BYTES_MAX: u64 = 1 << 30;
/// Entries begin on a cache line of their own, so that no two share one.
pub(super) const ENTRY_ALIGN: u64 = 64;
/// Sequence numbers stay below: 8.9 years of a million commits a second.
pub(super) const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 1;
const SEQUENCE_BITS: u32 = 48;
/// Where the kind lies in the stamp of an entry.
const KIND_SHIFT: u32 = 56;

/// A commit: changes to be made.
pub(super) const KIND_COMMIT: u8 = 1;
/// Bytes as they were before a transaction changed them in place.
pub(super) const KIND_UNDO: u8 = 2;
/// The undo entries of a transaction are void: all is as it was.
pub(super) const KIND_ABORT: u8 = 3;

/// The header of the file of lanes, written when the pool is created.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct LanesHeader {
    /// `LANES_MAGIC`.
    pub(super) magic: [u8; 8],
    /// Format version of the pool.
    pub(super) version: U32,
    /// Lanes.
    pub(super) lane_count: U32,
    /// Bytes of each.
    pub(super) lane_bytes: U64,
    /// Identity of the pool.
    pub(super) uuid: [u8; 16],
    /// CRC32C of all bytes before this field.
    pub(super) checksum: U32,
}

/// The header of an entry.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct EntryHeader {
    /// CRC32C of all that follows it, up to the end of the payload, seeded by the pool's UUID.
    pub(super) crc: U32,
    /// Bytes of the payload.
    pub(super) len: U32,
    /// Sequence number in the low 48 bits, kind in the high 8.
    pub(super) stamp: U64,
}

/// Bytes of an entry before its payload.
pub(super) const ENTRY_HEADER_BYTES: usize = size_of::<EntryHeader>();

const _: () = assert!(size_of::<LanesHeader>() == 44);
const _: () = assert!(size_of::<LanesHeader>() as u64 <= WATERMARK_OFFSET);
const _: () = assert!(ENTRY_HEADER_BYTES == 16);
const _: () = assert!(LANE_BYTES.is_multiple_of(4096));

/// Kind and sequence number in one word.
pub(super) const fn stamp(kind: u8, sequence: u64) -> u64 {
    (kind as u64) << KIND_SHIFT | sequence
}

/// What `stamp` put together; `None` for what it never makes.
pub(super) const fn unstamp(stamp: u64) -> Option<(u8, u64)> {
    let kind = (stamp >> KIND_SHIFT) as u8;
    let sequence = stamp & ((1 << KIND_SHIFT) - 1);
    let is_known = matches!(kind, KIND_COMMIT | KIND_UNDO | KIND_ABORT);
    if is_known && sequence <= SEQUENCE_MAX { Some((kind, sequence)) } else { None }
}

/// What the checksums of a pool's entries are seeded with.
pub(super) fn entry_seed(uuid: &[u8; 16]) -> u32 {
    crc32c(0, uuid)
}

/// The watermark as it is stored: the sequence number and 16 bits that prove it, in one word,
/// because a word reaches the medium whole or not at all.
pub(super) fn watermark_word(uuid: &[u8; 16], sequence: u64) -> u64 {
    let crc = crc32c(entry_seed(uuid), &sequence.to_le_bytes());
    u64::from((crc ^ crc >> 16) as u16) << SEQUENCE_BITS | sequence
}

/// The sequence number in a stored watermark; `None` when it proves itself wrong.
pub(super) fn watermark_of(uuid: &[u8; 16], word: u64) -> Option<u64> {
    let sequence = word & SEQUENCE_MAX;
    let is_sound = watermark_word(uuid, sequence) == word || is_planted("checksum.watermark");
    is_sound.then_some(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_of_a_watermark_is_noticed() {
        let uuid = [7; 16];
        for sequence in [0, 1, 2, 1000, 123_456_789, SEQUENCE_MAX] {
            let word = watermark_word(&uuid, sequence);
            assert_eq!(watermark_of(&uuid, word), Some(sequence));
            for bit in 0..64 {
                assert_eq!(watermark_of(&uuid, word ^ 1 << bit), None, "bit {bit}");
            }
        }
    }

    #[test]
    fn a_stamp_comes_back() {
        assert_eq!(unstamp(stamp(KIND_UNDO, 5)), Some((KIND_UNDO, 5)));
        assert_eq!(unstamp(stamp(KIND_COMMIT, SEQUENCE_MAX)), Some((KIND_COMMIT, SEQUENCE_MAX)));
        assert_eq!(unstamp(0), None);
        assert_eq!(unstamp(stamp(4, 1)), None);
        assert_eq!(unstamp(stamp(KIND_COMMIT, SEQUENCE_MAX + 1)), None);
    }
}
