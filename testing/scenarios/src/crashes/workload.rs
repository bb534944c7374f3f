//! A user of a store, step by step, and what the store should hold.
//!
//! Invariant: `models` has the content after each commit, and the marks in the disk's history say of each
//! commit what the store had told about it.

use std::sync::Arc;

use adamant::{Durability, Engine, Keyspace, Result, Snapshot, Store};
use adamant_medium::storage::Directory;
use adamant_sim::{Mark, Promise, SimDirectory, SimDisk};

use crate::crashes::model::{Content, judge_of};
use crate::crashes::plan::Plan;
use crate::crashes::setup::Setup;

/// What kinds of steps a workload takes.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// What it does at random follows from that.
    pub seed: u64,
    /// Steps that it takes.
    pub steps: u64,
    /// One commit in so many writes a large value; 0: none does.
    pub large_one_in: u64,
    /// One step in so many is a sync, and one reopens the store; 0: none.
    pub upkeep_one_in: u64,
    /// The durabilities to choose from.
    pub durabilities: &'static [Durability],
    /// One step in so many is a rare one: conversions, renames, whole ranges, snapshots, merges, backups,
    /// shrinking; 0: none.
    pub rare_one_in: u64,
    /// What the store is made of.
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

/// What is done to a store at a time.
#[derive(Clone, Debug)]
pub enum Step {
    /// A commit.
    Commit(Plan, Durability),
    /// All commits become durable.
    Sync,
    /// The store is closed and opened again.
    Reopen,
    /// A snapshot is taken; the one before it, if there is one, is looked at and given back.
    Snapshot,
    /// Space is given back.
    Shrink,
    /// The tables of a keyspace of the engine lsm are merged.
    Merge(&'static str),
    /// A copy is made on another disk, and looked at.
    Backup,
}

/// A snapshot, what it should show, and handles of the keyspaces of then.
struct Kept {
    snapshot: Snapshot,
    content: Content,
    keyspaces: Vec<Keyspace>,
}

/// A store in use, and what it should hold.
pub struct Workload {
    /// Where it is.
    pub disk: SimDisk,
    /// None when closing or opening it failed.
    pub store: Option<Store>,
    /// By commit.
    pub models: Vec<Content>,
    /// Errors that the store survived.
    pub refused: u64,
    /// What it does.
    pub mix: Mix,
    pub(super) random: fastrand::Rng,
    kept: Option<Kept>,
}

impl Workload {
    /// Creates a store on an empty disk.
    ///
    /// # Errors
    /// As opening one.
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

    /// What it should hold now.
    ///
    /// # Panics
    /// Never: there is a model of the empty store.
    pub fn last(&self) -> &Content {
        self.models.last().expect("there is a model of the empty store")
    }

    /// Whether there should be a keyspace of that name.
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
    /// If the store shows something that it should not.
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
            Step::Merge(name) if !self.has(name) => Ok(()),
            Step::Merge(name) => {
                let keyspace = self.store().open_keyspace(name)?;
                if keyspace.engine() == Engine::Lsm { keyspace.compact() } else { Ok(()) }
            }
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

    /// Gives the store up as it is, as a process does that ends.
    pub(super) fn close_at_once(&mut self) {
        self.kept = None;
        self.store = None;
    }

    /// One commit. After an error it is undone, or the store is poisoned.
    ///
    /// # Errors
    /// Those of the calls.
    ///
    /// # Panics
    /// If the store shows something else then.
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
        drop(judge_of(self.mix.setup, &disk, &self.models, Promise::exactly(commit)));
        Ok(())
    }
}
