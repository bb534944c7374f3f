//! A small run of `memory` reports every row that is asked for, and every entry is what was put.
#![forbid(unsafe_code)]

use crate::printed;

#[test]
fn a_small_run_reports_all_rows() {
    let out = printed(&["memory", "--memory-bytes", "8000000"]);
    for row in ["private.vs_bound.bounded", "get.hot.bounded.vs_unbounded", "dropped.bounded"] {
        assert!(out.contains(row), "{row} in {out}");
    }
}
