//! The raw disk: the cost of making a small record durable without any engine.
//!
//! Purpose: the yardstick of durable puts, measured in the same seconds. Two ways: append to a file
//! and fdatasync (the file grows, so its metadata is written, too), and overwrite a file that was
//! filled with zeros before (only data is written). With several threads each has a part of the
//! file of its own and syncs after every write, without sharing.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use crate::harness::error::Result;
use crate::harness::measure::{Measured, for_a_while};

/// Bytes of a record: about as many as a log needs for a put of 20 B + 100 B.
const RECORD_BYTES: usize = 160;
/// Bytes of the preallocated file for each thread; rewritten from the start when used up.
const PART_BYTES: u64 = 1 << 20;
/// Threads at most.
const THREADS_MAX: u64 = 8;

/// The files to write to.
#[derive(Debug)]
pub struct RawDisk {
    appended: File,
    preallocated: File,
}

impl RawDisk {
    /// Creates both files in a directory, the preallocated one with durable zeros.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(directory: &Path) -> Result<Self> {
        let create = |name: &str, append: bool| {
            OpenOptions::new()
                .create_new(true)
                .write(!append)
                .append(append)
                .open(directory.join(name))
        };
        let appended = create("appended", true)?;
        let mut preallocated = create("preallocated", false)?;
        for _ in 0..THREADS_MAX {
            preallocated.write_all(&vec![0; PART_BYTES as usize])?;
        }
        preallocated.sync_all()?;
        Ok(Self { appended, preallocated })
    }

    /// Appends and syncs on several threads; `observe` as in `for_a_while`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn append(
        &self,
        threads: usize,
        time: Duration,
        observe: &(dyn Fn(usize, Duration) + Sync),
    ) -> Result<Measured> {
        for_a_while(threads, time, observe, |_, count| {
            (&self.appended).write_all(&[count as u8; RECORD_BYTES])?;
            Ok(self.appended.sync_data()?)
        })
    }

    /// One thread overwrites, without a sync, while another syncs repeatedly: `observe` gets 0 for
    /// the first and 1 for the second.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_beside_syncs(
        &self,
        time: Duration,
        observe: &(dyn Fn(usize, Duration) + Sync),
    ) -> Result<Measured> {
        let slots = PART_BYTES * THREADS_MAX / RECORD_BYTES as u64;
        for_a_while(2, time, observe, |thread, count| {
            if thread == 1 {
                return Ok(self.preallocated.sync_data()?);
            }
            let offset = (count % slots) * RECORD_BYTES as u64;
            Ok(self.preallocated.write_all_at(&[count as u8 | 1; RECORD_BYTES], offset)?)
        })
    }

    /// Overwrites and syncs on several threads; `observe` as in `for_a_while`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn overwrite(
        &self,
        threads: usize,
        time: Duration,
        observe: &(dyn Fn(usize, Duration) + Sync),
    ) -> Result<Measured> {
        let slots = PART_BYTES / RECORD_BYTES as u64;
        for_a_while(threads, time, observe, |thread, count| {
            let start = thread as u64 * PART_BYTES;
            let offset = start + (count % slots) * RECORD_BYTES as u64;
            self.preallocated.write_all_at(&[count as u8 | 1; RECORD_BYTES], offset)?;
            Ok(self.preallocated.sync_data()?)
        })
    }
}
