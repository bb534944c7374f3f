//! Compression level by level.
//!
//! Purpose: tables of the upper levels are rewritten soon, those of the last hold most of the data
//! for long: each level may have a compression of its own.

use std::fmt;
use std::str::FromStr;

use crate::compression::Compression;
use crate::error::Error;

/// Number of levels: with ten times the bytes on each, enough for some 2.5 PB.
pub(crate) const LEVELS: usize = 7;

/// The compression of each level, from level 0, the newest, to the last. A small tree has only
/// these two; a larger one also those right before the last. Tables that a merge moves down
/// unchanged would keep what they have: where the two levels differ, they are written anew. Values
/// in blob files, which stay where they are, are compressed as on the last level.
///
/// ```
/// use adamant_lsm::{Compression, LevelCompression};
///
/// // One for all.
/// let fast = LevelCompression::from(Compression::Lz4);
/// // The first levels one by one; the last entry holds for all deeper ones.
/// let plain_first = LevelCompression::from([Compression::None, Compression::Lz4]);
/// assert_eq!(plain_first.level(0), Compression::None);
/// assert_eq!(plain_first.level(6), Compression::Lz4);
/// // Nine tenths of the data lie on the last level.
/// let small = fast.bottommost(Compression::zstd());
/// assert_eq!((small.level(5), small.level(6)), (Compression::Lz4, Compression::zstd()));
/// assert_eq!(small.to_string(), "lz4, last zstd:3");
/// assert_eq!("lz4, last zstd".parse::<LevelCompression>()?, small);
/// # Ok::<(), adamant_lsm::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LevelCompression([Compression; LEVELS]);

impl LevelCompression {
    /// The number of levels.
    pub const LEVELS: usize = LEVELS;

    /// As `From<[Compression; N]>`, for numbers that are not known before the program runs; `None`
    /// unless there are 1 to [`LevelCompression::LEVELS`] of them.
    pub fn new(levels: &[Compression]) -> Option<Self> {
        let last = *levels.last().filter(|_| levels.len() <= LEVELS)?;
        Some(Self(std::array::from_fn(|level| levels.get(level).copied().unwrap_or(last))))
    }

    /// The same with another compression of the last level.
    #[must_use]
    pub const fn bottommost(mut self, compression: Compression) -> Self {
        self.0[LEVELS - 1] = compression;
        self
    }

    /// The compression of a level; below the last, that of the last.
    pub const fn level(&self, level: usize) -> Compression {
        self.0[if level < LEVELS { level } else { LEVELS - 1 }]
    }

    /// The compression of every level, from level 0 on.
    pub const fn levels(&self) -> &[Compression; LEVELS] {
        &self.0
    }
}

impl From<Compression> for LevelCompression {
    fn from(compression: Compression) -> Self {
        Self([compression; LEVELS])
    }
}

impl<const N: usize> From<[Compression; N]> for LevelCompression {
    fn from(levels: [Compression; N]) -> Self {
        const { assert!(N >= 1 && N <= LEVELS, "expected a compression for 1 to 7 levels") };
        Self(std::array::from_fn(|level| levels[level.min(N - 1)]))
    }
}

impl fmt::Display for LevelCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upper = &self.0[..LEVELS - 1];
        let first_same = upper.iter().rposition(|one| *one != upper[LEVELS - 2]);
        for (level, compression) in upper.iter().take(first_same.map_or(1, |at| at + 2)).enumerate()
        {
            write!(f, "{}{compression}", if level == 0 { "" } else { ", " })?;
        }
        match self.0[LEVELS - 1] {
            last if last == upper[LEVELS - 2] => Ok(()),
            last => write!(f, ", last {last}"),
        }
    }
}

impl FromStr for LevelCompression {
    type Err = Error;

    /// Reads what `Display` gives: compressions with commas in between, for the first levels, of
    /// which the last one holds for all deeper ones; and then, where the last level has another,
    /// `last` and that.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (upper, last) = match text.rsplit_once(',') {
            Some((upper, end)) => match end.trim().strip_prefix("last ") {
                Some(last) => (upper, Some(last.trim().parse()?)),
                None => (text, None),
            },
            None => (text, None),
        };
        let levels: Vec<_> =
            upper.split(',').map(|name| name.trim().parse()).collect::<Result<_, _>>()?;
        let compression = Self::new(&levels).ok_or_else(|| Error::InvalidOption {
            option: "compression",
            expected: format!("those of {LEVELS} levels at most"),
            found: format!("{} of them", levels.len()),
        })?;
        Ok(last.map_or(compression, |last| compression.bottommost(last)))
    }
}

impl fmt::Debug for LevelCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LevelCompression({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_read_as_it_is_written() {
        let mut random = fastrand::Rng::with_seed(5);
        let some = [Compression::None, Compression::Lz4, Compression::zstd(), Compression::Zstd(9)];
        for _ in 0..5_000 {
            let levels: Vec<_> =
                (0..random.usize(1..=LEVELS)).map(|_| some[random.usize(0..4)]).collect();
            let mut compression = LevelCompression::new(&levels).unwrap();
            if random.bool() {
                compression = compression.bottommost(some[random.usize(0..4)]);
            }
            let text = compression.to_string();
            assert_eq!(text.parse::<LevelCompression>().unwrap(), compression, "{text}");
        }
        assert_eq!(LevelCompression::new(&[]), None);
        assert_eq!(LevelCompression::new(&[Compression::Lz4; LEVELS + 1]), None);
        for wrong in ["", "lz5", "lz4,", ",lz4", "last lz4", "zstd:", "zstd:256", "lz4 last zstd"] {
            let error = wrong.parse::<LevelCompression>().expect_err(wrong).to_string();
            assert!(error.starts_with("option compression: expected none, lz4, zstd"), "{error}");
        }
        let error = "lz4,".repeat(7) + "lz4";
        assert!(error.parse::<LevelCompression>().is_err());
    }
}
