//! A directory with a hook.
//!
//! Purpose: tests that act while a program calls a medium, count its calls, or refuse some.
//! Thread safety: any thread, with any hook.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use adamant_medium::address::persist::{Flushing, Persist};
use adamant_medium::address::region::Region;
use adamant_medium::error::Result;
use adamant_medium::storage::{Directory, File, Lock};

use crate::calls::Call;

/// Runs before a call, with the path of the file or directory; the call fails with its error.
type Hook = dyn Fn(Call, &Path) -> Result<()> + Send + Sync;

/// A directory with a hook that runs before each [`Call`] to it and to its files, and to those of
/// its subdirectories if [`Hooked::within`] says so. What a medium need not have, such as an
/// exchange of names, this one has not, except for shared mappings.
pub struct Hooked {
    directory: Arc<dyn Directory>,
    hook: Arc<Hook>,
    is_within: bool,
}

impl Hooked {
    /// The same directory, with a hook.
    pub fn new(
        directory: impl Directory + 'static,
        hook: impl Fn(Call, &Path) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { directory: Arc::new(directory), hook: Arc::new(hook), is_within: false }
    }

    /// Has subdirectories run the hook, too.
    #[must_use]
    pub fn within(self) -> Self {
        Self { is_within: true, ..self }
    }

    fn call(&self, call: Call, name: &str) -> Result<&dyn Directory> {
        (self.hook)(call, &self.path().join(name))?;
        Ok(&*self.directory)
    }

    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(HookedFile { file, hook: Arc::clone(&self.hook) })
    }
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.directory.fmt(f)
    }
}

impl Directory for Hooked {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        Ok(self.directory.open(name)?.map(|file| self.file(file)))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        Ok(self.file(self.call(Call::Create, name)?.create(name)?))
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.call(Call::Rename, source)?.rename(source, target)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.call(Call::Remove, name)?.remove(name)
    }

    fn list(&self) -> Result<Vec<String>> {
        self.call(Call::List, "")?.list()
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        self.call(Call::SyncDirectory, "")?.sync()
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        let directory = self.call(Call::Create, name)?.subdirectory(name)?;
        let hook = Arc::clone(&self.hook);
        Ok(match self.is_within {
            true => Arc::new(Self { directory, hook, is_within: true }),
            false => directory,
        })
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.directory.lock(name)
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.directory.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        self.directory.random(buffer)
    }

    fn persist(&self, how: Flushing, name: &str) -> Result<Option<Arc<dyn Persist>>> {
        self.directory.persist(how, name)
    }
}

struct HookedFile {
    file: Arc<dyn File>,
    hook: Arc<Hook>,
}

impl HookedFile {
    fn call(&self, call: Call) -> Result<&dyn File> {
        (self.hook)(call, self.path())?;
        Ok(&*self.file)
    }
}

impl fmt::Debug for HookedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl File for HookedFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.call(Call::Read)?.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.call(Call::Write)?.write_at(bytes, offset)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.call(Call::Allocate)?.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.call(Call::Punch)?.punch(offset, len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.call(Call::SetLen)?.set_len(len)
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        self.call(Call::Sync)?.sync()
    }

    unsafe fn map_private(&self, region: &Region, at: u64, offset: u64, len: u64) -> Result<()> {
        let file = self.call(Call::Map)?;
        // SAFETY: our caller promises the same.
        unsafe { file.map_private(region, at, offset, len) }
    }

    unsafe fn map_shared(&self, region: &Region, at: u64, offset: u64, len: u64) -> Result<()> {
        let file = self.call(Call::MapShared)?;
        // SAFETY: our caller promises the same.
        unsafe { file.map_shared(region, at, offset, len) }
    }
}
