//! Tags: 16 bits of its key beside each entry's offset in a leaf's slot.
//!
//! Purpose: tags ascend with the keys, so that a scan finds where it begins in an unsorted leaf,
//! and the order of its entries, without reading their keys; entries with equal tags alone are
//! compared. Beside a fingerprint, which is a byte of the key's hash, they also tell a get that an
//! entry is not its own.
//! Invariants: all keys that the leaf's fences admit begin with the same `shared` bits, bytes
//! beyond a key's end counted as zeros: so equal keys have equal tags, and a lower key never has a
//! higher one. Splits narrow the fences, which keeps that true; a merge widens them, and writes the
//! tags anew. Trees of format 1 have bits of the key's hash as tags: their leaves stay as they are.

use adamant_heap::access::Read;
use adamant_wire::key::{common_len, head_of};
use zerocopy::little_endian::U64;

use crate::error::Result;
use crate::slot::{Entry, KeyHash, Slot};

/// A leaf whose tags could skip so many more bits is tagged anew when it splits: then 12 bits at
/// least tell its keys apart, for 5 bytes of the log for each of the slots that stay.
const GAIN_BITS_MIN: u64 = 4;

/// How a leaf's slots are tagged: 0 by hashes, else 1 and the bits that are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tagging(u64);

impl Tagging {
    /// Upper 16 bits of the key's hash: format 1.
    pub(super) const HASHED: Self = Self(0);
    /// The first 16 bits of the key.
    pub(super) const WHOLE: Self = Self(1);

    /// As a leaf stores it.
    pub(super) fn of(stored: U64) -> Self {
        Self(stored.get())
    }

    /// As a leaf stores it.
    pub(super) fn stored(self) -> u64 {
        self.0
    }

    /// That of keys from `lower` on and below `upper`.
    pub(super) fn between(lower: &[u8], upper: Option<&[u8]>) -> Self {
        let Some(upper) = upper else { return Self::WHOLE };
        let shared = common_len(lower, upper);
        let byte = |key: &[u8]| key.get(shared).copied().unwrap_or(0);
        let bits = (byte(lower) ^ byte(upper)).leading_zeros();
        Self(1 + 8 * shared as u64 + u64::from(bits))
    }

    /// That of keys from `lower` on and below `upper`, in a tree with leaves that are tagged as
    /// this.
    pub(super) fn narrowed(self, lower: &[u8], upper: Option<&[u8]>) -> Self {
        if self.is_ordered() { Self::between(lower, upper) } else { Self::HASHED }
    }

    /// Whether tags ascend with the keys.
    #[inline]
    pub(super) fn is_ordered(self) -> bool {
        self != Self::HASHED
    }

    /// Whether tags of this kind are right wherever those of `narrower` are.
    pub(super) fn admits(self, narrower: Self) -> bool {
        self.is_ordered() == narrower.is_ordered() && self.0 <= narrower.0
    }

    /// `narrower` if it skips enough bits more.
    pub(super) fn gained(self, narrower: Self) -> Self {
        if narrower.0 >= self.0.saturating_add(GAIN_BITS_MIN) { narrower } else { self }
    }

    /// The same with some bits fewer, so that the next merges need not write tags anew. For ordered
    /// tags: no merge writes those of format 1 anew.
    pub(super) fn for_merges(self) -> Self {
        Self(self.0.saturating_sub(GAIN_BITS_MIN - 1).max(Self::WHOLE.0))
    }

    /// Prefetches what [`Tagging::retag`] will read of slots of a leaf that is tagged `source`.
    pub(super) fn prefetch<R: Read>(
        self,
        read: &R,
        slots: impl Iterator<Item = Slot>,
        source: Self,
    ) {
        if self.0 > source.0 {
            slots.for_each(|slot| read.prefetch(slot.entry()));
        }
    }

    /// The tag of a key.
    #[inline]
    pub(super) fn tag(self, hash: KeyHash, key: &[u8]) -> u16 {
        if self.is_ordered() { self.ordered_tag(key) } else { hash.tag() }
    }

    /// The tag of a key where tags are ordered.
    #[inline]
    pub(super) fn ordered_tag(self, key: &[u8]) -> u16 {
        let shared = self.0.saturating_sub(1);
        (head_of(key, (shared / 8) as usize) << (shared % 8) >> 48) as u16
    }

    /// A slot of a leaf that is tagged `source` and whose keys begin at `lower`, with the tag that
    /// it has here. Its entry is read only if its tag has too few bits.
    pub(super) fn retag<R: Read>(
        self,
        read: &R,
        slot: Slot,
        (source, lower): (Self, &[u8]),
    ) -> Result<Slot> {
        if !self.is_ordered() {
            return Ok(slot);
        }
        let tag = match source.0.checked_sub(self.0) {
            // All keys there have these bits more in common, with the lower bound, too.
            Some(more @ 0..16) => {
                self.ordered_tag(lower) & !(u16::MAX >> more) | slot.tag() >> more
            }
            Some(_) => self.ordered_tag(lower),
            None => self.ordered_tag(Entry::read(read, slot.entry())?.key),
        };
        Ok(Slot::tagged(tag, slot.entry()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap of which nothing can be read.
    struct Unread;

    impl Read for Unread {
        fn block(&self, offset: u64) -> adamant_heap::Result<&[u8]> {
            Err(adamant_heap::Error::InvalidPointer { offset, what: "is not to be read" })
        }

        fn prefetch(&self, _: u64) {}
    }

    #[test]
    fn tags_ascend_with_the_keys_between_two_fences() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..2_000 {
            let mut keys: Vec<Vec<u8>> = (0..8)
                .map(|_| {
                    let bytes = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
                    (0..random.usize(..6)).map(|_| bytes[random.usize(..bytes.len())]).collect()
                })
                .collect();
            keys.sort();
            let (lower, upper) = (keys[0].clone(), keys.pop().expect("eight"));
            if lower == upper {
                continue;
            }
            let tagging = Tagging::between(&lower, Some(&upper[..]));
            let tags: Vec<u16> =
                keys.iter().map(|key| tagging.tag(KeyHash::of(key), key)).collect();
            assert!(tags.is_sorted(), "{keys:?} below {upper:?}: {tags:?}");
            // Those of wider bounds follow from them: no entry is read.
            let shared = random.u64(..tagging.0);
            for wider in [Tagging::WHOLE, Tagging(1 + shared)] {
                assert!(wider.admits(tagging));
                for (key, tag) in keys.iter().zip(&tags) {
                    let slot = Slot::tagged(*tag, 7);
                    let slot = wider.retag(&Unread, slot, (tagging, &lower)).expect("no read");
                    assert_eq!(slot, Slot::tagged(wider.ordered_tag(key), 7), "{key:?}, {wider:?}");
                }
            }
        }
    }
}
