//! A region: a contiguous range of addresses, reserved once, filled piece by piece, and extended if
//! the addresses behind it are free.
//!
//! Purpose: a pool grows without ever moving, so an offset stays an address plus a constant.
//! Invariants: the range belongs to this process alone and is unmapped on drop; it never becomes
//! shorter and its base stays. A page is either inaccessible (never committed) or readable and
//! writable; only `release` takes it back, and `drop_pages` the memory behind it. The base is
//! aligned to 2 MiB, so that aligned offsets can become huge pages.
//! Thread safety: all methods take `&self` and may be called from any thread. The owner of the
//! region decides about the contents of the bytes, and which thread may touch them when.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use crate::address::tmpfs::is_tmpfs;
use crate::error::{Error, Result};
use crate::fork::ForkGuard;

/// Bytes of a huge page on x86-64 and on aarch64 with 4 KiB pages.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Attempts to move memory again after the system removed its target and then failed.
#[cfg(target_os = "linux")]
const MOVES_MAX: usize = 16;
/// Bytes that [`Region::fill`] asks its source for at a time.
const FILL_BYTES: u64 = 1 << 20;
/// Addresses that are left free behind a region, as a multiple of its own.
const ROOM_FACTOR: u64 = 7;

/// Bytes of a page of this system.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// A reserved range of addresses.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    /// Grows, with `mapped` locked.
    bytes: AtomicU64,
    page_bytes: u64,
    /// The parts of it that are mapped: address, and number of bytes.
    mapped: Mutex<Vec<(usize, usize)>>,
    /// Whether reads of its pages are expected in no order.
    is_random: AtomicBool,
    fork: ForkGuard,
}

// SAFETY: the region is plain memory of the process, not tied to the thread that mapped it; of its
// own fields only the length changes after `reserve`, under a lock.
unsafe impl Send for Region {}
// SAFETY: `&Region` gives out a raw pointer and calls mprotect, which the kernel serialises; access
// through the pointer is the unsafe business of the code that uses it.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves `bytes_max` bytes of addresses, or, where the system's limits refuse that, half as
    /// many, and so on down to `bytes_min`; see [`Region::bytes`]. Costs no memory: pages become
    /// usable by [`Region::commit`]. Both are rounded up to whole 2 MiB.
    ///
    /// # Errors
    /// `Error::AddressSpace` when not even `bytes_min` bytes are available; `Error::Advice` when
    /// the system gives them, but refuses the advice that keeps them from the child of a fork.
    pub fn reserve(bytes_max: u64, bytes_min: u64) -> Result<Region> {
        Self::reserve_any(bytes_max, bytes_min, 0)
    }

    /// The same, for a region that may be [extended](Region::extend): where possible, seven times
    /// as many addresses behind it are free then. Later mappings take the upper end of them first.
    ///
    /// # Errors
    /// As [`Region::reserve`].
    pub fn reserve_growing(bytes_max: u64, bytes_min: u64) -> Result<Region> {
        Self::reserve_any(bytes_max, bytes_min, ROOM_FACTOR)
    }

    fn reserve_any(bytes_max: u64, bytes_min: u64, room_factor: u64) -> Result<Region> {
        let refused = |source| Error::AddressSpace { needed_bytes: bytes_min, source };
        let too_many = || refused(io::Error::from(rustix::io::Errno::NOMEM));
        let round = |bytes: u64| bytes.max(1).checked_next_multiple_of(HUGE_PAGE_BYTES);
        let bytes_least = round(bytes_min).ok_or_else(too_many)?;
        let mut bytes = round(bytes_max).ok_or_else(too_many)?.max(bytes_least);
        let fork = ForkGuard::new()?;
        loop {
            match Self::map(bytes, room_factor, fork) {
                Ok(region) => return Ok(region),
                Err(Error::AddressSpace { source, .. }) if bytes == bytes_least => {
                    return Err(refused(source));
                }
                Err(error) if bytes == bytes_least => return Err(error),
                Err(_) => {
                    let half = (bytes / 2).next_multiple_of(HUGE_PAGE_BYTES);
                    bytes = half.max(bytes_least);
                }
            }
        }
    }

    /// Maps `bytes` inaccessible bytes (a multiple of 2 MiB) at an address aligned to 2 MiB.
    fn map(bytes: u64, room_factor: u64, fork: ForkGuard) -> Result<Region> {
        let refused =
            |error: Errno| Error::AddressSpace { needed_bytes: bytes, source: error.into() };
        // The kernel aligns to small pages only; 2 MiB more leave room to align by ourselves.
        let mapping_bytes = bytes
            .checked_add(HUGE_PAGE_BYTES)
            .and_then(|sum| usize::try_from(sum).ok())
            .ok_or_else(|| refused(Errno::NOMEM))?;
        let address =
            map_with_room(mapping_bytes, bytes.saturating_mul(room_factor)).map_err(refused)?;
        let mapping = NonNull::new(address).ok_or_else(|| refused(Errno::NOMEM))?;
        let padding = address.addr().next_multiple_of(HUGE_PAGE_BYTES as usize) - address.addr();
        // SAFETY: the padding is less than 2 MiB, the mapping more than 2 MiB: it stays inside.
        let base = unsafe { mapping.cast::<u8>().add(padding) };
        let page_bytes = page_bytes();
        let mapped = Mutex::new(vec![(address.expose_provenance(), mapping_bytes)]);
        let is_random = AtomicBool::new(false);
        let region =
            Region { base, bytes: AtomicU64::new(bytes), page_bytes, mapped, is_random, fork };
        advise(base.cast(), bytes as usize)?;
        Ok(region)
    }

    /// Bytes reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Extends the region to `bytes` bytes, rounded up to whole 2 MiB, if nothing else is mapped
    /// right behind it; it never becomes shorter. Its contents stay in place.
    ///
    /// # Errors
    /// `Error::AddressSpace` if something is mapped there, or the system cannot tell;
    /// `Error::Advice` as [`Region::reserve`]. Then nothing happened.
    #[cfg(target_os = "linux")]
    pub fn extend(&self, bytes: u64) -> Result<()> {
        let refused =
            |error: Errno| Error::AddressSpace { needed_bytes: bytes, source: error.into() };
        let base = self.base.as_ptr().addr();
        let bytes = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES);
        let end = bytes.and_then(|bytes| base.checked_add(usize::try_from(bytes).ok()?));
        let (Some(bytes), Some(end)) = (bytes, end) else { return Err(refused(Errno::NOMEM)) };
        let mut mapped = self.mapped();
        let Some((first, len)) = mapped.last_mut() else { return Err(refused(Errno::NOMEM)) };
        let at = *first + *len;
        if end > at {
            let flags = MapFlags::PRIVATE | no_reserve() | MapFlags::FIXED_NOREPLACE;
            let (wanted, count) = (ptr::without_provenance_mut(at), end - at);
            // SAFETY: such a mapping replaces nothing: it takes only addresses that are free.
            let found =
                unsafe { rustix::mm::mmap_anonymous(wanted, count, ProtFlags::empty(), flags) };
            let found = found.map_err(refused)?;
            let is_there = found.expose_provenance() == at;
            let advised = advise_if(is_there, found, count);
            if !is_there || advised.is_err() {
                // SAFETY: it was just mapped, and no other code knows the address. Kernels before
                // 4.17 treat the address as a hint.
                unsafe { unmap(found.addr(), count) };
                advised?;
                return Err(refused(Errno::EXIST));
            }
            *len += count;
        }
        self.bytes.fetch_max(bytes, Ordering::Release);
        Ok(())
    }

    /// Other systems cannot map without replacing.
    ///
    /// # Errors
    /// `Error::AddressSpace`.
    #[cfg(not(target_os = "linux"))]
    pub fn extend(&self, bytes: u64) -> Result<()> {
        if bytes <= self.bytes() { Ok(()) } else { Err(self.beyond(0, bytes)) }
    }

    /// Tells whether this is a fork's child of the process that reserved the region, where it is
    /// not mapped.
    pub fn fork(&self) -> ForkGuard {
        self.fork
    }

    /// The address of the first byte, aligned to 2 MiB.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Makes the pages that hold `offset .. offset + len` readable and writable. New pages are
    /// anonymous memory, zero until written, and cost memory at their first touch; pages that were
    /// committed before keep their contents. So it is idempotent. One system call.
    ///
    /// # Errors
    /// `Error::AddressSpace` when the range is beyond the region or the system has no memory for
    /// its tables.
    pub fn commit(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let start = offset - offset % self.page_bytes;
        let end =
            offset.checked_add(len).and_then(|end| end.checked_next_multiple_of(self.page_bytes));
        let end = end.filter(|&end| end <= self.bytes()).ok_or_else(|| self.beyond(offset, len))?;
        let address = self.address(start).cast::<c_void>();
        // SAFETY: the whole pages lie in our own mapping, checked above. Making them accessible
        // invalidates no other use.
        let done = unsafe {
            rustix::mm::mprotect(
                address,
                (end - start) as usize,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )
        };
        done.map_err(|error| Error::AddressSpace { needed_bytes: end, source: error.into() })
    }

    /// Returns whole pages to their state before they were first committed or mapped: inaccessible,
    /// of no cost, and zero when committed again. A file that was mapped there may be cut after
    /// that; before, the next touch would raise a signal. One system call.
    ///
    /// # Errors
    /// `Error::AddressSpace` when the range is beyond the region, is no whole pages, or the system
    /// has no memory for its tables.
    ///
    /// # Safety
    /// No reference into the range exists, and no thread touches it before it is committed or
    /// mapped anew.
    pub unsafe fn release(&self, offset: u64, len: u64) -> Result<()> {
        let aligned = offset.is_multiple_of(self.page_bytes) && len.is_multiple_of(self.page_bytes);
        if !aligned || offset.checked_add(len).is_none_or(|end| end > self.bytes()) {
            return Err(self.beyond(offset, len));
        }
        if len == 0 {
            return Ok(());
        }
        let address = self.address(offset).cast::<c_void>();
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | no_reserve();
        // SAFETY: MAP_FIXED replaces exactly these whole pages, which lie in our own mapping
        // (checked above), and by our contract no reference to them exists.
        let done =
            unsafe { rustix::mm::mmap_anonymous(address, len as usize, ProtFlags::empty(), flags) };
        done.map_err(|error| Error::AddressSpace {
            needed_bytes: offset + len,
            source: error.into(),
        })?;
        self.advise(offset, len)
    }

    /// Gives the memory of committed pages back that were never mapped to a file: they are zero
    /// when they are touched again. Of a range that is no whole pages, of those within it; the rest
    /// keeps its bytes. One system call, or two.
    ///
    /// # Errors
    /// As [`Region::release`].
    ///
    /// # Safety
    /// As [`Region::release`]; another thread may touch the range behind this.
    pub unsafe fn discard(&self, offset: u64, len: u64) -> Result<()> {
        let start = offset.next_multiple_of(self.page_bytes);
        let end = offset.checked_add(len).ok_or_else(|| self.beyond(offset, len))?;
        let count = (end - end % self.page_bytes).saturating_sub(start);
        // SAFETY: our caller promises it.
        unsafe { self.discard_pages(start, count) }
    }

    #[cfg(target_os = "linux")]
    unsafe fn discard_pages(&self, offset: u64, len: u64) -> Result<()> {
        // SAFETY: our caller promises it.
        let dropped = unsafe { self.drop_pages(offset, len) };
        dropped.map_err(|error| Error::AddressSpace {
            needed_bytes: offset + len,
            source: error.into(),
        })
    }

    /// Other systems only promise zeros for new mappings.
    #[cfg(not(target_os = "linux"))]
    unsafe fn discard_pages(&self, offset: u64, len: u64) -> Result<()> {
        // SAFETY: our caller promises it.
        unsafe { self.release(offset, len)? };
        self.commit(offset, len)
    }

    /// Advises the kernel on whole pages that were just mapped.
    ///
    /// # Errors
    /// `Error::Advice`.
    pub(crate) fn advise(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        if let Some(address) = NonNull::new(self.address(offset).cast()) {
            advise(address, len as usize)?;
        }
        if self.is_random.load(Ordering::Acquire) {
            self.advise_random(offset, len);
        }
        Ok(())
    }

    /// Tells the system that files mapped here are read in no order: from now on the first touch of
    /// a page reads that page alone. Else it reads those around it, as many as the device is set up
    /// for (`read_ahead_kb`: 32 pages by default, and up to thousands), or a huge page, which is of
    /// use only where they stay in memory until they are asked for. Two system calls, once.
    pub fn expect_random(&self) {
        // All of it, whatever is mapped: neighbours of other advice would not be one mapping.
        if !self.is_random.swap(true, Ordering::AcqRel) {
            self.advise_random(0, self.bytes());
        }
    }

    /// A hint: if it fails, more is read than needed.
    fn advise_random(&self, offset: u64, len: u64) {
        if let Some(address) = NonNull::new(self.address(offset).cast()) {
            advise_random(address, len as usize);
        }
    }

    /// Asks the processor to load the cache line at `offset`. Never fails, wherever that is.
    #[inline]
    pub fn prefetch(&self, offset: u64) {
        prefetch_line(self.base.as_ptr().wrapping_add(offset as usize));
    }

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
        let flags = MapFlags::PRIVATE | no_reserve();
        // SAFETY: our caller promises it.
        unsafe { self.map_over(offset, len, file, file_offset, flags) }
    }

    /// Drops the stores to a private mapping of a file: see `File::drop_private`.
    ///
    /// # Safety
    /// As `File::drop_private`.
    #[cfg(target_os = "linux")]
    pub(crate) unsafe fn drop_pages(&self, offset: u64, len: u64) -> rustix::io::Result<()> {
        let aligned = offset.is_multiple_of(self.page_bytes) && len.is_multiple_of(self.page_bytes);
        if !aligned || offset.checked_add(len).is_none_or(|end| end > self.bytes()) {
            return Err(rustix::io::Errno::INVAL);
        }
        if len == 0 {
            return Ok(());
        }
        let (address, advice) = (self.address(offset), rustix::mm::Advice::LinuxDontNeed);
        // SAFETY: whole pages of our own mapping, checked above. References into them find the same
        // bytes there, and no thread stores to them: our caller promises it.
        unsafe { rustix::mm::madvise(address.cast(), len as usize, advice) }
    }

    /// Has the system put memory of its own behind a range of whole pages now, rather than at the
    /// first store to each; no byte changes. A hint: if it fails, the first store does it. `false`
    /// if a store would raise a signal instead: there is no memory or space, or it is broken.
    pub fn populate(&self, offset: u64, len: u64) -> bool {
        let aligned = offset.is_multiple_of(self.page_bytes) && len.is_multiple_of(self.page_bytes);
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= self.bytes());
        !(aligned && is_inside && len > 0) || populate(self.address(offset).cast(), len as usize)
    }

    /// How many pages of a range of whole ones this process has touched since they were mapped or
    /// dropped; 0 if the system does not say. 8 bytes are read for each.
    pub fn touched_pages(&self, offset: u64, len: u64) -> u64 {
        if offset.checked_add(len).is_none_or(|end| end > self.bytes()) || len == 0 {
            return 0;
        }
        let first = self.address(offset).addr() as u64 / self.page_bytes;
        let mut entries = vec![0; (len / self.page_bytes * 8) as usize];
        touched(&mut entries, first * 8).map_or(0, |()| {
            // Bit 63: present.
            entries.chunks_exact(8).filter(|entry| entry[7] & 0x80 != 0).count() as u64
        })
    }

    /// Moves `len` bytes from the start of another region here, over the mapped pages. The other
    /// region has zeros then.
    ///
    /// # Safety
    /// As `HugePage::put`; no reference into the other region exists.
    #[cfg(target_os = "linux")]
    pub(crate) unsafe fn move_from(&self, offset: u64, source: &Region, len: u64) -> Result<()> {
        use rustix::mm::MremapFlags;
        if offset.checked_add(len).is_none_or(|end| end > self.bytes()) || len > source.bytes() {
            return Err(self.beyond(offset, len));
        }
        let (from, to) = (source.address(0).cast(), self.address(offset).cast::<c_void>());
        let (count, flags) = (len as usize, MremapFlags::MAYMOVE | MremapFlags::DONTUNMAP);
        for _ in 0..MOVES_MAX {
            // SAFETY: both ranges are whole pages of our own mappings, checked above. The pages
            // here are replaced under the system's lock on mappings, which faults wait for, by the
            // same bytes; no reference to those of the source exists. Our caller promises the rest.
            let moved = unsafe { rustix::mm::mremap_fixed(from, count, count, flags, to) };
            let Err(error) = moved else { return Ok(()) };
            let refused = Error::AddressSpace { needed_bytes: len, source: error.into() };
            // SAFETY: advice that the range has already, which changes nothing; it is refused where
            // nothing is mapped.
            let there =
                unsafe { rustix::mm::madvise(to, count, rustix::mm::Advice::LinuxDontFork) };
            if there.is_ok() {
                return Err(refused);
            }
        }
        // The system unmapped the pages here, and then had no memory to move the others in. The
        // next touch would raise a signal; nothing durable is lost.
        std::process::abort()
    }

    /// Other systems move no memory.
    ///
    /// # Safety
    /// None.
    #[cfg(not(target_os = "linux"))]
    pub(crate) unsafe fn move_from(&self, offset: u64, _source: &Region, len: u64) -> Result<()> {
        Err(self.beyond(offset, len))
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
        if let Some(flags) = shared_without_sync() {
            // SAFETY: our caller promises it.
            match unsafe { self.map_over(offset, len, file.as_fd(), file_offset, flags) } {
                // On tmpfs any mapping will do; in a page cache no fence makes a store durable.
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL)
                    if is_tmpfs(file.as_fd())? => {}
                mapped => return mapped,
            }
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
        let aligned = [offset, len, file_offset].iter().all(|n| n % self.page_bytes == 0);
        if !aligned || offset.checked_add(len).is_none_or(|end| end > self.bytes()) {
            return Err(rustix::io::Errno::INVAL);
        }
        if len == 0 {
            return Ok(());
        }
        let address = self.address(offset).cast::<c_void>();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = flags | MapFlags::FIXED;
        // SAFETY: MAP_FIXED replaces exactly these whole pages, which lie in our own mapping
        // (checked above). By this function's contract references into them find the same bytes:
        // the system changes a mapping under a lock that a fault waits for, so there is no moment
        // without one. No thread stores to them, so no store is lost.
        unsafe { rustix::mm::mmap(address, len as usize, access, flags, file, file_offset) }?;
        Ok(())
    }

    /// Commits a range and fills it from `source`, which gets a part of the range to overwrite and
    /// the part's offset in it: the private image of a file that no system call can map.
    ///
    /// # Errors
    /// As [`Region::commit`], and those of `source`.
    ///
    /// # Safety
    /// No reference into that range of the region may exist.
    pub unsafe fn fill(
        &self,
        offset: u64,
        len: u64,
        mut source: impl FnMut(&mut [u8], u64) -> Result<()>,
    ) -> Result<()> {
        self.commit(offset, len)?;
        let mut done = 0;
        while done < len {
            let count = (len - done).min(FILL_BYTES);
            let address = self.address(offset + done);
            // SAFETY: `commit` made the range accessible and checked that it lies in the region; by
            // our contract no other reference into it exists. Any bytes are a valid `u8`.
            let part = unsafe { std::slice::from_raw_parts_mut(address, count as usize) };
            source(part, done)?;
            done += count;
        }
        Ok(())
    }

    /// Makes memory of a range anonymous, whatever file was behind it: no byte changes, also when
    /// others write to the file, or cut it.
    ///
    /// # Errors
    /// `Error::AddressSpace` when the system has no memory, or moves none; then nothing happened.
    ///
    /// # Safety
    /// The range is committed or mapped, and no thread stores to it meanwhile.
    pub unsafe fn keep(&self, offset: u64, len: u64) -> Result<()> {
        let start = offset - offset % self.page_bytes;
        let end = offset.checked_add(len).map(|end| end.next_multiple_of(self.page_bytes));
        let end = end.filter(|&end| end <= self.bytes()).ok_or_else(|| self.beyond(offset, len))?;
        let count = end - start;
        let copy = Region::reserve(count, count)?;
        // SAFETY: the range lies in the region, checked above, and our caller promises that it can
        // be read and that no byte of it changes.
        let bytes = unsafe { std::slice::from_raw_parts(self.address(start), count as usize) };
        let fill = |part: &mut [u8], at: u64| {
            part.copy_from_slice(&bytes[at as usize..][..part.len()]);
            Ok(())
        };
        // SAFETY: no reference into the new reservation exists.
        unsafe { copy.fill(0, count, fill)? };
        // SAFETY: the bytes are the same, and no thread stores to them.
        unsafe { self.move_from(start, &copy, count) }
    }

    /// Gives all addresses back except those of some ranges, in order, which stay until it is
    /// dropped; for good.
    ///
    /// # Safety
    /// From now on no code accesses anything else of the region, nor calls anything for it.
    pub unsafe fn give_up(&self, kept: &[(u64, u64)]) {
        let mut mapped = self.mapped();
        let Some(&(first, len)) = mapped.first() else { return };
        let (mut at, end) = (first, first + len);
        mapped.clear();
        let base = self.base.as_ptr().addr();
        let page_bytes = self.page_bytes as usize;
        for &(start, stop) in kept {
            let start = (base + start as usize) / page_bytes * page_bytes;
            let stop = (base + stop as usize).next_multiple_of(page_bytes).min(end);
            let start = start.max(at);
            if start >= stop {
                continue;
            }
            // SAFETY: between two kept ranges, or before the first: our caller promises that no
            // code accesses it any more.
            unsafe { unmap(at, start - at) };
            mapped.push((start, stop - start));
            at = stop;
        }
        // SAFETY: behind the last one, as above.
        unsafe { unmap(at, end - at) };
    }

    fn mapped(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        // No code under this lock panics half way.
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of a byte whose offset was checked to be within the region.
    fn address(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.bytes());
        self.base.as_ptr().wrapping_add(offset as usize)
    }

    fn beyond(&self, offset: u64, len: u64) -> Error {
        Error::AddressSpace {
            needed_bytes: offset.saturating_add(len),
            source: io::Error::from(rustix::io::Errno::NOMEM),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.fork.is_child() {
            // Nothing of it is mapped here, and another mapping may be at these addresses by now.
            return;
        }
        for (address, len) in self.mapped().drain(..) {
            // SAFETY: mapped by `map` and left by `give_up`; its owner is gone, and with it all
            // code that may access it.
            unsafe { unmap(address, len) };
        }
    }
}

/// Maps inaccessible bytes at an address that the system chooses, with `room` free addresses behind
/// them if there are that many.
fn map_with_room(mapping_bytes: usize, room: u64) -> rustix::io::Result<*mut c_void> {
    let flags = MapFlags::PRIVATE | no_reserve();
    let map = |count: usize| {
        // SAFETY: without MAP_FIXED the kernel picks addresses that nothing else uses.
        unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), count, ProtFlags::empty(), flags) }
    };
    let room = usize::try_from(room).ok().filter(|room| *room > 0);
    let all = room.and_then(|room| room.checked_add(mapping_bytes));
    let mapped = all.and_then(|all| map(all).ok().zip(Some(all)));
    let Some((address, all)) = mapped else { return map(mapping_bytes) };
    // SAFETY: it was just mapped, and no other code knows the address.
    unsafe { unmap(address.expose_provenance() + mapping_bytes, all - mapping_bytes) };
    Ok(address)
}

/// As [`advise`], where `is_wanted`.
#[cfg(target_os = "linux")]
fn advise_if(is_wanted: bool, address: *mut c_void, len: usize) -> Result<()> {
    match NonNull::new(address).filter(|_| is_wanted) {
        Some(address) => advise(address, len),
        None => Ok(()),
    }
}

/// Unmaps whole pages at an address.
///
/// # Safety
/// They are of our own mapping, and no code accesses them any more.
unsafe fn unmap(address: usize, len: usize) {
    if len == 0 {
        return;
    }
    let address = ptr::with_exposed_provenance_mut(address);
    // SAFETY: our caller promises it.
    let unmapped = unsafe { rustix::mm::munmap(address, len) };
    debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
}

/// Reads the system's page-map entries, 8 bytes for each page.
#[cfg(target_os = "linux")]
fn touched(entries: &mut [u8], at: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    std::fs::File::open("/proc/self/pagemap")?.read_exact_at(entries, at)
}

/// Other systems do not say.
#[cfg(not(target_os = "linux"))]
fn touched(_entries: &mut [u8], _at: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Shared, and refused if a page could need a sync of the file system before its stores are
/// durable.
#[cfg(target_os = "linux")]
fn shared_without_sync() -> Option<MapFlags> {
    Some(MapFlags::SHARED_VALIDATE | MapFlags::SYNC)
}

/// Other systems have no such mapping.
#[cfg(not(target_os = "linux"))]
fn shared_without_sync() -> Option<MapFlags> {
    None
}

/// Without it a reservation of 100 GiB fails on a machine with 24 GiB of memory.
#[cfg(not(any(target_os = "freebsd", target_os = "dragonfly")))]
fn no_reserve() -> MapFlags {
    MapFlags::NORESERVE
}

/// These systems always behave so.
#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
fn no_reserve() -> MapFlags {
    MapFlags::empty()
}

/// Advises the kernel on pages that were just mapped: a child of a fork does not get them, so that
/// neither it nor a copy on our next write doubles the memory; and huge pages, which halve the time
/// of a dependent load. The whole reservation gets the same advice before any of it is committed,
/// so that committed neighbours stay one mapping, however small the steps.
#[cfg(target_os = "linux")]
fn advise(address: NonNull<c_void>, len: usize) -> Result<()> {
    use rustix::mm::Advice;
    // SAFETY: the range was just mapped by our caller, and this advice changes no byte of it.
    let kept = unsafe { rustix::mm::madvise(address.as_ptr(), len, Advice::LinuxDontFork) };
    kept.map_err(refused_advice("MADV_DONTFORK", len))?;
    // A kernel built without huge pages refuses; then there are none, which is no error.
    // SAFETY: as above.
    let _ = unsafe { rustix::mm::madvise(address.as_ptr(), len, Advice::LinuxHugepage) };
    Ok(())
}

/// Advises the kernel that pages are touched in no order. Where huge pages are advised, Linux reads
/// 2 MiB of a file for one page of it, whatever order was advised (since 5.18).
#[cfg(target_os = "linux")]
fn advise_random(address: NonNull<c_void>, len: usize) {
    use rustix::mm::Advice;
    for advice in [Advice::LinuxNoHugepage, Advice::Random] {
        // SAFETY: whole pages of a mapping of our caller's, of which this changes no byte.
        let _ = unsafe { rustix::mm::madvise(address.as_ptr(), len, advice) };
    }
}

/// Other systems have the advice of the order.
#[cfg(not(target_os = "linux"))]
fn advise_random(address: NonNull<c_void>, len: usize) {
    // SAFETY: whole pages of a mapping of our caller's, of which this changes no byte.
    let _ = unsafe { rustix::mm::madvise(address.as_ptr(), len, rustix::mm::Advice::Random) };
}

/// Puts memory behind pages; Linux before 5.14 refuses, and does it at the first store.
#[cfg(target_os = "linux")]
fn populate(address: *mut c_void, len: usize) -> bool {
    // SAFETY: whole pages of a mapping of our caller's. Their bytes stay unchanged, whichever
    // thread reads or writes them meanwhile.
    let done = unsafe { rustix::mm::madvise(address, len, rustix::mm::Advice::LinuxPopulateWrite) };
    !matches!(done, Err(Errno::FAULT | Errno::HWPOISON | Errno::NOMEM))
}

/// Other systems do it at the first store.
#[cfg(not(target_os = "linux"))]
fn populate(_address: *mut c_void, _len: usize) -> bool {
    true
}

/// Nothing to advise on other systems.
#[cfg(not(target_os = "linux"))]
fn advise(_address: NonNull<c_void>, _len: usize) -> Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn refused_advice(advice: &'static str, len: usize) -> impl Fn(Errno) -> Error {
    move |error| Error::Advice { advice, bytes: len as u64, source: error.into() }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch_line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program sees and faults on no address; SSE, which
    // it needs, is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn prefetch_line(address: *const u8) {
    // SAFETY: a prefetch reads nothing that the program sees and faults on no address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address,
            options(nostack, preserves_flags, readonly))
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn prefetch_line(_address: *const u8) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The flags of the mapping at an address, as the system says them.
    fn flags_at(address: *const u8) -> String {
        let text = std::fs::read_to_string("/proc/self/smaps").expect("the system's list");
        let start = format!("{:x}-", address.addr());
        let lines = text.lines().skip_while(|line| !line.starts_with(&start));
        let flags = lines.filter_map(|line| line.strip_prefix("VmFlags:"));
        flags.map(str::to_owned).next().expect("flags")
    }

    /// A regression: a get of data larger than memory read 4 MB, those around its page.
    #[test]
    fn pages_in_no_order_are_read_alone() {
        let region = Region::reserve(8 << 20, 8 << 20).expect("addresses");
        region.commit(0, 2 << 20).expect("memory");
        let is_alone = |offset| {
            let flags = flags_at(region.address(offset));
            flags.contains(" rr") && !flags.contains(" hg")
        };
        assert!(!is_alone(0));
        region.expect_random();
        assert!(is_alone(0));
        // What is mapped later, too, beside it and in its place.
        let file = tempfile::tempfile().expect("a file");
        file.set_len(2 << 20).expect("bytes");
        for offset in [4 << 20, 0] {
            // SAFETY: no reference into the region exists.
            unsafe { region.map_file(offset, 2 << 20, &file, 0).expect("mapped") };
            region.advise(offset, 2 << 20).expect("advised");
            assert!(is_alone(offset), "{}", flags_at(region.address(offset)));
        }
    }

    /// A regression: the error spoke of missing address space, and of a limit that had nothing to
    /// do with it.
    #[test]
    fn advice_that_is_refused_is_called_that() {
        // No mapping has such an address: the system refuses any advice on it.
        let nowhere = NonNull::new(ptr::without_provenance_mut(1 << 60)).expect("not null");
        let error = advise(nowhere, 4096).expect_err("nothing is mapped there");
        assert!(matches!(error, Error::Advice { bytes: 4096, .. }) && error.is_refusal());
        let words = error.to_string();
        assert!(words.contains("MADV_DONTFORK") && words.contains("max_map_count"), "{words}");
        assert!(!words.contains("ulimit"), "{words}");
    }
}
