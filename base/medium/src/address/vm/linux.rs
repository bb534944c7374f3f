//! What Linux alone is asked of memory: advice, huge pages, and which pages were touched.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{Advice, madvise};

use crate::error::{Error, Result};

/// Advises the kernel on pages that were just mapped: a child of a fork does not get them, so that
/// neither it nor a copy on our next write doubles the memory; and huge pages, which halve the time
/// of a dependent load. The whole reservation gets the same advice before any of it is committed,
/// so that committed neighbours stay one mapping, however small the steps.
pub(in crate::address) fn advise(address: NonNull<c_void>, len: usize) -> Result<()> {
    // SAFETY: the range was just mapped by our caller, and this advice changes no byte of it.
    let kept = unsafe { madvise(address.as_ptr(), len, Advice::LinuxDontFork) };
    kept.map_err(refused("MADV_DONTFORK", len))?;
    // A kernel built without huge pages refuses; then there are none, which is no error.
    // SAFETY: as above.
    let _ = unsafe { madvise(address.as_ptr(), len, Advice::LinuxHugepage) };
    Ok(())
}

/// Advises the kernel that pages are touched in no order. Where huge pages are advised, Linux reads
/// 2 MiB of a file for one page of it, whatever order was advised (since 5.18). A hint: if it
/// fails, more is read than needed.
pub(in crate::address) fn advise_random(address: NonNull<c_void>, len: usize) {
    for advice in [Advice::LinuxNoHugepage, Advice::Random] {
        // SAFETY: whole pages of a mapping of our caller's, of which this changes no byte.
        let _ = unsafe { madvise(address.as_ptr(), len, advice) };
    }
}

/// Puts memory behind pages; Linux before 5.14 refuses, and does it at the first store.
pub(in crate::address) fn populate(address: *mut c_void, len: usize) -> bool {
    // SAFETY: whole pages of a mapping of our caller's. Their bytes stay unchanged, whichever
    // thread reads or writes them meanwhile.
    let done = unsafe { madvise(address, len, Advice::LinuxPopulateWrite) };
    !matches!(done, Err(Errno::FAULT | Errno::HWPOISON | Errno::NOMEM))
}

/// Reads the system's page-map entries, 8 bytes for each page.
pub(in crate::address) fn page_map(entries: &mut [u8], at: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    std::fs::File::open("/proc/self/pagemap")?.read_exact_at(entries, at)
}

fn refused(advice: &'static str, len: usize) -> impl Fn(Errno) -> Error {
    move |error| Error::Advice { advice, bytes: len as u64, source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: the error spoke of missing address space, and of a limit that had nothing to
    /// do with it.
    #[test]
    fn advice_that_is_refused_is_called_that() {
        // No mapping has such an address: the system refuses any advice on it.
        let nowhere = NonNull::new(std::ptr::without_provenance_mut(1 << 60)).expect("not null");
        let error = advise(nowhere, 4096).expect_err("nothing is mapped there");
        assert!(matches!(error, Error::Advice { bytes: 4096, .. }) && error.is_refusal());
        let words = error.to_string();
        assert!(words.contains("MADV_DONTFORK") && words.contains("max_map_count"), "{words}");
        assert!(!words.contains("ulimit"), "{words}");
    }
}
