//! Inspection of a whole store: figures, and a check of everything in it.
//!
//! Purpose: an operator's tools; nothing here changes an entry. A check of a store that is open for
//! writing makes a checkpoint first.
//! Thread safety: each part is read under the shared lock and may be a commit older than the next.
//! A tree is read in one part unless a writer waits; a writer waits for some 2,000 entries.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use adamant_heap::Salvage;
use adamant_heap::access::Read;
use adamant_heap::durability::Durability;
use adamant_lsm::{LsmCheck, LsmChecking};
use adamant_trees::{Checking, Report};

use crate::common::catalogue::{Catalogue, has_other_objects, is_visible, kind_of};
use crate::common::catalogue_entry::CatalogueEntry;
use crate::common::shared::Shared;
use crate::common::versions::SnapshotStats;
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::map::Map;
use crate::engine::tree::{Engine, Tree};
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::Snapshot;
use crate::kind::{KeyspaceKind, deadlines_of, entries_of};
use crate::layout::STORE_ROOT;
use crate::metrics::CommitStats;
use crate::types::KeyspaceTypes;
use crate::value_compression::ValueCompression;

/// The place of findings in the list of keyspaces.
pub(crate) const CATALOGUE: &str = "the catalogue";

/// A keyspace in [`Store::keyspaces`](crate::Store::keyspaces).
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// store.keyspace("towns")?.put("Bern", "134,000")?;
/// let all = store.keyspaces()?;
/// assert_eq!((all[0].name.as_str(), all[0].entries), ("towns", 1));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceInfo {
    /// The name.
    pub name: String,
    /// The engine.
    pub engine: Engine,
    /// The kind of its entries.
    pub kind: KeyspaceKind,
    /// The recorded types of its keys and values, if any:
    /// [`Keyspace::typed`](crate::Keyspace::typed).
    pub types: Option<KeyspaceTypes>,
    /// The number of entries; for the engine `lsm` an estimate, since versions that are not merged
    /// yet count one by one.
    pub entries: u64,
    /// How a tree compresses its values; `None`: not at all. Of the engine `lsm` see
    /// [`LsmKeyspace::options`](crate::LsmKeyspace::options).
    pub values: Option<ValueCompression>,
    /// Bytes of the dictionary of that compression; 0 if it has none.
    pub dictionary_bytes: u32,
    /// The recorded durability of commits that do not set their own; `None`: that of the store.
    pub durability: Option<Durability>,
    /// The name of its merge operator, registered or not; `None`: it has none.
    pub merge_operator: Option<String>,
}

/// Figures of a store at one moment.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// store.keyspace("towns")?.put("Bern", "134,000")?;
/// let stats = store.stats()?;
/// assert_eq!((stats.keyspaces, stats.entries), (1, 1));
/// assert!(stats.heap.pool_bytes > 0 && stats.commits.commits >= 1);
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The number of keyspaces.
    pub keyspaces: u64,
    /// The number of entries in all keyspaces.
    pub entries: u64,
    /// Open snapshots, and what is kept for them.
    pub snapshots: SnapshotStats,
    /// Commits: their number and latencies.
    pub commits: CommitStats,
    /// Figures of the heap: bytes of the pool, of the log, sequence numbers and so on.
    pub heap: adamant_heap::Stats,
}

/// The result of a check.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// store.keyspace("towns")?.put("Bern", "134,000")?;
/// let report = store.check()?;
/// for finding in &report.findings {
///     eprintln!("{finding}");
/// }
/// assert!(report.is_clean());
/// assert_eq!(report.keyspaces[0].entries, 1);
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// All that is wrong; empty if the store is intact.
    pub findings: Vec<Finding>,
    /// Each keyspace that could be walked to its end.
    pub keyspaces: Vec<KeyspaceCheck>,
    /// The counts of the heap's check.
    pub heap: adamant_heap::CheckReport,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether the only findings are failed reads: nothing need be wrong with the store. See the
    /// system's log for the device, and check again.
    pub fn is_unread(&self) -> bool {
        !self.is_clean() && self.findings.iter().all(|finding| finding.is_unread)
    }

    /// Takes the findings of the check of an LSM tree and its files.
    ///
    /// # Errors
    /// A file is compressed by what this build is without: that is no finding, and whether there is
    /// one is unknown.
    fn take_all(&mut self, name: &str, check: LsmCheck) -> Result<()> {
        let place = format!("keyspace {name:?}");
        for error in check.finish().findings {
            // In the tree's own words: the place names the keyspace already.
            let (what, error) = (error.to_string(), Error::of_lsm(name)(error));
            if error.is_not_built() {
                return Err(error);
            }
            self.findings.push(Finding { what, ..Finding::of(&place, &error) });
        }
        Ok(())
    }

    /// As [`CheckReport::take`], but what this build is without is no finding.
    fn take_or_fail<T>(&mut self, place: &str, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Err(error) if error.is_not_built() => Err(error),
            outcome => Ok(self.take(place, outcome)),
        }
    }

    /// The value of a step; an error becomes a finding.
    fn take<T>(&mut self, place: &str, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.findings.push(Finding::of(place, &error));
                None
            }
        }
    }
}

/// A keyspace that was walked to its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyspaceCheck {
    /// The name.
    pub name: String,
    /// The number of entries.
    pub entries: u64,
    /// The structure of its tree.
    pub tree: Report,
}

/// Something that is wrong in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Where: the heap, the catalogue, or a keyspace.
    pub place: String,
    /// The damage there.
    pub what: String,
    /// Whether the system failed to read it: nothing need be wrong with the data.
    pub is_unread: bool,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), is_unread: false }
    }

    pub(crate) fn of(place: &str, error: &Error) -> Self {
        let is_unread = matches!(error, Error::Medium(error) if error.is_refusal());
        Self { is_unread, ..Self::new(place, error.to_string()) }
    }

    pub(crate) fn of_heap(finding: &adamant_heap::Finding) -> Self {
        let place = format!("{} at byte {}", finding.file.display(), finding.offset);
        Self { is_unread: finding.is_unread, ..Self::new(place, &finding.what) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// All keyspaces, by name.
pub(crate) fn keyspaces(shared: &Shared) -> Result<Vec<KeyspaceInfo>> {
    let view = shared.long_view()?;
    let mut found = Vec::new();
    let list = shared.catalogue().list(&view)?.into_iter();
    for (name, entry) in list.filter(|(name, _)| is_visible(name)) {
        let map = shared.catalogue().map(&view, &name, &entry)?;
        let entries = match map.len(&view)? {
            Some(entries) => entries,
            None => map.lsm().map_or(0, |tree| tree.entries_about()),
        };
        let (kind, types) = (kind_of(&name, &entry)?, entry.types(&name)?);
        let own = entry.options(&name)?;
        let (engine, values) = (map.engine(), own.values);
        let dictionary_bytes = own.dictionary.map_or(0, |place| place.bytes);
        let durability = own.durability.flatten();
        let merge_operator = own.merge.map(|name| name.as_str().to_owned());
        found.push(KeyspaceInfo {
            name,
            engine,
            kind,
            types,
            entries,
            values,
            dictionary_bytes,
            durability,
            merge_operator,
        });
    }
    Ok(found)
}

/// The figures.
pub(crate) fn stats(shared: &Shared) -> Result<Stats> {
    let keyspaces = keyspaces(shared)?;
    Ok(Stats {
        keyspaces: keyspaces.len() as u64,
        entries: keyspaces.iter().map(|keyspace| keyspace.entries).sum(),
        snapshots: shared.versions().stats(),
        commits: shared.metrics().stats((shared.versions().opened(), shared.versions().walked())),
        heap: shared.heap()?.stats(),
    })
}

/// Checks the heap, the catalogue and every keyspace. Goes on after a finding, so that the report
/// names all of them and not only the first.
pub(crate) fn check(shared: &Arc<Shared>) -> Result<CheckReport> {
    let sequence = shared.heap()?.stats().journal.last_sequence;
    let heap = shared.heap()?.check()?;
    let mut report = CheckReport {
        findings: heap.findings.iter().map(Finding::of_heap).collect(),
        keyspaces: Vec::new(),
        heap,
    };
    // The store's head is a block too.
    let (mut blocks, mut is_whole) = (1, true);
    let mut entries = Vec::new();
    {
        let view = shared.long_view()?;
        let catalogue = shared.catalogue();
        let walked = catalogue.tree().check(&view).and_then(|tree| {
            blocks += catalogue.tree().blocks(&tree);
            catalogue.list(&view)
        });
        if let Some(list) = report.take(CATALOGUE, walked) {
            report.findings.extend(wrong_entries(&list));
            entries = list;
        }
    }
    for (name, entry) in entries {
        let walked = check_keyspace(shared, &name, entry.id.get(), &mut report);
        let walked = report.take_or_fail(&format!("keyspace {name:?}"), walked)?;
        let Some((of_keyspace, check)) = walked.flatten() else { continue };
        match of_keyspace {
            Some(of_keyspace) => blocks += of_keyspace + dictionary_blocks(&name, &entry)?,
            None => is_whole = false,
        }
        if is_visible(&name) {
            report.keyspaces.push(check);
        }
    }
    // Totals can be compared only if no commit came between the parts; and damage has been reported
    // already.
    let is_still = shared.heap()?.stats().journal.last_sequence == sequence;
    if is_still && is_whole && report.is_clean() {
        let view = shared.view()?;
        let others = has_other_objects(|index| view.root(index));
        report.findings.extend(wrong_blocks(blocks, report.heap.blocks, others));
    }
    Ok(report)
}

/// Checks a keyspace: its entries, and how many blocks it takes if one hold of the lock covered all
/// of it; `None` if it was dropped meanwhile.
fn check_keyspace(
    shared: &Arc<Shared>,
    name: &str,
    id: u64,
    report: &mut CheckReport,
) -> Result<Option<(Option<u64>, KeyspaceCheck)>> {
    let (mut checking, mut begun) = (Checking::default(), None);
    let mut of_memtables = LsmChecking::default();
    loop {
        let view = shared.long_view()?;
        let now = match shared.catalogue().find(&view, name) {
            Ok(Some(now)) if now.id.get() == id => now,
            _ => return Ok(None),
        };
        // It may have been converted to another tree meanwhile.
        let (blocks, entries, tree) = match shared.catalogue().map(&view, name, &now)? {
            Map::Lsm(lsm) => {
                let Some(check) = lsm.check_part(&view, &mut of_memtables)? else { continue };
                let count = lsm.tree.count();
                drop(view);
                let blocks = check.blocks();
                report.take_all(name, check)?;
                let mut tree = Report::default();
                tree.pairs = count.finish().map_err(Error::of_lsm(name))?;
                (Some(blocks), tree.pairs, tree)
            }
            Map::Tree(tree) => {
                let tree = tree.tree();
                if begun.replace(tree.engine()) != Some(tree.engine()) {
                    // The rest of a check belongs to one kind of tree: begin again.
                    checking = Checking::default();
                }
                if !tree.check_part(&view, &mut checking)? {
                    continue;
                }
                let mut found = checking.report();
                if checking.is_whole() {
                    (Some(tree.blocks(&found)), tree.len(&view)?, found)
                } else {
                    drop(view);
                    let Some(entries) = count_beside_writers(shared, name)? else {
                        return Ok(None);
                    };
                    found.pairs = entries;
                    (None, entries, found)
                }
            }
        };
        return Ok(Some((blocks, KeyspaceCheck { name: name.into(), entries, tree })));
    }
}

/// The number of entries of a keyspace in a snapshot, by which its tree's count is verified; `None`
/// if it was dropped. For checks with commits between their parts, whose counts cannot be added up.
fn count_beside_writers(shared: &Arc<Shared>, name: &str) -> Result<Option<u64>> {
    let snapshot = Snapshot::open(shared)?;
    let Some(state) = shared.open_keyspace(name)? else { return Ok(None) };
    let keyspace = Keyspace::new(shared, state);
    let entries = match snapshot.len(&keyspace) {
        Ok(entries) => entries,
        Err(Error::KeyspaceDropped { .. }) => return Ok(None),
        Err(Error::SnapshotExpired { .. }) => return keyspace.len().map(Some),
        Err(error) => return Err(error),
    };
    match snapshot.iter(&keyspace).keys().count_all() {
        Ok(found) if found != entries => {
            let what = format!("expected {entries} entries, as the tree counts, found {found}");
            Err(Error::Damaged { what })
        }
        // Too much is written to verify it.
        Ok(_) | Err(Error::SnapshotExpired { .. }) => Ok(Some(entries)),
        Err(error) => Err(error),
    }
}

/// Blocks that are leaked or missing; with application objects in the heap, only missing ones.
fn wrong_blocks(expected: u64, found: u64, others: bool) -> Option<Finding> {
    let is_right = if others { found >= expected } else { found == expected };
    let what = format!(
        "expected {expected} allocated blocks, those that keyspaces refer to, found {found}"
    );
    (!is_right).then(|| Finding::new("the heap", what))
}

/// Findings in the catalogue and the keyspaces of a heap that is only read, beside those of the
/// heap.
///
/// # Errors
/// Those of what this build is without: it cannot say whether there are findings.
pub(crate) fn check_salvage(salvage: &Salvage, lsm_trees: &Arc<LsmTrees>) -> Result<Vec<Finding>> {
    let heap = adamant_heap::CheckReport::default();
    let mut report = CheckReport { findings: Vec::new(), keyspaces: Vec::new(), heap };
    let opened = match salvage.root(STORE_ROOT) {
        // The first process to open it crashed before it wrote anything.
        Ok(0) => return Ok(Vec::new()),
        Ok(root) => Catalogue::open(salvage, root, Arc::clone(lsm_trees)),
        Err(error) => Err(error.into()),
    };
    let Some(catalogue) = report.take(CATALOGUE, opened) else { return Ok(report.findings) };
    let mut blocks = 1;
    let walked = catalogue.tree().check(salvage).and_then(|tree| {
        blocks += catalogue.tree().blocks(&tree);
        catalogue.list(salvage)
    });
    let list = report.take(CATALOGUE, walked).unwrap_or_default();
    report.findings.extend(wrong_entries(&list));
    for (name, entry) in list {
        let walked = match catalogue.map(salvage, &name, &entry) {
            Ok(Map::Lsm(lsm)) => lsm.check(salvage).and_then(|check| {
                let blocks = check.blocks();
                report.take_all(&name, check)?;
                Ok(blocks)
            }),
            Ok(Map::Tree(tree)) => walk(salvage, &name, tree.tree()).map(|(blocks, _)| blocks),
            Err(error) => Err(error),
        };
        let walked = walked.and_then(|walked| Ok(walked + dictionary_blocks(&name, &entry)?));
        blocks += report.take_or_fail(&format!("keyspace {name:?}"), walked)?.unwrap_or(0);
    }
    if let (true, Some(found)) = (report.is_clean(), salvage.allocated_blocks()) {
        let others = has_other_objects(|index| salvage.root(index).unwrap_or(0));
        report.findings.extend(wrong_blocks(blocks, found, others));
    }
    Ok(report.findings)
}

/// Expiring keyspaces without deadlines and deadlines without entries, unknown kinds, and invalid
/// types and options.
fn wrong_entries(list: &[(String, CatalogueEntry)]) -> Vec<Finding> {
    let visible = || list.iter().filter(|(name, _)| is_visible(name));
    let kinds: HashMap<&str, u16> =
        visible().map(|(name, entry)| (&**name, entry.kind.get())).collect();
    let mut findings = Vec::new();
    for (name, entry) in visible() {
        if let Err(error) = entry.types(name) {
            findings.push(Finding::of(CATALOGUE, &error));
        }
        if let Err(error) = entry.options(name) {
            findings.push(Finding::of(CATALOGUE, &error));
        }
        let (half, kind) = match kind_of(name, entry) {
            Ok(KeyspaceKind::Plain | KeyspaceKind::Changes | KeyspaceKind::Multimap) => continue,
            Ok(KeyspaceKind::Expiring) => (deadlines_of(name), KeyspaceKind::Deadlines),
            Ok(KeyspaceKind::Deadlines) => (entries_of(name).to_owned(), KeyspaceKind::Expiring),
            Err(error) => {
                findings.push(Finding::of(CATALOGUE, &error));
                continue;
            }
        };
        if kinds.get(&*half) != Some(&kind.number()) {
            let what = format!("expected the keyspace {half:?} of kind {kind} beside {name:?}");
            findings.push(Finding::new(CATALOGUE, what));
        }
    }
    findings
}

/// The blocks of the dictionary of a keyspace: one or none.
fn dictionary_blocks(name: &str, entry: &CatalogueEntry) -> Result<u64> {
    Ok(u64::from(entry.options(name)?.dictionary.is_some()))
}

/// Walks a tree to its end: the heap blocks that it takes, and its report.
fn walk<R: Read>(heap: &R, name: &str, tree: &Tree) -> Result<(u64, KeyspaceCheck)> {
    let check =
        KeyspaceCheck { name: name.into(), entries: tree.len(heap)?, tree: tree.check(heap)? };
    Ok((tree.blocks(&check.tree), check))
}
