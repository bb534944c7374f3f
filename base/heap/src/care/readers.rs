//! Readers in other processes: a heap that follows a writer, and a writer that has readers.
//!
//! Purpose: the calls of the heap's users; the journal does the work, see
//! docs/decisions/0133-readers-beside-the-writer.md.
//! Invariants: nothing that was read changes under its reader: a heap of which a slice, a pin or a
//! copy is in use does not move on.
//! Thread safety: any thread; a heap that moves on has the image exclusively.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::error::Result;
use crate::heap::Heap;
use crate::image::mapping::Image;
use crate::journal::{Journal, Refresh};
use crate::layout::{CLASS_TABLE_OFFSET, PAGE_BYTES};

impl Heap {
    /// Moves a heap [beside a writer](crate::Options::beside_writer) on to the last commit that can
    /// be found, which is not before the one that it has. Waits for views. O(records since), and
    /// behind a checkpoint O(pages that it wrote + log). Others stay.
    ///
    /// # Errors
    /// Those of the medium; then it is closed, too. Damage of the log only closes it, since what is
    /// half written looks like it: opening again is the error, if the damage stays.
    pub fn refresh(&self) -> Result<Refresh> {
        self.refuse_child()?;
        self.refuse_within()?;
        let _permit = self.writer_queue.wait();
        let Some(_no_copy) = self.copying.try_lock() else { return Ok(Refresh::InUse) };
        let mut image = self.space.image.write();
        self.refuse_closed()?;
        // Bytes of theirs would change.
        self.borrowed.settle();
        if self.borrowed.has_any() || self.pins.count() > 0 {
            return Ok(Refresh::InUse);
        }
        let class_bytes =
            |image: &Image| image.bytes(CLASS_TABLE_OFFSET, PAGE_BYTES).map(<[u8]>::to_vec);
        let classes = class_bytes(&image)?;
        let refresh = self.journal.refresh(self.directory().as_ref(), &mut image);
        let is_usable = matches!(refresh, Ok(Refresh::Unchanged | Refresh::Later))
            && class_bytes(&image).is_ok_and(|found| found == classes);
        if !is_usable {
            self.closed.store(true, Ordering::Release);
        }
        refresh.map(|refresh| if is_usable { refresh } else { Refresh::Closed })
    }

    /// Whether no later commit can be found than the one that a heap beside a writer shows. O(1)
    /// calls, and O(records since).
    ///
    /// # Errors
    /// Those of the medium.
    pub fn is_newest(&self) -> Result<bool> {
        self.refuse_child()?;
        self.journal.is_newest(self.directory().as_ref())
    }

    /// Waits until a later commit can be found than the one that a heap beside a writer shows, for
    /// no longer than that; whether one can. Nothing is locked meanwhile. The process that writes
    /// ends the wait, on Linux and file systems that overwrite in place; elsewhere this looks 200
    /// times a second.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn wait_for_later(&self, longest: Duration) -> Result<bool> {
        self.refuse_child()?;
        self.journal.wait(self.directory().as_ref(), longest)
    }

    /// The number of the commit that the oldest [reader](crate::Options::beside_writer) beside this
    /// heap sees; 0 while one is being opened. `None`: there is no reader. Some calls, and five for
    /// each reader.
    ///
    /// # Errors
    /// `Error::ReadOnly`; those of the medium.
    pub fn oldest_reader(&self) -> Result<Option<u64>> {
        self.journal.writable()?.oldest_reader()
    }

    /// Keeps nothing for the oldest reader from now on: its next read of something that is
    /// overwritten is an error that says so. False if there is none.
    ///
    /// # Errors
    /// `Error::ReadOnly`; those of the medium.
    pub fn overtake_oldest_reader(&self) -> Result<bool> {
        self.journal.writable()?.overtake_oldest_reader()
    }

    /// Bytes that are kept for readers at most, see
    /// [`reader_bytes_max`](crate::Options::reader_bytes_max).
    pub fn reader_bytes_max(&self) -> u64 {
        self.journal.writable().map_or(0, Journal::reader_bytes_max)
    }
}
