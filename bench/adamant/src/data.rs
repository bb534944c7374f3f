//! Keys and values, and the orders in which they are asked for.
//!
//! Purpose: records that every engine gets alike, made from their index, so that a run of any size
//! holds no list of them.
//! Invariants: keys of different indices differ; everything follows from the seed.

/// Bytes of a key.
pub const KEY_BYTES: usize = 20;

/// A key.
pub type Key = [u8; KEY_BYTES];

/// Random bytes that values are cut from: more than any compressor's window of 64 KiB, and little
/// enough to stay in the second-level cache, so that making a value costs next to nothing.
const POOL_BYTES: usize = 1 << 19;

/// An odd constant without structure: the golden ratio's 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mixes 64 bits, one to one: the finaliser of splitmix64 (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// Records by index.
#[derive(Debug)]
pub struct Data {
    seed: u64,
    value_bytes: usize,
    pool: Vec<u8>,
}

impl Data {
    /// Records with values of `value_bytes`.
    pub fn new(seed: u64, value_bytes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pool = vec![0; POOL_BYTES + value_bytes];
        random.fill(&mut pool);
        Self { seed, value_bytes, pool }
    }

    /// Where all of it comes from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of a value.
    pub fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Bytes of a key and a value.
    pub fn record_bytes(&self) -> u64 {
        (KEY_BYTES + self.value_bytes) as u64
    }

    /// The key of record `index`: random bytes, so that the order of indices is a random one.
    pub fn key(&self, index: u64) -> Key {
        let first = mix(index.wrapping_mul(GOLDEN) ^ self.seed);
        let second = mix(first.wrapping_add(GOLDEN));
        let third = mix(second.wrapping_add(GOLDEN));
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&first.to_le_bytes());
        key[8..16].copy_from_slice(&second.to_le_bytes());
        key[16..].copy_from_slice(&third.to_le_bytes()[..4]);
        key
    }

    /// A key like the others that no record has, for `index` below 2^40.
    pub fn missing_key(&self, index: u64) -> Key {
        self.key(index + (1 << 40))
    }

    /// The value of record `index` after `version` overwrites: incompressible.
    pub fn value(&self, index: u64, version: u64) -> &[u8] {
        let start = mix(index ^ (version << 48) ^ !self.seed) as usize % POOL_BYTES;
        &self.pool[start..start + self.value_bytes]
    }
}

/// Visits each of `0 .. count` once, in an order that has nothing to do with the natural one.
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

/// How often which record is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Each alike.
    Uniform,
    /// The k-th most popular one with a probability of about 1 / k.
    Zipfian,
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
    }
}

/// Draws ranks by the method of Gray and others, "Quickly Generating Billion-Record Synthetic
/// Databases" (1994), with the exponent 0.99 that YCSB uses. Ranks are spread over the indices by
/// a hash, so that popular records are no neighbours.
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

    /// The rank, from 0, that belongs to `uniform` in 0 .. 1.
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
