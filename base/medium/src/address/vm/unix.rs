//! Virtual memory by mmap.

use std::ffi::c_void;
use std::io;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use crate::fork::ForkGuard;

/// Bytes of a page of this system.
pub(in crate::address) fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Addresses that belong to this process alone, and are unmapped on drop.
#[derive(Debug)]
pub(in crate::address) struct Reservation {
    /// The parts of it that are mapped: address, and number of bytes.
    mapped: Mutex<Vec<(usize, usize)>>,
    fork: ForkGuard,
}

impl Reservation {
    /// Reserves inaccessible bytes at an address that the system chooses, with `room` free
    /// addresses behind them if there are that many. Returns their address.
    pub(in crate::address) fn new(
        bytes: usize,
        room: u64,
        fork: ForkGuard,
    ) -> io::Result<(Self, *mut u8)> {
        let address = map_with_room(bytes, room)?;
        let mapped = Mutex::new(vec![(address.expose_provenance(), bytes)]);
        Ok((Self { mapped, fork }, address.cast()))
    }

    /// Reserves the addresses up to `end` as well, if they are free. `advise` is called with them,
    /// and may refuse them.
    #[cfg(target_os = "linux")]
    pub(in crate::address) fn extend<E>(
        &self,
        end: usize,
        advise: impl FnOnce(*mut u8, usize) -> Result<(), E>,
        refused: impl Fn(io::Error) -> E,
    ) -> Result<(), E> {
        use rustix::io::Errno;
        let mut mapped = self.mapped();
        let Some((first, len)) = mapped.last_mut() else {
            return Err(refused(Errno::NOMEM.into()));
        };
        let at = *first + *len;
        if end <= at {
            return Ok(());
        }
        let flags = MapFlags::PRIVATE | no_reserve() | MapFlags::FIXED_NOREPLACE;
        let (wanted, count) = (ptr::without_provenance_mut(at), end - at);
        // SAFETY: such a mapping replaces nothing: it takes only addresses that are free.
        let found = unsafe { rustix::mm::mmap_anonymous(wanted, count, ProtFlags::empty(), flags) };
        let found = found.map_err(|error| refused(error.into()))?;
        let is_there = found.expose_provenance() == at;
        let advised = if is_there { advise(found.cast(), count) } else { Ok(()) };
        if !is_there || advised.is_err() {
            // SAFETY: it was just mapped, and no other code knows the address. Kernels before 4.17
            // treat the address as a hint.
            unsafe { unmap(found.addr(), count) };
            advised?;
            return Err(refused(Errno::EXIST.into()));
        }
        *len += count;
        Ok(())
    }

    /// Unmaps all but some ranges of addresses, in order, which stay until it is dropped; for good.
    ///
    /// # Safety
    /// From now on no code accesses anything else of it.
    pub(in crate::address) unsafe fn give_up(&self, kept: impl Iterator<Item = (usize, usize)>) {
        let mut mapped = self.mapped();
        let Some(&(first, len)) = mapped.first() else { return };
        let (mut at, end) = (first, first + len);
        mapped.clear();
        let page_bytes = page_bytes() as usize;
        for (start, stop) in kept {
            let start = (start / page_bytes * page_bytes).max(at);
            let stop = stop.next_multiple_of(page_bytes).min(end);
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
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.fork.is_child() {
            // On Linux nothing of it is mapped here, and another mapping may be at these addresses
            // by now; elsewhere the child has a copy, which goes with it.
            return;
        }
        for (address, len) in self.mapped().drain(..) {
            // SAFETY: mapped by `new` and left by `give_up`; its owner is gone, and with it all
            // code that may access it.
            unsafe { unmap(address, len) };
        }
    }
}

/// Makes whole pages readable and writable: zeros, unless they were so before.
///
/// # Safety
/// They are of a reservation.
pub(in crate::address) unsafe fn commit(address: *mut u8, len: usize) -> io::Result<()> {
    let access = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: our caller promises that they are ours. Making them accessible invalidates no use.
    Ok(unsafe { rustix::mm::mprotect(address.cast(), len, access) }?)
}

/// Makes whole pages inaccessible, and gives what is behind them back.
///
/// # Safety
/// They are of a reservation, and no code accesses them before they are committed or mapped anew.
pub(in crate::address) unsafe fn release(address: *mut u8, len: usize) -> io::Result<()> {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | no_reserve();
    // SAFETY: MAP_FIXED replaces exactly these pages; our caller promises the rest.
    unsafe { rustix::mm::mmap_anonymous(address.cast(), len, ProtFlags::empty(), flags) }?;
    Ok(())
}

fn map_with_room(mapping_bytes: usize, room: u64) -> io::Result<*mut c_void> {
    let flags = MapFlags::PRIVATE | no_reserve();
    let map = |count: usize| {
        // SAFETY: without MAP_FIXED the kernel picks addresses that nothing else uses.
        unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), count, ProtFlags::empty(), flags) }
    };
    let room = usize::try_from(room).ok().filter(|room| *room > 0);
    let all = room.and_then(|room| room.checked_add(mapping_bytes));
    let mapped = all.and_then(|all| map(all).ok().zip(Some(all)));
    let Some((address, all)) = mapped else { return Ok(map(mapping_bytes)?) };
    // SAFETY: it was just mapped, and no other code knows the address.
    unsafe { unmap(address.expose_provenance() + mapping_bytes, all - mapping_bytes) };
    Ok(address)
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

/// Without it a reservation of 100 GiB fails on a machine with 24 GiB of memory.
#[cfg(not(any(target_os = "freebsd", target_os = "dragonfly")))]
pub(super) fn no_reserve() -> MapFlags {
    MapFlags::NORESERVE
}

/// These systems always behave so.
#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
pub(super) fn no_reserve() -> MapFlags {
    MapFlags::empty()
}
