//! `adamant scan STORE`: the entries of a range, in order, or their number.
//!
//! A line of text is the key, a tab and the value, with `\t`, `\n`, `\r`, `\\` and `\xNN` for bytes
//! that would break the line or are no UTF-8.

use std::ops::Bound;

use adamant::prefix_end;
use adamant_cli::record;
use serde_json::json;

use crate::args::ScanArgs;
use crate::failure::Result;
use crate::opening::{Readable, Stores};
use crate::output::{Output, escape};
use crate::progress;

/// First key and end of a range.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Prints the entries.
pub(crate) fn run(args: &ScanArgs, stores: &Stores, output: &Output) -> Result<()> {
    let bounds = bounds(args)?;
    let (store, keyspace) = stores.readable_keyspace(&args.target)?;
    if args.count {
        let count = count(&keyspace, bounds, args.limit)?;
        match output.is_json() {
            true => output.line(&json!({"count": count}).to_string())?,
            false => output.line(&count.to_string())?,
        }
    } else {
        print(&keyspace, bounds, args, output)?;
    }
    Ok(store.close()?)
}

fn print(keyspace: &Readable, bounds: Bounds, args: &ScanArgs, output: &Output) -> Result<()> {
    let entries = keyspace.range(bounds);
    let mut rest = args.limit.unwrap_or(u64::MAX);
    let mut ordered: Box<dyn Iterator<Item = _>> = match args.reverse {
        true => Box::new(entries.rev()),
        false => Box::new(entries),
    };
    while rest > 0
        && let Some(entry) = ordered.next()
    {
        let (key, value) = entry?;
        match output.is_json() {
            true => output.line(&record::format(key.as_ref(), value.as_ref()))?,
            false => {
                output.line(&format!("{}\t{}", escape(key.as_ref()), escape(value.as_ref())))?;
            }
        }
        rest -= 1;
    }
    Ok(())
}

fn count(keyspace: &Readable, bounds: Bounds, limit: Option<u64>) -> Result<u64> {
    let limit = limit.unwrap_or(u64::MAX);
    if bounds == (Bound::Unbounded, Bound::Unbounded) {
        return Ok(keyspace.len()?.min(limit));
    }
    let bar = progress::spinner("counting");
    let mut count = 0;
    let mut entries = keyspace.range(bounds);
    while count < limit
        && let Some(entry) = entries.next()
    {
        entry?;
        count += 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(count)
}

/// The intersection of `--from`, `--to` and `--prefix`.
fn bounds(args: &ScanArgs) -> Result<Bounds> {
    let key = |argument: &Option<_>| {
        argument.as_ref().map(|argument| args.encoding.bytes(argument)).transpose()
    };
    Ok(intersect(key(&args.from)?, key(&args.to)?, key(&args.prefix)?))
}

fn intersect(from: Option<Vec<u8>>, to: Option<Vec<u8>>, prefix: Option<Vec<u8>>) -> Bounds {
    // Every key that begins with the prefix is at or above it, and below the end of the prefix.
    let end = prefix.as_deref().and_then(prefix_end);
    let from = from.into_iter().chain(prefix).max();
    let to = to.into_iter().chain(end).min();
    // The keyspace knows the number of all its entries without a scan.
    let from = from.filter(|key| !key.is_empty());
    (from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(key: &[u8]) -> Option<Vec<u8>> {
        Some(key.to_vec())
    }

    #[test]
    fn a_prefix_is_a_range() {
        let included = |key: &[u8]| Bound::Included(key.to_vec());
        let excluded = |key: &[u8]| Bound::Excluded(key.to_vec());
        assert_eq!(intersect(None, None, None), (Bound::Unbounded, Bound::Unbounded));
        assert_eq!(intersect(None, None, some(b"")), (Bound::Unbounded, Bound::Unbounded));
        assert_eq!(intersect(None, None, some(b"ab")), (included(b"ab"), excluded(b"ac")));
        assert_eq!(intersect(None, None, some(b"a\xff")), (included(b"a\xff"), excluded(b"b")));
        assert_eq!(intersect(None, None, some(b"\xff")), (included(b"\xff"), Bound::Unbounded));
        assert_eq!(
            intersect(some(b"abc"), some(b"x"), some(b"ab")),
            (included(b"abc"), excluded(b"ac"))
        );
    }
}
