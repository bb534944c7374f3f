//! What the report says about an engine, beside its figures.
//!
//! Purpose: that durability is compared like with like: each mode says what it survives, by the
//! engine's own documentation.

use adamant_bench::engines::adamant::AdamantEngine;
use adamant_bench::engines::btree_map::BTreeMapEngine;
use adamant_bench::harness::engine::{Durability, Engine};

/// How an engine keeps its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tree that is changed where it is, or copied on write.
    Tree,
    /// A log-structured merge tree: gets of missing keys end at a filter.
    Lsm,
    /// Nothing that is compared with: a map in memory, or no store.
    Reference,
}

impl Kind {
    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Lsm => "LSM",
            Self::Reference => "reference",
        }
    }
}

/// What a write survives once it has returned, and how that is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Survives {
    /// Loss of power.
    PowerLoss(&'static str),
    /// The death of the process.
    Kill(&'static str),
    /// Neither.
    Nothing(&'static str),
}

impl Survives {
    /// What it survives, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::PowerLoss(_) => "power loss",
            Self::Kill(_) => "process kill",
            Self::Nothing(_) => "nothing",
        }
    }

    /// How the mode is asked for.
    pub fn how(self) -> &'static str {
        match self {
            Self::PowerLoss(how) | Self::Kill(how) | Self::Nothing(how) => how,
        }
    }
}

/// What there is to know of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its package in the lock file, and how the version starts.
    pub version_of: (&'static str, &'static str),
    /// How it keeps its entries.
    pub kind: Kind,
    /// Opened for writes that survive power loss; `None` where it has no such mode.
    pub sync: Option<Survives>,
    /// Opened for writes that survive the death of the process.
    pub buffered: Option<Survives>,
    /// Opened for writes that may be lost with the process.
    pub deferred: Option<Survives>,
    /// Options that are not its defaults.
    pub settings: &'static str,
}

impl Facts {
    /// What an engine survives that was opened for `durability`.
    pub fn survives(&self, durability: Durability) -> Option<Survives> {
        match durability {
            Durability::Sync => self.sync,
            Durability::Buffered => self.buffered,
            Durability::Deferred => self.deferred,
        }
    }

    /// The version that was built.
    pub fn version(&self) -> String {
        let (package, start) = self.version_of;
        version_in(include_str!("../Cargo.lock"), package, start)
    }
}

/// Version of `package` in a lock file, of those that begin with `start`.
fn version_in(lock: &str, package: &str, start: &str) -> String {
    let name_line = format!("name = \"{package}\"");
    let mut lines = lock.lines();
    while let Some(line) = lines.next() {
        if line != name_line {
            continue;
        }
        let version = lines.next().and_then(|line| line.strip_prefix("version = \""));
        if let Some(version) = version.and_then(|rest| rest.strip_suffix('"'))
            && version.starts_with(start)
        {
            return version.to_owned();
        }
    }
    String::new()
}

/// An engine that the report can describe.
pub trait Peer: Engine {
    /// What it says.
    const FACTS: Facts;
}

impl Peer for AdamantEngine {
    const FACTS: Facts = Facts {
        version_of: ("adamant", ""),
        kind: Kind::Tree,
        sync: Some(Survives::PowerLoss("`Durability::Sync`: fdatasync of the log, in groups")),
        buffered: Some(Survives::Kill("`Durability::Buffered`: the log is handed to the system")),
        deferred: Some(Survives::Nothing("`Durability::Deferred`: the log is written later")),
        settings: "engine bplus; log of at most 128 MiB, the default",
    };
}

impl Peer for BTreeMapEngine {
    const FACTS: Facts = Facts {
        version_of: ("", ""),
        kind: Kind::Reference,
        sync: None,
        buffered: None,
        deferred: Some(Survives::Nothing("in memory")),
        settings: "`BTreeMap<Vec<u8>, Vec<u8>>` of the standard library behind an `RwLock`",
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{fjall2::Fjall2Engine, fjall3::Fjall3Engine};

    #[test]
    fn versions_are_those_of_the_lock_file() {
        assert!(Fjall2Engine::FACTS.version().starts_with("2.11"));
        assert!(Fjall3Engine::FACTS.version().starts_with("3."));
        assert_eq!(AdamantEngine::FACTS.version(), env!("CARGO_PKG_VERSION"));
        assert_eq!(BTreeMapEngine::FACTS.version(), "");
    }
}
