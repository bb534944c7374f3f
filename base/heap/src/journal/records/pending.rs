//! Pending frames: appended, but not written yet.
//!
//! Purpose: the buffers of the log, which are swapped instead of copied: frames are appended to one
//! while another is written.
//! Invariants: segments follow each other in the log. Thread safety: under the locks of `Log`.

use std::sync::Arc;

use adamant_medium::error::Result as MediumResult;

use crate::journal::records::log_file::LogFile;

/// Larger buffers, grown for a large record, are freed.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// Frames that are not written yet.
#[derive(Debug, Default)]
pub(in crate::journal) struct Pending {
    pub(in crate::journal) bytes: Vec<u8>,
    pub(in crate::journal) segments: Vec<Segment>,
    /// The file of the last segment written: most likely that of the next one too, which saves two
    /// locked instructions of reference counting.
    last_file: Option<Arc<LogFile>>,
}

impl Pending {
    /// A reference to a file for a segment.
    pub(in crate::journal) fn file_for(&mut self, file: &Arc<LogFile>) -> Arc<LogFile> {
        let last = self.last_file.take().filter(|last| Arc::ptr_eq(last, file));
        last.unwrap_or_else(|| Arc::clone(file))
    }

    /// Writes all of it, in order, and calls `each` with the files. `synced_next` says that a sync
    /// follows at once.
    ///
    /// # Errors
    /// Those of the medium, and of `each`.
    pub(in crate::journal) fn write(
        &mut self,
        synced_next: bool,
        mut each: impl FnMut(&Arc<LogFile>) -> MediumResult<()>,
    ) -> MediumResult<()> {
        let Self { bytes, segments, last_file } = self;
        for (index, segment) in segments.iter().enumerate() {
            let end = segments.get(index + 1).map_or(bytes.len(), |next| next.start);
            segment.file.write(&bytes[segment.start..end], segment.offset, synced_next)?;
            each(&segment.file)?;
        }
        *last_file = segments.pop().map(|segment| segment.file);
        segments.clear();
        bytes.clear();
        if bytes.capacity() > BUFFER_BYTES_KEPT {
            bytes.shrink_to(BUFFER_BYTES_KEPT);
        }
        Ok(())
    }
}

/// A piece of `Pending::bytes`, from `start` to the start of the next segment.
#[derive(Debug)]
pub(in crate::journal) struct Segment {
    pub(in crate::journal) file: Arc<LogFile>,
    pub(in crate::journal) offset: u64,
    pub(in crate::journal) start: usize,
}

/// State of the writing thread.
#[derive(Debug, Default)]
pub(in crate::journal) struct Writer {
    pub(in crate::journal) taken: Pending,
    /// Files with unsynced bytes, oldest first.
    pub(in crate::journal) unsynced: Vec<Arc<LogFile>>,
}

impl Writer {
    /// Writes all that was taken, in order. `synced_next` says that a sync follows at once.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn write_taken(&mut self, synced_next: bool) -> MediumResult<()> {
        let Self { taken, unsynced } = self;
        taken.write(synced_next, |file| {
            if !unsynced.last().is_some_and(|last| Arc::ptr_eq(last, file)) {
                unsynced.push(Arc::clone(file));
            }
            Ok(())
        })
    }
}
