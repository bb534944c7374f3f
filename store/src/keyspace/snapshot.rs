//! Snapshots: the store as it was at one moment.
//!
//! Purpose: a read at a snapshot takes the shared lock, then looks at the old versions that commits
//! kept for it, and for keys without one at the tree.
//! Invariants: the tree and the versions are read in one hold of the shared lock.
//! Thread safety: a snapshot can be sent, shared and dropped by any thread; it holds no lock.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant_heap::{View, events};
use adamant_slice::Slice;
use tracing::trace;

use crate::bounds::Direction;
use crate::common::seen::{SeenKeyspace, SeenVersions};
use crate::common::shared::{OpenStore, Shared};
use crate::engine::map::Map;
use crate::engine::scan::{ScanItem, ScanOptions};
use crate::error::{Error, Result};
use crate::guard::{self, Guard};
use crate::keyspace::handle::Keyspace;

/// Keys with old versions that are visited under one hold of the lock.
const VERSIONS_MAX: usize = 1024;

/// Called with each entry; says whether to go on.
type Each<'e> = dyn FnMut(&[u8], ScanItem<'_, '_>) -> ControlFlow<()> + 'e;

/// All keyspaces of a store as one commit left them. Reads through it see nothing of later commits.
/// Snapshots never block writers and are never blocked.
///
/// It costs nothing while nothing changes. From then on the store keeps what commits change and the
/// snapshot sees: of each key the first old value, a copy up to 4 KiB, otherwise its block; and
/// dropped keyspaces. These are freed when the last snapshot that sees them is dropped. Their total
/// is limited, see [`Options::snapshot_bytes_max`](crate::Options::snapshot_bytes_max);
/// [`Stats`](crate::Stats) reports it.
///
/// A handle: clones are the same snapshot. It keeps the store open, as every handle does.
///
/// ```
/// let store = adamant::Store::in_memory()?;
/// let stock = store.keyspace("stock")?;
/// stock.put("apples", "10")?;
///
/// let before = store.snapshot()?;
/// stock.put("apples", "7")?;
/// stock.put("pears", "3")?;
/// assert_eq!(before.get(&stock, "apples")?, Some("10".into()));
/// assert_eq!(before.iter(&stock).count(), 1);
/// assert_eq!(stock.get("apples")?, Some("7".into()));
/// # Ok::<(), adamant::Error>(())
/// ```
pub struct Snapshot {
    shared: Arc<Shared>,
    number: u64,
    is_closed: AtomicBool,
}

/// The function that takes a view: [`OpenStore::view`] or [`OpenStore::long_view`].
pub(crate) type ViewOf = fn(&OpenStore) -> Result<View<'_>>;

impl Clone for Snapshot {
    fn clone(&self) -> Self {
        let (shared, number) = (Arc::clone(&self.shared), self.number);
        let is_closed = self.is_closed.load(Ordering::Relaxed);
        if !is_closed && !shared.is_child() {
            shared.versions().open_again(number);
            trace!(target: events::SNAPSHOT, number, "snapshot cloned");
        }
        Self { shared, number, is_closed: AtomicBool::new(is_closed) }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if self.shared.is_child() {
            return;
        }
        let versions = self.shared.versions();
        trace!(target: events::SNAPSHOT, number = self.number, "snapshot closed");
        if *self.is_closed.get_mut() {
            return self.shared.destroy_unseen();
        }
        if guard::is_held(self.shared.number()) {
            // Within a closure of this thread that runs under the store's lock.
            return versions.close_later(self.number);
        }
        versions.close(self.number);
        self.shared.destroy_unseen();
    }
}

impl Snapshot {
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Self> {
        let number = {
            let view = shared.view()?;
            shared.versions().open(&view)
        };
        trace!(target: events::SNAPSHOT, number, "snapshot opened");
        Ok(Self { shared: Arc::clone(shared), number, is_closed: AtomicBool::new(false) })
    }

    /// Its store.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The number of the last commit that it sees.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Closes it before it is dropped: nothing is kept for this handle any more, and it must not be
    /// read.
    pub(crate) fn close(&self) {
        if !self.is_closed.swap(true, Ordering::Relaxed) && !self.shared.is_child() {
            self.shared.versions().close(self.number);
        }
    }

    /// The value of the key, or `None`. Costs as [`Keyspace::get`], O(log n); large values are not
    /// copied.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.clear()?;
    /// assert_eq!(before.get(&stock, "apples")?, Some("7".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`], [`Error::KeyspaceDropped`] only for a keyspace that was dropped before
    /// the snapshot was opened; [`Error::SnapshotExpired`].
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = key.as_ref();
        self.look(OpenStore::view, keyspace, key, |view, map, at, seen| match seen {
            Some(value) => Ok(value),
            None => map.get(view, key, Some(at)),
        })
    }

    /// Calls the closure with the value of the key and returns its result, or `None` without
    /// calling it. The closure borrows the bytes under the store's shared lock: see
    /// [`Keyspace::get_with`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.clear()?;
    /// assert_eq!(before.get_with(&stock, "apples", |value| value.len())?, Some(1));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_with<T>(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.lend_value(OpenStore::long_view, keyspace, key.as_ref(), reader)
    }

    /// Like [`Keyspace::get_briefly`], for closures of this crate.
    pub(crate) fn get_briefly<T>(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.lend_value(OpenStore::view, keyspace, key, reader)
    }

    /// Calls the closure with the value under a view of this kind.
    pub(crate) fn lend_value<T>(
        &self,
        view: ViewOf,
        keyspace: &Keyspace,
        key: &[u8],
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let guarded = |value: &[u8]| {
            let _guard = Guard::new(self.shared.number());
            reader(value)
        };
        self.look(view, keyspace, key, |view, map, at, seen| match seen {
            Some(value) => Ok(value.as_deref().map(guarded)),
            None => map.get_with(view, key, Some(at), guarded),
        })
    }

    /// Whether the key had a value. O(log n).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.delete("apples")?;
    /// assert!(before.contains(&stock, "apples")? && !stock.contains("apples")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn contains(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.look(OpenStore::view, keyspace, key, |view, map, at, seen| match seen {
            Some(value) => Ok(value.is_some()),
            None => map.contains(view, key, Some(at)),
        })
    }

    /// The number of entries of the keyspace. O(1), but O(n) for the engine `lsm`, which counts
    /// them.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.clear()?;
    /// assert_eq!((before.len(&stock)?, stock.len()?), (1, 0));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn len(&self, keyspace: &Keyspace) -> Result<u64> {
        let known = self.with(
            OpenStore::view,
            keyspace,
            |seen| seen.len(),
            |view, map, _, seen| match seen {
                Some(len) => Ok(Some(len)),
                None => map.len(&view),
            },
        )?;
        match known {
            Some(len) => Ok(len),
            None => self.iter(keyspace).keys().count_all(),
        }
    }

    /// Whether the keyspace had no entry. Like [`Snapshot::first`].
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn is_empty(&self, keyspace: &Keyspace) -> Result<bool> {
        Ok(self.iter(keyspace).keys().next().transpose()?.is_none())
    }

    fn look<T>(
        &self,
        view: ViewOf,
        keyspace: &Keyspace,
        key: &[u8],
        reader: impl FnOnce(View<'_>, &Map, u64, Option<Option<Slice>>) -> Result<T>,
    ) -> Result<T> {
        keyspace.state.counts().note_lookups(1);
        self.with(view, keyspace, |seen| seen.version(key), reader)
    }

    /// Calls a closure with the map that held a keyspace, the moment to read if the map keeps
    /// versions itself, and what `look` finds that overrides it. The closure runs only under the
    /// heap's shared lock, so opening or closing a snapshot does not wait for it.
    pub(crate) fn with<S: Default, T>(
        &self,
        view: ViewOf,
        keyspace: &Keyspace,
        look: impl FnOnce(&SeenKeyspace<'_>) -> S,
        reader: impl FnOnce(View<'_>, &Map, u64, S) -> Result<T>,
    ) -> Result<T> {
        let (shared, state) = (&keyspace.shared, &keyspace.state);
        if !Arc::ptr_eq(shared, &self.shared) {
            return Err(Error::OtherStore { name: state.name.to_string() });
        }
        let view = view(shared)?;
        let (catalogue, versions) = (shared.catalogue(), shared.versions());
        let (mut map, mut found) = (None, S::default());
        if versions.is_changed() {
            let seen = versions.seen_by(self.number)?;
            let seen = seen.keyspace(&view, catalogue, state.id)?;
            (map, found) = (seen.map(), look(&seen));
        }
        let map = match map {
            Some(map) => Cow::Owned(map),
            None => state.map(&view, catalogue)?,
        };
        let at = if map.lsm().is_some() { versions.moment_of(self.number) } else { 0 };
        reader(view, &map, at, found)
    }

    /// Like [`Tree::scan`], over the keyspace as the snapshot sees it, under one hold of the lock.
    pub(crate) fn scan(
        &self,
        view: ViewOf,
        keyspace: &Keyspace,
        reach: &ScanOptions<'_>,
        each: &mut Each<'_>,
    ) -> Result<Option<Bound<Slice>>> {
        let ScanOptions { direction, bounds, entries_min, .. } = *reach;
        let keys_max = entries_min.saturating_mul(2).min(VERSIONS_MAX);
        let look = |seen: &SeenKeyspace<'_>| seen.versions(direction, bounds, keys_max);
        self.with(view, keyspace, look, |view, map, at, (versions, stop): SeenVersions| {
            let stop = stop.as_ref();
            let bounds = match (direction, stop) {
                (_, None) => bounds,
                (Direction::Up, Some(stop)) => (bounds.0, Bound::Included(&stop[..])),
                (Direction::Down, Some(stop)) => (Bound::Included(&stop[..]), bounds.1),
            };
            let mut merge = Merge { direction, versions, broken: None, each };
            let each = |key: &[u8], met: ScanItem<'_, '_>| merge.entry(key, met);
            let rest = map.scan(view, &ScanOptions { bounds, ..*reach }, Some(at), each)?;
            let rest = nearest(direction, rest, stop);
            let _ = merge.up_to(rest.as_ref());
            Ok(merge.broken.map(Bound::Excluded).or(rest))
        })
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Where a scan goes on: at the end of the versions read if the tree's node goes beyond that, since
/// further versions may lie between the two.
fn nearest(
    direction: Direction,
    rest: Option<Bound<Slice>>,
    stop: Option<&Slice>,
) -> Option<Bound<Slice>> {
    let Some(stop) = stop else { return rest };
    let is_nearer = match (&rest, direction) {
        (Some(Bound::Included(key) | Bound::Excluded(key)), Direction::Up) => key <= stop,
        (Some(Bound::Included(key) | Bound::Excluded(key)), Direction::Down) => key >= stop,
        (Some(Bound::Unbounded) | None, _) => false,
    };
    if is_nearer { rest } else { Some(Bound::Excluded(stop.clone())) }
}

/// Merges the entries of a tree with versions, in order.
struct Merge<'e> {
    direction: Direction,
    versions: VecDeque<(Slice, Option<Slice>)>,
    /// The key of the version at which `each` broke.
    broken: Option<Slice>,
    each: &'e mut Each<'e>,
}

impl Merge<'_> {
    /// Emits the versions before the key of an entry, and then the entry, or the version in its
    /// place.
    fn entry(&mut self, key: &[u8], met: ScanItem<'_, '_>) -> ControlFlow<()> {
        while let Some((at, _)) = self.versions.front() {
            let order = match self.direction {
                Direction::Up => at[..].cmp(key),
                Direction::Down => key.cmp(&at[..]),
            };
            if order.is_gt() {
                break;
            }
            let Some((at, version)) = self.versions.pop_front() else { break };
            if order.is_eq() {
                return match version {
                    Some(value) => (self.each)(key, ScanItem::Version(&value)),
                    None => ControlFlow::Continue(()),
                };
            }
            self.version(at, version)?;
        }
        (self.each)(key, met)
    }

    fn version(&mut self, key: Slice, version: Option<Slice>) -> ControlFlow<()> {
        let Some(value) = version else { return ControlFlow::Continue(()) };
        let flow = (self.each)(&key, ScanItem::Version(&value));
        if flow.is_break() {
            self.broken = Some(key);
        }
        flow
    }

    /// Emits the remaining versions before the bound where the tree's scan ended.
    fn up_to(&mut self, rest: Option<&Bound<Slice>>) -> ControlFlow<()> {
        if self.broken.is_some() {
            return ControlFlow::Break(());
        }
        while let Some((key, _)) = self.versions.front() {
            let is_before = match (rest, self.direction) {
                (None | Some(Bound::Unbounded), _) => true,
                (Some(Bound::Included(bound)), Direction::Up) => key < bound,
                (Some(Bound::Excluded(bound)), Direction::Up) => key <= bound,
                (Some(Bound::Included(bound)), Direction::Down) => key > bound,
                (Some(Bound::Excluded(bound)), Direction::Down) => key >= bound,
            };
            if !is_before {
                break;
            }
            let Some((key, version)) = self.versions.pop_front() else { break };
            self.version(key, version)?;
        }
        ControlFlow::Continue(())
    }
}
