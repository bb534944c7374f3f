//! What happens to log-structured merge trees behind those who write: full memtables are written to tables,
//! tables are merged.
//!
//! Purpose: the work of two threads, one of which flushes and one merges, so that a long merge holds no
//! flush up; or, without threads, of the commits that fill a memtable.
//! Invariants: what fails is tried again when there is a new reason, or after a while; the trees are as they
//! were. Threads end before the heap is closed.
//! Thread safety: any thread that has no turn to write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use adamant_heap::{Heap, events};
use adamant_lsm::{Error as LsmError, Lsm};
use adamant_medium::error::Error as MediumError;
use parking_lot::Mutex;
use tracing::warn;

use crate::error::{Error, Result};
use crate::forest::Forest;
use crate::pulse::Pulse;
use crate::versions::Versions;

/// Which of the two kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Flush,
    Compact,
}

/// What looks after the trees.
#[derive(Debug)]
pub(crate) struct Caretaker {
    heap: Arc<Heap>,
    versions: Arc<Versions>,
    forest: Arc<Forest>,
    /// Whether threads are wanted.
    background: bool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    has_threads: AtomicBool,
}

impl Caretaker {
    /// Of the trees of a store, with threads if it is in the background.
    pub(crate) fn new(
        heap: Arc<Heap>,
        versions: Arc<Versions>,
        forest: Arc<Forest>,
        background: bool,
    ) -> Arc<Self> {
        let (threads, has_threads) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { heap, versions, forest, background, threads, has_threads })
    }

    /// Starts the threads, if there is a tree for them, and they did not start before.
    pub(crate) fn start(self: &Arc<Self>) -> Result<()> {
        if !self.background || self.forest.environment().is_none() {
            return Ok(());
        }
        let mut threads = self.threads.lock();
        if threads.is_empty() && !self.pulse().is_stopped() {
            for work in [Work::Flush, Work::Compact] {
                let name = format!("adamant-{work:?}").to_lowercase();
                // Whoever ends the threads waits for them, so that none is the last to have this.
                let caretaker = Arc::clone(self);
                let thread = std::thread::Builder::new().name(name).spawn(move || {
                    let (mut last, mut has_failed) = (0, false);
                    while caretaker.pulse().wait(&mut last, has_failed) {
                        has_failed = caretaker.go(work);
                    }
                });
                let path = self.heap.path();
                let failed = |error| MediumError::io("start a thread for", path, None, 0, error);
                threads.push(thread.map_err(failed)?);
            }
            self.has_threads.store(true, Ordering::Release);
        }
        drop(threads);
        self.pulse().wake();
        Ok(())
    }

    /// Ends the threads and waits for them. Work that is not finished is left for the next opening.
    pub(crate) fn end(&self) {
        self.pulse().stop();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A panic in there was reported by its own hook.
            let _ = thread.join();
        }
    }

    fn pulse(&self) -> &Pulse {
        self.forest.pulse()
    }

    fn has_threads(&self) -> bool {
        self.has_threads.load(Ordering::Acquire)
    }

    /// Does all work of a kind that there is; whether something failed.
    fn go(&self, work: Work) -> bool {
        let outcome = match work {
            Work::Flush => self.flush(),
            Work::Compact => self.compact(),
        };
        match outcome {
            Ok(is_done) => {
                if is_done && work == Work::Flush {
                    // There are tables to be merged.
                    self.pulse().wake();
                }
                false
            }
            Err(_) if self.pulse().is_stopped() => false,
            Err(error) => {
                warn!(target: events::STORE, %error, ?work, "failed; it will be tried again");
                true
            }
        }
    }

    /// Has done what a commit left to do, and waits for a share of that. To be called under no lock.
    #[inline]
    pub(crate) fn settle(&self) {
        if self.pulse().take_wanted() {
            self.maintain();
        }
        self.pulse().pay();
    }

    #[cold]
    fn maintain(&self) {
        self.tell_debt(false);
        if self.has_threads() {
            return self.pulse().wake();
        }
        // Whoever is told of a failure here could do nothing about it: it is tried again.
        if let Err(error) = self.flush().and_then(|_| self.compact()) {
            warn!(target: events::STORE, %error, "flushing or merging failed; it will be tried again");
        }
    }

    fn tell_debt(&self, is_failing: bool) {
        let trees = self.forest.all();
        let debt = trees.iter().map(|tree| tree.debt()).fold(0.0, f64::max);
        // Without threads whoever fills a memtable does the work.
        let debt = if self.has_threads() { debt } else { 0.0 };
        self.pulse().set_debt(debt, is_failing);
    }

    /// The oldest moment that anybody looks at, or will.
    fn oldest_seen(&self) -> adamant_lsm::Result<u64> {
        let _view = self.heap.view()?;
        Ok(self.versions.oldest_moment())
    }

    fn progress(&self) -> impl Fn(u64) -> adamant_lsm::Result<()> + Sync {
        |bytes| match self.pulse().progress(bytes) || !self.has_threads() {
            true => Ok(()),
            false => Err(LsmError::Stopped),
        }
    }

    /// Writes all memtables that are full to tables; whether there was one.
    fn flush(&self) -> Result<bool> {
        self.each_tree(|tree| {
            if tree.is_full() {
                tree.rotate(&self.heap)?;
            }
            tree.flush(&self.heap, &|| self.oldest_seen(), &self.progress())
        })
    }

    /// Merges tables until all levels are as they should be; whether there was something to do.
    fn compact(&self) -> Result<bool> {
        self.each_tree(|tree| {
            tree.compact_once(&self.heap, &|| self.oldest_seen(), &self.progress())
        })
    }

    /// Does something to each tree for as long as there is something to do.
    fn each_tree(&self, work: impl Fn(&Arc<Lsm>) -> adamant_lsm::Result<bool>) -> Result<bool> {
        let (mut is_done, mut failed) = (false, None);
        for tree in self.forest.all() {
            loop {
                match work(&tree) {
                    Ok(true) => is_done = true,
                    Ok(false) | Err(LsmError::Stopped) => break,
                    Err(error) => {
                        // The others are to go on.
                        failed = Some(Error::of_lsm("")(error));
                        break;
                    }
                }
                self.tell_debt(false);
            }
        }
        self.tell_debt(failed.is_some());
        match failed {
            Some(error) => Err(error),
            None => Ok(is_done),
        }
    }

    /// Merges all that the tree of a keyspace holds to one ordered run.
    pub(crate) fn compact_all(&self, name: &str, tree: &Arc<Lsm>) -> Result<()> {
        let done = tree.compact_all(&self.heap, &|| self.oldest_seen(), &|_| Ok(()));
        done.map_err(Error::of_lsm(name))?;
        self.forest.bury(&self.heap)
    }
}
