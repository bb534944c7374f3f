//! Options for opening a heap.

use adamant_medium::address::persist::Flushing;

use crate::image::kind::ImageKind;
use crate::image::memory_bounds::Bounds;

/// Options for opening a heap.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Which directories count as memory. The processor's stores write their files, cache line by
    /// cache line, with one fence a commit, instead of system calls. Elsewhere, and in a heap
    /// opened read-only, files are files.
    pub flushing: Flushing,
    /// Bytes of log files above which commits wait for a checkpoint. At least 4 MiB.
    pub log_bytes_max: u64,
    /// The most bytes of the log that are kept for writes to blocks reserved by
    /// [`crate::Write::reserve_held`] that the pool file does not have yet. While there are such
    /// blocks the log may be longer by their bytes and a quarter, up to three times `log_bytes_max`
    /// in all. Beyond that, and half of `log_bytes_max`, they are copied to the pool file after
    /// all.
    pub log_held_bytes_max: u64,
    /// The most milliseconds after which a deferred commit is made durable.
    pub deferred_ms_max: u64,
    /// The most bytes of deferred commits kept in memory.
    pub deferred_bytes_max: u64,
    /// Whether checkpoints and deferred commits have threads of their own. Without, they happen
    /// within the calls that need them.
    pub background: bool,
    /// Address space to reserve: the largest size that the heap can grow to while it is open.
    /// `u64::MAX`: 64 GiB, or sixteen times the size of the heap, and twice as many each time that
    /// they are used up, if the addresses behind them are free.
    pub address_bytes_max: u64,
    /// Whether an empty directory becomes a new heap; else it is an error.
    pub create: bool,
    /// The number above which a new heap numbers its commits: that of the last commit of a heap
    /// that it takes the place of, so that none is given twice.
    pub commits_before: u64,
    /// Whether to open read-only: any number of processes may have a heap open so, while none has
    /// it for writing. Recovery happens in memory; no file is written, not even its time, so files
    /// and directory need not be writable. All calls that write return `Error::ReadOnly`.
    pub read_only: bool,
    /// With `read_only`: whether another process may have the heap open for writing, now or later.
    /// The heap is as of a commit of it at the opening, whatever it writes since. The directory
    /// must be writable: a file in its folder `readers` tells the writer what is still read. The
    /// image is a filled one.
    pub beside_writer: bool,
    /// Bytes that a writer keeps for such readers at most, of pages that it overwrites. Beyond that
    /// the oldest reader is told that it is too old.
    pub reader_bytes_max: u64,
    /// Whether each page is verified against its checksum when it is first touched, so that no read
    /// trusts a page that is not what was written. Costs about 1 us a page, once.
    pub verify_first_touch: bool,
    /// Threads that make the blocks reusable that large commits freed, after these commits
    /// returned. 0: each commit does so itself, as it does while the heap cannot grow.
    pub post_commit_workers: u8,
    /// Bytes of memory that may differ from the pool file's because of writes since the heap was
    /// opened; beyond that commits wait until the file has enough of it for the memory to be freed.
    /// The record of a commit is not counted; it takes as many bytes as were written until the
    /// commit has ended; of this and the like some 20 MiB are kept. The writes of one transaction
    /// count too, but are never freed before its commit, nor are 2 MiB that contain a reservation,
    /// or pages of which a slice is left. Below a few MiB nearly every commit waits for the medium.
    /// `u64::MAX`: unbounded.
    pub memory_bytes_max: u64,
    /// Bytes of memory for huge pages: a thread finds the hot parts of the pool, and moves them
    /// there, as long as half of [`Options::memory_bytes_max`], within which they count, is free.
    /// 0: none. Only with `background`, on Linux.
    pub huge_bytes_max: u64,
    /// How the pages of the pool get into memory.
    pub image: ImageKind,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flushing: Flushing::Auto,
            log_bytes_max: 128 << 20,
            log_held_bytes_max: u64::MAX,
            deferred_ms_max: 100,
            deferred_bytes_max: 4 << 20,
            background: true,
            address_bytes_max: u64::MAX,
            create: true,
            commits_before: 0,
            read_only: false,
            beside_writer: false,
            reader_bytes_max: 1 << 30,
            verify_first_touch: false,
            post_commit_workers: 0,
            memory_bytes_max: u64::MAX,
            huge_bytes_max: 0,
            image: ImageKind::default(),
        }
    }
}

impl Options {
    pub(super) fn bounds(&self) -> Bounds {
        Bounds { memory_bytes_max: self.memory_bytes_max, huge_bytes_max: self.huge_bytes_max }
    }
}
