//! A copy of a file that is left out if the parent of an increment has the same.
//!
//! Purpose: compares what is written with the parent's file, and becomes a file of its own at the
//! first byte that differs.
//! Invariants: bytes are compared, never checksums of them.
//! Thread safety: one lock, held for each call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_medium::error::Result as MediumResult;
use adamant_medium::storage::{Directory, File};
use parking_lot::Mutex;

use crate::increment::chain::never_written;
use crate::increment::difference::refuse_short;
use crate::increment::layout::FileEntry;

/// Bytes that are copied at once.
const COPY_BYTES: u64 = 1 << 20;

/// A file that is written from its start to its end, and synced once.
#[derive(Debug)]
pub(super) struct SameFile {
    directory: Arc<dyn Directory>,
    name: String,
    path: PathBuf,
    /// The list that it is added to with its sync.
    files: Arc<Mutex<Vec<FileEntry>>>,
    entry: FileEntry,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    /// The parent's, as long as all bytes were the same.
    parents: Option<Arc<dyn File>>,
    own: Option<Arc<dyn File>>,
}

impl SameFile {
    /// An empty file.
    pub(super) fn new(
        (directory, name): (Arc<dyn Directory>, &str),
        parents: Option<Arc<dyn File>>,
        files: Arc<Mutex<Vec<FileEntry>>>,
        entry: FileEntry,
    ) -> Self {
        let (path, name) = (directory.path().join(name), name.into());
        let written = Mutex::new(Written { len: 0, parents, own: None });
        Self { directory, name, path, files, entry, written }
    }

    /// The file of its own, with what was the same until now.
    fn own(&self, written: &mut Written) -> MediumResult<Arc<dyn File>> {
        if let Some(own) = &written.own {
            return Ok(Arc::clone(own));
        }
        let own = self.directory.create(&self.name)?;
        if let Some(parents) = written.parents.take() {
            let mut at = 0;
            while at < written.len {
                let mut bytes = vec![0; (written.len - at).min(COPY_BYTES) as usize];
                parents.read_at(&mut bytes, at)?;
                own.write_at(&bytes, at)?;
                at += bytes.len() as u64;
            }
        }
        Ok(Arc::clone(written.own.insert(own)))
    }
}

impl Written {
    /// Whether the parent's file has these bytes at the end of all that were the same.
    fn goes_on(&self, bytes: &[u8], offset: u64) -> MediumResult<bool> {
        let Some(parents) = &self.parents else { return Ok(false) };
        if offset != self.len || offset + bytes.len() as u64 > parents.len()? {
            return Ok(false);
        }
        let mut theirs = vec![0; bytes.len()];
        parents.read_at(&mut theirs, offset)?;
        Ok(theirs == bytes)
    }
}

impl File for SameFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> MediumResult<u64> {
        Ok(self.written.lock().len)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> MediumResult<()> {
        let written = self.written.lock();
        refuse_short(self, written.len, buffer, offset)?;
        match written.own.as_ref().or(written.parents.as_ref()) {
            Some(file) => file.read_at(buffer, offset),
            None => Ok(()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> MediumResult<()> {
        let mut written = self.written.lock();
        if !written.goes_on(bytes, offset)? {
            self.own(&mut written)?.write_at(bytes, offset)?;
        }
        written.len = written.len.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn allocate(&self, _: u64, _: u64) -> MediumResult<()> {
        Err(never_written(&self.path))
    }

    fn punch(&self, _: u64, _: u64) -> MediumResult<()> {
        Err(never_written(&self.path))
    }

    fn set_len(&self, _: u64) -> MediumResult<()> {
        Err(never_written(&self.path))
    }

    /// Makes it durable, or leaves it out; from now on the list has it.
    fn sync(&self) -> MediumResult<()> {
        let mut written = self.written.lock();
        let is_same = match &written.parents {
            Some(parents) => parents.len()? == written.len,
            None => false,
        };
        if !is_same {
            self.own(&mut written)?.sync()?;
        }
        let bytes = written.len.into();
        let entry = FileEntry { bytes, is_here: (!is_same).into(), ..self.entry };
        self.files.lock().push(entry);
        Ok(())
    }
}
