//! Gets of present and absent keys, and scans of everything and of 100 pairs.
//!
//! A get copies the value out, as a caller does that goes on to use it; a scan hands out keys and
//! values in place in the heap, and reads their lengths.

use std::ops::{Bound, ControlFlow};

use adamant_trees::{Cursor, OrderedMap, Seek, Walk};

use crate::commands::bplus::ground::{GETS, Ground, MISSES, SCANS};
use crate::harness::error::{Result, ensure};

/// Pairs of a short scan.
const SCAN_PAIRS: u64 = 100;

/// Adds all rows.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let (records, pairs) = (ground.records, ground.settings.pairs);
    let value_bytes = records.value_bytes();
    let visits = records.visits(pairs, GETS);
    ground.timed("get", pairs, |ground| {
        let (heap, map) = ground.tree()?;
        let mut found = Vec::with_capacity(value_bytes);
        for &index in &visits {
            let view = heap.view()?;
            let value = map.get(&view, &records.key(index.into()))?;
            found.clear();
            found.extend_from_slice(value.ok_or("a pair is missing")?);
            ensure(found.len() == value_bytes, || "a value is wrong".into())?;
        }
        Ok(())
    })?;
    let visits = records.visits(pairs, MISSES);
    ground.timed("miss", pairs, |ground| {
        let (heap, map) = ground.tree()?;
        for &index in &visits {
            let value = map.contains(&heap.view()?, &records.missing_key(index.into()))?;
            ensure(!value, || "a key is there that was not inserted".into())?;
        }
        Ok(())
    })?;
    ground.timed("scan", pairs, |ground| {
        let (count, bytes) = scan(ground, None, pairs)?;
        let expected = pairs * records.record_bytes();
        ensure((count, bytes) == (pairs, expected), || "a scan found other pairs".into())
    })?;
    let scan_pairs = SCAN_PAIRS.min(pairs);
    let starts: Vec<u32> = records.visits(pairs + 1 - scan_pairs, SCANS);
    let starts = &starts[..starts.len().min(ground.settings.scans as usize)];
    ground.timed("scan100", starts.len() as u64, |ground| {
        for &index in starts {
            let (count, _) = scan(ground, Some(index.into()), scan_pairs)?;
            ensure(count <= scan_pairs, || "a scan found too many pairs".into())?;
        }
        Ok(())
    })
}

/// Scans pairs from the one with an index on, or from the first; returns their number and bytes.
fn scan(ground: &Ground<'_>, from: Option<u64>, pairs_max: u64) -> Result<(u64, u64)> {
    let (heap, map) = ground.tree()?;
    let view = heap.view()?;
    let mut cursor = map.cursor(&view);
    if let Some(index) = from {
        cursor.seek(Seek::Before(&ground.records.key(index)))?;
    }
    let (mut count, mut bytes) = (0, 0);
    let mut each = |(key, value): adamant_trees::Pair<'_>| {
        count += 1;
        bytes += (key.len() + value.len()) as u64;
        if count == pairs_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    while cursor.walk(true, Bound::Unbounded, &mut each)? == Walk::Edge {}
    Ok((count, bytes))
}
