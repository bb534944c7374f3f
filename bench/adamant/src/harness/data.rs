//! Keys and values, and access distributions.
//!
//! Purpose: records that are the same for every engine, made from their index, so that a run of any
//! size holds no list of them.
//! Invariants: keys of different indices differ; everything follows from the seed.

use crate::harness::key::Key;

/// Bytes of a synthetic key.
pub const KEY_BYTES: usize = 20;

/// Random bytes from which values are cut: more than any compressor's window of 64 KiB, and few
/// enough to stay in the second-level cache, so that making a value costs next to nothing.
const POOL_BYTES: usize = 1 << 19;

/// Half-compressible values alternate between this many random bytes and as many equal ones.
const STRIPE_BYTES: usize = 32;

/// Digits of the prefix of a repeated record's key, with the colon.
const PREFIX_BYTES: usize = 11;

/// An odd constant without structure: the golden ratio's 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mixes 64 bits, one to one: the finaliser of splitmix64 (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// A key and a value from an external source.
pub type Record = (Key, Vec<u8>);

/// The source of keys and values.
#[derive(Debug)]
enum Contents {
    /// Random keys; values of one length, cut from this pool.
    Synthetic { value_bytes: usize, pool: Vec<u8> },
    /// Given records, repeated under key prefixes that make all keys unique.
    Repeated { records: Vec<Record>, repeats: u64 },
}

/// Records by index.
#[derive(Debug)]
pub struct Data {
    seed: u64,
    contents: Contents,
}

impl Data {
    /// Records with incompressible values of `value_bytes`.
    pub fn new(seed: u64, value_bytes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pool = vec![0; POOL_BYTES + value_bytes];
        random.fill(&mut pool);
        Self { seed, contents: Contents::Synthetic { value_bytes, pool } }
    }

    /// Records with values of `value_bytes` of which about half is random.
    pub fn half_compressible(seed: u64, value_bytes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pool = vec![0; POOL_BYTES + value_bytes];
        for stripe in pool.chunks_mut(STRIPE_BYTES).step_by(2) {
            random.fill(stripe);
        }
        Self { seed, contents: Contents::Synthetic { value_bytes, pool } }
    }

    /// `records` under as many key prefixes as `entries` of them need. Neighbouring indices have
    /// different prefixes, so that records come in no order of keys.
    ///
    /// # Panics
    /// If there are no records.
    pub fn repeated(seed: u64, records: Vec<Record>, entries: u64) -> Self {
        assert!(!records.is_empty(), "there must be records to repeat");
        let repeats = entries.div_ceil(records.len() as u64).max(1);
        Self { seed, contents: Contents::Repeated { records, repeats } }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of a value; of repeated records, the mean.
    pub fn value_bytes(&self) -> usize {
        match &self.contents {
            Contents::Synthetic { value_bytes, .. } => *value_bytes,
            Contents::Repeated { records, .. } => {
                let bytes: usize = records.iter().map(|(_, value)| value.len()).sum();
                bytes / records.len()
            }
        }
    }

    /// Bytes of a key and a value; of repeated records, the mean.
    pub fn record_bytes(&self) -> u64 {
        let key_bytes = match &self.contents {
            Contents::Synthetic { .. } => KEY_BYTES,
            Contents::Repeated { records, .. } => {
                let bytes: usize = records.iter().map(|(key, _)| key.len()).sum();
                PREFIX_BYTES + bytes / records.len()
            }
        };
        (key_bytes + self.value_bytes()) as u64
    }

    /// The indices of the first `entries` records, in the order of their keys.
    pub fn in_key_order(&self, entries: u64) -> Vec<u64> {
        // The first 8 bytes mostly decide.
        let start = |index| {
            let key = self.key(index);
            (0..8).fold(0, |start, at| start << 8 | key.get(at).map_or(0, |byte| u64::from(*byte)))
        };
        let mut order: Vec<(u64, u64)> = (0..entries).map(|index| (start(index), index)).collect();
        order.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| self.key(one.1).cmp(&self.key(other.1)))
        });
        order.into_iter().map(|(_, index)| index).collect()
    }

    /// The key of record `index`. Synthetic ones are random bytes, so that the order of indices is
    /// a random one.
    pub fn key(&self, index: u64) -> Key {
        let (records, repeats) = match &self.contents {
            Contents::Synthetic { .. } => return self.random_key(index),
            Contents::Repeated { records, repeats } => (records, *repeats),
        };
        let round_len = repeats * records.len() as u64;
        let (round, at) = (index / round_len, index % round_len);
        let prefix = round * repeats + at % repeats;
        let mut key = Key::new(format!("{prefix:010}:").as_bytes());
        key.append(&records[(at / repeats) as usize].0);
        key
    }

    fn random_key(&self, index: u64) -> Key {
        let first = mix(index.wrapping_mul(GOLDEN) ^ self.seed);
        let second = mix(first.wrapping_add(GOLDEN));
        let third = mix(second.wrapping_add(GOLDEN));
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&first.to_le_bytes());
        key[8..16].copy_from_slice(&second.to_le_bytes());
        key[16..].copy_from_slice(&third.to_le_bytes()[..4]);
        Key::new(&key)
    }

    /// An absent key like the others, for `index` below 2^40.
    pub fn missing_key(&self, index: u64) -> Key {
        match &self.contents {
            Contents::Synthetic { .. } => self.key(index + (1 << 40)),
            Contents::Repeated { .. } => {
                let mut key = self.key(index);
                key.append(b"\xFF");
                key
            }
        }
    }

    /// The value of record `index` after `version` overwrites.
    pub fn value(&self, index: u64, version: u64) -> &[u8] {
        match &self.contents {
            Contents::Synthetic { value_bytes, pool } => {
                let start = mix(index ^ (version << 48) ^ !self.seed) as usize % POOL_BYTES;
                &pool[start..start + value_bytes]
            }
            Contents::Repeated { records, repeats } => {
                let record = (index / repeats + version) % records.len() as u64;
                &records[record as usize].1
            }
        }
    }
}

/// Visits each of `0 .. count` once, in an order unrelated to the natural one.
pub fn shuffled(count: u64) -> impl Iterator<Item = u64> {
    // A stride that shares no factor with the count visits every index once.
    let mut stride = (count as f64 * 0.618_033_988_7) as u64 | 1;
    while greatest_common_divisor(stride, count) > 1 {
        stride += 2;
    }
    let mut at = 0;
    (0..count).map(move |_| {
        at = (at + stride) % count;
        at
    })
}

fn greatest_common_divisor(mut left: u64, mut right: u64) -> u64 {
    while right > 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// The distribution of accesses to records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All with the same probability.
    Uniform,
    /// The k-th most popular one with a probability of about 1 / k.
    Zipfian,
    /// The same, where popular ones are adjacent: k - 1 is the index. For records that are the more
    /// popular the newer they are, subtracted from the newest.
    Ranks,
}

/// `count` indices of `entries` records, drawn before the clock starts.
pub fn draw(distribution: Distribution, entries: u64, count: u64, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    match distribution {
        Distribution::Uniform => (0..count).map(|_| random.u64(..entries)).collect(),
        Distribution::Zipfian => {
            let zipfian = Zipfian::new(entries);
            (0..count).map(|_| mix(zipfian.rank(random.f64()) + 1) % entries).collect()
        }
        Distribution::Ranks => {
            let zipfian = Zipfian::new(entries);
            (0..count).map(|_| zipfian.rank(random.f64()).min(entries - 1)).collect()
        }
    }
}

/// Draws ranks by the method of Gray and others, "Quickly Generating Billion-Record Synthetic
/// Databases" (1994), with the exponent 0.99 that YCSB uses. A hash spreads ranks over the indices,
/// so that popular records are not adjacent.
struct Zipfian {
    entries: f64,
    zeta: f64,
    eta: f64,
}

const ZIPFIAN_EXPONENT: f64 = 0.99;

impl Zipfian {
    fn new(entries: u64) -> Self {
        let zeta_of = |count: u64| -> f64 {
            (1..=count).map(|rank| (rank as f64).powf(-ZIPFIAN_EXPONENT)).sum()
        };
        let zeta = zeta_of(entries);
        let half = (2.0 / entries as f64).powf(1.0 - ZIPFIAN_EXPONENT);
        let eta = (1.0 - half) / (1.0 - zeta_of(2) / zeta);
        Self { entries: entries as f64, zeta, eta }
    }

    /// The rank, from 0, of `uniform` in 0 .. 1.
    fn rank(&self, uniform: f64) -> u64 {
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(ZIPFIAN_EXPONENT) {
            return 1;
        }
        let base = self.eta * uniform - self.eta + 1.0;
        (self.entries * base.powf(1.0 / (1.0 - ZIPFIAN_EXPONENT))) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_differ_and_values_follow_from_index_and_version() {
        let data = Data::new(1, 100);
        let mut keys: HashSet<Key> = (0..20_000).map(|index| data.key(index)).collect();
        keys.extend((0..20_000).map(|index| data.missing_key(index)));
        assert_eq!(keys.len(), 40_000);
        assert_eq!(data.value(7, 1), Data::new(1, 100).value(7, 1));
        assert_ne!(data.value(7, 1), data.value(7, 2));
        assert_ne!(data.value(7, 1), data.value(8, 1));
    }

    #[test]
    fn repeated_records_have_keys_of_their_own_beyond_the_number_asked_for() {
        let records: Vec<Record> =
            (0..7_u8).map(|name| (Key::new(&[b'a' + name]), vec![name; 9])).collect();
        let data = Data::repeated(1, records, 100);
        let keys: HashSet<Key> = (0..1_000).map(|index| data.key(index)).collect();
        assert_eq!(keys.len(), 1_000);
        assert!((0..1_000).all(|index| !keys.contains(&data.missing_key(index))));
        assert_eq!(data.record_bytes(), 11 + 1 + 9);
        assert_ne!(data.value(3, 0), data.value(3, 1));
    }

    #[test]
    fn half_of_a_half_compressible_value_is_zeros() {
        let data = Data::half_compressible(1, 800);
        let zeros = data.value(3, 0).iter().filter(|&&byte| byte == 0).count();
        assert!((350..450).contains(&zeros), "{zeros}");
    }

    #[test]
    fn shuffled_visits_everything_once() {
        for count in [1, 2, 3, 10, 1000, 30_030, 65_536] {
            let visited: HashSet<u64> = shuffled(count).collect();
            assert_eq!(visited.len() as u64, count);
            assert!(visited.iter().all(|&index| index < count));
        }
    }

    #[test]
    fn zipfian_draws_are_skewed_and_in_range() {
        let entries = 100_000;
        let drawn = draw(Distribution::Zipfian, entries, 100_000, 5);
        assert!(drawn.iter().all(|&index| index < entries));
        let hottest = mix(1) % entries;
        let share = drawn.iter().filter(|&&index| index == hottest).count();
        // 1 / zeta(100,000; 0.99) is about 0.078.
        assert!((6_500..9_500).contains(&share), "{share}");
        let distinct: HashSet<_> = drawn.iter().collect();
        assert!(distinct.len() < 50_000);
    }
}
