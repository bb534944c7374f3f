//! A disk in memory that can be copied at any moment, fill up, fail and stall.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use adamant_medium::address::region::Region;
use adamant_medium::error::{Error, Result};
use adamant_medium::storage::{Directory, File, Lock};
use parking_lot::Mutex;

/// State that all files of a disk share.
#[derive(Debug, Default)]
pub(super) struct Disk {
    files: Mutex<BTreeMap<String, Arc<DiskFile>>>,
    faults: Arc<Faults>,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Bytes that all files together may still grow by; `u64::MAX / 2` and more is no limit.
    pub(super) free_bytes: AtomicU64,
    pub(super) fail_sync: AtomicBool,
    pub(super) fail_write: AtomicBool,
    /// Writes that succeed until one fails; `u64::MAX` is no limit.
    pub(super) writes_left: AtomicU64,
    /// After so many changes of files and names all others fail; 0 is no limit.
    pub(super) changes_max: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) sync_us: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) reads: AtomicU64,
    pub(super) at_sync: AtSync,
}

/// Runs while a file is synced, with its path.
type OnSync = Box<dyn FnMut(&Path) + Send>;

#[derive(Default)]
pub(super) struct AtSync(pub(super) Mutex<Option<OnSync>>);

impl std::fmt::Debug for AtSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtSync")
    }
}

impl Faults {
    /// The limit acts as if the process was killed there.
    fn count_change(&self, operation: &'static str, path: &Path) -> Result<()> {
        let before = self.changes.fetch_add(1, Ordering::Relaxed);
        let most = self.changes_max.load(Ordering::Relaxed);
        if most == 0 || before < most {
            return Ok(());
        }
        let source = io::Error::other("the process is no more");
        Err(Error::io(operation, path, None, 0, source))
    }
}

impl Disk {
    pub(super) fn new() -> Arc<Self> {
        let disk = Self::default();
        disk.faults.free_bytes.store(u64::MAX / 2, Ordering::Relaxed);
        disk.faults.writes_left.store(u64::MAX, Ordering::Relaxed);
        Arc::new(disk)
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// A disk without faults with the current contents of this one.
    pub(super) fn copy(&self) -> Arc<Self> {
        let copy = Self::new();
        for (name, file) in &*self.files.lock() {
            copy.put(name, file.bytes.lock().clone());
        }
        copy
    }

    pub(super) fn root(self: &Arc<Self>) -> Arc<dyn Directory> {
        Arc::new(DiskDirectory { disk: Arc::clone(self), path: PathBuf::new() })
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        self.files.lock()[name].bytes.lock().clone()
    }

    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) {
        let file = DiskFile {
            path: name.into(),
            bytes: Mutex::new(bytes),
            faults: Arc::clone(&self.faults),
        };
        self.files.lock().insert(name.into(), Arc::new(file));
    }

    pub(super) fn change(&self, name: &str, work: impl FnOnce(&mut Vec<u8>)) {
        work(&mut self.files.lock()[name].bytes.lock());
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.files.lock().keys().cloned().collect()
    }

    pub(super) fn remove(&self, name: &str) {
        self.files.lock().remove(name);
    }
}

#[derive(Debug)]
struct DiskDirectory {
    disk: Arc<Disk>,
    path: PathBuf,
}

impl DiskDirectory {
    fn full(&self, name: &str) -> String {
        // As the tests call them, on Windows, too.
        self.path.join(name).to_str().expect("names are ASCII").replace('\\', "/")
    }
}

impl Directory for DiskDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        let file = self.disk.files.lock().get(&self.full(name)).cloned();
        Ok(file.map(|file| file as Arc<dyn File>))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        assert!(self.open(name)?.is_none(), "{name} exists");
        self.disk.put(&self.full(name), Vec::new());
        Ok(self.open(name)?.expect("just created"))
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.disk.faults.count_change("rename", Path::new(source))?;
        let mut files = self.disk.files.lock();
        let Some(file) = files.remove(&self.full(source)) else {
            let missing = io::ErrorKind::NotFound.into();
            return Err(Error::io("rename", Path::new(source), None, 0, missing));
        };
        files.insert(self.full(target), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.disk.faults.count_change("remove", Path::new(name))?;
        let file = self.disk.files.lock().remove(&self.full(name)).expect("it exists");
        let bytes = file.bytes.lock().len() as u64;
        self.disk.faults.free_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>> {
        let files = self.disk.files.lock();
        let here = |name: &&String| Path::new(name).parent() == Some(&self.path);
        let last = |name: &String| name.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(files.keys().filter(here).map(last).collect())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        Ok(Arc::new(Self { disk: Arc::clone(&self.disk), path: self.path.join(name) }))
    }

    fn lock(&self, _: &str) -> Result<Box<dyn Lock>> {
        unreachable!("the journal takes no lock")
    }

    fn lock_shared(&self, _: &str) -> Result<Box<dyn Lock>> {
        unreachable!("the journal takes no lock")
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        buffer.iter_mut().zip(1..).for_each(|(byte, value)| *byte = value);
        Ok(())
    }
}

#[derive(Debug)]
struct DiskFile {
    path: PathBuf,
    bytes: Mutex<Vec<u8>>,
    faults: Arc<Faults>,
}

impl DiskFile {
    fn fail(&self, operation: &'static str, when: &AtomicBool) -> Result<()> {
        if !when.load(Ordering::Relaxed) {
            return Ok(());
        }
        let source = io::Error::other("the test says so");
        Err(Error::io(operation, &self.path, None, 0, source))
    }

    fn grow(&self, bytes: &mut Vec<u8>, end: u64) -> Result<()> {
        let more = end.saturating_sub(bytes.len() as u64);
        let free = &self.faults.free_bytes;
        if more > free.load(Ordering::Relaxed) {
            let source = io::ErrorKind::StorageFull.into();
            return Err(Error::io("allocate", &self.path, None, more, source));
        }
        free.fetch_sub(more, Ordering::Relaxed);
        bytes.resize(bytes.len() + more as usize, 0);
        Ok(())
    }
}

impl File for DiskFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.faults.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.lock();
        let Some(found) = bytes.get(offset as usize..offset as usize + buffer.len()) else {
            return Err(Error::Truncated {
                path: self.path.clone(),
                offset,
                expected_bytes: buffer.len() as u64,
                found_bytes: bytes.len() as u64,
            });
        };
        buffer.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let left = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let is_last = self.faults.writes_left.fetch_update(set, get, left).is_err();
        self.fail("write", &AtomicBool::new(is_last))?;
        self.faults.count_change("write", &self.path)?;
        self.fail("write", &self.faults.fail_write)?;
        let mut file = self.bytes.lock();
        self.grow(&mut file, offset + bytes.len() as u64)?;
        file[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.faults.count_change("allocate", &self.path)?;
        self.grow(&mut self.bytes.lock(), offset + len)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.bytes.lock()[offset as usize..(offset + len) as usize].fill(0);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.faults.count_change("set length", &self.path)?;
        self.bytes.lock().resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.fail("sync", &self.faults.fail_sync)?;
        // Not within itself.
        let at_sync = self.faults.at_sync.0.lock().take();
        if let Some(mut at_sync) = at_sync {
            at_sync(&self.path);
            *self.faults.at_sync.0.lock() = Some(at_sync);
        }
        self.faults.syncs.fetch_add(1, Ordering::Relaxed);
        match self.faults.sync_us.load(Ordering::Relaxed) {
            0 => {}
            us => std::thread::sleep(Duration::from_micros(us)),
        }
        Ok(())
    }

    unsafe fn map_private(&self, _: &Region, _: u64, _: u64, _: u64) -> Result<()> {
        unreachable!("the journal maps nothing")
    }
}
