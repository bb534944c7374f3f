//! Records: the changes of a commit, encoded as payloads of frames.
//!
//! Purpose: to write the changes of a commit compactly, and to read them back.
//! Invariants: the entries of a frame decode on their own; the builder keeps its memory, so that a
//! commit allocates nothing in steady state.
//! Thread safety: a builder belongs to one thread; decoding is pure.
//!
//! See `docs/format/log.md` for the grammar.

use std::ops::Range;

use adamant_wire::{le, varint};

use crate::journal::records::layout::PAYLOAD_BYTES_MAX;
use crate::layout::{PAGE_BYTES, TABLE_BASE};

/// The bases of relative offsets: where the last entry ended, separately for data pages and for
/// descriptors, because these lie 2^46 away and commits alternate between them.
#[derive(Clone, Copy, Debug)]
struct Bases([u64; 2]);

impl Bases {
    const START: Self = Self([0, TABLE_BASE]);

    /// The region that an offset belongs to.
    fn region(offset: u64) -> usize {
        usize::from(offset >= TABLE_BASE)
    }
}

/// Bytes of a word that bits are set and cleared in.
const WORD_BYTES: u64 = 8;
/// Entry kinds, in the low two bits of an entry's first varint.
const KIND_BYTES: u64 = 0;
const KIND_SET: u64 = 1;
const KIND_CLEAR: u64 = 2;
/// Whole pages that become free.
const KIND_HOLE: u64 = 3;
/// Above the kind: one bit for the region. Above that: the distance from its base.
const REGION_SHIFT: u32 = 2;
/// In place of a bit number: a whole mask follows.
const MASK_FOLLOWS: u8 = 64;
/// An entry costs at most this many bytes beside its data: two varints of ten.
const ENTRY_HEAD_BYTES_MAX: usize = 20;

/// Room for entries behind a large range: descriptors and bits of its blocks, and pointers to them.
const ROOM_BEHIND_BYTES: usize = 32 << 10;

/// Memory that is kept for the next record by default: four frames.
const PAYLOAD_BYTES_KEPT: usize = 4 << 20;

/// The entry written last, which the next one may extend.
#[derive(Clone, Copy, Debug)]
enum Open {
    None,
    /// A byte range whose length is at `len_at`, data from `data_at` to the end.
    Bytes {
        end: u64,
        len_at: usize,
        data_at: usize,
    },
    /// Bits of one word; the entry begins at `at`, its region's base was `base`.
    Bits {
        word: u64,
        kind: u64,
        mask: u64,
        at: usize,
        base: u64,
    },
}

/// Collects the changes of one commit.
#[derive(Debug)]
pub(crate) struct RecordBuilder {
    /// Entries of all frames.
    payload: Vec<u8>,
    /// Where in `payload` each finished frame ends; the last one is not in here.
    ends: Vec<usize>,
    /// Bytes of memory that are kept for the next record.
    kept_bytes_max: usize,
    bases: Bases,
    open: Open,
    /// Numbers of the pages whose bytes or bits change; some more than once.
    pages: Vec<Range<u64>>,
}

impl RecordBuilder {
    /// An empty record.
    pub(crate) fn new() -> Self {
        let (payload, ends) = (Vec::new(), Vec::new());
        let (bases, open, pages) = (Bases::START, Open::None, Vec::new());
        Self { payload, ends, kept_bytes_max: PAYLOAD_BYTES_KEPT, bases, open, pages }
    }

    /// The same, which keeps at most `kept_bytes_max` of memory: for one of many builders.
    pub(crate) fn keeping(self, kept_bytes_max: usize) -> Self {
        Self { kept_bytes_max, ..self }
    }

    /// Empties the record; its memory is kept, unless it is much.
    pub(crate) fn clear(&mut self) {
        self.payload.clear();
        if self.payload.capacity() > self.kept_bytes_max {
            self.payload = Vec::new();
        }
        self.ends.clear();
        self.bases = Bases::START;
        self.open = Open::None;
        self.pages.clear();
        if self.pages.capacity() * size_of::<Range<u64>>() > self.kept_bytes_max {
            self.pages = Vec::new();
        }
    }

    /// Frees memory that a large record took. To be called after the append.
    #[inline]
    pub(crate) fn trim(&mut self) {
        let pages_bytes = self.pages.capacity() * size_of::<Range<u64>>();
        if self.payload.capacity().max(pages_bytes) > self.kept_bytes_max {
            self.clear();
        }
    }

    /// Bytes of memory that it has.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.payload.capacity()
    }

    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// The pages, by number, whose bytes or bits change: none that become free.
    pub(crate) fn pages(&self) -> &[Range<u64>] {
        &self.pages
    }

    #[inline]
    fn name_pages(&mut self, offset: u64, len: u64) {
        let (start, end) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        match self.pages.last_mut() {
            Some(last) if last.start <= start && start <= last.end => last.end = last.end.max(end),
            _ => self.pages.push(start..end),
        }
    }

    /// Heap bytes from `offset` on become `bytes`. Extends the entry before if that ends here.
    pub(crate) fn bytes(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.name_pages(offset, bytes.len() as u64);
        if bytes.len() + ENTRY_HEAD_BYTES_MAX < self.room() {
            self.add_bytes(offset, bytes);
        } else {
            self.cut_bytes(offset, bytes);
        }
    }

    /// Adds bytes that may not fit into the rest of a frame.
    #[cold]
    fn cut_bytes(&mut self, mut offset: u64, mut bytes: &[u8]) {
        if bytes.len() > PAYLOAD_BYTES_KEPT {
            // Not much more than the bytes and the next entries take: growing by itself takes up to
            // twice as much, and copies.
            let heads = (bytes.len() / PAYLOAD_BYTES_MAX + 2) * ENTRY_HEAD_BYTES_MAX;
            self.payload.reserve_exact(bytes.len() + heads + ROOM_BEHIND_BYTES);
        }
        while !bytes.is_empty() {
            let room = self.room();
            if room <= ENTRY_HEAD_BYTES_MAX {
                self.end_frame();
                continue;
            }
            let taken = bytes.len().min(room - ENTRY_HEAD_BYTES_MAX);
            let (now, rest) = bytes.split_at(taken);
            self.add_bytes(offset, now);
            offset += taken as u64;
            bytes = rest;
        }
    }

    /// Sets the bits of `mask` in the little-endian word at `word_offset`, a multiple of 8.
    pub(crate) fn set_bits(&mut self, word_offset: u64, mask: u64) {
        self.add_bits(word_offset, KIND_SET, mask);
    }

    /// Clears the bits of `mask` in the little-endian word at `word_offset`, a multiple of 8.
    pub(crate) fn clear_bits(&mut self, word_offset: u64, mask: u64) {
        self.add_bits(word_offset, KIND_CLEAR, mask);
    }

    /// The whole pages from `offset` on are free, and zero from now on.
    pub(crate) fn hole(&mut self, offset: u64, len: u64) {
        if self.room() < ENTRY_HEAD_BYTES_MAX {
            self.end_frame();
        }
        self.put_head(offset, KIND_HOLE);
        varint::put(&mut self.payload, len);
        self.bases.0[Bases::region(offset)] = offset + len;
        self.open = Open::None;
    }

    /// The entries of each frame in turn; a last one always exists.
    pub(in crate::journal) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ends = self.ends.iter().copied().chain(std::iter::once(self.payload.len()));
        starts.zip(ends).map(|(start, end)| &self.payload[start..end])
    }

    /// Length of the entries, if the record is one frame.
    pub(in crate::journal) fn bytes_if_one_frame(&self) -> Option<usize> {
        self.ends.is_empty().then_some(self.payload.len())
    }

    /// Frames in all, at least one.
    pub(in crate::journal) fn frame_count(&self) -> usize {
        self.ends.len() + 1
    }

    fn room(&self) -> usize {
        let start = self.ends.last().copied().unwrap_or(0);
        PAYLOAD_BYTES_MAX - (self.payload.len() - start)
    }

    fn end_frame(&mut self) {
        self.ends.push(self.payload.len());
        self.bases = Bases::START;
        self.open = Open::None;
    }

    /// The first varint of an entry.
    #[inline]
    fn head(&self, offset: u64, kind: u64) -> u64 {
        let region = Bases::region(offset);
        let delta = offset.wrapping_sub(self.bases.0[region]).cast_signed();
        let head = varint::zigzag(delta) << REGION_SHIFT << 1 | (region as u64) << REGION_SHIFT;
        head | kind
    }

    fn put_head(&mut self, offset: u64, kind: u64) {
        let head = self.head(offset, kind);
        varint::put(&mut self.payload, head);
    }

    fn add_bytes(&mut self, offset: u64, bytes: &[u8]) {
        if let Open::Bytes { end, len_at, data_at } = self.open
            && end == offset
        {
            self.extend_bytes(len_at, data_at, bytes);
        } else {
            let mut head = [0; ENTRY_HEAD_BYTES_MAX];
            let head_len = varint::put_in(&mut head, 0, self.head(offset, KIND_BYTES));
            let both_len = varint::put_in(&mut head, head_len, bytes.len() as u64);
            let at = self.payload.len();
            let (len_at, data_at) = (at + head_len, at + both_len);
            self.payload.reserve(ENTRY_HEAD_BYTES_MAX + bytes.len());
            // Append in full, then truncate: a copy of constant length is inlined.
            self.payload.extend_from_slice(&head);
            self.payload.truncate(data_at);
            self.payload.extend_from_slice(bytes);
            self.open = Open::Bytes { end: 0, len_at, data_at };
        }
        let ends = offset + bytes.len() as u64;
        self.bases.0[Bases::region(offset)] = ends;
        if let Open::Bytes { end, .. } = &mut self.open {
            *end = ends;
        }
    }

    /// The length was written before the data; where it now takes more bytes, the data moves.
    fn extend_bytes(&mut self, len_at: usize, data_at: usize, bytes: &[u8]) {
        let len = (self.payload.len() - data_at + bytes.len()) as u64;
        let mut data_at = data_at;
        while data_at - len_at < varint::len(len) {
            self.payload.insert(data_at, 0);
            data_at += 1;
        }
        let mut value = len;
        for byte in &mut self.payload[len_at..data_at - 1] {
            *byte = value as u8 | 0x80;
            value >>= 7;
        }
        self.payload[data_at - 1] = value as u8;
        self.payload.extend_from_slice(bytes);
        self.open = Open::Bytes { end: 0, len_at, data_at };
    }

    fn add_bits(&mut self, word: u64, kind: u64, mask: u64) {
        debug_assert!(word.is_multiple_of(WORD_BYTES), "bits belong to an aligned word");
        if mask == 0 {
            return;
        }
        self.name_pages(word, WORD_BYTES);
        let (mut mask, region) = (mask, Bases::region(word));
        match self.open {
            Open::Bits { word: open, kind: open_kind, mask: open_mask, at, base }
                if open == word && open_kind == kind =>
            {
                self.payload.truncate(at);
                self.bases.0[region] = base;
                mask |= open_mask;
            }
            _ if self.room() < ENTRY_HEAD_BYTES_MAX => self.end_frame(),
            _ => {}
        }
        let (at, base) = (self.payload.len(), self.bases.0[region]);
        self.put_head(word, kind);
        if mask.is_power_of_two() {
            self.payload.push(mask.trailing_zeros() as u8);
        } else {
            self.payload.push(MASK_FOLLOWS);
            le::put_u64(&mut self.payload, mask);
        }
        self.bases.0[region] = word + WORD_BYTES;
        self.open = Open::Bits { word, kind, mask, at, base };
    }
}

/// One change of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    /// Heap bytes from an offset on.
    Bytes { offset: u64, bytes: &'a [u8] },
    /// Bits to set in the word at an offset.
    Set { offset: u64, mask: u64 },
    /// Bits to clear in the word at an offset.
    Clear { offset: u64, mask: u64 },
    /// Whole pages that are free, and zero from now on.
    Hole { offset: u64, len: u64 },
}

impl Entry<'_> {
    /// Heap offset and length of the bytes that it changes.
    pub(in crate::journal) fn range(&self) -> (u64, u64) {
        match *self {
            Self::Bytes { offset, bytes } => (offset, bytes.len() as u64),
            Self::Set { offset, .. } | Self::Clear { offset, .. } => (offset, WORD_BYTES),
            Self::Hole { offset, len } => (offset, len),
        }
    }
}

/// Decodes the entries of one frame; an item is an error, in words, for invalid bytes.
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    input: &'a [u8],
    bases: Bases,
}

impl<'a> Entries<'a> {
    /// The entries in `input`: a frame's payload, without the head of a commit frame.
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self { input, bases: Bases::START }
    }

    fn take(&mut self) -> Option<Result<Entry<'a>, &'static str>> {
        const CUT: &str = "an entry of the record is cut short";
        let Some(head) = varint::take(&mut self.input) else { return Some(Err(CUT)) };
        let kind = head & ((1 << REGION_SHIFT) - 1);
        let base = &mut self.bases.0[(head >> REGION_SHIFT & 1) as usize];
        let offset = base.wrapping_add_signed(varint::unzigzag(head >> REGION_SHIFT >> 1));
        if kind == KIND_BYTES {
            let len = varint::take(&mut self.input).and_then(|len| usize::try_from(len).ok());
            let Some((bytes, rest)) = len.and_then(|len| self.input.split_at_checked(len)) else {
                return Some(Err(CUT));
            };
            self.input = rest;
            *base = offset.wrapping_add(bytes.len() as u64);
            return Some(Ok(Entry::Bytes { offset, bytes }));
        }
        if kind == KIND_HOLE {
            let Some(len) = varint::take(&mut self.input) else { return Some(Err(CUT)) };
            *base = offset.wrapping_add(len);
            return Some(Ok(Entry::Hole { offset, len }));
        }
        let Some((&bit, rest)) = self.input.split_first() else { return Some(Err(CUT)) };
        self.input = rest;
        let mask = match bit {
            0..64 => 1 << bit,
            MASK_FOLLOWS => {
                let Some(mask) = le::u64_at(self.input, 0) else { return Some(Err(CUT)) };
                self.input = &self.input[8..];
                mask
            }
            _ => return Some(Err("a bit number of the record is above 64")),
        };
        if !offset.is_multiple_of(WORD_BYTES) {
            return Some(Err("bits of the record belong to a word that is not aligned"));
        }
        *base = offset.wrapping_add(WORD_BYTES);
        match kind {
            KIND_SET => Some(Ok(Entry::Set { offset, mask })),
            _ => Some(Ok(Entry::Clear { offset, mask })),
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.input.is_empty() {
            return None;
        }
        let entry = self.take()?;
        if entry.is_err() {
            self.input = &[];
        }
        Some(entry)
    }
}

/// Bytes of the head of a commit frame at most: two varints of ten bytes and a checksum.
pub(in crate::journal) const COMMIT_HEAD_BYTES_MAX: usize = 24;

/// The head of a commit frame, before its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) struct CommitHead {
    /// Sequence number of the record, less the highest one known durable when it was written.
    pub(in crate::journal) lag: u64,
    /// Part frames before the commit frame.
    pub(in crate::journal) parts: u64,
    /// CRC32C over the checksums of the parts, in order; 0 without parts.
    pub(in crate::journal) parts_crc: u32,
}

impl CommitHead {
    /// Appends the head to `out`.
    pub(in crate::journal) fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.lag);
        varint::put(out, self.parts);
        if self.parts > 0 {
            le::put_u32(out, self.parts_crc);
        }
    }

    /// Takes the head off a commit frame's payload; `None` if it is cut short.
    pub(in crate::journal) fn take(payload: &mut &[u8]) -> Option<Self> {
        let lag = varint::take(payload)?;
        let parts = varint::take(payload)?;
        let mut parts_crc = 0;
        if parts > 0 {
            parts_crc = le::u32_at(payload, 0)?;
            *payload = &payload[4..];
        }
        Some(Self { lag, parts, parts_crc })
    }
}
