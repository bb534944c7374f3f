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

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(target_os = "linux")]
use crate::address::vm::linux;
use crate::address::vm::{self, Reservation};
use crate::error::{Error, Result};
use crate::fork::ForkGuard;

/// Bytes of a huge page on x86-64 and on aarch64 with 4 KiB pages.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Bytes that [`Region::fill`] asks its source for at a time.
const FILL_BYTES: u64 = 1 << 20;
/// Addresses that are left free behind a region, as a multiple of its own.
const ROOM_FACTOR: u64 = 7;

/// Whether memory counts against what the system has from its [`Region::commit`] on, instead of
/// from its first touch. The filled image's tests run in that way, too.
pub const IS_CHARGED_AT_COMMIT: bool = cfg!(any(windows, adamant_filled_image));

/// Bytes of a page of this system.
pub fn page_bytes() -> u64 {
    vm::page_bytes()
}

/// A reserved range of addresses.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    /// Only grows.
    bytes: AtomicU64,
    pub(super) page_bytes: u64,
    reservation: Reservation,
    /// Whether reads of its pages are expected in no order.
    is_random: AtomicBool,
    fork: ForkGuard,
}

// SAFETY: the region is plain memory of the process, not tied to the thread that mapped it; of its
// own fields only atomics change after `reserve`.
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
        let too_many = || refused(no_memory());
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
        let refused = |source| Error::AddressSpace { needed_bytes: bytes, source };
        // The system aligns to small pages only; 2 MiB more leave room to align by ourselves.
        let mapping_bytes = bytes
            .checked_add(HUGE_PAGE_BYTES)
            .and_then(|sum| usize::try_from(sum).ok())
            .ok_or_else(|| refused(no_memory()))?;
        let room = bytes.saturating_mul(room_factor);
        let (reservation, address) =
            Reservation::new(mapping_bytes, room, fork).map_err(refused)?;
        let mapping = NonNull::new(address).ok_or_else(|| refused(no_memory()))?;
        let padding = address.addr().next_multiple_of(HUGE_PAGE_BYTES as usize) - address.addr();
        // SAFETY: the padding is less than 2 MiB, the mapping more than 2 MiB: it stays inside.
        let base = unsafe { mapping.add(padding) };
        let (page_bytes, is_random) = (page_bytes(), AtomicBool::new(false));
        let region =
            Region { base, bytes: AtomicU64::new(bytes), page_bytes, reservation, is_random, fork };
        region.advise(0, bytes)?;
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
        let refused = |source| Error::AddressSpace { needed_bytes: bytes, source };
        let base = self.base.as_ptr().addr();
        let bytes = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES);
        let end = bytes.and_then(|bytes| base.checked_add(usize::try_from(bytes).ok()?));
        let (Some(bytes), Some(end)) = (bytes, end) else { return Err(refused(no_memory())) };
        let advise = |address: *mut u8, len| {
            NonNull::new(address.cast()).map_or(Ok(()), |address| linux::advise(address, len))
        };
        self.reservation.extend(end, advise, refused)?;
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
        // SAFETY: the whole pages lie in our own reservation, checked above.
        let done = unsafe { vm::commit(self.address(start), (end - start) as usize) };
        done.map_err(|source| Error::AddressSpace { needed_bytes: end, source })
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
        if !self.has_pages(offset, len) {
            return Err(self.beyond(offset, len));
        }
        if len == 0 {
            return Ok(());
        }
        // SAFETY: these whole pages lie in our own reservation (checked above), and by our contract
        // no reference to them exists.
        let done = unsafe { vm::release(self.address(offset), len as usize) };
        done.map_err(|source| Error::AddressSpace { needed_bytes: offset + len, source })?;
        self.advise(offset, len)
    }

    /// Gives the memory of committed pages back that were never mapped to a file: they are zero
    /// when they are touched again, [once committed](IS_CHARGED_AT_COMMIT) where that counts. Of a
    /// range that is no whole pages, of those within it; the rest keeps its bytes. One system call,
    /// or two.
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
        if IS_CHARGED_AT_COMMIT {
            // SAFETY: our caller promises it, and commits before it touches.
            return unsafe { self.release(start, count) };
        }
        // SAFETY: our caller promises it.
        unsafe { self.discard_pages(start, count) }
    }

    /// # Safety
    /// As [`Region::discard`].
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
    ///
    /// # Safety
    /// As [`Region::discard`].
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
    #[cfg(target_os = "linux")]
    pub(crate) fn advise(&self, offset: u64, len: u64) -> Result<()> {
        let Some(address) = NonNull::new(self.base.as_ptr().wrapping_add(offset as usize)) else {
            return Ok(());
        };
        if len > 0 {
            linux::advise(address.cast(), len as usize)?;
            if self.is_random.load(Ordering::Acquire) {
                linux::advise_random(address.cast(), len as usize);
            }
        }
        Ok(())
    }

    /// Nothing to advise on other systems.
    #[cfg(not(target_os = "linux"))]
    fn advise(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    /// Tells the system that files mapped here are read in no order: from now on the first touch of
    /// a page reads that page alone. Else it reads those around it, as many as the device is set up
    /// for (`read_ahead_kb`: 32 pages by default, and up to thousands), or a huge page, which is of
    /// use only where they stay in memory until they are asked for. Two system calls, once.
    pub fn expect_random(&self) {
        // All of it, whatever is mapped: neighbours of other advice would not be one mapping.
        if !self.is_random.swap(true, Ordering::AcqRel) {
            #[cfg(target_os = "linux")]
            linux::advise_random(self.base.cast(), self.bytes() as usize);
        }
    }

    /// Asks the processor to load the cache line at `offset`. Never fails, wherever that is.
    #[inline]
    pub fn prefetch(&self, offset: u64) {
        prefetch_line(self.base.as_ptr().wrapping_add(offset as usize));
    }

    /// Has the system put memory of its own behind a range of whole pages now, rather than at the
    /// first store to each; no byte changes. A hint: if it fails, the first store does it. `false`
    /// if a store would raise a signal instead: there is no memory or space, or it is broken.
    pub fn populate(&self, offset: u64, len: u64) -> bool {
        !(self.has_pages(offset, len) && len > 0) || self.populate_pages(offset, len)
    }

    #[cfg(target_os = "linux")]
    fn populate_pages(&self, offset: u64, len: u64) -> bool {
        linux::populate(self.address(offset).cast(), len as usize)
    }

    /// Other systems do it at the first store.
    #[cfg(not(target_os = "linux"))]
    fn populate_pages(&self, _offset: u64, _len: u64) -> bool {
        true
    }

    /// How many pages of a range of whole ones this process has touched since they were mapped or
    /// dropped. 8 bytes are read for each.
    #[cfg(target_os = "linux")]
    pub fn touched_pages(&self, offset: u64, len: u64) -> u64 {
        if offset.checked_add(len).is_none_or(|end| end > self.bytes()) || len == 0 {
            return 0;
        }
        let first = self.address(offset).addr() as u64 / self.page_bytes;
        let mut entries = vec![0; (len / self.page_bytes * 8) as usize];
        linux::page_map(&mut entries, first * 8).map_or(0, |()| {
            // Bit 63: present.
            entries.chunks_exact(8).filter(|entry| entry[7] & 0x80 != 0).count() as u64
        })
    }

    /// Other systems do not say.
    #[cfg(not(target_os = "linux"))]
    pub fn touched_pages(&self, _offset: u64, _len: u64) -> u64 {
        0
    }

    /// Other systems move no memory.
    ///
    /// # Safety
    /// None.
    #[cfg(not(target_os = "linux"))]
    pub(crate) unsafe fn move_from(&self, offset: u64, _source: &Region, len: u64) -> Result<()> {
        Err(self.beyond(offset, len))
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
        let base = self.base.as_ptr().addr();
        let kept = kept.iter().map(|&(start, end)| (base + start as usize, base + end as usize));
        // SAFETY: our caller promises it.
        unsafe { self.reservation.give_up(kept) };
    }

    /// Whether a range is whole pages of the region.
    pub(super) fn has_pages(&self, offset: u64, len: u64) -> bool {
        let are_whole = [offset, len].iter().all(|number| number % self.page_bytes == 0);
        are_whole && offset.checked_add(len).is_some_and(|end| end <= self.bytes())
    }

    /// The address of a byte whose offset was checked to be within the region.
    pub(super) fn address(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.bytes());
        self.base.as_ptr().wrapping_add(offset as usize)
    }

    pub(super) fn beyond(&self, offset: u64, len: u64) -> Error {
        Error::AddressSpace { needed_bytes: offset.saturating_add(len), source: no_memory() }
    }
}

fn no_memory() -> io::Error {
    io::ErrorKind::OutOfMemory.into()
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
}
