//! The undo list of a transaction: the ranges it wrote in blocks that existed before it.
//!
//! Purpose: remember the old bytes, so that an `Err` restores them, and which ranges go into the
//! record. The list is in write order, 32 bytes a range plus its old bytes. A write appends to it,
//! and only checks whether the same range was saved a moment ago. The commit sorts the ranges, so
//! that overlapping ranges and neighbours go into the record once.
//! Invariants: a byte is read, saved and restored only if it was declared: its neighbours may
//! belong to a block that another thread has reserved and fills right now. Old bytes are restored
//! from the newest range to the oldest, so each byte ends as it was when the level began, however
//! many ranges hold it.
//! Cost: a declaration is O(its length). Memory grows with the distinct ranges, not with the
//! writes: a list that has doubled drops ranges of which an older one has the same bytes.

use std::ops::Range;

use crate::collections::offset_map::trim;
use crate::error::Result;
use crate::image::mapping::guards::Exclusive;

/// Beyond this many ranges, a list that has doubled drops duplicates.
const DEDUPED_MIN: usize = 1 << 16;

/// Ranges remembered by a hash of their offset: a batch of a thousand changes updates the same
/// counter word a thousand times, and adds to the same leaf some dozens of times.
const RECENT: usize = 1 << 10;
const RECENT_SHIFT: u32 = 64 - RECENT.trailing_zeros();

/// Bytes restored while readers wait: some 100 microseconds.
const RESTORED_BYTES_MAX: u64 = 32 << 10;
/// The cost of restoring a range beside its bytes, in bytes.
const RESTORED_RANGE_BYTES: u64 = 64;

/// The kind of a written range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Saved, and goes into the record.
    Logged,
    /// Goes into the record; no reader needs the old bytes, so none are kept.
    Unsaved,
    /// Saved. An outer level with this number reserved the block, whose bytes go into the record as
    /// a whole.
    Reserved(u32),
}

/// A range that was written.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// Heap offsets.
    start: u64,
    end: u64,
    /// The position of its old bytes in `Ranges::old`.
    at: usize,
    kind: Kind,
}

impl Written {
    /// Its old bytes, in those of all ranges.
    fn old<'o>(&self, old: &'o [u8]) -> &'o [u8] {
        let len = if self.kind == Kind::Unsaved { 0 } else { (self.end - self.start) as usize };
        old.get(self.at..self.at + len).unwrap_or_default()
    }
}

/// The ranges that one level of a transaction wrote.
#[derive(Debug)]
pub(crate) struct Ranges {
    list: Vec<Written>,
    /// The old bytes of all ranges, concatenated.
    old: Vec<u8>,
    /// Positions in the list, by a hash of the offset. A hint: the entry found is compared.
    recent: Box<[u32; RECENT]>,
    /// The number of ranges at which the list drops duplicates.
    deduped_at: usize,
    /// How many ranges `newest_first_once` has shown.
    shown: usize,
}

impl Default for Ranges {
    fn default() -> Self {
        let (list, old, recent) = (Vec::new(), Vec::new(), Box::new([0; RECENT]));
        Self { list, old, recent, deduped_at: DEDUPED_MIN, shown: 0 }
    }
}

/// The slot of an offset in `Ranges::recent`: Knuth's multiplicative hashing.
#[inline]
fn recent_at(offset: u64) -> usize {
    (offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> RECENT_SHIFT) as usize
}

impl Ranges {
    /// Whether the old bytes of a range are known to be saved with that kind. `false` decides
    /// nothing.
    #[inline]
    pub(crate) fn has(&self, range: &Range<u64>, kind: Kind) -> bool {
        let recent = self.recent[recent_at(range.start)];
        self.list.get(recent as usize).is_some_and(|known| {
            known.start <= range.start && range.end <= known.end && known.kind == kind
        })
    }

    /// Adds a range that is about to be written, and its old bytes.
    #[inline]
    pub(crate) fn save(&mut self, range: Range<u64>, old: &[u8], kind: Kind) {
        debug_assert!(range.end - range.start == old.len() as u64, "the bytes of that range");
        if self.list.len() >= self.deduped_at {
            self.dedupe();
        }
        self.recent[recent_at(range.start)] = self.list.len() as u32;
        let at = self.old.len();
        self.old.extend_from_slice(old);
        self.list.push(Written { start: range.start, end: range.end, at, kind });
    }

    /// Adds a range whose old bytes no reader needs. A range that continues the last one is merged
    /// with it: a transaction of any size that appends to a buffer has few.
    #[inline]
    pub(crate) fn add_unsaved(&mut self, range: Range<u64>) {
        match self.list.last_mut() {
            Some(last) if last.kind == Kind::Unsaved && last.end == range.start => {
                last.end = range.end;
            }
            _ => {
                let (at, kind) = (self.old.len(), Kind::Unsaved);
                self.list.push(Written { start: range.start, end: range.end, at, kind });
            }
        }
    }

    /// Drops each range that has an older duplicate of the same bytes and kind: the older one is
    /// restored later. O(n log n); runs again only when the list has doubled.
    #[cold]
    fn dedupe(&mut self) {
        let Self { list, old, .. } = self;
        let key =
            |place: &usize| list.get(*place).map(|known| (known.start, known.end, known.kind));
        let mut places: Vec<usize> = (0..list.len()).collect();
        places.sort_by_key(key);
        places.dedup_by_key(|place| key(place));
        places.sort_unstable();
        let (mut places, mut place, mut end) = (places.into_iter().peekable(), 0, 0);
        list.retain_mut(|known| {
            let stays = places.next_if_eq(&place).is_some();
            place += 1;
            if stays {
                let len = known.old(old).len();
                old.copy_within(known.at..known.at + len, end);
                (known.at, end) = (end, end + len);
            }
            stays
        });
        old.truncate(end);
        self.deduped_at = DEDUPED_MIN.max(2 * self.list.len());
        self.shown = 0;
    }

    /// Restores every saved byte, newest first. With `yields`, admits waiting readers now and then.
    pub(crate) fn restore(&mut self, image: &mut Exclusive<'_>, yields: bool) -> Result<()> {
        let mut bytes = 0;
        let mut put_back = |written: &Written| -> Result<()> {
            let parts = written.old(&self.old).chunks(RESTORED_BYTES_MAX as usize);
            for (old, offset) in parts.zip((written.start..).step_by(RESTORED_BYTES_MAX as usize)) {
                bytes += old.len() as u64 + RESTORED_RANGE_BYTES;
                if yields && bytes > RESTORED_BYTES_MAX && image.are_readers_waiting() {
                    // They stay until the next byte is restored.
                    image.admit_readers();
                    bytes = 0;
                }
                image.bytes_mut(offset, old.len() as u64)?.copy_from_slice(old);
            }
            Ok(())
        };
        self.list.iter().rev().try_for_each(&mut put_back)?;
        self.clear();
        Ok(())
    }

    /// Passes the ranges saved since the last call, and their old bytes, to `show`, newest first.
    pub(crate) fn newest_first_once(&mut self, mut show: impl FnMut(u64, &[u8])) {
        let new = self.list.get(self.shown..).unwrap_or_default();
        new.iter().rev().for_each(|known| show(known.start, known.old(&self.old)));
        self.shown = self.list.len();
    }

    /// Whether restoring all of it takes long.
    pub(crate) fn is_much(&self) -> bool {
        let bytes = self.old.len() as u64 + self.list.len() as u64 * RESTORED_RANGE_BYTES;
        bytes > RESTORED_BYTES_MAX
    }

    /// Moves everything to the outer level, whose number is `depth`: what that level saved itself
    /// is older. Nothing is kept for blocks that the outer level reserved: they go away with it,
    /// and if one is freed first, another thread may be filling it by then.
    pub(crate) fn merge_into(&mut self, outer: &mut Self, depth: usize) {
        for written in &self.list {
            let (range, kind) = (written.start..written.end, written.kind);
            match kind {
                Kind::Unsaved => outer.add_unsaved(range),
                Kind::Reserved(level) if level as usize == depth => {}
                _ if outer.has(&range, kind) => {}
                _ => outer.save(range, written.old(&self.old), kind),
            }
        }
        self.clear();
    }

    /// Whether `count` more ranges need memory.
    pub(crate) fn is_short_of(&self, count: usize) -> bool {
        self.list.capacity() - self.list.len() < count
    }

    /// Takes the memory for `count` more ranges.
    pub(crate) fn make_room(&mut self, count: usize) {
        self.list.reserve(count);
    }

    /// The heap offset of every range that goes into the record, and its position for `range`.
    #[inline]
    pub(crate) fn logged(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let logged = self.list.iter().zip(0..);
        let logged = logged.filter(|(written, _)| !matches!(written.kind, Kind::Reserved(_)));
        logged.map(|(written, place)| (written.start, place))
    }

    /// The range at a position, as heap offsets.
    #[inline]
    pub(crate) fn range(&self, place: u32) -> Range<u64> {
        self.list.get(place as usize).map_or(0..0, |written| written.start..written.end)
    }

    /// Forgets everything, keeping memory unless it is much.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.old.clear();
        self.deduped_at = DEDUPED_MIN;
        self.shown = 0;
        trim(&mut self.list);
        trim(&mut self.old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_doubled_has_each_range_once_and_the_oldest_bytes() {
        let mut random = fastrand::Rng::with_seed(17);
        let (mut ranges, mut oldest, mut found) = (Ranges::default(), [None; 400], [None; 400]);
        let keep = |bytes: &mut [Option<u8>], start: u64, old: &[u8]| {
            for (byte, old) in bytes[start as usize..].iter_mut().zip(old) {
                byte.get_or_insert(*old);
            }
        };
        for step in 0..4 * DEDUPED_MIN as u64 {
            let (start, len) = (random.u64(..390), random.u64(1..9));
            let old = &step.to_le_bytes()[..len as usize];
            keep(&mut oldest, start, old);
            // Some are saved twice, though `has` would find them.
            let is_known = ranges.has(&(start..start + len), Kind::Logged) && step % 3 > 0;
            if !is_known {
                ranges.save(start..start + len, old, Kind::Logged);
            }
        }
        assert!(ranges.list.len() <= DEDUPED_MIN, "{} ranges", ranges.list.len());
        for known in &ranges.list {
            keep(&mut found, known.start, known.old(&ranges.old));
        }
        assert_eq!(found, oldest, "what is put back last is what was there first");
    }

    #[test]
    fn appends_that_are_not_saved_are_one_range() {
        let mut ranges = Ranges::default();
        for at in 0..1000 {
            ranges.add_unsaved(4096 + 10 * at..4106 + 10 * at);
        }
        assert_eq!(ranges.logged().collect::<Vec<_>>(), [(4096, 0)]);
        assert_eq!(ranges.range(0), 4096..14_096);
    }
}
