//! What `large` measures.

use std::path::Path;

use crate::harness::error::Result;

/// An engine, and how it is opened in a directory by a process with so many bytes of memory.
pub struct Subject<E> {
    /// Its name in reports.
    pub name: &'static str,
    /// Opens it.
    pub open: fn(&Path, u64) -> Result<E>,
}
