//! The catalogue of a damaged store: which trees there are, and what is recorded with them.
//!
//! Purpose: finds the trees by the catalogue, and those that it does not name by their heads.
//! Invariants: a half of an expiring keyspace whose other half is lost is saved as bytes.
//! Thread safety: one thread.

use std::collections::{BTreeMap, HashSet};

use adamant_heap::Salvage;
use adamant_heap::access::Read;
use adamant_heap::ptr::Ptr;
use adamant_trees::{Bplus, Salvaged};
use zerocopy::FromBytes;

use crate::common::catalogue::{hidden_name, is_visible};
use crate::common::recorded_options;
use crate::engine::tree::{Engine, Tree};
use crate::kind::{KeyspaceKind, deadlines_of, entries_of};
use crate::layout::{
    KIND_DEADLINES, KIND_EXPIRING, KIND_PLAIN, KeyspaceEntry, STORE_FORMAT_VALUES, STORE_MAGIC,
    STORE_ROOT, StoreHead,
};
use crate::limits::check_name;
use crate::own_options::OwnOptions;
use crate::store::inspect::{CATALOGUE, Finding};
use crate::types::KeyspaceTypes;

/// The keyspace for pairs whose own one is unknown.
pub(super) const LOST_AND_FOUND: &str = "lost+found";

/// A tree of the damaged store.
#[derive(Clone, Copy)]
pub(super) struct TreePlace {
    pub(super) engine: Engine,
    /// Heap offset of its head.
    pub(super) head: u64,
    /// The number of its keyspace's kind.
    pub(super) kind: u16,
}

/// A record of the catalogue that this version can read.
struct Record<'b> {
    name: String,
    place: TreePlace,
    types: &'b [u8],
    options: &'b [u8],
}

impl<'b> Record<'b> {
    fn read(name: &[u8], bytes: &'b [u8]) -> Option<Self> {
        let (entry, rest) = KeyspaceEntry::read_from_prefix(bytes).ok()?;
        let head = entry.head.get();
        let is_name = |name: &&str| check_name(name).is_ok() || *name == hidden_name(head);
        let name = str::from_utf8(name).ok().filter(is_name)?.to_owned();
        let engine = Engine::numbered(entry.engine.get(), entry.format.get())?;
        let kind = entry.kind.get();
        // Other records of 24 bytes have something else there.
        let (types, options) = rest.split_at_checked(entry.types_bytes.get().into())?;
        let is_whole = recorded_options::records(options).is_some();
        let is_known = is_whole && KeyspaceKind::numbered(kind).is_some();
        is_known.then_some(Self { name, place: TreePlace { engine, head, kind }, types, options })
    }
}

/// What could be read of a catalogue.
#[derive(Default)]
pub(super) struct SalvagedCatalogue {
    /// Expiring keyspaces.
    pub(super) expiring: Vec<String>,
    /// The recorded types of keyspaces.
    pub(super) types: BTreeMap<String, KeyspaceTypes>,
    /// The recorded options of keyspaces, unless they are lost.
    pub(super) options: BTreeMap<String, OwnOptions>,
    /// Whether there may be keyspaces with compressed values.
    pub(super) has_packed: bool,
    /// Whether there may be leaves whose tree is lost.
    pub(super) has_lost_trees: bool,
}

impl SalvagedCatalogue {
    /// Also returns name and place of every tree: those in the catalogue, and those without a name.
    /// Adds the leaves of the catalogue, and of trees that were dropped, to `leaves`.
    pub(super) fn read(
        salvage: &Salvage,
        leaves: &mut HashSet<u64>,
        findings: &mut Vec<Finding>,
    ) -> (Self, Vec<(String, TreePlace)>) {
        let heads = heads(salvage);
        let findings_before = findings.len();
        let head = head(salvage, &heads, findings);
        let (mut records, mut dropped) = (BTreeMap::new(), Vec::new());
        let mut known: HashSet<u64> = head.into_iter().collect();
        if let Some(head) = head {
            Bplus::salvage(salvage, head, leaves, &mut |found| match found {
                Salvaged::Pair((name, bytes)) => match Record::read(name, bytes) {
                    Some(record) => {
                        known.insert(record.place.head);
                        // A tree that was kept for a snapshot was dropped.
                        match is_visible(&record.name) {
                            true => drop(records.insert(record.name.clone(), record)),
                            false => dropped.push(record.place),
                        }
                    }
                    None => {
                        findings.push(Finding::new(CATALOGUE, format!("no keyspace: {name:?}")))
                    }
                },
                Salvaged::LostValue { why, .. }
                | Salvaged::LostEntry { why, .. }
                | Salvaged::LostNode { why, .. } => {
                    findings.push(Finding::new(CATALOGUE, why.to_string()));
                }
                _ => {}
            });
        }
        let has_lost_trees = findings.len() > findings_before;
        let mut catalogue = Self { has_lost_trees, ..Self::default() };
        catalogue.note_types(&records, findings);
        catalogue.note_options(salvage, &records, findings);
        for place in dropped.into_iter().filter(|place| place.engine != Engine::Lsm) {
            // Marks its leaves as used, so that they are not taken for orphans.
            Tree::salvage(salvage, place.engine, place.head, leaves, &mut |_| {});
        }
        let named = records.into_iter().map(|(name, record)| (name, record.place)).collect();
        let named = catalogue.note_halves(named, findings);
        let unnamed = heads.into_iter().filter(|(_, head)| !known.contains(head));
        let unnamed = unnamed.map(|(engine, head)| {
            (format!("{LOST_AND_FOUND}/{head:x}"), TreePlace { engine, head, kind: KIND_PLAIN })
        });
        (catalogue, named.into_iter().chain(unnamed).collect())
    }

    fn note_types(&mut self, records: &BTreeMap<String, Record<'_>>, findings: &mut Vec<Finding>) {
        for (name, record) in records.iter().filter(|(_, record)| !record.types.is_empty()) {
            match KeyspaceTypes::parse(record.types) {
                Some(types) => drop(self.types.insert(name.clone(), types)),
                None => findings.push(lost("types", name)),
            }
        }
    }

    /// Notes the options of keyspaces, and whether values may be compressed.
    fn note_options(
        &mut self,
        salvage: &Salvage,
        records: &BTreeMap<String, Record<'_>>,
        findings: &mut Vec<Finding>,
    ) {
        let head = salvage.root(STORE_ROOT);
        let head = head.and_then(|root| salvage.read(Ptr::<StoreHead>::new(root)));
        // Where the head is lost, they may be.
        self.has_packed = head.map_or(true, |head| {
            head.magic != STORE_MAGIC || head.format.get() >= STORE_FORMAT_VALUES
        });
        for (name, record) in records {
            let Ok(own) = recorded_options::parse(record.options) else {
                findings.push(lost("options", name));
                continue;
            };
            self.has_packed |= own.values.is_some();
            self.options.insert(name.clone(), own);
        }
    }

    /// Notes which keyspaces are expiring. A half whose other half is lost becomes a plain one.
    fn note_halves(
        &mut self,
        mut named: BTreeMap<String, TreePlace>,
        findings: &mut Vec<Finding>,
    ) -> BTreeMap<String, TreePlace> {
        let kinds: BTreeMap<String, u16> =
            named.iter().map(|(name, place)| (name.clone(), place.kind)).collect();
        for (name, place) in &mut named {
            let what = match place.kind {
                KIND_EXPIRING => match kinds.get(&deadlines_of(name)) {
                    None | Some(&KIND_DEADLINES) => {
                        self.expiring.push(name.clone());
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
            place.kind = KIND_PLAIN;
        }
        named
    }
}

fn lost(what: &str, name: &str) -> Finding {
    let what = format!("the {what} of keyspace {name:?} are lost; it has none now");
    Finding::new(CATALOGUE, what)
}

/// Every block that begins like the head of a tree.
fn heads(salvage: &Salvage) -> Vec<(Engine, u64)> {
    let mut heads = Vec::new();
    // The heads of all engines have the same size.
    salvage.blocks_of(Bplus::HEAD_BYTES, &mut |block| {
        let is = |engine: &Engine| Tree::open_as(salvage, *engine, block).is_ok();
        heads.extend(Engine::ALL.into_iter().find(is).map(|engine| (engine, block)));
    });
    heads
}

/// The head of the catalogue: the one that the store's head names, or else the tree whose pairs all
/// are keyspaces.
fn head(salvage: &Salvage, heads: &[(Engine, u64)], findings: &mut Vec<Finding>) -> Option<u64> {
    let head = salvage
        .root(STORE_ROOT)
        .and_then(|root| salvage.read(Ptr::<StoreHead>::new(root)).map(|head| (root, *head)));
    match head {
        Ok((_, head)) if head.magic == STORE_MAGIC => {
            let catalogue = head.catalogue.get();
            match Tree::open_as(salvage, Engine::Bplus, catalogue) {
                Ok(_) => return Some(catalogue),
                Err(error) => findings.push(Finding::of(CATALOGUE, &error)),
            }
        }
        Ok((root, _)) => {
            findings.push(Finding::new(CATALOGUE, format!("no store's head at {root:#x}")));
        }
        Err(error) => findings.push(Finding::of(CATALOGUE, &error.into())),
    }
    let bplus = heads.iter().filter(|(engine, _)| *engine == Engine::Bplus);
    bplus.map(|(_, head)| *head).find(|head| {
        are_keyspaces(|each| Bplus::salvage(salvage, *head, &mut HashSet::new(), each))
    })
}

/// Whether all pairs of a visit are keyspaces, and there is at least one.
pub(super) fn are_keyspaces(visit: impl FnOnce(&mut dyn FnMut(Salvaged<'_>))) -> bool {
    let (mut keyspaces, mut others) = (0, 0);
    visit(&mut |found| match found {
        Salvaged::Pair((name, bytes)) if Record::read(name, bytes).is_some() => keyspaces += 1,
        Salvaged::Pair(_) => others += 1,
        _ => {}
    });
    keyspaces > 0 && others == 0
}
