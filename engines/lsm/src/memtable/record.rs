//! Records of a buffer: a commit's change of a key or a range.
//!
//! Purpose: the record codec: see `docs/format/lsm.md`.
//! Invariants: a record is verified by its checksum, which covers its location: stale bytes of
//! another buffer, or a record at another place of this one, never verify.
//! Thread safety: pure functions.

use adamant_wire::checksum::crc32c;
use adamant_wire::varint;

use super::index_entry::ValuePlace;
use crate::key::{EntryKind, KEY_BYTES_MAX, SEQUENCE_MAX};
use crate::layout::RECORD_SUM_BYTES;
use crate::merge_operator::decode;

/// Takes the place of a kind where a chunk ends before its last byte.
const NO_MORE: u8 = 0;
/// The kind of a range record; other kinds are 1 higher than those of entries.
const RANGE: u8 = 9;
/// Maximum bytes of a record before key and value: checksum, kind, lengths and sequence number.
const HEAD_BYTES_MAX: usize = RECORD_SUM_BYTES + 1 + 3 + 10 + 10;
/// Bytes of an end record, after which a chunk has no more.
pub(super) const END_BYTES: usize = RECORD_SUM_BYTES + 1;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// An entry of that kind.
    Entry(EntryKind),
    /// A range is removed: the key is its start, the value its end.
    Range,
}

/// A record that was read back.
pub(crate) struct Record<'b> {
    pub(crate) said: Said,
    pub(crate) sequence: u64,
    pub(crate) key: &'b [u8],
    pub(crate) value: ValuePlace,
}

/// The header of a record, without its checksum.
pub(super) struct RecordHead {
    bytes: [u8; HEAD_BYTES_MAX],
    len: usize,
}

impl RecordHead {
    pub(super) fn new(said: Said, sequence: u64, key_len: usize, value_len: usize) -> Self {
        let mut bytes = [0; HEAD_BYTES_MAX];
        bytes[RECORD_SUM_BYTES] = match said {
            Said::Entry(kind) => 1 + kind as u8,
            Said::Range => RANGE,
        };
        let mut len = varint::put_in(&mut bytes, RECORD_SUM_BYTES + 1, key_len as u64);
        len = varint::put_in(&mut bytes, len, value_len as u64);
        len = varint::put_in(&mut bytes, len, sequence);
        Self { bytes, len }
    }

    /// Its bytes, including the checksum.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The complete header, with the checksum of a record that begins at `at`.
    pub(super) fn finish(&mut self, at: RecordPlace, key: &[u8], value: &[u8]) -> &[u8] {
        let sum = self.sum(at, key, value);
        self.bytes[..RECORD_SUM_BYTES].copy_from_slice(&sum.to_le_bytes());
        &self.bytes[..self.len]
    }

    /// The checksum of a record that begins at `at`.
    pub(super) fn sum(&self, at: RecordPlace, key: &[u8], value: &[u8]) -> u32 {
        let head = crc32c(at.seed(), &self.bytes[RECORD_SUM_BYTES..self.len]);
        crc32c(crc32c(head, key), value)
    }
}

/// The location of a record.
#[derive(Clone, Copy)]
pub(super) struct RecordPlace {
    /// Heap offset of the buffer.
    pub(super) buffer: u64,
    pub(super) chunk: u32,
    pub(super) at: u32,
}

impl RecordPlace {
    /// The seed of its checksum.
    fn seed(self) -> u32 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.buffer.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.chunk.to_le_bytes());
        bytes[12..].copy_from_slice(&self.at.to_le_bytes());
        crc32c(0, &bytes)
    }

    /// The end record at this location.
    pub(super) fn end(self) -> [u8; END_BYTES] {
        let mut bytes = [NO_MORE; END_BYTES];
        let sum = crc32c(self.seed(), &bytes[RECORD_SUM_BYTES..]);
        bytes[..RECORD_SUM_BYTES].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes the record at this location off the front of bytes; `None` if there is none.
    pub(super) fn take<'b>(self, rest: &mut &'b [u8]) -> Option<Record<'b>> {
        let form = Form::of(rest)?;
        *rest = &rest[form.bytes.len()..];
        self.prove(&form)
    }

    /// Verifies that a form is the record at this location; `None` if its checksum differs.
    pub(super) fn prove<'b>(self, form: &Form<'b>) -> Option<Record<'b>> {
        let (sum, said) = form.bytes.split_first_chunk::<RECORD_SUM_BYTES>()?;
        let expected = crc32c(self.seed(), said);
        if expected != u32::from_le_bytes(*sum) {
            return None;
        }
        let Form { said, sequence, key, value, .. } = *form;
        let value_at = u32::try_from(form.bytes.len() - value.len()).ok()?.checked_add(self.at)?;
        let len = u32::try_from(value.len()).ok()?;
        let value = ValuePlace { chunk: self.chunk, at: value_at, len };
        Some(Record { said, sequence, key, value })
    }
}

/// Bytes that have the form of a record, not verified yet.
pub(super) struct Form<'b> {
    /// All of it.
    pub(super) bytes: &'b [u8],
    said: Said,
    sequence: u64,
    key: &'b [u8],
    value: &'b [u8],
}

impl<'b> Form<'b> {
    /// The form at the front of bytes.
    pub(super) fn of(all: &'b [u8]) -> Option<Self> {
        let (kind, mut rest) = all.get(RECORD_SUM_BYTES..)?.split_first()?;
        let said = match *kind {
            RANGE => Said::Range,
            // Values go to blob files when they are written to tables, not before.
            kind => match EntryKind::from_number(u64::from(kind).checked_sub(1)?)? {
                EntryKind::Blob => return None,
                kind => Said::Entry(kind),
            },
        };
        let key_len = usize::try_from(varint::take(&mut rest)?).ok()?;
        let value_len = u32::try_from(varint::take(&mut rest)?).ok()?;
        let sequence = varint::take(&mut rest)?;
        let (key, rest) = rest.split_at_checked(key_len)?;
        let (value, behind) = rest.split_at_checked(value_len as usize)?;
        let is_key = key_len <= KEY_BYTES_MAX && (1..=SEQUENCE_MAX).contains(&sequence);
        let is_range = key < value && value.len() <= KEY_BYTES_MAX;
        let is_record = is_key
            && match said {
                Said::Range => is_range,
                Said::Entry(EntryKind::Merge) => decode(sequence, value).is_some(),
                Said::Entry(_) => true,
            };
        let bytes = &all[..all.len() - behind.len()];
        is_record.then_some(Self { bytes, said, sequence, key, value })
    }
}
