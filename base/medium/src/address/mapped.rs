//! Files mapped into a region, and memory that moves within it: on Linux.
//!
//! Purpose: the private image of a pool, and files that are memory. Elsewhere images are read into
//! memory that is committed.
//! Thread safety: as `region.rs`.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mremap_fixed};

use crate::address::region::Region;
use crate::address::tmpfs::is_tmpfs;
use crate::error::{Error, Result};

/// Attempts to move memory again after the system removed its target and then failed.
const MOVES_MAX: usize = 16;

impl Region {
    /// Replaces the pages by a private mapping of a file: see `File::map_private`. The caller
    /// advises on them.
    ///
    /// # Safety
    /// As `File::map_private`.
    pub(crate) unsafe fn map_file(
        &self,
        offset: u64,
        len: u64,
        file: impl AsFd,
        file_offset: u64,
    ) -> rustix::io::Result<()> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: our caller promises it.
        unsafe { self.map_over(offset, len, file, file_offset, flags) }
    }

    /// Drops the stores to a private mapping of a file: see `File::drop_private`.
    ///
    /// # Safety
    /// As `File::drop_private`.
    pub(crate) unsafe fn drop_pages(&self, offset: u64, len: u64) -> rustix::io::Result<()> {
        if !self.has_pages(offset, len) {
            return Err(Errno::INVAL);
        }
        if len == 0 {
            return Ok(());
        }
        let address = self.address(offset).cast();
        // SAFETY: whole pages of our own mapping, checked above. References into them find the same
        // bytes there, and no thread stores to them: our caller promises it.
        unsafe { madvise(address, len as usize, Advice::LinuxDontNeed) }
    }

    /// Moves `len` bytes from the start of another region here, over the mapped pages. The other
    /// region has zeros then.
    ///
    /// # Safety
    /// As `HugePage::put`; no reference into the other region exists.
    pub(crate) unsafe fn move_from(&self, offset: u64, source: &Region, len: u64) -> Result<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.bytes()) || len > source.bytes() {
            return Err(self.beyond(offset, len));
        }
        let (from, to) = (source.address(0).cast(), self.address(offset).cast());
        let (count, flags) = (len as usize, MremapFlags::MAYMOVE | MremapFlags::DONTUNMAP);
        for _ in 0..MOVES_MAX {
            // SAFETY: both ranges are whole pages of our own mappings, checked above. The pages
            // here are replaced under the system's lock on mappings, which faults wait for, by the
            // same bytes; no reference to those of the source exists. Our caller promises the rest.
            let moved = unsafe { mremap_fixed(from, count, count, flags, to) };
            let Err(error) = moved else { return Ok(()) };
            let refused = Error::AddressSpace { needed_bytes: len, source: error.into() };
            // SAFETY: advice that the range has already, which changes nothing; it is refused where
            // nothing is mapped.
            let there = unsafe { madvise(to, count, Advice::LinuxDontFork) };
            if there.is_ok() {
                return Err(refused);
            }
        }
        // The system unmapped the pages here, and then had no memory to move the others in. The
        // next touch would raise a signal; nothing durable is lost.
        std::process::abort()
    }

    /// Replaces the pages by a file's own: see `File::map_shared`.
    ///
    /// # Safety
    /// As `File::map_shared`.
    pub(crate) unsafe fn map_file_shared(
        &self,
        offset: u64,
        len: u64,
        file: impl AsFd,
        file_offset: u64,
    ) -> rustix::io::Result<()> {
        // Refused if a page could need a sync of the file system before its stores are durable.
        let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
        // SAFETY: our caller promises it.
        match unsafe { self.map_over(offset, len, file.as_fd(), file_offset, flags) } {
            // On tmpfs any mapping will do; in a page cache no fence makes a store durable.
            Err(Errno::OPNOTSUPP | Errno::INVAL) if is_tmpfs(file.as_fd())? => {}
            mapped => return mapped,
        }
        // SAFETY: as above.
        unsafe { self.map_over(offset, len, file, file_offset, MapFlags::SHARED) }
    }

    /// Maps a file over whole pages of the region.
    ///
    /// # Safety
    /// No reference into that range of the region may exist, but to bytes that are the same in the
    /// file, and no thread stores to it meanwhile.
    unsafe fn map_over(
        &self,
        offset: u64,
        len: u64,
        file: impl AsFd,
        file_offset: u64,
        flags: MapFlags,
    ) -> rustix::io::Result<()> {
        if !self.has_pages(offset, len) || !file_offset.is_multiple_of(self.page_bytes) {
            return Err(Errno::INVAL);
        }
        if len == 0 {
            return Ok(());
        }
        let address = self.address(offset).cast();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = flags | MapFlags::FIXED;
        // SAFETY: MAP_FIXED replaces exactly these whole pages, which lie in our own mapping
        // (checked above). By this function's contract references into them find the same bytes:
        // the system changes a mapping under a lock that a fault waits for, so there is no moment
        // without one. No thread stores to them, so no store is lost.
        unsafe { mmap(address, len as usize, access, flags, file, file_offset) }?;
        Ok(())
    }
}
