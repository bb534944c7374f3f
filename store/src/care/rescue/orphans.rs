//! Rescue of orphaned leaves: those that no tree refers to any more.
//!
//! Purpose: assigns them to the keyspaces that lost such keys.
//! Invariants: a leaf of unknown owner goes to a keyspace of its own. An existing pair stays.
//! Thread safety: one thread.

use std::collections::{BTreeMap, HashMap};

use adamant_slice::Slice;
use adamant_trees::{Bplus, Salvaged};

use super::Rescue;
use super::catalogue::{LOST_AND_FOUND, are_keyspaces};
use super::deadlines::{are_halves, keyspace_in};
use super::report::KeyspaceRepair;
use super::values::shown;
use super::writer::Writer;
use crate::common::catalogue::codec_of;
use crate::engine::tree::Engine;
use crate::engine::value_codec::Found;
use crate::error::Result;
use crate::kind::entries_of;
use crate::layout::KIND_PLAIN;

impl Rescue<'_> {
    /// Saves the orphaned leaves: into the keyspace that lost such keys, if there is only one.
    pub(super) fn orphans(&mut self, keyspaces: &mut Vec<KeyspaceRepair>) -> Result<()> {
        if self.lost.is_empty() && !self.catalogue.has_lost_trees {
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
            self.adopt(owner, &leaves, keyspaces)?;
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
        if self.catalogue.expiring.is_empty() {
            return Ok(orphans);
        }
        let mut leaves = Vec::new();
        for (owner, leaf) in orphans {
            let mut pairs: Vec<(Slice, Slice)> = Vec::new();
            let name = owner.map(|owner| &*keyspaces[owner].name);
            let own = name.and_then(|name| self.catalogue.options.get(name));
            let codec = own.map(|own| codec_of(self.salvage, "", own)).transpose()?.flatten();
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
            let is_guess = self.catalogue.expiring.iter().any(|name| name == ending);
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

    fn adopt(
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
                true => shown(self.catalogue.has_packed, visit),
                false => self.stored_in(&report.name, &mut writer, visit)?,
            };
            let saved = Bplus::salvage_orphan(self.salvage, *leaf, &mut |found| writer.take(found));
            if let Err(error) = saved {
                writer.note(error.to_string());
            }
        }
        report.adopt(writer.finish()?);
        if is_fresh {
            keyspaces.push(fresh);
        }
        Ok(())
    }
}
