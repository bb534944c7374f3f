//! Entries of a lane, as bytes.
//!
//! Purpose: to write an entry, and to tell a whole one from anything else.
//! Invariants: `build` and `parse` are inverse; a flipped bit of an entry makes `parse` fail.
//! Thread safety: pure functions.

use adamant_wire::checksum::crc32c;
use adamant_wire::mutants::is_planted;
use adamant_wire::{le, varint};
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{ENTRY_ALIGN, ENTRY_HEADER_BYTES, EntryHeader, KIND_COMMIT, stamp, unstamp};

/// Bytes of a payload before its changes at most, but for what names other sequence numbers:
/// two varints and the checksum with its mark.
const HEAD_BYTES_MAX: u64 = 10 + 10 + 5;
/// Bytes that naming one other sequence number takes at most.
const NAME_BYTES_MAX: u64 = 10;

/// Changes of fewer bytes than that are copied to what comes before them. More than a line.
const WHOLE_BYTES_MIN: usize = 512;

/// What an entry says beside its changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) sequence: u64,
    /// The first undo entry of the transaction; 0 when it has none.
    pub(super) group: u64,
    /// Sequence numbers below this one's whose fence was not known complete.
    pub(super) in_flight: Vec<u64>,
    /// Commits: the checksum over the fresh bytes that share the commit's fence.
    pub(super) fresh_crc: Option<u32>,
}

/// Bytes that an entry takes at most.
pub(super) fn entry_bytes_max(changes_bytes: usize, in_flight_max: usize) -> u64 {
    let named = in_flight_max as u64 * NAME_BYTES_MAX;
    entry_span(ENTRY_HEADER_BYTES as u64 + HEAD_BYTES_MAX + named + changes_bytes as u64)
}

/// Bytes that an entry of so many bytes occupies.
pub(super) fn entry_span(bytes: u64) -> u64 {
    bytes.next_multiple_of(ENTRY_ALIGN)
}

/// Puts an entry together in `ends`, replacing what is there, but for whole lines of its changes:
/// those, if there are many, stay where they lie. Returns them, and how much of `ends` comes before
/// them. The rest is filled up to whole lines with zeros: they are stored past the caches, which takes
/// two thirds of the time.
pub(super) fn build<'c>(
    ends: &mut Vec<u8>,
    seed: u32,
    head: &Head,
    changes: &'c [u8],
) -> (&'c [u8], usize) {
    ends.clear();
    ends.extend_from_slice(&[0; ENTRY_HEADER_BYTES]);
    let group = if head.group == 0 { 0 } else { head.sequence - head.group + 1 };
    varint::put(ends, group);
    varint::put(ends, head.in_flight.len() as u64);
    for sequence in &head.in_flight {
        varint::put(ends, head.sequence - sequence);
    }
    if head.kind == KIND_COMMIT {
        ends.push(head.fresh_crc.is_some().into());
        if let Some(crc) = head.fresh_crc {
            le::put_u32(ends, crc);
        }
    }
    let mut header = EntryHeader {
        crc: 0.into(),
        len: ((ends.len() - ENTRY_HEADER_BYTES + changes.len()) as u32).into(),
        stamp: stamp(head.kind, head.sequence).into(),
    };
    ends[..ENTRY_HEADER_BYTES].copy_from_slice(header.as_bytes());
    let (whole, before) = if changes.len() < WHOLE_BYTES_MIN {
        // At once: a checksum of few bytes is mostly the call.
        ends.extend_from_slice(changes);
        header.crc = crc32c(seed, &ends[4..]).into();
        (&changes[..0], ends.len())
    } else {
        header.crc = crc32c(crc32c(seed, &ends[4..]), changes).into();
        let line = ENTRY_ALIGN as usize;
        let (first, rest) = changes.split_at(ends.len().next_multiple_of(line) - ends.len());
        let (whole, last) = rest.split_at(rest.len() / line * line);
        ends.extend_from_slice(first);
        let before = ends.len();
        ends.extend_from_slice(last);
        (whole, before)
    };
    ends[..4].copy_from_slice(header.crc.as_bytes());
    ends.resize(entry_span(ends.len() as u64) as usize, 0);
    (whole, if whole.is_empty() { ends.len() } else { before })
}

/// What the header at the start of `bytes` says, if one can be there: sequence number, kind, and
/// the bytes of the entry. Proves nothing.
pub(super) fn peek(bytes: &[u8]) -> Option<(u8, u64, usize)> {
    let (header, _) = EntryHeader::read_from_prefix(bytes).ok()?;
    let (kind, sequence) = unstamp(header.stamp.get())?;
    let len = ENTRY_HEADER_BYTES + header.len.get() as usize;
    (len <= bytes.len()).then_some((kind, sequence, len))
}

/// The entry at the start of `bytes`, with the changes in it; `None` when there is none.
pub(super) fn parse(seed: u32, bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (_, _, len) = peek(bytes)?;
    let entry = &bytes[..len];
    let is_sound = le::u32_at(entry, 0)? == crc32c(seed, &entry[4..]);
    if !is_sound && !is_planted("checksum.lane-entry") {
        return None;
    }
    decode(entry)
}

/// As `parse`, for an entry that this process wrote.
pub(super) fn decode(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (kind, sequence, len) = peek(bytes)?;
    let entry = &bytes[..len];
    let mut rest = &entry[ENTRY_HEADER_BYTES..];
    let group = match varint::take(&mut rest)? {
        0 => 0,
        distance => (sequence + 1).checked_sub(distance)?,
    };
    let count = varint::take(&mut rest)?;
    let mut in_flight = Vec::new();
    for _ in 0..count {
        in_flight.push(sequence.checked_sub(varint::take(&mut rest)?)?);
    }
    let mut fresh_crc = None;
    if kind == KIND_COMMIT {
        let (&mark, after) = rest.split_first()?;
        rest = after;
        if mark == 1 {
            fresh_crc = Some(le::u32_at(rest, 0)?);
            rest = &rest[4..];
        }
    }
    Some((Head { kind, sequence, group, in_flight, fresh_crc }, rest))
}

#[cfg(test)]
mod tests {
    use super::super::layout::{KIND_ABORT, KIND_UNDO};
    use super::*;

    fn heads() -> Vec<Head> {
        let head = |kind, sequence, group, in_flight, fresh_crc| Head {
            kind,
            sequence,
            group,
            in_flight,
            fresh_crc,
        };
        vec![
            head(KIND_COMMIT, 1, 0, vec![], None),
            head(KIND_COMMIT, 900, 890, vec![899, 3], Some(0xDEAD_BEEF)),
            head(KIND_UNDO, 900, 900, vec![], None),
            head(KIND_ABORT, 900, 2, vec![1, 2, 3], None),
        ]
    }

    /// All bytes of an entry, as they lie in a lane.
    fn entry(seed: u32, head: &Head, changes: &[u8]) -> Vec<u8> {
        let mut ends = Vec::new();
        let (whole, before) = build(&mut ends, seed, head, changes);
        assert!(whole.is_empty() || before.is_multiple_of(ENTRY_ALIGN as usize));
        [&ends[..before], whole, &ends[before..]].concat()
    }

    #[test]
    fn entries_come_back_and_stay_within_the_bound() {
        let mut random = fastrand::Rng::with_seed(3);
        for head in heads() {
            for len in (0..200).chain([511, 512, 575, 576, 577, 1000, 4096, 10_000]) {
                let changes: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
                let mut out = entry(7, &head, &changes);
                assert!(out.len() as u64 <= entry_bytes_max(changes.len(), head.in_flight.len()));
                let (_, _, len) = peek(&out).expect("an entry");
                assert_eq!(peek(&out), Some((head.kind, head.sequence, len)));
                assert_eq!(out.len() as u64, entry_span(len as u64));
                assert!(out[len..].iter().all(|byte| *byte == 0));
                out.extend_from_slice(b"behind it");
                assert_eq!(parse(7, &out), Some((head.clone(), &changes[..])));
                assert_eq!(parse(8, &out), None, "of another pool");
            }
        }
    }

    #[test]
    fn a_flipped_bit_or_a_cut_is_noticed() {
        for head in heads() {
            let mut out = entry(7, &head, b"changes");
            out.truncate(peek(&out).expect("an entry").2);
            for cut in 0..out.len() {
                assert_eq!(parse(7, &out[..cut]), None);
            }
            for bit in 0..out.len() * 8 {
                out[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(parse(7, &out), None, "bit {bit}");
                out[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn any_payload_under_a_checksum_that_fits_is_no_panic() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let mut out = entry(7, &heads()[random.usize(..4)], b"changes");
            out.truncate(peek(&out).expect("an entry").2);
            let at = random.usize(4..out.len());
            out[at] = random.u8(..);
            let crc = crc32c(7, &out[4..]);
            out[..4].copy_from_slice(&crc.to_le_bytes());
            let _ = parse(7, &out);
        }
    }
}
