//! Salvage of a damaged store's entries into a new one.
//!
//! Purpose: finds the trees, reads what can be read of each, and assigns orphaned leaves to the
//! keyspaces that lost them.
//! Invariants: a pair is taken only from pages that are intact, and only if its key has the hash
//! that its leaf stores. Unreadable parts are counted and described.
//! Thread safety: one thread, on a heap that no other changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;

use adamant_heap::Salvage;
use adamant_heap::access::Read;
use adamant_heap::durability::Durability;
use adamant_heap::layout::ROOT_COUNT;
use adamant_heap::ptr::Ptr;
use adamant_lsm::{CopyLimits, Error as LsmError, LostRecords, Lsm, NEWEST};
use adamant_slice::Slice;
use adamant_trees::{Bplus, Salvaged};
use zerocopy::FromBytes;

use crate::batch::builder::Batch;
use crate::care::rescue_ending::{are_halves, keyspace_in, match_deadlines};
use crate::common::catalogue::{codec_of, dictionary, hidden_name, is_visible};
use crate::common::recorded_options;
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::tree::{Engine, Tree};
use crate::engine::value_codec::{Found, Shown, ValueCodec, shown_by, value_as_shown};
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::kind::{KeyspaceKind, deadlines_of, entries_of};
use crate::layout::{
    KIND_DEADLINES, KIND_EXPIRING, KIND_PLAIN, KeyspaceEntry, STORE_FORMAT_VALUES, STORE_MAGIC,
    STORE_ROOT, StoreHead,
};
use crate::limits::check_name;
use crate::own_options::OwnOptions;
use crate::store::handle::Store;
use crate::store::inspect::{CATALOGUE, Finding, check_salvage};
use crate::types::KeyspaceTypes;

/// The keyspace for pairs whose own one is unknown.
const LOST_AND_FOUND: &str = "lost+found";
/// Losses of a keyspace that are described one by one.
const LOSSES_DESCRIBED_MAX: usize = 100;
/// Pairs, or bytes, per commit of the new store.
const BATCH_PAIRS: usize = 1000;
const BATCH_BYTES: usize = 8 << 20;

/// The result of a repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// All damage found; empty if the store was intact, and then nothing was done.
    pub findings: Vec<Finding>,
    /// Each keyspace of the new store.
    pub keyspaces: Vec<KeyspaceRepair>,
    /// The new path of the damaged store.
    pub damaged_path: Option<PathBuf>,
    /// Sequence number of the last commit that could be read.
    pub last_sequence: u64,
    /// Damaged pages of the pool.
    pub lost_pages: u64,
}

/// The result for one keyspace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KeyspaceRepair {
    /// Its name.
    pub name: String,
    /// The number of pairs that it should have; `None` if that was lost.
    pub expected: Option<u64>,
    /// Pairs saved.
    pub saved: u64,
    /// Of those, pairs of orphaned leaves.
    pub adopted: u64,
    /// Descriptions of what could not be read: the first hundred.
    pub losses: Vec<String>,
    /// The number of losses.
    pub loss_count: u64,
}

impl KeyspaceRepair {
    /// If no loss is known, the count of pairs shows one.
    fn count(&mut self) {
        let Some(expected) = self.expected.filter(|expected| *expected != self.saved) else {
            return;
        };
        if self.loss_count == 0 {
            self.loss_count = 1;
            let found = self.saved;
            self.losses.push(format!("expected {expected} pairs as the head says, found {found}"));
        }
    }
}

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
    let mut work = Rescue::new(salvage, lsm_trees, target);
    let mut report = RepairReport {
        findings,
        last_sequence: salvage.last_sequence(),
        lost_pages: salvage.lost_pages(),
        ..RepairReport::default()
    };
    let trees = work.trees(&mut report.findings);
    for (index, (name, place)) in trees.into_iter().enumerate() {
        report.keyspaces.push(work.keyspace(index, &name, place)?);
    }
    work.orphans(&mut report.keyspaces)?;
    for (name, types) in &work.types {
        if let Some(state) = target.shared.open_keyspace(name)? {
            target.shared.record_types(&state, types)?;
        }
    }
    for name in &work.ending {
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

/// The engine and the head of a tree, and the kind's number of its keyspace.
type TreePlace = (Engine, u64, u16);

/// A name, its tree, and the encoded types and options of the keyspace.
type NamedTree<'b> = (String, TreePlace, &'b [u8], &'b [u8]);

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
    /// Leaves that a tree refers to.
    leaves: HashSet<u64>,
    lost: Vec<LostRange>,
    /// Expiring keyspaces.
    ending: Vec<String>,
    /// The recorded types of keyspaces.
    types: BTreeMap<String, KeyspaceTypes>,
    /// The recorded options of keyspaces; `None` where they are lost.
    options: BTreeMap<String, Option<OwnOptions>>,
    /// Whether there may be keyspaces with compressed values.
    has_packed: bool,
    /// Whether there may be leaves whose tree is lost.
    lost_trees: bool,
}

impl<'s> Rescue<'s> {
    fn new(salvage: &'s Salvage, lsm_trees: &'s Arc<LsmTrees>, target: &'s Store) -> Self {
        let (leaves, lost, ending) = (HashSet::new(), Vec::new(), Vec::new());
        let (types, options) = (BTreeMap::new(), BTreeMap::new());
        Self {
            salvage,
            lsm_trees,
            target,
            leaves,
            lost,
            ending,
            types,
            options,
            has_packed: false,
            lost_trees: false,
        }
    }

    /// Name and place of every tree: those in the catalogue, and those without a name.
    fn trees(&mut self, findings: &mut Vec<Finding>) -> Vec<(String, TreePlace)> {
        let heads = self.heads();
        let findings_before = findings.len();
        let catalogue = self.catalogue(&heads, findings);
        let (mut named, mut dropped) = (BTreeMap::new(), Vec::new());
        let (mut types_of, mut options_of) = (BTreeMap::new(), BTreeMap::new());
        let mut known: HashSet<u64> = catalogue.into_iter().collect();
        if let Some(head) = catalogue {
            Bplus::salvage(self.salvage, head, &mut self.leaves, &mut |found| match found {
                Salvaged::Pair((name, bytes)) => match keyspace_entry(name, bytes) {
                    Some((name, place, types, options)) => {
                        known.insert(place.1);
                        // A tree that was kept for a snapshot was dropped.
                        match is_visible(&name) {
                            true => {
                                types_of.insert(name.clone(), types.to_vec());
                                options_of.insert(name.clone(), options.to_vec());
                                named.insert(name, place);
                            }
                            false => dropped.push(place),
                        }
                    }
                    None => {
                        findings.push(Finding::new(CATALOGUE, format!("no keyspace: {name:?}")))
                    }
                },
                Salvaged::LostValue { why, .. }
                | Salvaged::LostEntry { why, .. }
                | Salvaged::LostNode { why, .. } => {
                    findings.push(Finding::new(CATALOGUE, why.to_string()))
                }
                _ => {}
            });
        }
        self.lost_trees = findings.len() > findings_before;
        for (name, types) in types_of.into_iter().filter(|(_, types)| !types.is_empty()) {
            match KeyspaceTypes::parse(&types) {
                Some(types) => drop(self.types.insert(name, types)),
                None => {
                    let what = format!("the types of keyspace {name:?} are lost; it has none now");
                    findings.push(Finding::new(CATALOGUE, what));
                }
            }
        }
        self.note_options(options_of, findings);
        for (engine, head, _) in dropped.into_iter().filter(|place| place.0 != Engine::Lsm) {
            // Marks its leaves as used, so that they are not taken for orphans.
            Tree::salvage(self.salvage, engine, head, &mut self.leaves, &mut |_| {});
        }
        let named = self.halves(named, findings);
        let unnamed = heads.into_iter().filter(|(_, head)| !known.contains(head));
        let unnamed = unnamed.map(|(engine, head)| {
            (format!("{LOST_AND_FOUND}/{head:x}"), (engine, head, KIND_PLAIN))
        });
        named.into_iter().chain(unnamed).collect()
    }

    /// Notes the options of keyspaces, and whether values may be compressed.
    fn note_options(&mut self, all: BTreeMap<String, Vec<u8>>, findings: &mut Vec<Finding>) {
        let head = self.salvage.root(STORE_ROOT);
        let head = head.and_then(|root| self.salvage.read(Ptr::<StoreHead>::new(root)));
        // Where the head is lost, they may be.
        self.has_packed = head.map_or(true, |head| {
            head.magic != STORE_MAGIC || head.format.get() >= STORE_FORMAT_VALUES
        });
        for (name, options) in all {
            let own = recorded_options::parse(&options).ok();
            if own.is_none() {
                let what = format!("the options of keyspace {name:?} are lost; it has none now");
                findings.push(Finding::new(CATALOGUE, what));
            }
            self.has_packed |= own.is_some_and(|own| own.values.is_some());
            self.options.insert(name, own);
        }
    }

    /// Notes which keyspaces are expiring. A half whose other half is lost is saved as bytes.
    fn halves(
        &mut self,
        mut named: BTreeMap<String, TreePlace>,
        findings: &mut Vec<Finding>,
    ) -> BTreeMap<String, TreePlace> {
        let kinds: BTreeMap<String, u16> =
            named.iter().map(|(name, place)| (name.clone(), place.2)).collect();
        for (name, kind) in &kinds {
            let what = match *kind {
                KIND_EXPIRING => match kinds.get(&deadlines_of(name)) {
                    None | Some(&KIND_DEADLINES) => {
                        self.ending.push(name.clone());
                        continue;
                    }
                    Some(_) => format!("the deadlines of {name:?} are not where they should be"),
                },
                KIND_DEADLINES if kinds.get(entries_of(name)) != Some(&KIND_EXPIRING) => {
                    format!("there are no entries of the deadlines {name:?}")
                }
                _ => continue,
            };
            findings.push(Finding::new(CATALOGUE, format!("{what}; saved as bytes")));
            if let Some(place) = named.get_mut(name) {
                place.2 = KIND_PLAIN;
            }
        }
        named
    }

    /// Every block that begins like the head of a tree.
    fn heads(&self) -> Vec<(Engine, u64)> {
        let mut heads = Vec::new();
        // The heads of all engines have the same size.
        self.salvage.blocks_of(Bplus::HEAD_BYTES, &mut |block| {
            let is = |engine: &Engine| Tree::open_as(self.salvage, *engine, block).is_ok();
            heads.extend(Engine::ALL.into_iter().find(is).map(|engine| (engine, block)));
        });
        heads
    }

    /// The head of the catalogue: the one that the store's head names, or else the tree whose pairs
    /// all are keyspaces.
    fn catalogue(&self, heads: &[(Engine, u64)], findings: &mut Vec<Finding>) -> Option<u64> {
        let head = self.salvage.root(STORE_ROOT).and_then(|root| {
            self.salvage.read(Ptr::<StoreHead>::new(root)).map(|head| (root, *head))
        });
        match head {
            Ok((_, head)) if head.magic == STORE_MAGIC => {
                let catalogue = head.catalogue.get();
                match Tree::open_as(self.salvage, Engine::Bplus, catalogue) {
                    Ok(_) => return Some(catalogue),
                    Err(error) => findings.push(Finding::of(CATALOGUE, &error)),
                }
            }
            Ok((root, _)) => {
                findings.push(Finding::new(CATALOGUE, format!("no store's head at {root:#x}")))
            }
            Err(error) => findings.push(Finding::of(CATALOGUE, &error.into())),
        }
        let bplus = heads.iter().filter(|(engine, _)| *engine == Engine::Bplus);
        bplus.map(|(_, head)| *head).find(|head| {
            are_keyspaces(|each| Bplus::salvage(self.salvage, *head, &mut HashSet::new(), each))
        })
    }

    /// Saves a tree as the keyspace `index` of the report.
    fn keyspace(
        &mut self,
        index: usize,
        name: &str,
        (engine, head, kind): TreePlace,
    ) -> Result<KeyspaceRepair> {
        if engine == Engine::Lsm {
            return self.log(name, head, kind);
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

    /// Saves an LSM tree: from the low end to the first unreadable part, and from the high end down
    /// to it.
    fn log(&self, name: &str, head: u64, kind: u16) -> Result<KeyspaceRepair> {
        let mut writer = Writer::new(self.keyspace_of(name, Engine::Lsm, kind)?, None);
        let store = self.salvage.root(STORE_ROOT).unwrap_or(0);
        let merge = self.options.get(name).and_then(|own| (*own)?.merge);
        let own = OwnOptions { merge, ..OwnOptions::default() };
        let tree = self.lsm_trees.tree(self.salvage, store, (name, head), &own).or_else(|_| {
            let mut lost = |records| writer.note(Some(lost_records(&records)));
            self.lsm_trees.salvage(self.salvage, store, (name, head, &own), &mut lost)
        });
        match tree {
            Err(error) => writer.note(Some(format!("all pairs: {error}"))),
            Ok(tree) => self.log_of(&tree, &mut writer).map_err(Error::of_lsm(name))?,
        }
        writer.finish()
    }

    /// The keyspace of the new store, with the options that it had.
    fn keyspace_of(&self, name: &str, engine: Engine, kind: u16) -> Result<Keyspace> {
        let keyspace = keyspace_in(self.target, name, engine, kind)?;
        if let Some(Some(own)) = self.options.get(name) {
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
        let Some(Some(own)) = self.options.get(name) else { return Ok(self.shown(visit)) };
        let codec = match codec_of(self.salvage, name, own) {
            Err(error) if !error.is_not_built() => {
                writer.note(Some(format!("the dictionary of the values: {error}")));
                codec_of(self.salvage, name, &OwnOptions { dictionary: None, ..*own })?
            }
            codec => codec?,
        };
        Ok(codec.map_or(Stored::As(Shown::Plain), Stored::By))
    }

    /// How values are stored, as they show: all of a keyspace are stored in the same way.
    fn shown(&self, visit: impl FnOnce(&mut dyn FnMut(Salvaged<'_>))) -> Stored {
        let mut shown = Shown::Either;
        visit(&mut |found| {
            let Salvaged::Pair((_, stored)) = found else { return };
            match shown_by(stored) {
                Shown::Either => {}
                // One that is no stored form settles it.
                Shown::Packed if shown == Shown::Plain => {}
                certain => shown = certain,
            }
        });
        match shown {
            Shown::Either if !self.has_packed => Stored::As(Shown::Plain),
            shown => Stored::As(shown),
        }
    }

    fn log_of(&self, tree: &Lsm, writer: &mut Writer) -> adamant_lsm::Result<()> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let (mut low, mut high) = (None, None);
        let mut forward = self.walk(tree, all, true, writer, &mut low);
        // One key whose operands cannot be merged costs itself, and no others.
        while let Err(LsmError::MergeFailed { .. } | LsmError::NoOperator { operator: None }) =
            &forward
        {
            let lower = low.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let Some(key) = self.first_key(tree, (lower, Bound::Unbounded))? else { break };
            let failed = forward.err().map(|error| error.to_string()).unwrap_or_default();
            writer.note(Some(format!("the pair {}: {failed}", key.escape_ascii())));
            low = Some(key.clone());
            let rest = (Bound::Excluded(&key[..]), Bound::Unbounded);
            forward = self.walk(tree, rest, true, writer, &mut low);
        }
        if let Err(error) = forward {
            // Those entries are not lost: a build with that feature reads them, or a program with
            // that merge operator.
            if matches!(
                error,
                LsmError::NotBuilt { .. } | LsmError::NoOperator { operator: Some(_) }
            ) {
                return Err(error);
            }
            let lower = low.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let rest = (lower, Bound::Unbounded);
            // It ends where the other walk did, if not before: that is reported already.
            let _ = self.walk(tree, rest, false, writer, &mut high);
            let between = Between(low.as_deref(), high.as_deref());
            writer.note(Some(format!("the pairs {between}: {error}")));
        }
        Ok(())
    }

    /// The lowest key of an LSM tree within bounds.
    fn first_key(
        &self,
        tree: &Lsm,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> adamant_lsm::Result<Option<Slice>> {
        let (mut first, limits) =
            (None, CopyLimits { entries_max: 1, bytes_max: 1, with_values: false });
        tree.walk(self.salvage, bounds, true, NEWEST, limits, |key, _| {
            first = Some(Slice::from(key));
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// Saves the entries of an LSM tree within bounds, from one end on; `last` is the last key
    /// saved.
    fn walk(
        &self,
        tree: &Lsm,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        forward: bool,
        writer: &mut Writer,
        last: &mut Option<Slice>,
    ) -> adamant_lsm::Result<()> {
        let (entries_max, bytes_max) = (BATCH_PAIRS, BATCH_BYTES);
        let limits = CopyLimits { entries_max, bytes_max, with_values: true };
        tree.walk(self.salvage, bounds, forward, NEWEST, limits, |key, value| {
            writer.add(key, value);
            *last = Some(Slice::from(key));
            ControlFlow::Continue(())
        })
    }

    /// Saves the orphaned leaves: into the keyspace that lost such keys, if there is only one.
    fn orphans(&mut self, keyspaces: &mut Vec<KeyspaceRepair>) -> Result<()> {
        if self.lost.is_empty() && !self.lost_trees {
            // Nothing is missing, so there are no orphans.
            return Ok(());
        }
        let mut orphans: Vec<(Option<usize>, u64)> = Vec::new();
        self.salvage.blocks_of(Bplus::ORPHAN_BYTES, &mut |block| {
            if self.leaves.contains(&block) || self.is_of_catalogue(block) {
                return;
            }
            if let Some((low, high)) = Bplus::orphan_keys(self.salvage, block) {
                let mut owners = self.lost.iter().filter(|range| range.holds(low, high));
                let owner = owners.next().map(|range| range.keyspace);
                let is_certain = owners.all(|range| Some(range.keyspace) == owner);
                orphans.push((owner.filter(|_| is_certain), block));
            }
        });
        let mut owned: BTreeMap<Option<usize>, Vec<u64>> = BTreeMap::new();
        for (owner, leaf) in self.proved(orphans, keyspaces)? {
            owned.entry(owner).or_default().push(leaf);
        }
        for (owner, leaves) in owned {
            self.insert_entry(owner, &leaves, keyspaces)?;
        }
        Ok(())
    }

    /// Verifies leaves that were assigned by the range of their keys, to keyspaces of expiring
    /// entries or deadlines: there each entry and its row verify one another. Leaves that fail have
    /// no known owner.
    fn proved(
        &self,
        orphans: Vec<(Option<usize>, u64)>,
        keyspaces: &[KeyspaceRepair],
    ) -> Result<Vec<(Option<usize>, u64)>> {
        if self.ending.is_empty() {
            return Ok(orphans);
        }
        let mut leaves = Vec::new();
        for (owner, leaf) in orphans {
            let mut pairs: Vec<(Slice, Slice)> = Vec::new();
            let name = owner.map(|owner| &*keyspaces[owner].name);
            let own = name.and_then(|name| self.options.get(name).copied().flatten());
            let codec = own.map(|own| codec_of(self.salvage, "", &own)).transpose()?.flatten();
            let _ = Bplus::salvage_orphan(self.salvage, leaf, &mut |found| {
                if let Salvaged::Pair((key, stored)) = found {
                    let value = codec.as_ref().and_then(|codec| codec.decode(key, stored).ok());
                    pairs
                        .push((key.into(), value.map_or_else(|| stored.into(), Found::into_slice)));
                }
            });
            leaves.push((owner, leaf, pairs));
        }
        let all = leaves.iter().flat_map(|(_, _, pairs)| pairs);
        let lost: HashMap<Slice, Slice> = all.cloned().collect();
        let mut proved = Vec::new();
        for (owner, leaf, pairs) in leaves {
            let name = owner.map(|owner| &*keyspaces[owner].name);
            let ending = name.map_or("", entries_of);
            let is_guess = self.ending.iter().any(|name| name == ending);
            let is_own = match name {
                Some(name) if is_guess => are_halves(self.target, name, &pairs, &lost)?,
                _ => true,
            };
            proved.push((owner.filter(|_| is_own), leaf));
        }
        Ok(proved)
    }

    /// Whether a leaf holds only names of keyspaces, which are not entries. Their trees are saved
    /// as those without a name.
    fn is_of_catalogue(&self, leaf: u64) -> bool {
        let mut is_whole = false;
        let are_names = are_keyspaces(|each| {
            is_whole = Bplus::salvage_orphan(self.salvage, leaf, each).is_ok();
        });
        is_whole && are_names
    }

    fn insert_entry(
        &self,
        owner: Option<usize>,
        leaves: &[u64],
        keyspaces: &mut Vec<KeyspaceRepair>,
    ) -> Result<()> {
        let known = owner.and_then(|owner| keyspaces.get_mut(owner));
        let mut fresh = KeyspaceRepair::default();
        let is_fresh = known.is_none();
        if is_fresh {
            fresh.name = LOST_AND_FOUND.into();
        }
        let report = known.unwrap_or(&mut fresh);
        let keyspace = keyspace_in(self.target, &report.name, Engine::Bplus, KIND_PLAIN)?;
        let mut writer = Writer::new(keyspace, None);
        writer.only_absent = true;
        for leaf in leaves {
            let visit = |each: &mut dyn FnMut(Salvaged<'_>)| {
                let _ = Bplus::salvage_orphan(self.salvage, *leaf, each);
            };
            writer.stored = match is_fresh {
                true => self.shown(visit),
                false => self.stored_in(&report.name, &mut writer, visit)?,
            };
            let saved = Bplus::salvage_orphan(self.salvage, *leaf, &mut |found| writer.take(found));
            writer.note(saved.err().map(|error| error.to_string()));
        }
        let adopted = writer.finish()?;
        report.saved += adopted.saved;
        report.adopted += adopted.saved;
        report.loss_count += adopted.loss_count;
        report.losses.extend(adopted.losses);
        report.losses.truncate(LOSSES_DESCRIBED_MAX);
        if is_fresh {
            keyspaces.push(fresh);
        }
        Ok(())
    }
}

/// Whether all pairs of a visit are keyspaces, and there is at least one.
fn are_keyspaces(visit: impl FnOnce(&mut dyn FnMut(Salvaged<'_>))) -> bool {
    let (mut keyspaces, mut others) = (0, 0);
    visit(&mut |found| match found {
        Salvaged::Pair((name, bytes)) if keyspace_entry(name, bytes).is_some() => keyspaces += 1,
        Salvaged::Pair(_) => others += 1,
        _ => {}
    });
    keyspaces > 0 && others == 0
}

/// Name and place of a keyspace that this version can read, and its encoded types.
fn keyspace_entry<'b>(name: &[u8], bytes: &'b [u8]) -> Option<NamedTree<'b>> {
    let (entry, rest) = KeyspaceEntry::read_from_prefix(bytes).ok()?;
    let is_name = |name: &&str| check_name(name).is_ok() || *name == hidden_name(entry.head.get());
    let name = str::from_utf8(name).ok().filter(is_name)?;
    let engine = Engine::numbered(entry.engine.get(), entry.format.get())?;
    let kind = entry.kind.get();
    // Other records of 24 bytes have something else there.
    let (types, options) = rest.split_at_checked(entry.types_bytes.get().into())?;
    let is_whole = recorded_options::records(options).is_some();
    let is_known = is_whole && KeyspaceKind::numbered(kind).is_some();
    is_known.then(|| (name.to_owned(), (engine, entry.head.get(), kind), types, options))
}

/// How a tree of the damaged store stores values.
enum Stored {
    By(Arc<ValueCodec>),
    /// Nothing says; its values have shown this.
    As(Shown),
}

impl Stored {
    /// The value of a key, or why there is none.
    fn value<'a>(&self, key: &[u8], stored: &'a [u8]) -> std::result::Result<Found<'a>, String> {
        match self {
            Self::By(codec) => codec.decode(key, stored).map_err(|error| error.to_string()),
            Self::As(shown) => value_as_shown(stored, *shown)
                .map_err(|why| format!("the value of key {}: {why}", key.escape_ascii())),
        }
    }
}

/// Writes saved pairs to a keyspace of the new store, in batches.
struct Writer {
    keyspace: Keyspace,
    stored: Stored,
    pending: Vec<(Vec<u8>, Vec<u8>)>,
    pending_bytes: usize,
    /// Whether existing pairs stay.
    only_absent: bool,
    report: KeyspaceRepair,
    outcome: Result<()>,
}

impl Writer {
    fn new(keyspace: Keyspace, expected: Option<u64>) -> Self {
        let name = keyspace.name().into();
        Self {
            keyspace: keyspace.with_durability(Durability::Deferred),
            stored: Stored::As(Shown::Plain),
            pending: Vec::new(),
            pending_bytes: 0,
            only_absent: false,
            report: KeyspaceRepair { name, expected, ..KeyspaceRepair::default() },
            outcome: Ok(()),
        }
    }

    fn take(&mut self, found: Salvaged<'_>) {
        let loss = match found {
            Salvaged::Pair((key, stored)) => {
                let plain = std::mem::replace(&mut self.stored, Stored::As(Shown::Plain));
                let value = plain.value(key, stored);
                self.stored = plain;
                match value {
                    Ok(value) => return self.add(key, &value),
                    Err(why) => why,
                }
            }
            Salvaged::LostValue { key, why } => {
                format!("the value of key {}: {why}", key.escape_ascii())
            }
            Salvaged::LostEntry { lower, upper, why } => {
                format!("a pair {}: {why}", Between(lower, upper))
            }
            Salvaged::LostNode { lower, upper, why } => {
                format!("the pairs {}: {why}", Between(lower, upper))
            }
            _ => return,
        };
        self.note(Some(loss));
    }

    fn note(&mut self, loss: Option<String>) {
        let Some(loss) = loss else { return };
        self.report.loss_count += 1;
        if self.report.losses.len() < LOSSES_DESCRIBED_MAX {
            self.report.losses.push(loss);
        }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        if self.outcome.is_err() {
            return;
        }
        self.pending_bytes += key.len() + value.len();
        self.pending.push((key.into(), value.into()));
        if self.pending.len() >= BATCH_PAIRS || self.pending_bytes >= BATCH_BYTES {
            self.outcome = self.write();
        }
    }

    fn write(&mut self) -> Result<()> {
        let mut batch = Batch::new(Arc::clone(&self.keyspace.shared));
        batch.durability(Durability::Deferred);
        for (key, value) in self.pending.drain(..) {
            if self.only_absent && self.keyspace.contains(&key)? {
                continue;
            }
            batch.put(&self.keyspace, &key, &value)?;
            self.report.saved += 1;
        }
        self.pending_bytes = 0;
        batch.commit()
    }

    fn finish(mut self) -> Result<KeyspaceRepair> {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        self.write()?;
        Ok(self.report)
    }
}

/// Describes the lost records of a memtable.
fn lost_records(lost: &LostRecords) -> String {
    let LostRecords { offset, bytes } = *lost;
    let count = if bytes == 0 { "an unknown number of".into() } else { bytes.to_string() };
    format!(
        "{count} bytes of memtables from {offset:#x} of the heap on: keys that were written there are \
         lost, or have the value from before"
    )
}

/// Bounds of keys, for messages.
struct Between<'k>(Option<&'k [u8]>, Option<&'k [u8]>);

impl fmt::Display for Between<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (None, None) => f.write_str("of any key"),
            (Some(lower), None) => write!(f, "from key {} on", lower.escape_ascii()),
            (None, Some(upper)) => write!(f, "below key {}", upper.escape_ascii()),
            (Some(lower), Some(upper)) => {
                write!(f, "from key {} to {}", lower.escape_ascii(), upper.escape_ascii())
            }
        }
    }
}
