//! Repair of a damaged store.
//!
//! Purpose: makes a new store with every pair that can still be read and verified, and reports what
//! is lost. The damaged store is only read, and kept beside the new one.
//! Invariants: nothing is taken from a page that is known to be damaged. The new store takes the
//! place of the old one (`store/replacement.rs`) after everything in it is durable.
//! Thread safety: holds the lock of the damaged store throughout.

use std::path::Path;
use std::sync::Arc;

use adamant_heap::Salvage;
use adamant_medium::names::name_of;
use adamant_medium::storage::Directory;

use crate::care::rescue::{RepairReport, rescue};
use crate::care::unfinished::{Unfinished, parent_of};
use crate::engine::lsm_trees::LsmTrees;
use crate::error::{Error, Result};
use crate::increment::is_increment;
use crate::options::Options;
use crate::store::handle::Store;
use crate::store::inspect::{Finding, check_salvage};
use crate::store::open::{directory_at, lsm_trees_in, plain_of, resolved};
use crate::store::replacement::{DAMAGED_SUFFIX, LOCK_NAME, Replacement};

/// The suffix of the new store's name while it is written.
const UNFINISHED_SUFFIX: &str = ".repairing";

/// Saves what can be read of a damaged store into a new one, which replaces it; the damaged one is
/// kept as `NAME.damaged`. An intact store is left alone.
///
/// Takes as much space as the store's contents. O(n).
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.adamant");
///
/// adamant::Store::open(&path)?.close()?;
/// let report = adamant::repair(&path)?;
/// assert!(report.findings.is_empty(), "it is whole, and was left alone");
/// assert_eq!(report.damaged_path, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Missing`] or [`Error::NotAStore`] if there is no store, [`Error::Locked`] if it is
/// open, [`Error::Damaged`] if not even the pool's identity is known; [`Error::TargetExists`] as
/// [`compact`](crate::compact); a keyspace that this build cannot read, for it is without a
/// feature; no space, and the like: the damaged store is then unchanged.
pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
    repair_with(path, Options::new())
}

/// As [`repair`], for a store that is opened with these options, such as an encrypted one: the new
/// store is encrypted by the same key.
///
/// # Errors
/// As [`repair`].
pub fn repair_with(path: impl AsRef<Path>, options: Options) -> Result<RepairReport> {
    let path = resolved(path.as_ref())?;
    let options = options.create(false);
    let source = plain_of(directory_at(&path, &options)?, &options)?.0;
    if is_increment(&source.list()?) {
        return Err(Error::Increment { path });
    }
    let salvage = Salvage::open(&source)?;
    let is_readable = salvage.findings().is_empty()
        && check_salvage(&salvage, &lsm_trees_at(&source, &options))?.is_empty();
    drop(salvage);
    // Only intact files are opened as a store, which recovers: damaged ones are kept as they are.
    let findings = if is_readable { findings_of(&path, options.clone())? } else { Vec::new() };
    if is_readable && findings.is_empty() {
        return Ok(RepairReport::default());
    }
    let (parent, name) = parent_of(&path)?;
    let mut report = save(&source, &parent, &name, options.create(true))?;
    report.findings.extend(findings);
    Ok(report)
}

/// Saves what can be read of a store into an empty directory, both of any storage backend, whether
/// the store is damaged or not. The simulator of `testing/sim` uses this in place of a file system;
/// programs use [`repair`].
///
/// # Errors
/// As [`repair`].
pub fn repair_into(
    source: &Arc<dyn Directory>,
    target: Arc<dyn Directory>,
    options: Options,
) -> Result<RepairReport> {
    let source = plain_of(Arc::clone(source), &options.clone().create(false))?.0;
    let salvage = Salvage::open(&source)?;
    let lsm_trees = lsm_trees_at(&source, &options);
    let target = Store::open_directory(target, behind(&salvage, options))?;
    let report = rescue(&salvage, &lsm_trees, &target)?;
    target.close()?;
    Ok(report)
}

/// Saves what can be read of the damaged store with this name into a new one, opened with
/// `options`, which replaces it.
pub(crate) fn save(
    source: &Arc<dyn Directory>,
    parent: &Arc<dyn Directory>,
    name: &str,
    options: Options,
) -> Result<RepairReport> {
    let damaged = free_name(&parent.list()?, &format!("{name}{DAMAGED_SUFFIX}"));
    let salvage = Salvage::open(source)?;
    // An existing directory with that name is never the damaged store: names change so that only a
    // successor has it.
    let unfinished = Unfinished::beside(Arc::clone(parent), name, UNFINISHED_SUFFIX)?;
    let directory = unfinished.directory()?;
    let lsm_trees = lsm_trees_at(source, &options);
    let target = Store::open_directory(Arc::clone(&directory), behind(&salvage, options))?;
    let mut report = rescue(&salvage, &lsm_trees, &target)?;
    target.close()?;
    // Locked, so that no process commits to it before its name is durable: else the renaming could
    // not be undone. Where it cannot be locked meanwhile, a store that is open is not renamed, so
    // it stays, and the damaged one must not be open here either.
    let _locks = match parent.renames_open() {
        true => Some((salvage, directory.lock(LOCK_NAME)?)),
        false => {
            drop((salvage, directory));
            source.close();
            None
        }
    };
    let new = unfinished.keep();
    let (new, aside) = (&*new, &*damaged);
    let mut replacement = Replacement { parent: &**parent, name, new, aside, is_begun: false };
    let damaged = replacement.take_place(&|_| Ok(()))?;
    report.damaged_path = Some(parent.path().join(name_of(&damaged)));
    Ok(report)
}

/// The options of a new store whose commits have numbers above those of what is saved: its history
/// of changes goes on.
fn behind(salvage: &Salvage, options: Options) -> Options {
    Options { commits_before: salvage.last_sequence(), ..options }
}

/// The LSM trees of the damaged store.
fn lsm_trees_at(source: &Arc<dyn Directory>, options: &Options) -> Arc<LsmTrees> {
    let merge_operators = options.merge_operators.clone();
    let options = Options { merge_operators, ..Options::default() };
    Arc::new(lsm_trees_in(Arc::clone(source), &options))
}

/// The findings of opening and checking a store whose pages are intact; none if it is intact.
fn findings_of(path: &Path, options: Options) -> Result<Vec<Finding>> {
    let outcome = Store::open_with(path, options).and_then(|store| {
        let report = store.check()?;
        store.close()?;
        Ok(report.findings)
    });
    match outcome {
        Err(error) if error.is_damaged() || error.is_poisoned() => {
            Ok(vec![Finding::of("the store", &error)])
        }
        outcome => outcome,
    }
}

/// The name, or the name with the first number that makes it free.
fn free_name(names: &[String], name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut free = std::iter::once(name.to_owned()).chain(numbered);
    free.find(|name| !names.contains(name)).unwrap_or_default()
}
