//! Many strings at once: sorting and searching.

use std::hint::black_box;
use std::time::Instant;

use crate::commands::slice::ground::Ground;
use crate::commands::slice::string::ByteString;
use crate::harness::error::{Result, ensure};

/// Strings per search of a batch.
const STRINGS_PER_SEARCH: usize = 50;

/// Keys as stores have them: a common prefix, and a number.
fn keys<S: ByteString>(count: usize, digits: usize) -> Vec<S> {
    (0..count).map(|number| S::copy_of(format!("user{number:0digits$}").as_bytes())).collect()
}

/// All rows of this group.
pub(super) fn measure<S: ByteString>(ground: &mut Ground<'_>) -> Result<()> {
    let count = ground.settings.strings;
    for (name, digits) in [("inline", 16), ("heap", 20)] {
        let mut random = fastrand::Rng::with_seed(1);
        let mut sorted = keys::<S>(count, digits);
        random.shuffle(&mut sorted);
        let start = Instant::now();
        sorted.sort_unstable_by(S::order);
        let seconds = start.elapsed().as_secs_f64();
        ensure(sorted.is_sorted_by(|left, right| left.bytes() < right.bytes()), || {
            format!("{} sorted in another order", S::NAME)
        })?;
        ground.add(&format!("sort.{name}"), count as u64, seconds * 1e9 / count as f64);

        let wanted: Vec<S> = (0..count / STRINGS_PER_SEARCH)
            .map(|_| S::copy_of(sorted[random.usize(..count)].bytes()))
            .collect();
        let mut found = 0;
        ground.timed(&format!("search.{name}"), wanted.len() as u64, || {
            for key in &wanted {
                let at = sorted.binary_search_by(|string| string.order(key));
                found += u64::from(black_box(at).is_ok());
            }
        });
        ensure(found > 0 && found % wanted.len() as u64 == 0, || {
            format!("{} did not find a key that is there", S::NAME)
        })?;
    }
    Ok(())
}
