//! Compression of blocks and values.
//!
//! Purpose: LZ4's block format without a frame, and frames of zstd without a checksum; lengths and
//! checksums are our own.
//! Invariants: data that does not shrink by an eighth is stored uncompressed. The decompressed
//! length is known in advance and bounds the output.
//! Thread safety: a compressor belongs to one thread; the rest is pure functions.

use std::fmt;
use std::str::FromStr;

use adamant_slice::{Builder, Slice};
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use super::zstd::{self, ZstdCompressor};
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
    pub(crate) fn refusal(self) -> Option<&'static str> {
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
pub(crate) enum Method {
    None = 0,
    Lz4 = 1,
    Zstd = 2,
}

impl Method {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Maximum input for LZ4's table of 16-bit positions.
const SMALL_BYTES_MAX: usize = u16::MAX as usize - 1;

/// A compressor that reuses its memory.
pub(crate) struct Compressor {
    small: CompressTable,
    large: Option<CompressTable>,
    zstd: ZstdCompressor,
    output: Vec<u8>,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        let (small, zstd) = (CompressTable::small(), ZstdCompressor::new());
        Self { small, large: None, zstd, output: Vec::new() }
    }

    /// The bytes to store for `plain`, and how they are stored.
    pub(crate) fn compress<'a>(
        &'a mut self,
        plain: &'a [u8],
        compression: Compression,
    ) -> (&'a [u8], Method) {
        let (bytes, method) = match compression {
            Compression::None => (None, Method::None),
            Compression::Lz4 => (self.by_lz4(plain), Method::Lz4),
            // Zstd gives up as soon as more room would be needed than what is kept may take.
            Compression::Zstd(level) => {
                self.make_room(kept_bytes_max(plain));
                let room = &mut self.output[..kept_bytes_max(plain)];
                (self.zstd.compress(plain, level.into(), room), Method::Zstd)
            }
        };
        // A compressor that fails is no reason to fail: plain bytes are correct.
        match bytes {
            Some(bytes) if bytes <= kept_bytes_max(plain) => (&self.output[..bytes], method),
            _ => (plain, Method::None),
        }
    }

    fn by_lz4(&mut self, plain: &[u8]) -> Option<usize> {
        self.make_room(get_maximum_output_size(plain.len()));
        let table = if plain.len() <= SMALL_BYTES_MAX {
            &mut self.small
        } else {
            self.large.get_or_insert_with(CompressTable::large)
        };
        compress_into_with_table(plain, &mut self.output, table).ok()
    }

    fn make_room(&mut self, bytes: usize) {
        if self.output.len() < bytes {
            self.output.resize(bytes, 0);
        }
    }
}

/// Bytes that the compressed form of `plain` may have to be stored: an eighth less.
fn kept_bytes_max(plain: &[u8]) -> usize {
    (plain.len() - plain.len() / 8).saturating_sub(1)
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("output_bytes", &self.output.len()).finish()
    }
}

/// Why bytes cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// They are not what was stored.
    Malformed,
    /// They may be fine: this build is without the feature `zstd`.
    NotBuilt,
}

/// Restores `stored` to `plain_bytes` bytes. What is not compressed shares its memory.
pub(crate) fn restore(
    method: Method,
    stored: Slice,
    plain_bytes: usize,
) -> std::result::Result<Slice, Refused> {
    let restored = match method {
        Method::None => Some(stored).filter(|stored| stored.len() == plain_bytes),
        Method::Lz4 => decompress(&stored, plain_bytes),
        Method::Zstd if !zstd::IS_BUILT => return Err(Refused::NotBuilt),
        Method::Zstd => decompress_zstd(&stored, plain_bytes),
    };
    restored.ok_or(Refused::Malformed)
}

/// Decompresses `stored` by LZ4 to `plain_bytes` bytes; `None` if `stored` does not decompress to
/// as many.
fn decompress(stored: &[u8], plain_bytes: usize) -> Option<Slice> {
    // One byte of LZ4 expands to 255 at most: a larger claim is false, so nothing is allocated.
    if plain_bytes / 255 > stored.len() {
        return None;
    }
    let mut plain = Builder::zeroed(plain_bytes).ok()?;
    let bytes = decompress_into(stored, &mut plain).ok()?;
    (bytes == plain_bytes).then(|| plain.freeze())
}

/// Bytes that a block within a frame of zstd takes at least, if it is not empty, and bytes that it
/// expands to at most.
const ZSTD_BLOCK_BYTES: (usize, usize) = (4, 128 << 10);

/// As [`decompress`], by zstd. A frame also says itself how long it is.
fn decompress_zstd(stored: &[u8], plain_bytes: usize) -> Option<Slice> {
    let blocks_max = stored.len() / ZSTD_BLOCK_BYTES.0;
    if plain_bytes.div_ceil(ZSTD_BLOCK_BYTES.1) > blocks_max
        || zstd::content_bytes(stored) != Some(plain_bytes as u64)
    {
        return None;
    }
    let mut plain = Builder::zeroed(plain_bytes).ok()?;
    let bytes = zstd::decompress(stored, &mut plain)?;
    (bytes == plain_bytes).then(|| plain.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(method: Method, stored: &[u8], plain_bytes: usize) -> Option<Slice> {
        restore(method, Slice::new(stored), plain_bytes).ok()
    }

    /// Those that this build has.
    fn built() -> impl Iterator<Item = (Compression, Method)> {
        let all = [1, 3, 9, 22].map(|level| (Compression::Zstd(level), Method::Zstd));
        let all = [(Compression::Lz4, Method::Lz4)].into_iter().chain(all);
        all.filter(|(compression, _)| compression.is_built())
    }

    #[test]
    fn what_was_compressed_comes_back() {
        let mut compressor = Compressor::new();
        for (compression, method) in built() {
            for bytes in [0, 1, 100, 4096, 65_534, 65_535, 131_073, 1 << 20, 5000] {
                let plain: Vec<u8> = (0..bytes).map(|index| (index / 7 % 13) as u8).collect();
                let (stored, how) = compressor.compress(&plain, compression);
                assert_eq!(restored(how, stored, bytes).unwrap(), plain);
                assert_eq!(how == method, bytes >= 100, "{compression}, {bytes} bytes");
                if how == Method::None {
                    assert_eq!(stored, plain);
                    continue;
                }
                assert!(stored.len() < plain.len());
                for wrong in [bytes + 1, bytes - 1, 1 << 31, 0, usize::MAX] {
                    assert_eq!(restored(how, stored, wrong), None, "{compression}, {wrong} bytes");
                }
            }
        }
    }

    #[test]
    fn what_does_not_shrink_is_kept_as_it_is() {
        let mut random = fastrand::Rng::with_seed(1);
        let plain: Vec<u8> = (0..10_000).map(|_| random.u8(..)).collect();
        let mut compressor = Compressor::new();
        for (compression, _) in built() {
            assert_eq!(compressor.compress(&plain, compression), (&plain[..], Method::None));
        }
        assert_eq!(compressor.compress(&[0; 99], Compression::None).1, Method::None);
    }

    /// Bytes that are not zstd's, or of which some were changed, may decompress to other bytes, but
    /// never to another length, and never take memory for a length that cannot be true.
    #[test]
    fn changed_bytes_of_zstd_are_refused_or_have_the_right_length() {
        let plain: Vec<u8> = (0..3000_u32).flat_map(|n| (n / 3 * 7).to_le_bytes()).collect();
        let mut compressor = Compressor::new();
        let (stored, method) = compressor.compress(&plain, Compression::zstd());
        let mut stored = stored.to_vec();
        if method != Method::Zstd {
            assert_eq!(restore(Method::Zstd, Slice::new(b"x"), 5), Err(Refused::NotBuilt));
            return;
        }
        for at in 0..stored.len() {
            for change in [1, 0x80, 0xFF] {
                stored[at] ^= change;
                if let Some(found) = restored(method, &stored, plain.len()) {
                    assert_eq!(found.len(), plain.len());
                }
                stored[at] ^= change;
            }
            assert_eq!(restored(method, &stored[..at], plain.len()), None);
        }
        for end in [&[0][..], b"more", &stored.clone()] {
            assert_eq!(restored(method, &[&stored, end].concat(), plain.len()), None);
        }
    }

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
