//! A small run of `memory` reports every row that is asked for, and every entry is what was put.
#![forbid(unsafe_code)]

use crate::program;

#[test]
fn a_small_run_reports_all_rows() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = program()
        .args(["memory", "--memory-bytes", "8000000"])
        .arg("--path")
        .arg(directory.path())
        .output()
        .expect("the program runs");
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
    for row in ["private.vs_bound.bounded", "get.hot.bounded.vs_unbounded", "dropped.bounded"] {
        assert!(out.contains(row), "{row} in {out}");
    }
}
