//! A disk with a volatile cache: what was written since the last flush may be there after a power
//! cut, or not, or in part.
//!
//! Purpose: killing a virtual machine alone loses nothing, because what its disk was told lives on
//! in the files of the host. Here a cut loses what a real one may.
//! Invariants: a sector of 4096 bytes, as the machine is told, is written whole or not at all: ext4
//! writes its superblocks in place, 1024 bytes with one checksum, and of sectors of 512 bytes once
//! in some 100 cuts a disk could not be mounted. Files that tear at 512 bytes are what the
//! simulator has. A flush makes durable what was written before it. Until then a sector may hold
//! any of the bytes that it was given since the last flush, or those from before, whatever the
//! sectors beside it hold. A cache that is full makes some of it durable by itself, as real ones
//! do.
//! Thread safety: a value with one owner.

use std::collections::BTreeMap;

use fastrand::Rng;

/// Bytes that are written whole or not at all.
pub(crate) const SECTOR_BYTES: usize = 4096;
/// Sectors that the cache holds: 32 MiB.
const CACHED_MAX: usize = 8 << 10;

/// A sector as a write left it.
struct Version {
    /// Which write: they are counted.
    write: u64,
    bytes: [u8; SECTOR_BYTES],
}

/// The disk.
pub(crate) struct Disk {
    durable: Vec<u8>,
    /// What sectors were given since the last flush, oldest first.
    cached: BTreeMap<usize, Vec<Version>>,
    writes: u64,
    random: Rng,
    /// Whether flushes succeed and do nothing.
    is_lying: bool,
    /// What cuts have done.
    pub(crate) lost: Lost,
}

/// What cuts did to sectors that were written and not flushed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// Sectors that kept their newest bytes.
    pub(crate) kept: u64,
    /// Sectors that went back to older ones.
    pub(crate) dropped: u64,
}

/// Which of the cached versions survive a cut.
#[derive(Clone, Copy, Debug)]
enum Survival {
    None,
    All,
    /// All but one sector.
    AllButOne,
    /// A single sector.
    OnlyOne,
    /// What was written before a moment.
    Before(u64),
    /// Each write by chance, whole.
    Writes(u64),
    /// Each sector by chance, any of its versions.
    Sectors,
}

impl Disk {
    /// A disk with these bytes, whole sectors.
    pub(crate) fn new(bytes: Vec<u8>, seed: u64, is_lying: bool) -> Self {
        assert_eq!(bytes.len() % SECTOR_BYTES, 0, "a disk has whole sectors");
        Self {
            durable: bytes,
            cached: BTreeMap::new(),
            writes: 0,
            random: Rng::with_seed(seed),
            is_lying,
            lost: Lost::default(),
        }
    }

    /// Bytes of the disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.durable.len() as u64
    }

    /// Whether there are whole sectors at that place.
    pub(crate) fn has(&self, offset: u64, bytes: u64) -> bool {
        let sector = SECTOR_BYTES as u64;
        let end = offset.checked_add(bytes);
        offset.is_multiple_of(sector)
            && bytes.is_multiple_of(sector)
            && end.is_some_and(|end| end <= self.bytes())
    }

    /// Reads sectors that are there.
    pub(crate) fn read(&self, offset: u64, target: &mut [u8]) {
        let first = offset as usize / SECTOR_BYTES;
        target.copy_from_slice(&self.durable[offset as usize..][..target.len()]);
        let last = first + target.len() / SECTOR_BYTES;
        for (sector, versions) in self.cached.range(first..last) {
            if let Some(newest) = versions.last() {
                let at = (sector - first) * SECTOR_BYTES;
                target[at..at + SECTOR_BYTES].copy_from_slice(&newest.bytes);
            }
        }
    }

    /// Writes sectors that are there.
    pub(crate) fn write(&mut self, offset: u64, source: &[u8]) {
        self.writes += 1;
        let first = offset as usize / SECTOR_BYTES;
        for (index, bytes) in source.chunks_exact(SECTOR_BYTES).enumerate() {
            let mut version = Version { write: self.writes, bytes: [0; SECTOR_BYTES] };
            version.bytes.copy_from_slice(bytes);
            self.cached.entry(first + index).or_default().push(version);
        }
        while self.cached.len() > CACHED_MAX {
            let pivot = self.random.usize(..self.durable.len() / SECTOR_BYTES);
            let next = self.cached.range(pivot..).next().or_else(|| self.cached.iter().next());
            if let Some(sector) = next.map(|(&sector, _)| sector) {
                self.settle(sector);
            }
        }
    }

    /// Makes those sectors durable, and no others.
    pub(crate) fn force(&mut self, offset: u64, bytes: u64) {
        let first = offset as usize / SECTOR_BYTES;
        for sector in first..first + bytes as usize / SECTOR_BYTES {
            if !self.is_lying {
                self.settle(sector);
            }
        }
    }

    /// Makes durable what was written.
    pub(crate) fn flush(&mut self) {
        if !self.is_lying {
            let sectors: Vec<usize> = self.cached.keys().copied().collect();
            sectors.into_iter().for_each(|sector| self.settle(sector));
        }
    }

    /// The power goes: of what was not flushed, what chance leaves.
    pub(crate) fn cut(&mut self) {
        let sectors: Vec<usize> = self.cached.keys().copied().collect();
        let Some(&chosen) = self.random.clone().choice(&sectors) else { return };
        let survival = match self.random.u8(..8) {
            0 => Survival::None,
            1 => Survival::All,
            2 => Survival::AllButOne,
            3 => Survival::OnlyOne,
            4 => Survival::Before(self.writes.saturating_sub(self.random.u64(..64))),
            5 => Survival::Writes(self.random.u64(..)),
            _ => Survival::Sectors,
        };
        for (sector, versions) in std::mem::take(&mut self.cached) {
            let newest = versions.len();
            let survives = |write: u64, salt: u64| Rng::with_seed(write ^ salt).bool();
            // How many of its versions it has seen: 0 is what it held before.
            let seen = match survival {
                Survival::None => 0,
                Survival::All => newest,
                Survival::AllButOne => newest * usize::from(sector != chosen),
                Survival::OnlyOne => newest * usize::from(sector == chosen),
                Survival::Before(moment) => versions.partition_point(|it| it.write < moment),
                Survival::Writes(salt) => versions
                    .iter()
                    .rposition(|it| survives(it.write, salt))
                    .map_or(0, |index| index + 1),
                Survival::Sectors => self.random.usize(..=newest),
            };
            if let Some(version) = seen.checked_sub(1).map(|index| &versions[index]) {
                let at = sector * SECTOR_BYTES;
                self.durable[at..at + SECTOR_BYTES].copy_from_slice(&version.bytes);
            }
            if seen == newest {
                self.lost.kept += 1;
            } else {
                self.lost.dropped += 1;
            }
        }
    }

    /// The newest bytes of a sector become durable.
    fn settle(&mut self, sector: usize) {
        if let Some(newest) = self.cached.remove(&sector).and_then(|mut versions| versions.pop()) {
            let at = sector * SECTOR_BYTES;
            self.durable[at..at + SECTOR_BYTES].copy_from_slice(&newest.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTORS: usize = 64;

    fn content(disk: &Disk) -> Vec<u8> {
        let mut bytes = vec![0; SECTORS * SECTOR_BYTES];
        disk.read(0, &mut bytes);
        bytes
    }

    #[test]
    fn a_cut_leaves_each_sector_what_it_was_given_since_the_flush() {
        let mut lost = Lost::default();
        for seed in 0..300 {
            let mut disk = Disk::new(vec![0; SECTORS * SECTOR_BYTES], seed, false);
            let mut random = Rng::with_seed(seed);
            let mut allowed = vec![vec![0_u8]; SECTORS];
            for number in 1..40 {
                let (first, count) = (random.usize(..SECTORS - 4), random.usize(1..4));
                disk.write((first * SECTOR_BYTES) as u64, &vec![number; count * SECTOR_BYTES]);
                allowed[first..first + count].iter_mut().for_each(|it| it.push(number));
                if random.u8(..20) == 0 {
                    disk.flush();
                    allowed.iter_mut().for_each(|it| drop(it.drain(..it.len() - 1)));
                }
            }
            let before = content(&disk);
            for (sector, bytes) in before.chunks(SECTOR_BYTES).enumerate() {
                assert!(bytes.iter().all(|it| Some(it) == allowed[sector].last()), "seed {seed}");
            }
            disk.cut();
            for (sector, bytes) in content(&disk).chunks(SECTOR_BYTES).enumerate() {
                assert!(bytes.iter().all(|&it| it == bytes[0]), "half a sector, seed {seed}");
                assert!(allowed[sector].contains(&bytes[0]), "sector {sector}, seed {seed}");
            }
            lost.kept += disk.lost.kept;
            lost.dropped += disk.lost.dropped;
        }
        assert!(lost.kept > 1_000 && lost.dropped > 1_000, "{lost:?}");
    }

    #[test]
    fn forced_sectors_survive_and_old_bytes_do_not_come_back() {
        for seed in 0..100 {
            let mut disk = Disk::new(vec![0; SECTORS * SECTOR_BYTES], seed, false);
            disk.write(0, &[1; SECTOR_BYTES]);
            disk.write(0, &[2; SECTOR_BYTES]);
            disk.force(0, SECTOR_BYTES as u64);
            disk.write(SECTOR_BYTES as u64, &[3; SECTOR_BYTES]);
            disk.cut();
            assert_eq!(content(&disk)[0], 2, "seed {seed}");
        }
    }

    #[test]
    fn a_lying_disk_loses_what_was_flushed() {
        let is_lost = |seed| {
            let mut disk = Disk::new(vec![0; SECTORS * SECTOR_BYTES], seed, true);
            disk.write(0, &[1; SECTOR_BYTES]);
            disk.flush();
            disk.cut();
            content(&disk)[0] == 0
        };
        assert!((0..50).any(is_lost));
    }

    #[test]
    fn places_are_verified() {
        let disk = Disk::new(vec![0; SECTORS * SECTOR_BYTES], 0, false);
        assert!(disk.has(0, disk.bytes()) && disk.has(disk.bytes(), 0));
        let sector = SECTOR_BYTES as u64;
        assert!(!disk.has(1, sector) && !disk.has(0, 100) && !disk.has(sector, disk.bytes()));
        assert!(!disk.has(u64::MAX - (sector - 1), sector));
    }
}
