//! Syncs that run beside writes, on a medium whose syncs end late: their failures are not lost, and
//! nothing is renamed or removed before they have ended.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::*;
use adamant_lsm::{BlobOptions, BlobWriter, Error, Result, check_blob_file};
use adamant_medium::address::region::Region;
use adamant_medium::error::{Error as MediumError, Result as Done};
use adamant_medium::storage::{Directory, File, Lock, StartedSync};

/// The syncs that were started, those that run, and the number of the one that fails.
#[derive(Debug, Default)]
struct Syncs {
    started: AtomicUsize,
    running: AtomicUsize,
    failing: usize,
}

impl Syncs {
    /// Panics while one runs.
    fn are_over(&self) {
        assert_eq!(self.running.load(Ordering::SeqCst), 0, "a sync still runs");
    }
}

/// A directory of files with late syncs.
#[derive(Debug)]
struct Late(Arc<dyn Directory>, Arc<Syncs>);

#[derive(Debug)]
struct LateFile(Arc<dyn File>, Arc<Syncs>);

impl Directory for Late {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn open(&self, name: &str) -> Done<Option<Arc<dyn File>>> {
        self.0.open(name)
    }

    fn create(&self, name: &str) -> Done<Arc<dyn File>> {
        Ok(Arc::new(LateFile(self.0.create(name)?, Arc::clone(&self.1))))
    }

    fn rename(&self, source: &str, target: &str) -> Done<()> {
        self.1.are_over();
        self.0.rename(source, target)
    }

    fn remove(&self, name: &str) -> Done<()> {
        self.1.are_over();
        self.0.remove(name)
    }

    fn list(&self) -> Done<Vec<String>> {
        self.0.list()
    }

    fn sync(&self) -> Done<()> {
        self.0.sync()
    }

    fn subdirectory(&self, name: &str) -> Done<Arc<dyn Directory>> {
        self.0.subdirectory(name)
    }

    fn lock(&self, name: &str) -> Done<Box<dyn Lock>> {
        self.0.lock(name)
    }

    fn lock_shared(&self, name: &str) -> Done<Box<dyn Lock>> {
        self.0.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> Done<()> {
        self.0.random(buffer)
    }
}

impl File for LateFile {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn len(&self) -> Done<u64> {
        self.0.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Done<()> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Done<()> {
        self.0.write_at(bytes, offset)
    }

    fn allocate(&self, offset: u64, len: u64) -> Done<()> {
        self.0.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> Done<()> {
        self.0.punch(offset, len)
    }

    fn set_len(&self, len: u64) -> Done<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> Done<()> {
        self.1.are_over();
        self.0.sync()
    }

    fn start_sync(self: Arc<Self>) -> StartedSync {
        self.1.are_over();
        self.1.running.fetch_add(1, Ordering::SeqCst);
        let number = self.1.started.fetch_add(1, Ordering::SeqCst);
        StartedSync::Running(thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            self.1.running.fetch_sub(1, Ordering::SeqCst);
            if number == self.1.failing {
                let source = std::io::Error::other("late");
                return Err(MediumError::io("sync", self.path(), None, 0, source));
            }
            self.0.sync()
        }))
    }

    unsafe fn map_private(&self, region: &Region, at: u64, offset: u64, len: u64) -> Done<()> {
        // SAFETY: our caller promises the same.
        unsafe { self.0.map_private(region, at, offset, len) }
    }
}

const VALUES: u8 = 10;

/// Writes values of 2 MiB, each of which is written at once: two are synced together.
fn fill(writer: &mut BlobWriter) -> Result<()> {
    (0..VALUES).try_for_each(|index| writer.add(&[index], &vec![index; 2 << 20]).map(drop))
}

#[test]
fn a_started_sync_that_fails_is_noticed_and_the_file_goes() {
    for goes_on in [false, true] {
        let mut failed = 0;
        loop {
            let files = directory();
            let syncs = Arc::new(Syncs { failing: failed, ..Syncs::default() });
            let late: Arc<dyn Directory> = Arc::new(Late(Arc::clone(&files), Arc::clone(&syncs)));
            let mut writer =
                BlobWriter::create(&late, identity(1), BlobOptions::default()).unwrap();
            let filled = fill(&mut writer);
            let done = match goes_on {
                true => writer.finish().map(drop),
                false => filled.and_then(|()| writer.finish().map(drop)),
            };
            syncs.are_over();
            if syncs.started.load(Ordering::SeqCst) <= failed {
                done.unwrap();
                check_blob_file(&files, identity(1)).unwrap();
                break;
            }
            let error = done.unwrap_err();
            assert!(matches!(error, Error::Medium(_)), "{error}");
            assert!(files.list().unwrap().is_empty());
            failed += 1;
        }
        assert_eq!(failed, usize::from(VALUES / 2), "goes on: {goes_on}");
    }
}

#[test]
fn a_writer_that_is_dropped_waits_for_its_sync() {
    let files = directory();
    let syncs = Arc::new(Syncs { failing: usize::MAX, ..Syncs::default() });
    let late: Arc<dyn Directory> = Arc::new(Late(Arc::clone(&files), Arc::clone(&syncs)));
    let mut writer = BlobWriter::create(&late, identity(1), BlobOptions::default()).unwrap();
    fill(&mut writer).unwrap();
    drop(writer);
    syncs.are_over();
    assert!(files.list().unwrap().is_empty());
}
