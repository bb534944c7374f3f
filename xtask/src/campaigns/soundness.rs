//! `cargo xtask soundness`: Miri on the crate whose speed depends on unsafe code, and loom on the
//! synchronisation of the heap: the image latch, the order of entries.
//!
//! Purpose: one command that runs what can run on this machine, and reports what it left out and
//! why. Loom needs nothing; Miri needs a nightly toolchain with the components `miri` and
//! `rust-src`. `cargo xtask sanitize` runs the tools for machine code.

use crate::source::workspace::Workspace;
use crate::testing::parts;
use crate::testing::tools::{self, Tool};

const PACKAGE: &str = "adamant-slice";
const MIRI_FLAGS: &str = "-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check";
/// Without the symbolic check of alignment: on a machine for which it has no vector instructions,
/// `memchr` (of `serde_json`, in the tests) aligns pointers by arithmetic, which that check cannot
/// follow.
const BIG_ENDIAN_FLAGS: &str = "-Zmiri-strict-provenance";
/// Tests that Miri can run in reasonable time: all but the long one against a model.
const MIRI_TESTS: &str = "--all-features --lib --test slice";
/// A big-endian machine, for Miri.
const BIG_ENDIAN: &str = "s390x-unknown-linux-gnu";

/// Runs all of them. True if nothing failed.
pub(crate) fn run() -> Result<bool, String> {
    let root = Workspace::load()?.root;
    let variables = |name: &str, key: &'static str, flags: &str| {
        vec![("CARGO_TARGET_DIR", format!("target/soundness/{name}")), (key, flags.to_owned())]
    };
    let loom = |name: &str, arguments: String| Tool {
        name: name.to_owned(),
        nightly: false,
        arguments,
        variables: variables("loom", "RUSTFLAGS", "--cfg loom"),
        missing: None,
    };
    let missing = tools::missing_nightly("miri");
    let miri = |name: &str, target: &str, flags: &str| Tool {
        name: name.to_owned(),
        nightly: true,
        arguments: format!("miri test --quiet -p {PACKAGE} {target} {MIRI_TESTS}"),
        variables: variables("miri", "MIRIFLAGS", flags),
        missing: missing.clone(),
    };
    let tools = [
        loom("loom", format!("test --quiet -p {PACKAGE} --test loom")),
        loom("loom, heap", "test --quiet -p adamant-heap --lib every_order".to_owned()),
        miri("Miri", "", MIRI_FLAGS),
        miri("Miri, big-endian", &format!("--target {BIG_ENDIAN}"), BIG_ENDIAN_FLAGS),
    ];
    Ok(parts::summarise(&tools::run_all(&tools, &root)))
}
