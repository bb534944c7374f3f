//! The persistent layout of the pool file: every durable byte, and nothing volatile.
//!
//! Purpose: the constants and structures shared by all code that reads or writes a pool. See
//! `docs/format/pool.md` for the file, `docs/format/heap.md` for its contents and
//! `docs/format/roots.md` for the directory of named roots.
//!
//! A pool file is a head of 64 KiB followed by zones. A zone holds the page checksums, the page
//! descriptors and 256 MiB of data pages. In memory all data pages form one linear range (heap
//! offset 0 is data page 0), and all descriptors another one, addressed from `TABLE_BASE`.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a page: the unit of allocation of extents, of checksums and of the pool file.
pub const PAGE_BYTES: u64 = 4096;
/// Data pages of a zone: 256 MiB.
pub const ZONE_PAGES: u64 = 65_536;
/// Data bytes of a zone.
pub const ZONE_BYTES: u64 = ZONE_PAGES * PAGE_BYTES;
/// Bytes of one page descriptor.
pub const DESCRIPTOR_BYTES: u64 = 8;
/// Pages of a zone's descriptor table.
pub const ZONE_TABLE_PAGES: u64 = ZONE_PAGES * DESCRIPTOR_BYTES / PAGE_BYTES;
/// Pages of a zone's checksum region: one CRC32C for each descriptor and data page.
pub const ZONE_SUMS_PAGES: u64 = ((ZONE_PAGES + ZONE_TABLE_PAGES) * 4).div_ceil(PAGE_BYTES);
/// Bytes of the head of a pool file: pool header, two checkpoint slots, two tables of doubt.
pub const HEAD_BYTES: u64 = 65_536;
/// Distance between the starts of two zones in the file.
pub const ZONE_STRIDE: u64 = (ZONE_SUMS_PAGES + ZONE_TABLE_PAGES + ZONE_PAGES) * PAGE_BYTES;
/// Heap offsets from here on address the descriptor tables: descriptor of data page `p` lies at
/// `TABLE_BASE + 8 * p`.
pub const TABLE_BASE: u64 = 1 << 46;
/// The largest address range that a heap asks for: 1 TiB.
pub const HEAP_BYTES_MAX: u64 = 1 << 40;
/// File offset of the pool header.
pub const POOL_HEADER_OFFSET: u64 = 0;
/// File offsets of the two checkpoint slots.
pub const CHECKPOINT_OFFSETS: [u64; 2] = [4096, 8192];
/// File offsets of the two tables of doubt.
pub const DOUBT_OFFSETS: [u64; 2] = [12_288, 36_864];
/// File offset of the last batch that overwrote pages without keeping them for readers: see
/// [`Unkept`].
pub const UNKEPT_OFFSET: u64 = HEAD_BYTES - PAGE_BYTES;
/// The two words by which readers in other processes wait for records. Nothing else is stored to
/// memory that the pool shares.
pub const BELL_OFFSET: u64 = UNKEPT_OFFSET + PAGE_BYTES / 2;
/// The most entries of a table of doubt.
pub const DOUBT_PAGES_MAX: usize = 2045;
/// Bytes of a table of doubt.
pub const DOUBT_BYTES: u64 = 24_576;
/// First bytes of every pool file.
pub const POOL_MAGIC: [u8; 8] = *b"ADAMANT\x01";
/// The format version that this code writes.
pub const FORMAT_VERSION: u32 = 1;

/// Incompat feature: the pool has the undo journal that earlier versions had, and pages without
/// checksums. Such a pool is refused (`docs/decisions/0105-one-journal.md`).
pub const INCOMPAT_UNDO_JOURNAL: u64 = 1;

/// Name of the pool file.
pub(crate) const POOL_NAME: &str = "pool";
/// Name of a pool file under construction.
pub(crate) const POOL_NEW_NAME: &str = "pool.new";
/// Name of the directory of the log.
pub(crate) const LOG_NAME: &str = "log";
/// Name of the log directory while it gets its name back.
pub(crate) const LOG_NEW_NAME: &str = "log.new";

/// Heap offset of the root page.
pub const ROOT_OFFSET: u64 = 0;
/// Heap offset of the class table.
pub const CLASS_TABLE_OFFSET: u64 = PAGE_BYTES;
/// The first data page that can be allocated.
pub const FIRST_PAGE: u64 = 2;
/// Entries of the class table.
pub const CLASS_COUNT_MAX: usize = 255;
/// Heap offset of the field `pages_end` of the root page.
pub const ROOT_PAGES_END: u64 = ROOT_OFFSET + 8;
/// Heap offset of the field `class_count` of the root page.
pub const ROOT_CLASS_COUNT: u64 = ROOT_OFFSET + 16;
/// Byte of the first root's word in the root page.
pub const ROOT_WORDS: u64 = 24;
/// Root words, for the users of a heap.
pub const ROOT_COUNT: usize = 16;
/// The root word of the directory of named roots, the last one.
pub const DIRECTORY_ROOT: usize = ROOT_COUNT - 1;
/// The most named roots.
pub const NAMED_ROOT_COUNT_MAX: usize = 1024;
/// The most bytes of the name of a root, or of a type.
pub const NAME_BYTES_MAX: usize = 255;
/// Every block starts at a multiple of this many bytes.
pub const BLOCK_ALIGNMENT: u64 = 8;
/// First bytes of the directory of named roots.
pub const DIRECTORY_MAGIC: [u8; 8] = *b"AdamDir\x01";
/// First bytes of the root page.
pub const ROOT_MAGIC: [u8; 8] = *b"AdamHeap";

/// The pool header: written once, when the pool is created.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PoolHeader {
    /// `POOL_MAGIC`.
    pub magic: [u8; 8],
    /// Format version.
    pub version: U32,
    /// Bytes of a page.
    pub page_bytes: U32,
    /// Features that any reader may ignore.
    pub compat: U64,
    /// Features that a reader may ignore when it does not write.
    pub ro_compat: U64,
    /// Features that must be known to open the pool at all.
    pub incompat: U64,
    /// Identity of the pool; logs carry it too.
    pub uuid: [u8; 16],
    /// CRC32C of all bytes before this field.
    pub checksum: U32,
}

/// A checkpoint: how much of the log the pool file holds. Two slots, written in turn.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Checkpoint {
    /// Counts checkpoints; the valid slot with the higher number counts.
    pub number: U64,
    /// Generation of the log that continues from here.
    pub generation: U64,
    /// Sequence number of the last record that is in the pool.
    pub applied: U64,
    /// Highest sequence number known durable when this was written.
    pub durable: U64,
    /// Ordinal of the log file of the first record that is not in the pool.
    pub ordinal: U64,
    /// Byte offset of that record in its log file; 0 if the pool holds everything and no record
    /// follows, whatever is in the log files.
    pub position: U64,
    /// Data pages that the file backed: a shorter file has been cut.
    pub pages: U64,
    /// 1: an applier of an earlier version was about to change pages, so those that the log names
    /// from here on may be torn. 0: every page matches its checksum.
    pub applying: U64,
    /// CRC of the frame before that record: the chain continues from it.
    pub previous: U32,
    /// CRC32C of the pool's UUID and all bytes before this field.
    pub checksum: U32,
}

/// Head of a table of doubt: the pages that a batch of a checkpoint is about to write. Two tables,
/// written in turn.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DoubtHeader {
    /// Number of the checkpoint in progress: one above the newest slot's.
    pub number: U64,
    /// Counts the batches of that checkpoint.
    pub batch: U64,
    /// Highest sequence number that was durable: the pages show no later record.
    pub durable: U64,
    /// Entries that follow.
    pub count: U32,
    /// CRC32C of the pool's UUID, all bytes before this field, and the entries.
    pub checksum: U32,
}

/// The last batch whose pages were overwritten without being kept, though a reader may have been
/// there. All zeros: there was none. Not durable: no reader outlives the system.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Unkept {
    /// Number of the checkpoint.
    pub number: U64,
    /// Number of the batch within it.
    pub batch: U64,
    /// CRC32C of the pool's UUID, and the bytes before this field.
    pub checksum: U32,
}

/// One entry of a table of doubt.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DoubtEntry {
    /// Number of the page; with `DOUBT_OF_TABLE` for a page of descriptors.
    pub page: U32,
    /// The checksum before the write.
    pub checksum_before: U32,
    /// The checksum after the write.
    pub checksum_after: U32,
}

/// Bit of [`DoubtEntry::page`]: the page is a page of descriptors.
pub const DOUBT_OF_TABLE: u32 = 1 << 31;

/// The root page of the heap, at heap offset 0.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct HeapRoot {
    /// `ROOT_MAGIC`.
    pub magic: [u8; 8],
    /// One past the last data page that was ever allocated.
    pub pages_end: U64,
    /// Entries of the class table in use.
    pub class_count: U64,
    /// Root words: the users of the heap define their meaning; 0 means none.
    pub roots: [U64; ROOT_COUNT],
}

/// Head of the directory of named roots; its entries follow, in the order of their names.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DirectoryHeader {
    /// `DIRECTORY_MAGIC`.
    pub magic: [u8; 8],
    /// Bytes of the directory, this header included.
    pub bytes: U32,
    /// Entries.
    pub count: U32,
    /// Byte order of the machine that stores objects here: 1 little-endian, 2 big-endian.
    pub byte_order: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// CRC32C of all bytes before this field and all entries.
    pub checksum: U32,
}

/// One entry of the directory; the name of the root and that of the type follow it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DirectoryEntry {
    /// Heap offset of the object.
    pub offset: U64,
    /// Id of its type.
    pub type_id: U64,
    /// Bytes of the object.
    pub object_bytes: U64,
    /// Version of its type.
    pub version: U32,
    /// Bytes of the name of the root.
    pub name_bytes: u8,
    /// Bytes of the name of the type.
    pub type_name_bytes: u8,
    /// Zero.
    pub reserved: [u8; 2],
}

/// One entry of the class table.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ClassEntry {
    /// Bytes of a block.
    pub block_bytes: U32,
    /// Blocks of a run.
    pub block_count: U32,
    /// Bytes from the start of the run to its first block.
    pub blocks_start: U16,
    /// Pages of a run.
    pub run_pages: U16,
    /// 1: the bitmap is the upper half of the run's first descriptor; 0: it starts the run.
    pub bitmap_in_descriptor: U16,
    /// 0, or `CLASS_REGISTERED` with `CLASS_HEADER` or not.
    pub kind: U16,
}

/// A class that a user registered: no size leads to it. Such classes come last in the table.
pub const CLASS_REGISTERED: u16 = 1;
/// Each block of the class begins with 16 bytes for its user's notes.
pub const CLASS_HEADER: u16 = 2;

/// The use of a page; all zero means unused.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Descriptor {
    /// One of the `KIND_` constants.
    pub kind: u8,
    /// `FLAG_OPEN` or 0.
    pub flags: u8,
    /// Runs: the class.
    pub class: U16,
    /// Run: the bitmap when the class keeps it here. Continued run: pages back to its first page.
    /// Extent: its pages.
    pub argument: U32,
}

impl Descriptor {
    /// Whether this is the first page of a run of a class.
    pub fn is_run_of(&self, class: u16) -> bool {
        (self.kind, self.class.get()) == (KIND_RUN, class)
    }

    /// The descriptor as a little-endian word.
    pub fn word(self) -> u64 {
        let word: U64 = zerocopy::transmute!(self);
        word.get()
    }
}

/// Flag of a page of a run: in memory, blocks of the run are reserved by threads that do not have
/// the image exclusively, so that a reader must check whether a block is allocated. It says nothing
/// about the medium: no record sets it, and code that finds it there ignores it or does the check.
pub const FLAG_OPEN: u8 = 1;

/// A free page, or a page inside an extent.
pub const KIND_FREE: u8 = 0;
/// First page of a run.
pub const KIND_RUN: u8 = 1;
/// A later page of a run.
pub const KIND_RUN_CONTINUED: u8 = 2;
/// First page of an extent.
pub const KIND_EXTENT: u8 = 3;
/// The root page and the class table.
pub const KIND_SYSTEM: u8 = 4;
/// First page of a zone, within an extent that began in an earlier one: its `argument` is the pages
/// of the extent from here on. So a zone can be read without those before it.
pub const KIND_EXTENT_CONTINUED: u8 = 5;

const _: () = assert!(size_of::<PoolHeader>() == 60);
const _: () = assert!(size_of::<Checkpoint>() == 72);
const _: () = assert!(size_of::<DoubtHeader>() == 32);
const _: () = assert!(size_of::<DoubtEntry>() == 12);
const _: () = assert!(32 + 12 * DOUBT_PAGES_MAX as u64 <= DOUBT_BYTES);
const _: () = assert!(DOUBT_OFFSETS[0] + DOUBT_BYTES <= DOUBT_OFFSETS[1]);
const _: () = assert!(DOUBT_OFFSETS[1] + DOUBT_BYTES <= HEAD_BYTES - PAGE_BYTES);
const _: () = assert!(HEAP_BYTES_MAX / PAGE_BYTES <= DOUBT_OF_TABLE as u64);
const _: () = assert!(size_of::<HeapRoot>() == 24 + 8 * ROOT_COUNT);
const _: () = assert!(size_of::<DirectoryHeader>() == 24);
const _: () = assert!(size_of::<DirectoryEntry>() == 32);
const _: () = assert!(NAME_BYTES_MAX == u8::MAX as usize);
const _: () = assert!(std::mem::offset_of!(HeapRoot, pages_end) as u64 == ROOT_PAGES_END);
const _: () = assert!(std::mem::offset_of!(HeapRoot, class_count) as u64 == ROOT_CLASS_COUNT);
const _: () = assert!(std::mem::offset_of!(HeapRoot, roots) as u64 == ROOT_WORDS);
const _: () = assert!(size_of::<ClassEntry>() == 16);
const _: () = assert!(CLASS_COUNT_MAX * 16 <= PAGE_BYTES as usize);
const _: () = assert!(size_of::<Descriptor>() as u64 == DESCRIPTOR_BYTES);
const _: () = assert!(ZONE_TABLE_PAGES * PAGE_BYTES == ZONE_PAGES * DESCRIPTOR_BYTES);

/// The file offset of a heap offset.
pub const fn file_offset(heap_offset: u64) -> u64 {
    if heap_offset >= TABLE_BASE {
        let offset = heap_offset - TABLE_BASE;
        let zone = offset / (ZONE_TABLE_PAGES * PAGE_BYTES);
        let within = offset % (ZONE_TABLE_PAGES * PAGE_BYTES);
        HEAD_BYTES + zone * ZONE_STRIDE + ZONE_SUMS_PAGES * PAGE_BYTES + within
    } else {
        let zone = heap_offset / ZONE_BYTES;
        let within = heap_offset % ZONE_BYTES;
        HEAD_BYTES + zone * ZONE_STRIDE + (ZONE_SUMS_PAGES + ZONE_TABLE_PAGES) * PAGE_BYTES + within
    }
}

/// The heap offset of a byte of the file: the inverse of [`file_offset`]; `None` for head and
/// checksums.
pub const fn heap_offset_at(file_offset: u64) -> Option<u64> {
    let Some(behind) = file_offset.checked_sub(HEAD_BYTES) else { return None };
    let (zone, within) = (behind / ZONE_STRIDE, behind % ZONE_STRIDE);
    let Some(table) = within.checked_sub(ZONE_SUMS_PAGES * PAGE_BYTES) else { return None };
    match table.checked_sub(ZONE_TABLE_PAGES * PAGE_BYTES) {
        None => Some(TABLE_BASE + zone * ZONE_TABLE_PAGES * PAGE_BYTES + table),
        Some(data) => Some(zone * ZONE_BYTES + data),
    }
}

/// The file offset of the checksum of the page at this heap offset.
pub const fn checksum_file_offset(heap_offset: u64) -> u64 {
    let (zone, index) = if heap_offset >= TABLE_BASE {
        let page = (heap_offset - TABLE_BASE) / PAGE_BYTES;
        (page / ZONE_TABLE_PAGES, page % ZONE_TABLE_PAGES)
    } else {
        let page = heap_offset / PAGE_BYTES;
        (page / ZONE_PAGES, ZONE_TABLE_PAGES + page % ZONE_PAGES)
    };
    HEAD_BYTES + zone * ZONE_STRIDE + index * 4
}

/// Heap offset of the descriptor of a data page.
pub const fn descriptor_offset(page: u64) -> u64 {
    TABLE_BASE + page * DESCRIPTOR_BYTES
}

/// Data pages in a pool file of that length. The pages of a zone lie after its checksums and its
/// table.
pub(crate) fn pages_in(len: u64) -> u64 {
    let zones = len.saturating_sub(HEAD_BYTES);
    let before_data = (ZONE_SUMS_PAGES + ZONE_TABLE_PAGES) * PAGE_BYTES;
    let in_last = (zones % ZONE_STRIDE).saturating_sub(before_data) / PAGE_BYTES;
    (zones / ZONE_STRIDE * ZONE_PAGES + in_last).min(HEAP_BYTES_MAX / PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_a_file_are_those_that_it_was_grown_to() {
        for pages in [1, 2, 511, 512, ZONE_PAGES - 1, ZONE_PAGES, ZONE_PAGES + 1, 3 * ZONE_PAGES] {
            let len = file_offset((pages - 1) * PAGE_BYTES) + PAGE_BYTES;
            assert_eq!(pages_in(len), pages);
        }
        assert_eq!(pages_in(0), 0);
        assert_eq!(pages_in(HEAD_BYTES + ZONE_STRIDE + 4096), ZONE_PAGES);
    }
}
