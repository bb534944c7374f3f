//! Which copies of pages some savepoint needs.
//!
//! Purpose: a savepoint takes the oldest copy of a page that was kept after it was made. All other
//! copies can go.
//! Thread safety: pure functions.

use std::collections::HashMap;

use crate::journal::savepoints::savepoint_file::covers;

/// A savepoint: its number, and the data pages of its pool.
pub(in crate::journal) type Needing = (u64, u64);

/// For each file of kept pages, by number, ascending, which of its pages some of the savepoints
/// needs. O(pages of all files * savepoints).
pub(in crate::journal) fn needed(
    savepoints: &[Needing],
    files: &[(u64, Vec<u64>)],
) -> Vec<Vec<bool>> {
    // The last file that has a copy of a page.
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut of_file = |(number, pages): &(u64, Vec<u64>)| {
        let is_needed = |page: &u64| {
            let before = last.insert(*page, *number).unwrap_or(0);
            savepoints.iter().any(|(savepoint, data_pages)| {
                before < *savepoint && savepoint < number && covers(*data_pages, *page)
            })
        };
        pages.iter().map(is_needed).collect()
    };
    files.iter().map(&mut of_file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::PAGE_BYTES;

    const P: u64 = PAGE_BYTES;

    #[test]
    fn each_savepoint_needs_the_oldest_copy_behind_it() {
        let files = [(2, vec![0, P]), (4, vec![0, 2 * P]), (5, vec![0, P, 9 * P])];
        // One before all: it needs the first copy of each.
        let of_first = [vec![true, true], vec![false, true], vec![false, false, true]];
        assert_eq!(needed(&[(1, 64)], &files), of_first);
        // And one behind the first file.
        let of_both = [vec![true, true], vec![true, true], vec![false, true, true]];
        assert_eq!(needed(&[(1, 64), (3, 64)], &files), of_both);
        let of_second = [vec![false, false], vec![true, true], vec![false, true, true]];
        assert_eq!(needed(&[(3, 64)], &files), of_second);
        // A pool that had no such page, and a savepoint behind all files.
        let of_short = [vec![false, false], vec![true, true], vec![false, true, false]];
        assert_eq!(needed(&[(3, 4)], &files), of_short);
        assert_eq!(needed(&[(6, 64)], &files).concat(), [false; 7]);
        assert_eq!(needed(&[], &files).concat(), [false; 7]);
    }
}
