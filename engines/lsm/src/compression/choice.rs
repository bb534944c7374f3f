//! Which compression, and how options and headers name it.
//!
//! Thread safety: values.

use std::fmt;
use std::str::FromStr;

use super::zstd;
use crate::error::Error;

/// How bytes are stored.
///
/// ```
/// use adamant_lsm::Compression;
///
/// assert_eq!(Compression::default(), Compression::None);
/// assert_eq!(Compression::zstd(), Compression::Zstd(3));
/// assert_eq!(Compression::Zstd(7).to_string(), "zstd:7");
/// assert_eq!("zstd:7".parse::<Compression>()?, Compression::Zstd(7));
/// # Ok::<(), adamant_lsm::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// By LZ4, where that saves an eighth.
    Lz4,
    /// By zstd at a level from 1, the fastest, to 22, where that saves an eighth: smaller than LZ4,
    /// and slower to write and to read. Only in builds with the feature `zstd`.
    Zstd(u8),
}

/// The levels of zstd: above the last it would change nothing, and those below the first do not
/// compress as well as LZ4.
const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;
/// The level of [`Compression::zstd`], zstd's own default.
const ZSTD_LEVEL: u8 = 3;

impl Compression {
    /// Zstd at its default level, 3.
    pub const fn zstd() -> Self {
        Self::Zstd(ZSTD_LEVEL)
    }

    /// Whether this build can compress and decompress so: zstd needs the feature `zstd`.
    pub const fn is_built(self) -> bool {
        match self {
            Self::None | Self::Lz4 => true,
            Self::Zstd(_) => zstd::IS_BUILT,
        }
    }

    /// What is expected instead, if it cannot be used here.
    pub fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Zstd(_) if !zstd::IS_BUILT => {
                Some("none or lz4, since this program is built without the feature zstd")
            }
            Self::Zstd(level) if !ZSTD_LEVELS.contains(&level) => {
                Some("zstd at a level of 1 to 22")
            }
            _ => None,
        }
    }

    /// The bytes by which options that are kept name it: the method's and the level's.
    pub fn to_bytes(self) -> [u8; 2] {
        match self {
            Self::None => [Method::None as u8, 0],
            Self::Lz4 => [Method::Lz4 as u8, 0],
            Self::Zstd(level) => [Method::Zstd as u8, level],
        }
    }

    /// The compression with these bytes; `None` if no compression has them.
    pub fn from_bytes(bytes: [u8; 2]) -> Option<Self> {
        match (Method::from_byte(bytes[0])?, bytes[1]) {
            (Method::None, 0) => Some(Self::None),
            (Method::Lz4, 0) => Some(Self::Lz4),
            (Method::Zstd, level) if ZSTD_LEVELS.contains(&level) => Some(Self::Zstd(level)),
            _ => None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl FromStr for Compression {
    type Err = Error;

    /// Reads the names that `Display` gives, and `zstd` for its default level. Whether the level is
    /// one that there is, and zstd in this build, is verified when the option is used.
    fn from_str(name: &str) -> Result<Self, Error> {
        let of_level = |level: &str| level.parse().ok().map(Self::Zstd);
        let found = match name {
            "none" => Some(Self::None),
            "lz4" => Some(Self::Lz4),
            "zstd" => Some(Self::zstd()),
            other => other.strip_prefix("zstd:").and_then(of_level),
        };
        found.ok_or_else(|| Error::InvalidOption {
            option: "compression",
            expected: "none, lz4, zstd, or zstd:1 to zstd:22".into(),
            found: format!("{name:?}"),
        })
    }
}

/// How bytes were stored, as the header of a block or record says: readers need no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    /// As they are.
    None = 0,
    /// By LZ4.
    Lz4 = 1,
    /// By zstd.
    Zstd = 2,
}

impl Method {
    /// The method with this number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_name_it_by_two_bytes() {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(19)] {
            assert_eq!(Compression::from_bytes(compression.to_bytes()), Some(compression));
        }
        for wrong in [[0, 1], [1, 1], [2, 0], [2, 23], [3, 0], [255, 255]] {
            assert_eq!(Compression::from_bytes(wrong), None);
        }
    }
}
