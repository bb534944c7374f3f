//! Rescue of LSM trees: their memtables, tables and blob files.
//!
//! Invariants: what lies between two unreadable parts of a tree is lost; everything before the
//! first and behind the last of them is saved.
//! Thread safety: one thread.

use std::ops::{Bound, ControlFlow};

use adamant_lsm::{CopyLimits, Error as LsmError, LostRecords, Lsm, NEWEST};
use adamant_slice::Slice;

use super::Rescue;
use super::report::KeyspaceRepair;
use super::writer::{BATCH_BYTES, BATCH_PAIRS, Between, Writer};
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::layout::STORE_ROOT;
use crate::own_options::OwnOptions;

impl Rescue<'_> {
    /// Saves an LSM tree: from the low end to the first unreadable part, and from the high end down
    /// to it.
    pub(super) fn lsm_tree(&self, name: &str, head: u64, kind: u16) -> Result<KeyspaceRepair> {
        let mut writer = Writer::new(self.keyspace_of(name, Engine::Lsm, kind)?, None);
        let store = self.salvage.root(STORE_ROOT).unwrap_or(0);
        let merge = self.catalogue.options.get(name).and_then(|own| own.merge);
        let own = OwnOptions { merge, ..OwnOptions::default() };
        let tree = self.lsm_trees.tree(self.salvage, store, (name, head), &own).or_else(|_| {
            let mut lost = |records| writer.note(lost_records(&records));
            self.lsm_trees.salvage(self.salvage, store, (name, head, &own), &mut lost)
        });
        match tree {
            Err(error) => writer.note(format!("all pairs: {error}")),
            Ok(tree) => self.entries_of(&tree, &mut writer).map_err(Error::of_lsm(name))?,
        }
        writer.finish()
    }

    fn entries_of(&self, tree: &Lsm, writer: &mut Writer) -> adamant_lsm::Result<()> {
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
            writer.note(format!("the pair {}: {failed}", key.escape_ascii()));
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
            writer.note(format!("the pairs {between}: {error}"));
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
