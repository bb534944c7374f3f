//! What the handles of one store share: its heap, its catalogue and the keyspaces in use.
//!
//! Purpose: the two doors through which every operation goes: `view` to read, `transaction` to
//! write. Both refuse a closed store, the child of a fork, and a thread that already holds the store's
//! lock. What cannot fail, such as a drop, does nothing in the child of a fork.
//! Invariants: a keyspace has one `KeyspaceState` per store, listed here while it exists and has
//! been opened; whether it still exists is what the catalogue says.
//! Thread safety, lock order: the turn to write, `keyspaces`, the heap's lock; `spare_content` is held for
//! itself. The list is held while a
//! keyspace is created or dropped, which waits for the device; operations on a keyspace that is
//! open never touch it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adamant_heap::access::Read;
use adamant_heap::durability::Durability;
use adamant_heap::{Ending, Heap, HeldTurn, Transaction, View};
use parking_lot::Mutex;

use crate::catalogue::{Catalogue, is_visible};
use crate::content::Content;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::forest::Forest;
use crate::guard;
use crate::layout::{KeyspaceEntry, STORE_ROOT};
use crate::lent_values::Lent;
use crate::limits::check_name;
use crate::maintain::Caretaker;
use crate::map::Map;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::versions::Versions;

/// Entries of a tree that nobody sees that are freed by one commit: some 5 milliseconds.
const PIECE_ENTRIES: usize = 16 << 10;

/// One keyspace, whatever the number of its handles.
#[derive(Debug)]
pub(crate) struct KeyspaceState {
    pub(crate) name: Box<str>,
    pub(crate) id: u64,
    map: Map,
    /// Set within the transaction that drops, converts or renames the keyspace. That transaction may
    /// yet fail, so from then on handles ask the catalogue, which is right under every lock.
    in_doubt: AtomicBool,
}

impl KeyspaceState {
    fn new<R: Read>(
        heap: &R,
        catalogue: &Catalogue,
        name: &str,
        entry: &KeyspaceEntry,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            name: name.into(),
            id: entry.id.get(),
            map: catalogue.map(heap, name, entry)?,
            in_doubt: AtomicBool::new(false),
        }))
    }

    /// The engine that kept the keyspace when it was opened.
    pub(crate) fn engine(&self) -> Engine {
        self.map.engine()
    }

    /// What keeps the keyspace, unless it was dropped. To be called under the lock that `heap` stands
    /// for.
    #[inline]
    pub(crate) fn map<R: Read>(&self, heap: &R, catalogue: &Catalogue) -> Result<Cow<'_, Map>> {
        if !self.in_doubt.load(Ordering::Acquire) {
            return Ok(Cow::Borrowed(&self.map));
        }
        self.map_in_doubt(heap, catalogue).map(Cow::Owned)
    }

    #[cold]
    fn map_in_doubt<R: Read>(&self, heap: &R, catalogue: &Catalogue) -> Result<Map> {
        match catalogue.find(heap, &self.name)? {
            Some(entry) if entry.id.get() == self.id => catalogue.map(heap, &self.name, &entry),
            // It may have another name now.
            _ => match catalogue.find_by_id(heap, self.id)? {
                Some((name, entry)) => catalogue.map(heap, &name, &entry),
                None => Err(Error::KeyspaceDropped { name: self.name.to_string() }),
            },
        }
    }
}

/// Is told of a key that a commit will change.
pub(crate) type KeyVisitor<'v> = dyn FnMut(&KeyspaceState, &[u8]) -> Result<()> + 'v;

/// The keyspaces in use, by name.
type List = BTreeMap<Box<str>, Arc<KeyspaceState>>;

/// What all handles of a store point to. Dropping it closes the heap.
pub(crate) struct Shared {
    heap: Arc<Heap>,
    catalogue: Catalogue,
    durability: Durability,
    closed: AtomicBool,
    keyspaces: Mutex<List>,
    /// What the last batch left, for the next one.
    spare_content: Mutex<Option<Content>>,
    versions: Arc<Versions>,
    /// Bytes of blocks that a commit in pieces copies at most.
    copied_bytes_max: u64,
    metrics: Metrics,
    caretaker: Arc<Caretaker>,
}

impl Shared {
    /// The store on a heap; its head is created if there is none.
    pub(crate) fn new(heap: Heap, forest: Forest, options: &Options) -> Result<Self> {
        let forest = Arc::new(forest);
        let sequences = Arc::clone(forest.sequences());
        let heap = Arc::new(heap);
        let versions = Arc::new(Versions::new(options.snapshot_bytes_max, sequences));
        let caretaker = Caretaker::new(
            Arc::clone(&heap),
            Arc::clone(&versions),
            Arc::clone(&forest),
            options.background && !options.read_only,
        );
        let root = heap.view()?.root(STORE_ROOT);
        if root == 0 {
            heap.transaction(Durability::Sync, |transaction: &mut Transaction| {
                let head = Catalogue::create(transaction)?;
                transaction.set_root(STORE_ROOT, head)?;
                Ok::<(), Error>(())
            })?;
        }
        let catalogue = {
            let view = heap.view()?;
            let root = view.root(STORE_ROOT);
            Catalogue::open(&view, root, forest)?
        };
        let shared = Self {
            heap,
            catalogue,
            durability: options.durability,
            closed: AtomicBool::new(false),
            keyspaces: Mutex::new(BTreeMap::new()),
            spare_content: Mutex::new(None),
            versions,
            copied_bytes_max: options.snapshot_bytes_max,
            metrics: Metrics::new(),
            caretaker,
        };
        let are_all_open = shared.open_trees()?;
        if !options.read_only {
            if are_all_open {
                shared.catalogue.forest().remove_orphans()?;
            }
            let retired = shared.catalogue.list_retired(&shared.view()?);
            // What is damaged there keeps nobody from the rest.
            shared.destroy_retired(retired.unwrap_or_default());
        }
        Ok(shared)
    }

    /// Opens all log-structured merge trees: what their memtables hold is found by nothing on the heap. False
    /// if one is damaged: that keeps nobody from the others, but which files are its own is not known.
    fn open_trees(&self) -> Result<bool> {
        let mut are_all_open = true;
        let view = self.view()?;
        for (name, entry) in self.catalogue.list(&view)? {
            if Engine::numbered(entry.engine.get(), entry.format.get()) == Some(Engine::Lsm) {
                match self.catalogue.map(&view, &name, &entry) {
                    Err(error) if error.is_damaged() => are_all_open = false,
                    outcome => drop(outcome?),
                }
            }
        }
        Ok(are_all_open)
    }

    /// Whether this is the child of a fork: then nothing is to be touched, and no lock taken.
    #[inline]
    pub(crate) fn is_child(&self) -> bool {
        self.refuse_child().is_err()
    }

    /// Fails then.
    #[inline]
    pub(crate) fn refuse_child(&self) -> Result<()> {
        Ok(self.heap.refuse_child()?)
    }

    /// What open snapshots see beside the trees.
    #[inline]
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// What looks after log-structured merge trees.
    pub(crate) fn caretaker(&self) -> &Arc<Caretaker> {
        &self.caretaker
    }

    /// What is counted and timed.
    #[inline]
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Frees the trees that were kept for snapshots and that nobody sees any more.
    #[inline]
    pub(crate) fn destroy_unseen(&self) {
        if self.versions.has_unseen() {
            self.destroy_unseen_now();
        }
    }

    #[cold]
    fn destroy_unseen_now(&self) {
        // Else they are freed after a later commit.
        if !guard::is_held(self.number()) && !self.heap.has_turn() {
            let trees = self.versions.take_unseen();
            self.destroy_retired(trees.iter().map(Map::head).collect());
        }
    }

    /// What fails here, or is too late, is done by the next opening; a check finds what is damaged.
    fn destroy_retired(&self, heads: Vec<u64>) {
        for head in heads {
            // By pieces, so that neither the record nor the wait of others grows with the tree.
            let thin = |transaction: &mut Transaction<'_>| {
                self.catalogue.thin_retired(transaction, head, PIECE_ENTRIES)
            };
            while let Ok(true) = self.transaction(Durability::Deferred, thin) {}
            let _ = self.transaction(Durability::Deferred, |transaction| {
                self.catalogue.destroy_retired(transaction, head)
            });
        }
        // Files of trees that went are removed now, or by the next opening.
        let _ = self.catalogue.forest().bury(&self.heap);
    }

    /// As [`Shared::transaction`], for one that changes keys: `keys` names them all, to each closure
    /// that it is given. What open snapshots see of them is kept.
    pub(crate) fn change<T>(
        &self,
        durability: Durability,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.change_after(None, durability, self.versions.any(), keys, |_| Ok(()), body)
    }

    /// As [`Shared::change`], after a check under the exclusive lock. With `lends`, large values of
    /// the keys are lent before, which spares copying them for whatever snapshot keeps them. It waits
    /// for its turn unless that is given.
    pub(crate) fn change_after<'s, T>(
        &'s self,
        turn: Option<HeldTurn<'s>>,
        durability: Durability,
        lends: bool,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        check: impl FnOnce(&mut Transaction<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut lent = Lent::default();
        if lends {
            let view = self.view()?;
            keys(&mut |state, key| match state.map(&view, &self.catalogue)?.tree() {
                Some(tree) => lent.add(&view, tree, key),
                None => Ok(()),
            })?;
        }
        self.transaction_in(turn, durability, |transaction| {
            check(transaction)?;
            if let Some(mut recorder) = self.versions.recorder() {
                keys(&mut |state, key| {
                    let map = state.map(transaction, &self.catalogue)?;
                    let Some(&tree) = map.tree() else { return Ok(()) };
                    let lend = |value: &[u8], block| Ok(lent.get(value, block));
                    recorder.keep(transaction, (state.id, tree), key, lend)
                })?;
                recorder.finish();
            }
            body(transaction)
        })
    }

    /// Tells this store from the others of the process.
    pub(crate) fn number(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// What commits wait for unless they say otherwise.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// Empty content for a batch.
    pub(crate) fn take_spare_content(&self) -> Content {
        if self.is_child() {
            return Content::default();
        }
        self.spare_content.lock().take().unwrap_or_default()
    }

    /// Takes back content that was cleared.
    pub(crate) fn keep_spare_content(&self, content: Content) {
        if !self.is_child() {
            *self.spare_content.lock() = Some(content);
        }
    }

    /// Where the keyspaces are listed.
    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The heap, for what is neither reading nor writing of keys.
    pub(crate) fn heap(&self) -> Result<&Heap> {
        self.admit()?;
        self.check_not_closed()?;
        Ok(&self.heap)
    }

    /// The shared lock.
    #[inline]
    pub(crate) fn view(&self) -> Result<View<'_>> {
        self.admit()?;
        let view = self.heap.view();
        // Under the lock: `close` sets the flag first and then waits for those who had it before.
        // And first of all: a closed heap refuses too, but knows of no store.
        self.check_not_closed()?;
        Ok(view?)
    }

    /// Waits for this thread's turn to write, and keeps it.
    pub(crate) fn take_turn(&self) -> Result<HeldTurn<'_>> {
        self.check_writes()?;
        let turn = self.heap.take_turn();
        self.check_not_closed()?;
        Ok(turn?)
    }

    /// The same, unless that takes longer.
    pub(crate) fn take_turn_within(&self, longest: Duration) -> Result<Option<HeldTurn<'_>>> {
        self.check_writes()?;
        let turn = self.heap.take_turn_within(longest);
        self.check_not_closed()?;
        Ok(turn?)
    }

    /// Runs a closure under the exclusive lock and commits what it did; undoes it on `Err`.
    /// Returns when the commit is as durable as asked.
    pub(crate) fn transaction<T>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.transaction_in(None, durability, body)
    }

    /// The same, in a turn that was taken before.
    pub(crate) fn transaction_in<'s, T>(
        &'s self,
        turn: Option<HeldTurn<'s>>,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        if turn.is_none() {
            self.check_writes()?;
        }
        self.commit(durability, || {
            let body = |transaction: &mut Transaction<'_>| {
                self.check_not_closed()?;
                body(transaction)
            };
            match turn {
                Some(turn) => turn.transaction(durability, body),
                None => self.heap.transaction(durability, body),
            }
        })
    }

    /// As [`Shared::transaction_in`], in pieces: `last` is called when it cannot fail any more.
    pub(crate) fn transaction_in_pieces<'s, T>(
        &'s self,
        turn: Option<HeldTurn<'s>>,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
        last: impl FnOnce(&mut Ending<'_, '_>),
    ) -> Result<T> {
        if turn.is_none() {
            self.check_writes()?;
        }
        self.commit(durability, || {
            let body = |transaction: &mut Transaction<'_>| {
                self.check_not_closed()?;
                body(transaction)
            };
            let bytes_max = self.copied_bytes_max;
            match turn {
                Some(turn) => turn.transaction_in_pieces(durability, bytes_max, body, last),
                None => self.heap.transaction_in_pieces(durability, bytes_max, body, last),
            }
        })
    }

    /// Waits for what was committed by now as a commit with this durability would. All that has nothing to
    /// change, and does not ask the heap for a transaction, comes here: what it found is as safe then as what
    /// it would have written. Closing has waited for all of it.
    pub(crate) fn settle(&self, durability: Durability) -> Result<()> {
        self.admit()?;
        Ok(self.heap.settle(durability)?)
    }

    fn commit<T>(&self, durability: Durability, commit: impl FnOnce() -> Result<T>) -> Result<T> {
        let done = self.metrics.commit(durability, commit);
        // It may have closed snapshots that were dropped within a closure, or ended some.
        self.destroy_unseen();
        if !self.heap.has_turn() {
            self.caretaker.settle();
        }
        done
    }

    /// Refuses later operations and closes the heap.
    pub(crate) fn close(&self) -> Result<()> {
        self.admit()?;
        self.check_not_exclusive()?;
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        self.caretaker.end();
        self.catalogue.forest().end();
        let closed = self.heap.close();
        self.versions.end();
        Ok(closed?)
    }

    #[inline]
    fn check_not_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// What everybody asks who is about to wait for a turn to write.
    #[inline]
    fn check_writes(&self) -> Result<()> {
        self.admit()?;
        self.check_not_closed()?;
        self.check_not_exclusive()
    }

    #[inline]
    fn check_not_exclusive(&self) -> Result<()> {
        if self.heap.has_turn() { Err(Error::WithinExclusive) } else { Ok(()) }
    }

    /// What every call asks first, before it takes a lock: not in the child of a fork, where there is no
    /// store, and not within a closure that holds the store's lock.
    #[inline]
    fn admit(&self) -> Result<()> {
        self.refuse_child()?;
        if guard::is_held(self.number()) { Err(Error::Reentrant) } else { Ok(()) }
    }

    /// The keyspace of that name, if there is one.
    pub(crate) fn open_keyspace(&self, name: &str) -> Result<Option<Arc<KeyspaceState>>> {
        check_name(name)?;
        self.admit()?;
        let mut keyspaces = self.keyspaces.lock();
        let view = self.view()?;
        if let Some(state) = keyspaces.get(name)
            && !state.in_doubt.load(Ordering::Acquire)
        {
            return Ok(Some(Arc::clone(state)));
        }
        let Some(entry) = self.catalogue.find(&view, name)? else {
            return Ok(None);
        };
        state_of(&mut keyspaces, &view, &self.catalogue, name, &entry).map(Some)
    }

    /// All keyspaces, and a moment at which they are just these: none is made, dropped or renamed
    /// while `moment` runs.
    pub(crate) fn all_keyspaces<T>(
        &self,
        moment: impl FnOnce() -> Result<T>,
    ) -> Result<(Vec<Arc<KeyspaceState>>, T)> {
        self.admit()?;
        let mut keyspaces = self.keyspaces.lock();
        let found = moment()?;
        let view = self.view()?;
        let mut states = Vec::new();
        for (name, entry) in self.catalogue.list(&view)? {
            if is_visible(&name) {
                states.push(state_of(&mut keyspaces, &view, &self.catalogue, &name, &entry)?);
            }
        }
        Ok((states, found))
    }

    /// Changes which keyspaces there are, by one transaction; `done` is told what came of it before
    /// anybody else looks at the list. The turn to write comes first: who has it may wait for the list,
    /// to open a keyspace.
    fn change_list<T>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>, &List) -> Result<T>,
        done: impl FnOnce(&mut List, &T),
    ) -> Result<T> {
        let turn = self.take_turn()?;
        let mut keyspaces = self.keyspaces.lock();
        let body = |transaction: &mut Transaction<'_>| body(transaction, &keyspaces);
        let changed = self.transaction_in(Some(turn), durability, body)?;
        done(&mut keyspaces, &changed);
        Ok(changed)
    }

    /// Makes a keyspace; `None` if there is one of that name.
    pub(crate) fn create_keyspace(
        &self,
        name: &str,
        engine: Engine,
    ) -> Result<Option<Arc<KeyspaceState>>> {
        check_name(name)?;
        let add = |transaction: &mut Transaction<'_>, _: &List| {
            if self.catalogue.find(transaction, name)?.is_some() {
                return Ok(None);
            }
            let entry = self.catalogue.add(transaction, name, engine)?;
            KeyspaceState::new(transaction, &self.catalogue, name, &entry).map(Some)
        };
        self.change_list(Durability::Sync, add, |keyspaces, added| {
            if let Some(state) = added {
                keyspaces.insert(name.into(), Arc::clone(state));
            }
        })
    }

    /// Makes a keyspace one of another engine; false if it is one already.
    pub(crate) fn convert_keyspace(&self, name: &str, engine: Engine) -> Result<bool> {
        check_name(name)?;
        let convert = |transaction: &mut Transaction<'_>, keyspaces: &List| {
            let Some(entry) = self.catalogue.find(transaction, name)? else {
                return Err(Error::UnknownKeyspace { name: name.into() });
            };
            if self.catalogue.map(transaction, name, &entry)?.engine() == engine {
                return Ok((false, None));
            }
            put_in_doubt(keyspaces, name);
            let kept = self.catalogue.convert(transaction, name, &entry, engine)?;
            let unseen = kept.as_ref().map(Map::head);
            match kept {
                Some(kept) if self.versions.any() => {
                    self.versions.drop_keyspace(entry.id.get(), kept);
                    Ok((true, None))
                }
                _ => Ok((true, unseen)),
            }
        };
        let (converted, unseen) =
            self.change_list(Durability::Sync, convert, |keyspaces, (converted, _)| {
                if *converted {
                    // Handles from now on know the new tree; those from before ask the catalogue.
                    keyspaces.remove(name);
                }
            })?;
        self.destroy_retired(unseen.into_iter().collect());
        Ok(converted)
    }

    /// Gives a keyspace another name, which none has.
    pub(crate) fn rename_keyspace(&self, name: &str, new_name: &str) -> Result<()> {
        check_name(name)?;
        check_name(new_name)?;
        let rename = |transaction: &mut Transaction<'_>, keyspaces: &List| {
            let Some(entry) = self.catalogue.find(transaction, name)? else {
                return Err(Error::UnknownKeyspace { name: name.into() });
            };
            if self.catalogue.find(transaction, new_name)?.is_some() {
                return Err(Error::KeyspaceExists { name: new_name.into() });
            }
            put_in_doubt(keyspaces, name);
            self.catalogue.rename(transaction, name, new_name, &entry)
        };
        self.change_list(Durability::Sync, rename, |keyspaces, ()| {
            // Handles from now on know the new name; those from before ask the catalogue.
            keyspaces.remove(name);
        })
    }

    /// Lets the keyspaces of each pair exchange their names, all of them in one commit.
    pub(crate) fn exchange_keyspaces(&self, pairs: &[(&str, &str)]) -> Result<()> {
        let names = || pairs.iter().flat_map(|&(one, other)| [one, other]);
        names().try_for_each(check_name)?;
        let exchange = |transaction: &mut Transaction<'_>, keyspaces: &List| {
            for &(one, other) in pairs {
                let find = |transaction: &Transaction<'_>, name: &str| {
                    let found = self.catalogue.find(transaction, name)?;
                    found.ok_or_else(|| Error::UnknownKeyspace { name: name.into() })
                };
                let (first, second) = (find(transaction, one)?, find(transaction, other)?);
                put_in_doubt(keyspaces, one);
                put_in_doubt(keyspaces, other);
                self.catalogue.exchange(transaction, (one, &first), (other, &second))?;
            }
            Ok(())
        };
        self.change_list(Durability::Sync, exchange, |keyspaces, ()| {
            // Handles from now on know the new names; those from before ask the catalogue.
            names().for_each(|name| drop(keyspaces.remove(name)));
        })
    }

    /// Takes all entries out of a keyspace, whatever it is called now.
    pub(crate) fn clear_keyspace(
        &self,
        state: &KeyspaceState,
        durability: Durability,
    ) -> Result<()> {
        let clear = |transaction: &mut Transaction<'_>, keyspaces: &List| {
            let Some((name, entry)) = self.catalogue.find_by_id(transaction, state.id)? else {
                return Err(Error::KeyspaceDropped { name: state.name.to_string() });
            };
            let map = self.catalogue.map(transaction, &name, &entry)?;
            if map.is_empty(transaction)? {
                return Ok((name, None));
            }
            state.in_doubt.store(true, Ordering::Release);
            put_in_doubt(keyspaces, &name);
            self.catalogue.clear(transaction, &name, &entry, map.engine())?;
            if self.versions.any() {
                self.versions.drop_keyspace(entry.id.get(), map);
                return Ok((name, None));
            }
            Ok((name, Some(map.head())))
        };
        let (_, unseen) = self.change_list(durability, clear, |keyspaces, (name, _)| {
            // Handles from now on know the new tree; those from before ask the catalogue.
            keyspaces.remove(&**name);
        })?;
        self.destroy_retired(unseen.into_iter().collect());
        Ok(())
    }

    /// Drops a keyspace and frees what it held; false if there is none of that name.
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        let drop = |transaction: &mut Transaction<'_>, keyspaces: &List| {
            let Some(entry) = self.catalogue.find(transaction, name)? else {
                return Ok(false);
            };
            put_in_doubt(keyspaces, name);
            if self.versions.any() {
                let map = self.catalogue.map(transaction, name, &entry)?;
                self.catalogue.retire(transaction, name, &entry)?;
                self.versions.drop_keyspace(entry.id.get(), map);
            } else {
                self.catalogue.drop(transaction, name, &entry)?;
            }
            Ok(true)
        };
        let dropped = self.change_list(Durability::Sync, drop, |keyspaces, dropped| {
            if *dropped {
                keyspaces.remove(name);
            }
        })?;
        self.catalogue.forest().bury(&self.heap)?;
        Ok(dropped)
    }
}

/// Handles of a keyspace, if it is in use, ask the catalogue from now on.
fn put_in_doubt(keyspaces: &List, name: &str) {
    if let Some(state) = keyspaces.get(name) {
        state.in_doubt.store(true, Ordering::Release);
    }
}

/// What all handles of a keyspace share, given its entry.
fn state_of<R: Read>(
    keyspaces: &mut List,
    heap: &R,
    catalogue: &Catalogue,
    name: &str,
    entry: &KeyspaceEntry,
) -> Result<Arc<KeyspaceState>> {
    if let Some(state) = keyspaces.get(name)
        && !state.in_doubt.load(Ordering::Acquire)
    {
        return Ok(Arc::clone(state));
    }
    let state = KeyspaceState::new(heap, catalogue, name, entry)?;
    keyspaces.insert(name.into(), Arc::clone(&state));
    Ok(state)
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.is_child() {
            // Threads stayed with the parent, and so did the right to remove files. What they share is
            // left where it is.
            std::mem::forget((Arc::clone(&self.heap), Arc::clone(&self.versions)));
            let forest = Arc::clone(self.catalogue.forest());
            return std::mem::forget((Arc::clone(&self.caretaker), forest));
        }
        if !self.closed.load(Ordering::Acquire) {
            self.caretaker.end();
            self.catalogue.forest().end();
            // Nobody is left to be told of a failure; what it kept from the pool is recovered
            // from the log by the next open.
            let _ = self.heap.close();
        }
    }
}
