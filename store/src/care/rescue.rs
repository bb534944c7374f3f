//! Salvage of a damaged store's entries into a new one.
//!
//! Purpose: finds the trees, reads what can be read of each, and assigns orphaned leaves to the
//! keyspaces that lost them.
//! Invariants: a pair is taken only from pages that are intact, and only if its key has the hash
//! that its leaf stores. Unreadable parts are counted and described.
//! Thread safety: one thread, on a heap that no other changes.

mod report;
mod values;
mod writer;
mod catalogue;
mod deadlines;
mod lsm_tree;
mod orphans;

use std::collections::HashSet;
use std::sync::Arc;

use adamant_heap::Salvage;
use adamant_heap::layout::ROOT_COUNT;
use adamant_trees::Salvaged;

use self::catalogue::{SalvagedCatalogue, TreePlace};
use self::deadlines::{keyspace_in, match_deadlines};
pub use self::report::{KeyspaceRepair, RepairReport};
use self::values::{Stored, shown};
use self::writer::Writer;
use crate::common::catalogue::{codec_of, dictionary};
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::tree::{Engine, Tree};
use crate::engine::value_codec::Shown;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::kind::entries_of;
use crate::layout::STORE_ROOT;
use crate::own_options::OwnOptions;
use crate::store::handle::Store;
use crate::store::inspect::{Finding, check_salvage};

/// Saves what can be read into an empty store.
///
/// # Errors
/// Those of the target.
pub(crate) fn rescue(
    salvage: &Salvage,
    lsm_trees: &Arc<LsmTrees>,
    target: &Store,
) -> Result<RepairReport> {
    let mut findings: Vec<_> = salvage.findings().iter().map(Finding::of_heap).collect();
    if findings.is_empty() {
        findings = check_salvage(salvage, lsm_trees)?;
    }
    let mut report = RepairReport {
        findings,
        last_sequence: salvage.last_sequence(),
        lost_pages: salvage.lost_pages(),
        ..RepairReport::default()
    };
    let mut leaves = HashSet::new();
    let (catalogue, trees) = SalvagedCatalogue::read(salvage, &mut leaves, &mut report.findings);
    let mut work = Rescue { salvage, lsm_trees, target, catalogue, leaves, lost: Vec::new() };
    for (index, (name, place)) in trees.into_iter().enumerate() {
        report.keyspaces.push(work.keyspace(index, &name, place)?);
    }
    work.orphans(&mut report.keyspaces)?;
    for (name, types) in &work.catalogue.types {
        if let Some(state) = target.shared.open_keyspace(name)? {
            target.shared.record_types(&state, types)?;
        }
    }
    for name in &work.catalogue.expiring {
        let (removed, added) = match_deadlines(target, name)?;
        let rows = report.keyspaces.iter_mut().find(|keyspace| entries_of(&keyspace.name) == name);
        if let Some(rows) = rows.filter(|keyspace| keyspace.name != *name) {
            rows.saved = rows.saved + added - removed;
        }
    }
    for root in (0..ROOT_COUNT).filter(|root| *root != STORE_ROOT) {
        if salvage.root(root).is_ok_and(|word| word != 0) {
            let what = "is a program's own heap objects; these are not saved";
            report.findings.push(Finding::new(format!("root {root} of the heap"), what));
        }
    }
    report.keyspaces.iter_mut().for_each(KeyspaceRepair::count);
    for keyspace in report.keyspaces.iter().filter(|keyspace| keyspace.loss_count > 0) {
        let what = format!("{} things could not be read", keyspace.loss_count);
        report.findings.push(Finding::new(format!("keyspace {:?}", keyspace.name), what));
    }
    Ok(report)
}

/// A range of keys in which a keyspace lost something: orphaned leaves with such keys may be its
/// own.
struct LostRange {
    keyspace: usize,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl LostRange {
    fn holds(&self, low: &[u8], high: &[u8]) -> bool {
        self.lower.as_deref().is_none_or(|lower| lower <= low)
            && self.upper.as_deref().is_none_or(|upper| high < upper)
    }
}

struct Rescue<'s> {
    salvage: &'s Salvage,
    lsm_trees: &'s Arc<LsmTrees>,
    target: &'s Store,
    catalogue: SalvagedCatalogue,
    /// Leaves that a tree refers to.
    leaves: HashSet<u64>,
    lost: Vec<LostRange>,
}

impl Rescue<'_> {
    /// Saves a tree as the keyspace `index` of the report.
    fn keyspace(
        &mut self,
        index: usize,
        name: &str,
        TreePlace { engine, head, kind }: TreePlace,
    ) -> Result<KeyspaceRepair> {
        if engine == Engine::Lsm {
            return self.lsm_tree(name, head, kind);
        }
        let tree = Tree::open_as(self.salvage, engine, head);
        let expected = tree.and_then(|tree| tree.len(self.salvage)).ok();
        let keyspace = self.keyspace_of(name, engine, kind)?;
        let mut writer = Writer::new(keyspace, expected);
        let visit = |each: &mut dyn FnMut(Salvaged<'_>)| {
            Tree::salvage(self.salvage, engine, head, &mut HashSet::new(), each);
        };
        writer.stored = self.stored_in(name, &mut writer, visit)?;
        let lost = &mut self.lost;
        Tree::salvage(self.salvage, engine, head, &mut self.leaves, &mut |found| {
            // Only leaves of a bplus tree can be found again.
            if let Salvaged::LostNode { lower, upper, .. } = &found
                && engine == Engine::Bplus
            {
                let own = |bound: &Option<&[u8]>| bound.map(<[u8]>::to_vec);
                lost.push(LostRange { keyspace: index, lower: own(lower), upper: own(upper) });
            }
            writer.take(found);
        });
        let report = writer.finish()?;
        // A node may have been read that lost some of its references; then nothing else is missed.
        if report.loss_count == 0
            && engine == Engine::Bplus
            && expected.is_some_and(|expected| report.saved < expected)
        {
            self.lost.push(LostRange { keyspace: index, lower: None, upper: None });
        }
        Ok(report)
    }

    /// The keyspace of the new store, with the options that it had.
    fn keyspace_of(&self, name: &str, engine: Engine, kind: u16) -> Result<Keyspace> {
        let keyspace = keyspace_in(self.target, name, engine, kind)?;
        if let Some(own) = self.catalogue.options.get(name) {
            let here = OwnOptions { dictionary: None, ..*own };
            self.target.shared.give_options(&keyspace.state, &here)?;
            let bytes = own.dictionary.and_then(|place| dictionary(self.salvage, place).ok());
            if let (Some(values), Some(bytes)) = (own.values, bytes) {
                self.target.shared.convert_values(name, (values, Some(bytes)))?;
            }
        }
        Ok(keyspace)
    }

    /// How a keyspace of the damaged store stores values; `visit` shows them, for one of which
    /// nothing else tells. Without its dictionary, the values that need it are lost, and the others
    /// are saved.
    fn stored_in(
        &self,
        name: &str,
        writer: &mut Writer,
        visit: impl FnOnce(&mut dyn FnMut(Salvaged<'_>)),
    ) -> Result<Stored> {
        let catalogue = &self.catalogue;
        let Some(own) = catalogue.options.get(name) else {
            return Ok(shown(catalogue.has_packed, visit));
        };
        let codec = match codec_of(self.salvage, name, own) {
            Err(error) if !error.is_not_built() => {
                writer.note(format!("the dictionary of the values: {error}"));
                codec_of(self.salvage, name, &OwnOptions { dictionary: None, ..*own })?
            }
            codec => codec?,
        };
        Ok(codec.map_or(Stored::As(Shown::Plain), Stored::By))
    }
}
