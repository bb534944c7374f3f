//! A node: a directory with the store of its log, that of its state machine, and its snapshots.
//!
//! Purpose: creates and opens all three, and replaces the state machine's store by one that came as
//! a snapshot.
//! Invariants: a node appears under its name complete and durable, or not at all. The current state
//! machine's store is the one whose number the log's store holds; the others are unfinished or
//! obsolete, and removed. The process that has the log's store open owns the node: nothing is
//! removed before.
//! Thread safety: any thread. One snapshot is built at a time.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use adamant::{Directory, Options, OsDirectory, Store, file_names};
use parking_lot::{Mutex, RwLock};

use crate::archive;
use crate::error::{Error, Result};
use crate::layout::{BUILDING, CREATING, LOCK, LOG, SNAPSHOTS, STATE, STATE_NUMBER_FIRST};
use crate::log::Log;
use crate::snapshots::{Snapshots, rewound};
use crate::state::{Applied, State};
use crate::types::{LogId, SnapshotMeta};

/// A name that only stores contain.
const POOL: &str = "pool";

/// Options of a node's stores.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    log: Options,
    state: Options,
}

impl NodeOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Options of the store of the raft log.
    #[must_use]
    pub fn log(mut self, options: Options) -> Self {
        self.log = options;
        self
    }

    /// Options of the store of the state machine.
    #[must_use]
    pub fn state(mut self, options: Options) -> Self {
        self.state = options;
        self
    }
}

/// The storage of one node of a cluster. Clones are the same node. It is closed by [`Node::close`],
/// or when its last clone, log store and state machine is dropped.
#[derive(Clone)]
pub struct Node {
    inner: Arc<Inner>,
}

struct Inner {
    directory: Arc<dyn Directory>,
    options: NodeOptions,
    log: Log,
    state: RwLock<Arc<State>>,
    snapshots: Snapshots,
    /// Held while a snapshot is built.
    building: Mutex<()>,
    /// The callback for new state machines.
    watcher: OnceLock<Watcher>,
}

/// Is called with a state machine that a snapshot has brought.
type Watcher = Box<dyn Fn(&State) + Send + Sync>;

impl Node {
    /// Opens the node at a path; creates it if nothing has that name.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("node-1.adamant");
    /// use adamant_replica::{Error, Node};
    ///
    /// Node::open(&path, 1)?.close()?;
    /// let error = Node::open(&path, 2).unwrap_err();
    /// assert!(matches!(error, Error::OtherNode { expected: 2, found: 1, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotANode`] if the directory is no node's, [`Error::OtherNode`] if it is another
    /// node's, [`Error::Damaged`] if something is missing, and those of the stores.
    pub fn open(path: impl AsRef<Path>, node_id: u64) -> Result<Self> {
        Self::open_with(path, node_id, NodeOptions::default())
    }

    /// Opens the node at a path with options.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn open_with(path: impl AsRef<Path>, node_id: u64, options: NodeOptions) -> Result<Self> {
        let path = path.as_ref();
        let Some(name) = path.file_name() else {
            let found = "a path that does not end with a name".to_owned();
            return Err(Error::NotANode { path: path.into(), found });
        };
        let parent = OsDirectory::open(file_names::parent_of(path))?;
        let parent: Arc<dyn Directory> = Arc::new(parent);
        Self::open_in(&parent, &file_names::text_of(name), path.join(SNAPSHOTS), node_id, options)
    }

    /// As [`Node::open_with`], in a directory of any storage backend. Snapshots are files of the
    /// system in any case.
    pub(crate) fn open_in(
        parent: &Arc<dyn Directory>,
        name: &str,
        snapshots: PathBuf,
        node_id: u64,
        options: NodeOptions,
    ) -> Result<Self> {
        if !list(parent)?.iter().any(|there| there == name) {
            create(parent, name, node_id, &options)?;
        }
        let directory = parent.subdirectory(name)?;
        let names = list(&directory)?;
        refuse_foreign(&directory, &names)?;
        let place = || directory.path().display().to_string();
        let store = open_store(&directory, LOG, &options.log)?;
        let log = Log::open(store, node_id, directory.path())?;
        let current = state_name(log.state_number()?);
        if !names.contains(&current) {
            return Err(Error::damaged(place(), format!("a store {current}"), names.join(", ")));
        }
        sweep(&directory, &current)?;
        remove_if_there(&directory, BUILDING)?;
        let state = State::open(open_store(&directory, &current, &options.state)?)?;
        refuse_older(&state, log.purged()?)?;
        let snapshots = Snapshots::open(snapshots)?;
        let (state, building) = (RwLock::new(Arc::new(state)), Mutex::new(()));
        let watcher = OnceLock::new();
        let inner = Inner { directory, options, log, state, snapshots, building, watcher };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The current state machine. Do not keep it: an installed snapshot brings another one.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.inner.state.read())
    }

    /// The random number of the node's directory, unique among directories. It reveals a node that
    /// comes back under its number and address without its data.
    ///
    /// # Errors
    /// Those of the store.
    pub fn directory_id(&self) -> Result<u64> {
        self.inner.log.directory_id()
    }

    /// Sets a callback for each state machine that a snapshot brings, which is called before any
    /// reader can take its content for applied. Only the first call counts.
    pub fn on_installed(&self, watcher: impl Fn(&State) + Send + Sync + 'static) {
        let _ = self.inner.watcher.set(Box::new(watcher));
    }

    /// Fails if the device of either store has failed: then no writes are accepted.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn check_writable(&self) -> Result<()> {
        self.inner.log.check_writable()?;
        Ok(self.state().store().check_writable()?)
    }

    /// Closes both stores. Other users of the node get errors from then on.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn close(&self) -> Result<()> {
        let closed = self.state().close();
        self.inner.log.close().and(closed)
    }

    pub(crate) fn log(&self) -> &Log {
        &self.inner.log
    }

    /// Purges the log up to an entry. A power cut may undo what was applied of these entries, which
    /// would then be needed: so the state machine is made durable first.
    pub(crate) fn purge(&self, log_id: LogId) -> Result<()> {
        self.inner.log.purge(log_id, || {
            let state = self.state();
            let is_applied = state.applied_index() >= Some(log_id.index);
            if is_applied {
                state.sync()?;
            }
            Ok(is_applied)
        })
    }

    /// An empty file to be filled with a snapshot.
    pub(crate) fn receive_snapshot(&self) -> Result<File> {
        self.inner.snapshots.receive()
    }

    /// The current snapshot. One from before the first entry of the log is useless, because a node
    /// that gets it could not continue from there. Then there is none, and a new one is made.
    pub(crate) fn current_snapshot(&self) -> Result<Option<(SnapshotMeta, File)>> {
        let purged = self.inner.log.purged()?;
        let current = self.inner.snapshots.current()?;
        Ok(current.filter(|(meta, _)| meta.last_log_id >= purged))
    }

    /// Makes a snapshot of what is applied, while more is applied.
    pub(crate) fn build_snapshot(&self) -> Result<(SnapshotMeta, File)> {
        let Inner { directory, building, .. } = &*self.inner;
        let _turn = building.lock();
        remove_if_there(directory, BUILDING)?;
        let built = self.build_from_copy();
        let removed = remove_if_there(directory, BUILDING);
        let built = built?;
        removed.map(|()| built)
    }

    fn build_from_copy(&self) -> Result<(SnapshotMeta, File)> {
        let Inner { directory, options, snapshots, .. } = &*self.inner;
        let copy = directory.subdirectory(BUILDING)?;
        self.state().store().backup_into(&copy)?;
        // The copy knows how far it is.
        let read_only = options.state.clone().create(false).read_only(true);
        let state = State::open(Store::open_directory(Arc::clone(&copy), read_only)?)?;
        let Applied { log_id, membership } = state.applied();
        state.close()?;
        drop(state);
        let snapshot_id = snapshot_id(log_id);
        let meta = SnapshotMeta { last_log_id: log_id, last_membership: membership, snapshot_id };
        let file = snapshots
            .build(&meta, |file| archive::pack(&meta, copy.as_ref(), BufWriter::new(file)))?;
        Ok((meta, file))
    }

    /// Makes the content of a snapshot the state machine: it becomes a store beside the one in use,
    /// and one durable record makes it current. Any failure before that leaves the old one.
    pub(crate) fn install_snapshot(&self, meta: &SnapshotMeta, file: File) -> Result<()> {
        let installed = self.install(meta, file);
        if installed.is_err() {
            self.inner.log.give_up();
        }
        installed
    }

    fn install(&self, meta: &SnapshotMeta, file: File) -> Result<()> {
        let Inner { directory, options, log, state, snapshots, watcher, .. } = &*self.inner;
        let number = log.state_number()? + 1;
        let name = state_name(number);
        let mut file = rewound(file, Path::new("a snapshot"))?;
        let new = match unpack(directory, &name, meta, &mut file, options) {
            Ok(new) => Arc::new(new),
            Err(error) => {
                // Best effort: the next opening removes it, too.
                let _ = remove_if_there(directory, &name);
                return Err(error);
            }
        };
        // Readers of the old one may hold it open, and then it is removed another time.
        log.switch_state(number, meta.last_log_id, || *state.write() = Arc::clone(&new))?;
        if let Some(watcher) = watcher.get() {
            watcher(&new);
        }
        sweep(directory, &name)?;
        let mut file = rewound(file, Path::new("a snapshot"))?;
        snapshots.keep(meta, &mut file)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("path", &self.inner.directory.path()).finish_non_exhaustive()
    }
}

/// Creates a node under another name, and renames it when it is durable.
fn create(
    parent: &Arc<dyn Directory>,
    name: &str,
    node_id: u64,
    options: &NodeOptions,
) -> Result<()> {
    let unfinished = format!("{name}{CREATING}");
    if list(parent)?.contains(&unfinished) {
        // A process that is creating it just now has the lock.
        let left = parent.subdirectory(&unfinished)?;
        let log = left.subdirectory(LOG)?;
        drop(log.lock(LOCK)?);
        parent.remove_all(&unfinished)?;
    }
    let directory = parent.subdirectory(&unfinished)?;
    let store = |name: &str, options: &Options| {
        let directory = directory.subdirectory(name)?;
        Store::open_directory(directory, of_replica(options).create(true))
    };
    let log = store(LOG, &options.log)?;
    let mut directory_id = [0; 8];
    directory.random(&mut directory_id)?;
    Log::create(&log, node_id, u64::from_le_bytes(directory_id))?;
    let state = store(&state_name(STATE_NUMBER_FIRST), &options.state)?;
    State::create(&state)?;
    state.close()?;
    log.close()?;
    directory.sync()?;
    parent.rename(&unfinished, name)?;
    let Err(error) = parent.sync() else { return Ok(()) };
    // No later sync may make the name durable, so the next opening sets it anew. Best effort.
    let taken_back = parent.rename(name, &unfinished);
    let _ = taken_back.and_then(|()| parent.sync());
    Err(adamant::Error::from(error).into())
}

/// Fails for a state machine that lacks entries which the log does not have any more: what follows
/// would be applied without them. It was made durable before they were purged, so it was put back,
/// or has gone back to a savepoint.
fn refuse_older(state: &State, purged: Option<LogId>) -> Result<()> {
    let (applied, purged) = (state.applied_index(), purged.map(|purged| purged.index));
    if applied >= purged {
        return Ok(());
    }
    let of = |index: Option<u64>| index.map_or("none".into(), |index| format!("up to {index}"));
    Err(Error::damaged("the state machine", format!("entries {}", of(purged)), of(applied)))
}

/// The options of a store of a node. Entries are removed by commands of the log alone: the clocks
/// of the nodes differ, and their stores must not.
fn of_replica(options: &Options) -> Options {
    options.clone().sweep_expired(false)
}

/// A store of a node, which must exist.
fn open_store(directory: &Arc<dyn Directory>, name: &str, options: &Options) -> Result<Store> {
    let store = directory.subdirectory(name)?;
    match Store::open_directory(store, of_replica(options).create(false)) {
        Err(adamant::Error::Missing { path, .. }) => {
            Err(Error::damaged(path.display().to_string(), "a store", "none"))
        }
        opened => Ok(opened?),
    }
}

/// Fails for a directory that is no node's, and for a node without its log.
fn refuse_foreign(directory: &Arc<dyn Directory>, names: &[String]) -> Result<()> {
    // A store has a directory of that name, too.
    if names.iter().any(|name| name == LOG) && !names.iter().any(|name| name == POOL) {
        return Ok(());
    }
    let found = if names.is_empty() { "nothing in it".to_owned() } else { names.join(", ") };
    if names.iter().any(|name| name.starts_with(STATE)) {
        let place = directory.path().display().to_string();
        return Err(Error::damaged(place, format!("a store {LOG}"), found));
    }
    Err(Error::NotANode { path: directory.path().into(), found })
}

/// Removes state machine stores that are not current, unless they are open.
fn sweep(directory: &Arc<dyn Directory>, current: &str) -> Result<()> {
    let names = list(directory)?.into_iter();
    for name in names.filter(|name| name.starts_with(STATE) && name != current) {
        let store = directory.subdirectory(&name)?;
        match store.lock(LOCK).map_err(adamant::Error::from) {
            Err(adamant::Error::Locked { .. }) => continue,
            locked => drop(locked?),
        }
        directory.remove_all(&name)?;
    }
    Ok(())
}

fn unpack(
    directory: &Arc<dyn Directory>,
    name: &str,
    meta: &SnapshotMeta,
    file: &mut File,
    options: &NodeOptions,
) -> Result<State> {
    remove_if_there(directory, name)?;
    let target = directory.subdirectory(name)?;
    let found = archive::unpack(BufReader::new(file), &target)?;
    if found != *meta {
        return Err(Error::snapshot(format!("{meta:?}"), format!("{found:?}")));
    }
    let state = State::open(open_store(directory, name, &options.state)?)?;
    let expected = Applied { log_id: meta.last_log_id, membership: meta.last_membership.clone() };
    if state.applied() != expected {
        return Err(Error::snapshot(format!("{expected:?}"), format!("{:?}", state.applied())));
    }
    directory.sync()?;
    Ok(state)
}

fn remove_if_there(directory: &Arc<dyn Directory>, name: &str) -> Result<()> {
    if list(directory)?.iter().any(|there| there == name) {
        directory.remove_all(name)?;
    }
    Ok(())
}

fn list(directory: &Arc<dyn Directory>) -> Result<Vec<String>> {
    Ok(directory.list()?)
}

fn state_name(number: u64) -> String {
    format!("{STATE}{number:04}")
}

/// Two snapshots of one moment are two files, and a part of one is no part of the other.
fn snapshot_id(log_id: Option<LogId>) -> String {
    let nanoseconds =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    match log_id {
        Some(log_id) => format!("{log_id}-{nanoseconds:x}"),
        None => format!("none-{nanoseconds:x}"),
    }
}
