//! A small run of `lsm` reports every row that is asked for, and every entry is what was put.
#![forbid(unsafe_code)]

use crate::program;

#[test]
fn a_small_run_reports_all_rows() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = program()
        .args(["lsm", "--quick", "--entries", "20000"])
        .arg("--path")
        .arg(directory.path())
        .output()
        .expect("the program runs");
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
    for row in ["load.settled.100", "get.zipfian.cold.1024", "open.kill.100", "compact.1024"] {
        assert!(out.contains(row), "{row} in {out}");
    }
}
