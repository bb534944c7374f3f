//! Workloads: a user of a store, step by step, and the expected content.
//!
//! Invariant: `models` has the content after each commit, and the marks in the disk's history
//! record what the store has promised of each commit.

use std::sync::Arc;

use adamant::{Durability, Keyspace, Result, Snapshot, Store};
use adamant_medium::storage::Directory;
use adamant_sim::{Mark, Promise, SimDirectory, SimDisk};

use crate::crashes::model::{Content, verify_of};
use crate::crashes::plan::Plan;
use crate::crashes::setup::Setup;

/// The mix of a workload's steps.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of steps.
    pub steps: u64,
    /// One commit in so many writes a large value; 0: none does.
    pub large_one_in: u64,
    /// One step in so many is a sync, and one reopens the store; 0: none.
    pub upkeep_one_in: u64,
    /// The durabilities to choose from.
    pub durabilities: &'static [Durability],
    /// One step in so many is a rare one: conversions, renames, whole ranges, snapshots, merges,
    /// backups, shrinking; 0: none.
    pub rare_one_in: u64,
    /// The setup of the store.
    pub setup: Setup,
}

impl Default for Mix {
    /// A few commits.
    fn default() -> Self {
        let durabilities = &[Durability::Sync, Durability::Buffered, Durability::Deferred];
        let setup = Setup::default();
        Self {
            seed: 0,
            steps: 0,
            large_one_in: 0,
            upkeep_one_in: 0,
            durabilities,
            rare_one_in: 0,
            setup,
        }
    }
}

/// A step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A commit.
    Commit(Plan, Durability),
    /// Makes all commits durable.
    Sync,
    /// Closes the store and opens it again.
    Reopen,
    /// Takes a snapshot; verifies and drops the previous one, if there is one.
    Snapshot,
    /// Shrinks the store.
    Shrink,
    /// Compacts a keyspace.
    Compact(&'static str),
    /// Makes a backup on another disk, and verifies it.
    Backup,
}

/// A snapshot, its expected content, and handles of the keyspaces at its time.
struct Kept {
    snapshot: Snapshot,
    content: Content,
    keyspaces: Vec<Keyspace>,
}

/// A store in use, and its expected content.
pub struct Workload {
    /// Its disk.
    pub disk: SimDisk,
    /// `None` when closing or opening it failed.
    pub store: Option<Store>,
    /// By commit.
    pub models: Vec<Content>,
    /// Number of errors that the store survived.
    pub refused: u64,
    /// The mix of steps.
    pub mix: Mix,
    pub(super) random: fastrand::Rng,
    kept: Option<Kept>,
}

impl Workload {
    /// Creates a store on an empty disk.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn create(disk: &SimDisk, mix: Mix) -> Result<Workload> {
        let store = mix.setup.open(disk)?;
        Ok(Workload {
            disk: disk.clone(),
            store: Some(store),
            models: vec![Content::default()],
            refused: 0,
            mix,
            random: fastrand::Rng::with_seed(mix.seed),
            kept: None,
        })
    }

    /// The store.
    ///
    /// # Panics
    /// If it is closed.
    pub fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    /// The expected content now.
    ///
    /// # Panics
    /// Never: there is a model of the empty store.
    pub fn last(&self) -> &Content {
        self.models.last().expect("there is a model of the empty store")
    }

    /// Whether a keyspace with that name should exist.
    pub fn has(&self, name: &str) -> bool {
        self.last().keyspaces.contains_key(name)
    }

    fn put_durable(&self) {
        Mark::Durable.put(&self.disk, self.models.len() as u64 - 1);
    }

    /// Takes a step.
    ///
    /// # Errors
    /// Those of the calls.
    ///
    /// # Panics
    /// If the store shows unexpected content.
    pub fn take(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Commit(plan, durability) => self.commit(plan, *durability),
            Step::Sync => {
                self.store().sync()?;
                self.put_durable();
                Ok(())
            }
            Step::Reopen => self.reopen(),
            Step::Snapshot => self.take_snapshot(),
            Step::Shrink => self.store().shrink().map(drop),
            Step::Compact(name) if !self.has(name) => Ok(()),
            Step::Compact(name) => self.store().open_keyspace(name)?.compact(),
            Step::Backup => self.back_up(),
        }
    }

    /// Closes the store and opens it again.
    ///
    /// # Errors
    /// Those of the calls; then the store is closed.
    ///
    /// # Panics
    /// If it is not open.
    pub fn reopen(&mut self) -> Result<()> {
        self.close()?;
        self.store = Some(self.mix.setup.open(&self.disk)?);
        Ok(())
    }

    /// Closes the store.
    ///
    /// # Errors
    /// Those of the call; then it is closed, too.
    ///
    /// # Panics
    /// If it is not open.
    pub fn close(&mut self) -> Result<()> {
        self.kept = None;
        self.store.take().expect("the store is open").close()?;
        self.put_durable();
        Ok(())
    }

    /// Drops the store as it is, as a process that ends does.
    pub(super) fn close_at_once(&mut self) {
        self.kept = None;
        self.store = None;
    }

    /// Makes one commit. After an error it is undone, or the store is poisoned.
    ///
    /// # Errors
    /// Those of the calls.
    ///
    /// # Panics
    /// If the store then shows unexpected content.
    pub fn commit(&mut self, plan: &Plan, durability: Durability) -> Result<()> {
        let commit = self.models.len() as u64;
        let model = plan.applied(self.last());
        Mark::Begun.put(&self.disk, commit);
        let done = plan.run(self.store(), self.last(), durability);
        let durability = plan.fixed_durability().unwrap_or(durability);
        match (&done, durability) {
            (Ok(()), Durability::Sync) => Mark::Durable.put(&self.disk, commit),
            (Ok(()), Durability::Buffered) => Mark::Buffered.put(&self.disk, commit),
            (Ok(()), Durability::Deferred) => {}
            (Err(error), _) if error.is_poisoned() && Content::of(self.store()) == model => {}
            (Err(_), _) => {
                self.refused += 1;
                self.last().verify(self.store());
                return done;
            }
        }
        self.models.push(model);
        done
    }

    fn take_snapshot(&mut self) -> Result<()> {
        let kept = Kept {
            snapshot: self.store().snapshot()?,
            content: self.last().clone(),
            keyspaces: self
                .last()
                .keyspaces
                .keys()
                .map(|name| self.store().open_keyspace(name))
                .collect::<Result<_>>()?,
        };
        let Some(Kept { snapshot, content, keyspaces }) = self.kept.replace(kept) else {
            return Ok(());
        };
        for (keyspace, (name, map)) in keyspaces.iter().zip(&content.keyspaces) {
            let mut expected = map.iter();
            for found in snapshot.iter(keyspace) {
                let (key, value) = found?;
                let is_same = expected.next() == Some((&key[..].into(), &value[..].into()));
                assert!(is_same, "the snapshot of {name:?} has something else at {key:?}");
            }
            assert!(expected.next().is_none(), "the snapshot of {name:?} ends too soon");
        }
        Ok(())
    }

    fn back_up(&mut self) -> Result<()> {
        let disk = SimDisk::new(self.mix.seed).without_history();
        let root: Arc<dyn Directory> = Arc::new(SimDirectory::root(&disk));
        self.store().backup_into(&root)?;
        let commit = self.models.len() as u64 - 1;
        drop(verify_of(self.mix.setup, &disk, &self.models, Promise::exactly(commit)));
        Ok(())
    }
}
