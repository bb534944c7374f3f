//! The adapter of `BTreeMap<Vec<u8>, Vec<u8>>` behind an `RwLock`: the standard library's map, in
//! memory.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Bound;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::harness::engine::{Direction, Durability, Engine, Setup, Space};
use crate::harness::error::Result;
use crate::harness::key::Key;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The map and its lock. A panic ends the measurement, so poison can be ignored.
#[derive(Debug, Default)]
pub struct BTreeMapEngine {
    entries: RwLock<Entries>,
}

impl BTreeMapEngine {
    fn shared(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for BTreeMapEngine {
    const NAME: &'static str = "btreemap";
    const DURABILITIES: &'static [Durability] = &[Durability::Deferred];
    const IS_PERSISTENT: bool = false;
    type Value = Vec<u8>;

    fn open(_: &Path, _: Setup) -> Result<Self> {
        Ok(Self::default())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }

    fn reopen(self, _: &Path, _: Setup) -> Result<Self> {
        Ok(self)
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        // Copies are made before the lock is taken, as a careful user would.
        let (key, value) = (key.to_vec(), value.to_vec());
        self.exclusive().insert(key, value);
        Ok(())
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let mut map = self.exclusive();
        for (key, value) in entries {
            map.insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let mut map = self.exclusive();
        for key in keys {
            map.remove(&key[..]);
        }
        Ok(())
    }

    fn get(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        Ok(self.shared().get(&key[..]).cloned())
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.shared().get(&key[..]).map(|value| read(value)).is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let bound = from.map_or(Bound::Unbounded, |key| Bound::Included(&key[..]));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let map = self.shared();
        let mut count = 0;
        let mut show = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            visit(black_box(key), black_box(value));
            count += 1;
        };
        match direction {
            Direction::Ascending => {
                let range = map.range::<[u8], _>((bound, Bound::Unbounded));
                range.take(limit).for_each(&mut show);
            }
            Direction::Descending => {
                let range = map.range::<[u8], _>((Bound::Unbounded, bound));
                range.rev().take(limit).for_each(&mut show);
            }
        }
        Ok(count)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.shared().len() as u64)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn space(_: &Path) -> Result<Option<Space>> {
        Ok(None)
    }
}
