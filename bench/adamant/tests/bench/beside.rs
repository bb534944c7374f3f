//! A small run of `beside` reports every row that is asked for, and every entry is what was put.
#![forbid(unsafe_code)]

use crate::printed;

#[test]
fn a_small_run_reports_all_rows() {
    let out = printed(&["beside", "--quick"]);
    for row in ["commit.recorded.vs_alone", "refresh", "notice", "feed"] {
        assert!(out.contains(row), "{row} in {out}");
    }
}
