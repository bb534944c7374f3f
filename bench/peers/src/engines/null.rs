//! No store at all: what the harness itself costs.

use std::path::Path;

use adamant_bench::harness::engine::{Direction, Durability, Engine, Setup, Space};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;

use crate::peer::{Facts, Kind, Peer, Survives};

/// Forgets what is written, and finds the same value for every key.
pub struct NullEngine;

/// What is found.
const VALUE: &[u8] = &[7; 100];

impl Peer for NullEngine {
    const FACTS: Facts = Facts {
        version_of: ("", ""),
        kind: Kind::Reference,
        sync: None,
        buffered: None,
        deferred: Some(Survives::Nothing("nothing is kept")),
        settings: "the harness's own cost",
    };
}

impl Engine for NullEngine {
    const NAME: &'static str = "null";
    const DURABILITIES: &'static [Durability] = &[Durability::Deferred];
    const IS_PERSISTENT: bool = false;
    const KEEPS_CONTENTS: bool = false;
    type Value = &'static [u8];

    fn open(_: &Path, _: Setup) -> Result<Self> {
        Ok(Self)
    }

    fn close(self) -> Result<()> {
        Ok(())
    }

    fn put(&self, _: &Key, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn put_batch(&self, _: &[(Key, &[u8])]) -> Result<()> {
        Ok(())
    }

    fn remove_batch(&self, _: &[Key]) -> Result<()> {
        Ok(())
    }

    fn get(&self, _: &Key) -> Result<Option<&'static [u8]>> {
        Ok(Some(VALUE))
    }

    fn get_with(&self, _: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        read(VALUE);
        Ok(true)
    }

    fn scan(
        &self,
        _: Option<&Key>,
        _: Direction,
        _: u64,
        _: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        Ok(0)
    }

    fn count(&self) -> Result<u64> {
        Ok(0)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn space(_: &Path) -> Result<Option<Space>> {
        Ok(None)
    }
}
