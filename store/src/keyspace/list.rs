//! The list of keyspaces: opening, creating, renaming, converting, dropping them.
//!
//! Purpose: each change of the catalogue is one transaction, and the state of handles follows it.
//! Invariants: expiring entries and their deadlines are two keyspaces, which are made, renamed,
//! exchanged and dropped together, in one transaction: there is never one without the other. A
//! keyspace of deadlines cannot be changed by its own name.
//! Thread safety: the writer lock comes before the list's lock, since its holder may wait for the
//! list to open a keyspace.

use std::sync::Arc;

use adamant_heap::access::Read;
use adamant_heap::durability::Durability;
use adamant_heap::{HeldWritePermit, Transaction};

use crate::common::catalogue::{Catalogue, is_visible, kind_of};
use crate::common::catalogue_entry::CatalogueEntry;
use crate::common::change::ChangedKeyspace;
use crate::common::change_codec::ChangeEncoder;
use crate::common::shared::{List, Shared};
use crate::common::state::{KeyspaceState, Place};
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::kind::{KeyspaceKind, deadlines_of};
use crate::layout::{KIND_DEADLINES, KIND_EXPIRING, KIND_UNSAID};
use crate::limits::{check_name, check_plain};
use crate::own_options::OwnOptions;

/// Fails unless a keyspace is of the expected kind. Checked within the commit, since the name may
/// have been another keyspace's before.
fn check_kind(name: &str, expected: Option<KeyspaceKind>, found: KeyspaceKind) -> Result<()> {
    match expected {
        Some(expected) if expected != found => Err(Error::NotExpiring { name: name.into() }),
        _ => Ok(()),
    }
}

/// A keyspace of the catalogue, as changes are recorded of it.
fn changed(name: &str, entry: &CatalogueEntry) -> Result<ChangedKeyspace> {
    let (id, kind) = (entry.id.get(), kind_of(name, entry)?);
    Ok(ChangedKeyspace { id, name: name.into(), kind })
}

/// An expiring keyspace's entries and deadlines.
pub(crate) type Halves = (Arc<KeyspaceState>, Arc<KeyspaceState>);

/// The keyspaces that exist under the name of an expiring keyspace.
pub(crate) enum Ending {
    /// Both halves.
    Both(Halves),
    /// Neither.
    Absent,
    /// One or both, from before the catalogue recorded kinds.
    Unsaid(Option<Arc<KeyspaceState>>, Option<Arc<KeyspaceState>>),
}

impl List {
    fn place(&mut self, name: &str, entry: &CatalogueEntry) -> Result<Arc<Place>> {
        let id = entry.id.get();
        if let Some(place) = self.places.get(&id) {
            return Ok(Arc::clone(place));
        }
        let durability = entry.options(name)?.durability.flatten();
        let place = Place::new(id, name);
        place.set_durability(durability);
        self.places.insert(id, Arc::clone(&place));
        Ok(place)
    }

    /// The state that all handles of a keyspace share, given its entry.
    fn state<R: Read>(
        &mut self,
        heap: &R,
        catalogue: &Catalogue,
        name: &str,
        entry: &CatalogueEntry,
    ) -> Result<Arc<KeyspaceState>> {
        let known = self.states.get(name).filter(|state| state.is_current());
        if let Some(state) = known.filter(|state| state.id == entry.id.get()) {
            return Ok(Arc::clone(state));
        }
        let place = self.place(name, entry)?;
        let state = KeyspaceState::new(heap, catalogue, (name, entry), &place)?;
        self.states.insert(name.into(), Arc::clone(&state));
        Ok(state)
    }

    /// Marks a keyspace as stale, so that its handles ask the catalogue again.
    pub(crate) fn doubt(&self, entry: &CatalogueEntry) {
        if let Some(place) = self.places.get(&entry.id.get()) {
            place.doubt();
        }
    }
}

impl Shared {
    /// The keyspace with this name, if there is one.
    pub(crate) fn open_keyspace(&self, name: &str) -> Result<Option<Arc<KeyspaceState>>> {
        check_name(name)?;
        let mut list = self.lock_list()?;
        let view = self.view()?;
        if let Some(state) = list.states.get(name)
            && state.is_current()
        {
            return Ok(Some(Arc::clone(state)));
        }
        let Some(entry) = self.catalogue().find(&view, name)? else {
            return Ok(None);
        };
        list.state(&view, self.catalogue(), name, &entry).map(Some)
    }

    /// The keyspace with this name.
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none.
    pub(crate) fn existing_keyspace(&self, name: &str) -> Result<Arc<KeyspaceState>> {
        let state = self.open_keyspace(name)?;
        state.ok_or_else(|| Error::UnknownKeyspace { name: name.into() })
    }

    /// Both halves of an expiring keyspace.
    ///
    /// # Errors
    /// [`Error::NotExpiring`] for one with other entries; [`Error::WrongKind`] for deadlines.
    pub(crate) fn open_ending(&self, name: &str) -> Result<Ending> {
        let beside = deadlines_of(name);
        check_name(name)?;
        check_name(&beside)?;
        let mut list = self.lock_list()?;
        let view = self.view()?;
        let entries = self.catalogue().find(&view, name)?;
        let deadlines = self.catalogue().find(&view, &beside)?;
        let kinds =
            [&entries, &deadlines].map(|found| found.as_ref().map(|entry| entry.kind.get()));
        let mut state = |name: &str, entry: Option<CatalogueEntry>| {
            entry.map(|entry| list.state(&view, self.catalogue(), name, &entry)).transpose()
        };
        match kinds {
            [None, None] => Ok(Ending::Absent),
            [Some(KIND_DEADLINES), _] => {
                Err(Error::WrongKind { name: name.into(), found: KeyspaceKind::Deadlines })
            }
            [Some(KIND_EXPIRING), Some(KIND_DEADLINES)] => {
                match (state(name, entries)?, state(&beside, deadlines)?) {
                    (Some(entries), Some(deadlines)) => Ok(Ending::Both((entries, deadlines))),
                    _ => Ok(Ending::Absent),
                }
            }
            [Some(KIND_EXPIRING), _] => Err(Error::Damaged {
                what: format!("the catalogue has entries that end in {name:?}, but no {beside:?}"),
            }),
            [None | Some(KIND_UNSAID), None | Some(KIND_UNSAID)] => {
                Ok(Ending::Unsaid(state(name, entries)?, state(&beside, deadlines)?))
            }
            [None | Some(KIND_UNSAID), Some(_)] => Err(Error::NotExpiring { name: beside }),
            [Some(_), _] => Err(Error::NotExpiring { name: name.into() }),
        }
    }

    /// All keyspaces, and a moment at which these are all: none is made, dropped or renamed while
    /// `moment` runs.
    pub(crate) fn all_keyspaces<T>(
        &self,
        moment: impl FnOnce() -> Result<T>,
    ) -> Result<(Vec<Arc<KeyspaceState>>, T)> {
        let mut list = self.lock_list()?;
        let found = moment()?;
        let view = self.view()?;
        let mut states = Vec::new();
        for (name, entry) in self.catalogue().list(&view)? {
            if is_visible(&name) {
                states.push(list.state(&view, self.catalogue(), &name, &entry)?);
            }
        }
        Ok((states, found))
    }

    fn lock_list(&self) -> Result<parking_lot::MutexGuard<'_, List>> {
        self.admit()?;
        Ok(self.list.lock())
    }

    /// Changes the list of keyspaces, by one transaction, with a write permit that may have been
    /// taken before. New handles under `names` look them up anew, whatever the outcome.
    pub(crate) fn change_list<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        names: &[&str],
        body: impl FnOnce(&mut Transaction<'_>, &mut List) -> Result<T>,
    ) -> Result<T> {
        let permit = match permit {
            Some(permit) => permit,
            None => self.take_write_permit()?,
        };
        let mut list = self.list.lock();
        let body = |transaction: &mut Transaction<'_>| body(transaction, &mut list);
        let changed = self.transaction_in(Some(permit), durability, body);
        for name in names {
            list.states.remove(*name);
        }
        changed
    }

    /// Makes a keyspace of a kind, given by its number in the catalogue; `None` if the name is
    /// taken.
    pub(crate) fn create_keyspace(
        &self,
        name: &str,
        (engine, kind): (Engine, u16),
        own: &OwnOptions,
    ) -> Result<Option<Arc<KeyspaceState>>> {
        check_name(name)?;
        self.change_list(None, Durability::Sync, &[name], |transaction, list| {
            if self.catalogue().find(transaction, name)?.is_some() {
                return Ok(None);
            }
            let entry = self.catalogue().add(transaction, name, (engine, kind), own)?;
            self.record_list(transaction, (name, &entry), |encoder, keyspace| {
                encoder.created(keyspace);
            })?;
            list.state(transaction, self.catalogue(), name, &entry).map(Some)
        })
    }

    /// Makes both halves of an expiring keyspace, or records the kinds of those that exist, for
    /// which `permit` was taken before they were looked at. Does nothing if another thread was
    /// first.
    pub(crate) fn create_ending<'s>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        name: &str,
        (engine, own): (Engine, OwnOptions),
    ) -> Result<()> {
        let beside = deadlines_of(name);
        let may_adopt = permit.is_some();
        let halves = [
            (name, engine, own, KeyspaceKind::Expiring),
            (&*beside, Engine::default(), OwnOptions::default(), KeyspaceKind::Deadlines),
        ];
        self.change_list(permit, Durability::Sync, &[name, &beside], |transaction, list| {
            let catalogue = self.catalogue();
            for (name, engine, own, kind) in halves {
                match catalogue.find(transaction, name)? {
                    None => {
                        let kind = (engine, kind.number());
                        let entry = catalogue.add(transaction, name, kind, &own)?;
                        self.record_list(transaction, (name, &entry), |encoder, keyspace| {
                            encoder.created(keyspace);
                        })?;
                    }
                    Some(entry) if may_adopt && entry.kind.get() == KIND_UNSAID => {
                        list.doubt(&entry);
                        catalogue.mark(transaction, name, &entry, kind)?;
                    }
                    Some(entry) if kind_of(name, &entry)? == kind => {}
                    Some(_) => return Err(Error::NotExpiring { name: name.into() }),
                }
            }
            Ok(())
        })
    }

    /// The entry and the kind of a keyspace that is to be changed by its name.
    pub(crate) fn known(
        &self,
        transaction: &Transaction<'_>,
        name: &str,
    ) -> Result<(CatalogueEntry, KeyspaceKind)> {
        let Some(entry) = self.catalogue().find(transaction, name)? else {
            return Err(Error::UnknownKeyspace { name: name.into() });
        };
        let kind = kind_of(name, &entry)?;
        if matches!(kind, KeyspaceKind::Deadlines | KeyspaceKind::Changes) {
            check_plain(name, kind)?;
        }
        Ok((entry, kind))
    }

    /// Records what was done to a keyspace.
    fn record_list(
        &self,
        transaction: &mut Transaction<'_>,
        (name, entry): (&str, &CatalogueEntry),
        say: impl FnOnce(&mut ChangeEncoder, &ChangedKeyspace),
    ) -> Result<()> {
        let keyspace = changed(name, entry)?;
        self.record(transaction, |recording, _| {
            recording.say_of(&keyspace, say);
            Ok(())
        })
    }

    /// Renames a keyspace to a free name, with its deadlines if it has any.
    pub(crate) fn rename_keyspace(&self, name: &str, new_name: &str) -> Result<()> {
        let (beside, new_beside) = (deadlines_of(name), deadlines_of(new_name));
        check_name(name)?;
        check_name(new_name)?;
        let names = [name, new_name, &*beside, &*new_beside];
        self.change_list(None, Durability::Sync, &names, |transaction, list| {
            let (entry, kind) = self.known(transaction, name)?;
            self.rename_one(transaction, list, (name, &entry), new_name)?;
            if kind == KeyspaceKind::Expiring {
                self.rename_deadlines(transaction, list, &beside, &new_beside)?;
            }
            self.record_list(transaction, (name, &entry), |encoder, keyspace| {
                encoder.renamed(keyspace, new_name);
            })
        })
    }

    fn rename_deadlines(
        &self,
        transaction: &mut Transaction<'_>,
        list: &List,
        beside: &str,
        new_beside: &str,
    ) -> Result<()> {
        check_name(new_beside)?;
        let entry = self.deadlines(transaction, beside)?;
        self.rename_one(transaction, list, (beside, &entry), new_beside)
    }

    /// The entry of a keyspace of deadlines, whose entries exist.
    fn deadlines(&self, transaction: &Transaction<'_>, beside: &str) -> Result<CatalogueEntry> {
        let found = self.catalogue().find(transaction, beside)?;
        found.ok_or_else(|| Error::Damaged {
            what: format!("the catalogue has entries that end, but no {beside:?} beside them"),
        })
    }

    fn rename_one(
        &self,
        transaction: &mut Transaction<'_>,
        list: &List,
        (name, entry): (&str, &CatalogueEntry),
        new_name: &str,
    ) -> Result<()> {
        if self.catalogue().find(transaction, new_name)?.is_some() {
            return Err(Error::KeyspaceExists { name: new_name.into() });
        }
        if let Some(place) = list.places.get(&entry.id.get()) {
            place.is_called(new_name);
        }
        self.catalogue().rename(transaction, name, new_name, entry)
    }

    /// Exchanges the names of two keyspaces, and of their deadlines, in one commit. `expected`: the
    /// kind that both must have.
    pub(crate) fn exchange_keyspaces(
        &self,
        one: &str,
        other: &str,
        expected: Option<KeyspaceKind>,
    ) -> Result<()> {
        check_name(one)?;
        check_name(other)?;
        let (beside, beside_other) = (deadlines_of(one), deadlines_of(other));
        let names = [one, other, &*beside, &*beside_other];
        self.change_list(None, Durability::Sync, &names, |transaction, list| {
            let (first, first_kind) = self.known(transaction, one)?;
            let (second, second_kind) = self.known(transaction, other)?;
            check_kind(one, expected, first_kind)?;
            check_kind(other, expected, second_kind)?;
            if one == other {
                return Ok(());
            }
            self.exchange_two(transaction, list, (one, &first), (other, &second))?;
            let is_ending = |kind| kind == KeyspaceKind::Expiring;
            let target = changed(other, &second)?;
            self.record_list(transaction, (one, &first), |encoder, keyspace| {
                encoder.exchanged(keyspace, &target);
            })?;
            match (is_ending(first_kind), is_ending(second_kind)) {
                (false, false) => Ok(()),
                (true, true) => {
                    let first = self.deadlines(transaction, &beside)?;
                    let second = self.deadlines(transaction, &beside_other)?;
                    let (one, other) = ((&*beside, &first), (&*beside_other, &second));
                    self.exchange_two(transaction, list, one, other)
                }
                (true, false) => self.rename_deadlines(transaction, list, &beside, &beside_other),
                (false, true) => self.rename_deadlines(transaction, list, &beside_other, &beside),
            }
        })
    }

    fn exchange_two(
        &self,
        transaction: &mut Transaction<'_>,
        list: &List,
        (one, first): (&str, &CatalogueEntry),
        (other, second): (&str, &CatalogueEntry),
    ) -> Result<()> {
        for (entry, name) in [(first, other), (second, one)] {
            if let Some(place) = list.places.get(&entry.id.get()) {
                place.is_called(name);
            }
        }
        self.catalogue().exchange(transaction, (one, first), (other, second))
    }

    /// Removes all entries of keyspaces, whatever their names are now, in one commit.
    pub(crate) fn clear_keyspaces(
        &self,
        states: &[&KeyspaceState],
        durability: Durability,
    ) -> Result<()> {
        let clear = |transaction: &mut Transaction<'_>, list: &mut List| {
            let mut unseen = Vec::new();
            let mut cleared = Vec::new();
            for state in states {
                let (name, entry) = state.find(transaction, self.catalogue())?;
                let Some(head) = self.clear_one(transaction, list, (&name, &entry))? else {
                    continue;
                };
                cleared.push(changed(&name, &entry)?);
                unseen.extend(head);
            }
            self.record(transaction, |recording, _| {
                for keyspace in &cleared {
                    recording.say_of(keyspace, ChangeEncoder::cleared);
                }
                Ok(())
            })?;
            Ok(unseen)
        };
        let unseen = self.change_list(None, durability, &[], clear)?;
        self.destroy_retired(unseen);
        Ok(())
    }

    /// Gives a keyspace an empty tree, unless it has one. Returns the head of its old tree if no
    /// snapshot sees that.
    fn clear_one(
        &self,
        transaction: &mut Transaction<'_>,
        list: &List,
        (name, entry): (&str, &CatalogueEntry),
    ) -> Result<Option<Option<u64>>> {
        let map = self.catalogue().map(transaction, name, entry)?;
        if map.is_empty(transaction)? {
            return Ok(None);
        }
        list.doubt(entry);
        self.catalogue().clear(transaction, name, entry, map.engine())?;
        if self.versions().any() {
            self.versions().drop_keyspace(entry.id.get(), map);
            return Ok(Some(None));
        }
        Ok(Some(Some(map.head())))
    }

    /// Drops a keyspace, with its deadlines if it has any, and frees what it held; false if there
    /// is none with this name. `expected`: the kind that it must have.
    pub(crate) fn drop_keyspace(&self, name: &str, expected: Option<KeyspaceKind>) -> Result<bool> {
        check_name(name)?;
        let beside = deadlines_of(name);
        let drop = |transaction: &mut Transaction<'_>, list: &mut List| {
            let (entry, kind) = match self.known(transaction, name) {
                Err(Error::UnknownKeyspace { .. }) => return Ok(Vec::new()),
                known => known?,
            };
            check_kind(name, expected, kind)?;
            self.drop_one(transaction, list, name, &entry)?;
            let mut dropped = vec![entry.id.get()];
            if kind == KeyspaceKind::Expiring {
                let entry = self.deadlines(transaction, &beside)?;
                self.drop_one(transaction, list, &beside, &entry)?;
                dropped.push(entry.id.get());
            }
            self.record_list(transaction, (name, &entry), ChangeEncoder::dropped)?;
            Ok(dropped)
        };
        let dropped = self.change_list(None, Durability::Sync, &[name, &beside], drop)?;
        let mut list = self.list.lock();
        for id in &dropped {
            // Handles keep their own reference to the state that says it is gone.
            list.places.remove(id);
        }
        std::mem::drop(list);
        self.catalogue().lsm_trees().delete_obsolete(self.heap()?)?;
        Ok(!dropped.is_empty())
    }

    fn drop_one(
        &self,
        transaction: &mut Transaction<'_>,
        list: &List,
        name: &str,
        entry: &CatalogueEntry,
    ) -> Result<()> {
        list.doubt(entry);
        if !self.versions().any() {
            return self.catalogue().drop(transaction, name, entry);
        }
        let map = self.catalogue().map(transaction, name, entry)?;
        self.catalogue().retire(transaction, name, entry)?;
        self.versions().drop_keyspace(entry.id.get(), map);
        Ok(())
    }
}
