//! Admission: the checks of each call before it waits for a lock, and the two ways to the image.
//!
//! Purpose: refuses the child of a fork, a closed heap, and a thread that would wait for itself.
//! Thread safety: any thread.

use std::sync::atomic::Ordering;

use super::Heap;
use crate::error::{Error, Result};
use crate::image::mapping::guards::{Exclusive, Shared};
use crate::space::blocks::Blocks;
use crate::transaction::scratch::Writer;

impl Heap {
    /// Whether this thread holds the writer lock: runs a transaction, or [holds the
    /// permit](Heap::take_write_permit).
    #[inline]
    pub fn has_writer(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == thread_token()
    }

    /// Notes whether this thread holds the writer lock.
    pub(crate) fn set_within(&self, is_within: bool) {
        self.owner.store(if is_within { thread_token() } else { 0 }, Ordering::Relaxed);
    }

    /// Refuses a call that would wait for the writer lock that this thread holds.
    pub(crate) fn refuse_within(&self) -> Result<()> {
        if self.has_writer() {
            return Err(Error::Misuse {
                what: "not while this thread holds the write permit: it would wait for itself",
            });
        }
        Ok(())
    }

    /// Call it with the image's lock held: `close` sets the flag before it waits for the lock.
    #[inline]
    pub(crate) fn refuse_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Misuse { what: "the heap was closed; open it again" });
        }
        Ok(())
    }

    /// Whether this is the child of a fork: then nothing of the heap may be touched.
    #[inline]
    pub(crate) fn is_child(&self) -> bool {
        self.space.image.fork().is_child()
    }

    /// Fails in the child of a fork, as all calls do there. One load, no waiting: in a child, a
    /// lock may be held by a thread that stayed with the parent.
    ///
    /// # Errors
    /// `Error::Misuse`.
    #[inline]
    pub fn refuse_child(&self) -> Result<()> {
        if self.is_child() {
            return Err(Error::Misuse {
                what: "the heap was opened before a fork; open it in the child after its parent \
                       has closed it, or use exec",
            });
        }
        Ok(())
    }

    /// Fails if every later commit will: checks the known state, and writes nothing. Whether there
    /// is space for a commit is known only when it is made.
    ///
    /// # Errors
    /// `Error::Poisoned`, `Error::ReadOnly`; `Error::Misuse` if it is closed, or in the child of a
    /// fork.
    pub fn check_writable(&self) -> Result<()> {
        self.refuse_child()?;
        self.refuse_closed()?;
        self.journal.writable()?.check_writable()
    }

    /// The image, unless the heap was closed: then another process may write the pool, and the
    /// mapped bytes may change under a reader (S1).
    #[inline]
    pub(crate) fn read_image(&self) -> Result<Shared<'_>> {
        let image = self.space.image.read();
        self.refuse_closed()?;
        Ok(image)
    }

    /// The image, for longer than some microseconds.
    #[inline]
    pub(crate) fn read_image_long(&self) -> Result<Shared<'_>> {
        let image = self.space.image.read_long();
        self.refuse_closed()?;
        Ok(image)
    }

    /// Runs `work` while no other thread reads or writes: no view, no transaction. Waits for no
    /// checkpoint (C8): for `work` that needs one see [`Journal::hold_checkpoints`].
    pub(crate) fn alone<T>(
        &self,
        work: impl FnOnce(Blocks<'_>, &mut Exclusive<'_>, &mut Writer) -> Result<T>,
    ) -> Result<T> {
        self.refuse_child()?;
        self.refuse_within()?;
        let mut permit = self.writer_queue.wait();
        let mut image = self.space.image.write();
        self.refuse_closed()?;
        work(self.blocks(), &mut image, &mut permit)
    }
}

/// A number that no other living thread has.
fn thread_token() -> usize {
    thread_local!(static TOKEN: u8 = const { 0 });
    TOKEN.with(|token| std::ptr::from_ref(token).addr())
}
