//! Virtual memory by VirtualAlloc.

use std::ffi::c_void;
use std::io;
use std::ptr;

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_DECOMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_NOACCESS, PAGE_READWRITE,
    VirtualAlloc, VirtualFree,
};
use windows_sys::Win32::System::SystemInformation::{GetSystemInfo, SYSTEM_INFO};

use crate::fork::ForkGuard;

/// Bytes of a page of this system.
pub(in crate::address) fn page_bytes() -> u64 {
    let mut found = SYSTEM_INFO::default();
    // SAFETY: a place of ours, which the call fills.
    unsafe { GetSystemInfo(&raw mut found) };
    found.dwPageSize.into()
}

/// Addresses that belong to this process alone, and are freed on drop.
#[derive(Debug)]
pub(in crate::address) struct Reservation {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: memory of the process, not of the thread that reserved it.
unsafe impl Send for Reservation {}
// SAFETY: its own fields never change.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves inaccessible bytes at an address that the system chooses. Returns their address. No
    /// room behind them is left: it could not be taken later as one with them.
    pub(in crate::address) fn new(
        bytes: usize,
        _room: u64,
        _fork: ForkGuard,
    ) -> io::Result<(Self, *mut u8)> {
        // SAFETY: the system picks addresses that nothing else uses.
        let found = unsafe { VirtualAlloc(ptr::null(), bytes, MEM_RESERVE, PAGE_NOACCESS) };
        if found.is_null() {
            return Err(io::Error::last_os_error());
        }
        let start = found.cast();
        Ok((Self { start, bytes }, start))
    }

    /// Gives the memory of all but some ranges of addresses back, in order; for good. The addresses
    /// stay until it is dropped: only all of them can be freed.
    ///
    /// # Safety
    /// From now on no code accesses anything else of it.
    pub(in crate::address) unsafe fn give_up(&self, kept: impl Iterator<Item = (usize, usize)>) {
        let page_bytes = page_bytes() as usize;
        let (mut at, end) = (self.start.addr(), self.start.addr() + self.bytes);
        for (start, stop) in kept.chain([(end, end)]) {
            let start = start / page_bytes * page_bytes;
            if start > at {
                // SAFETY: between two kept ranges, before the first or behind the last: our caller
                // promises that no code accesses it any more.
                let given = unsafe { release(self.start.with_addr(at), start - at) };
                debug_assert!(given.is_ok(), "VirtualFree of our own memory: {given:?}");
            }
            at = at.max(stop.next_multiple_of(page_bytes));
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: reserved by `new`; its owner is gone, and all code that may access it.
        let freed = unsafe { VirtualFree(self.start.cast::<c_void>(), 0, MEM_RELEASE) };
        debug_assert!(freed != 0, "VirtualFree of our own: {}", io::Error::last_os_error());
    }
}

/// Makes whole pages readable and writable: zeros, unless they were so before.
///
/// # Safety
/// They are of a reservation.
pub(in crate::address) unsafe fn commit(address: *mut u8, len: usize) -> io::Result<()> {
    // SAFETY: our caller promises that they are ours. What is committed already keeps its bytes.
    let found = unsafe { VirtualAlloc(address.cast(), len, MEM_COMMIT, PAGE_READWRITE) };
    if found.is_null() { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes whole pages inaccessible, and gives what is behind them back.
///
/// # Safety
/// They are of a reservation, and no code accesses them before they are committed anew.
pub(in crate::address) unsafe fn release(address: *mut u8, len: usize) -> io::Result<()> {
    // SAFETY: our caller promises it.
    let given = unsafe { VirtualFree(address.cast(), len, MEM_DECOMMIT) };
    if given == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
