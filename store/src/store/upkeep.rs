//! Upkeep of a store: syncs, checks, figures, and space that is given back.

use adamant_heap::{CheckReport as HeapCheckReport, Occupancy, Shrunk};

use crate::error::Result;
use crate::store::handle::Store;
use crate::store::inspect::{self, CheckReport, Stats};
use crate::store::sync_point::SyncPoint;

impl Store {
    /// Makes everything committed so far durable, whatever the durability of its commits.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::Durability;
    ///
    /// let visits = store.keyspace("visits")?.with_durability(Durability::Deferred);
    /// for visitor in ["ada", "bob"] {
    ///     visits.put(visitor, "")?;
    /// }
    /// store.sync()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed or poisoned, or the device fails, which poisons it.
    pub fn sync(&self) -> Result<()> {
        Ok(self.shared.heap()?.sync()?)
    }

    /// A point to wait for later, on any thread, that covers everything committed so far. For
    /// callers that commit with [`Durability::Buffered`](crate::Durability::Buffered), go on
    /// committing, and acknowledge when the device has the data.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Durability;
    ///
    /// let orders = store.keyspace("orders")?.with_durability(Durability::Buffered);
    /// orders.put("1", "apples")?;
    /// let first = store.sync_point()?;
    /// orders.put("2", "pears")?;
    /// std::thread::spawn(move || first.wait()).join().unwrap()?;
    /// println!("order 1 will be there whatever happens");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub fn sync_point(&self) -> Result<SyncPoint> {
        SyncPoint::new(&self.shared)
    }

    /// Fails if every commit from now on will fail: the store is closed, poisoned, or open for
    /// reading only. It checks known state and writes nothing, which suits monitoring. Whether
    /// there is space for a commit is known only when it is made.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// assert!(store.check_writable().is_ok());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed); an error for which
    /// [`Error::is_poisoned`](crate::Error::is_poisoned) or
    /// [`Error::is_read_only`](crate::Error::is_read_only) holds.
    pub fn check_writable(&self) -> Result<()> {
        Ok(self.shared.heap()?.check_writable()?)
    }

    /// The use of each page of the heap. O(pages).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let occupancy = store.occupancy()?;
    /// println!("{occupancy:?}");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub fn occupancy(&self) -> Result<Occupancy> {
        Ok(self.shared.heap()?.occupancy()?)
    }

    /// Verifies checksums and allocator structures of the heap, not the keyspaces: a part of
    /// [`Store::check`]. Commits wait for parts of it, some 100 us each. O(pool).
    ///
    /// # Errors
    /// The storage backend failed, or the store is closed; damage is in the report.
    pub fn check_heap(&self) -> Result<HeapCheckReport> {
        Ok(self.shared.heap()?.check()?)
    }

    /// Gives free space of the heap back to the file system: the pool file is cut behind its last
    /// used page, and free chunks of 256 KiB within it become holes. Of the log files, the smallest
    /// prepared ones stay. Readers and writers wait while it runs. O(pages).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// let store = adamant::Store::open(&path)?;
    /// let files = store.keyspace("files")?;
    /// files.put("large", vec![7; 4 << 20])?;
    /// files.delete("large")?;
    /// store.shrink()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed or poisoned, the storage backend failed, or a page of the allocator is
    /// damaged.
    pub fn shrink(&self) -> Result<Shrunk> {
        Ok(self.shared.heap()?.shrink_keeping(|| self.shared.workers().log_bytes_kept())?)
    }

    /// Figures of the store. O(keyspaces).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// let stats = store.stats()?;
    /// assert_eq!((stats.keyspaces, stats.entries), (1, 1));
    /// println!("99 % of the commits took at most {:?}", stats.commits.synced.percentile(99.0));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or its catalogue damaged.
    pub fn stats(&self) -> Result<Stats> {
        inspect::stats(&self.shared)
    }

    /// Verifies every checksum of the pool and every rule of the structures in it, and lists all
    /// that is wrong. Other threads go on meanwhile: a writer waits for part of a millisecond, and
    /// in a keyspace of the engine `lsm` until its memtables are checked; reads do not wait.
    /// Totals, such as the number of blocks in use, can be verified only if no commit came
    /// meanwhile; if one did, a snapshot verifies each keyspace's count of entries. O(bytes of the
    /// pool).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// let report = store.check()?;
    /// assert!(report.is_clean(), "{:?}", report.findings);
    /// assert_eq!(report.keyspaces[0].entries, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or the check could not run; what it finds is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        inspect::check(&self.shared)
    }
}
