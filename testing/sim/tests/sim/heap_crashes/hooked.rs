//! A directory with a hook that runs before every write to a file.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use adamant_medium::address::region::Region;
use adamant_medium::error::Result;
use adamant_medium::storage::{Directory, File, Lock};
use adamant_sim::SimDirectory;

type Hook = Arc<dyn Fn() + Send + Sync>;

/// The directory of a simulated disk.
pub(crate) struct Hooked {
    directory: SimDirectory,
    hook: Hook,
}

impl Hooked {
    pub(crate) fn new(directory: SimDirectory, hook: impl Fn() + Send + Sync + 'static) -> Hooked {
        Hooked { directory, hook: Arc::new(hook) }
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
        self.directory.open(name)
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        let file = self.directory.create(name)?;
        Ok(Arc::new(HookedFile { file, hook: Arc::clone(&self.hook) }))
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.directory.rename(source, target)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.directory.remove(name)
    }

    fn list(&self) -> Result<Vec<String>> {
        self.directory.list()
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        self.directory.sync()
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        self.directory.subdirectory(name)
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
}

struct HookedFile {
    file: Arc<dyn File>,
    hook: Hook,
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
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        (self.hook)();
        self.file.write_at(bytes, offset)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.file.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.file.punch(offset, len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    unsafe fn map_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        // SAFETY: our caller promises the same.
        unsafe { self.file.map_private(region, region_offset, file_offset, len) }
    }
}
