//! `cargo xtask sanitize`: the tests under sanitizers and valgrind.
//!
//! Purpose: the address sanitizer for all tests of Rust, the thread sanitizer for those with
//! threads, valgrind for those of the crates with unsafe code. The sanitizers need a nightly
//! toolchain, the thread sanitizer also the component `rust-src`: a standard library that it cannot
//! observe hides what orders accesses. It names the tools that cannot run on this machine, with the
//! reason.
//! Thread safety: none needed.
//!
//! Left out, and why: the tests of capi and of the Python package build or load libraries into
//! programs without the runtime of a sanitizer (capi's own tests run those in C under valgrind and
//! the address sanitizer); those of xtask have no unsafe code. System calls map a pool's memory,
//! which sanitizers do not intercept: they see accesses to it, and their order, but not that it is
//! unmapped, so a sanitizer cannot find a slice that outlives its mapping; the tests of `lent` do.
//! The thread sanitizer would report a race between two parallel tests if one gets addresses that
//! the other has given back: it runs one test at a time.

use crate::source::workspace::Workspace;
use crate::testing::parts::{self, Part};
use crate::testing::tools::{self, Tool};

/// Packages that the sanitizers leave out: see above.
const EXCLUDED: &str = "--exclude adamant-capi --exclude adamant-python --exclude xtask";

/// The crates with unsafe code whose tests take seconds.
const ADDRESS_SMOKE: &str = "-p adamant-slice -p adamant-medium --all-features --lib --tests";
/// One limits the memory of its process, of which the sanitizers need terabytes for themselves. Two
/// measure it, including what the sanitizer puts around each allocation. The last ones plant a
/// fault at each site in turn and repeat the tests beside them, which takes longer than all others
/// together.
const UNWATCHED: &str = "--skip a_region_takes_what_the_limits_allow --skip five_thousand_connections \
                         --skip large_requests_of_many --skip left_out";

/// Programs with multi-threaded tests, by package.
const CONCURRENT: &str = "-p adamant-slice -p adamant-medium -p adamant-heap -p adamant-lsm -p adamant \
                          --lib --test slice --test medium --test heap --test tree --test tables \
                          --test store";
/// Parts of their names.
const WITH_THREADS: &str = "thread latch commit evictor every_order readers writer_queue owners:: lent \
                            chunked meanwhile beside index whole huge serializability exclusive \
                            write_stall publishes freeing_twice others_wait closing_ends";
const CONCURRENT_SMOKE: &str = "-p adamant-slice -p adamant-heap --lib --test slice --test heap";
const WITH_THREADS_SMOKE: &str = "thread latch every_order readers writer_queue owners:: lent::";

/// Of the slice and of the heap, by themselves. Built together with all others `rustix` reads the
/// mapping of the kernel's own functions, which valgrind hides.
const BY_HAND: &str = "-p adamant-slice -p adamant-heap --lib --test slice --test heap";
const BY_HAND_SMOKE: &str = "-p adamant-slice -p adamant-heap --test slice --test heap";
/// Parts of the names of a short selection.
const BY_HAND_NAMES_SMOKE: &str = "soundness:: owners:: lent:: held::";
/// Valgrind moves no pages without unmapping them (`MREMAP_DONTUNMAP`), as the heap does to use
/// huge pages; and in the child of a fork it reports what the other threads of the process hold as
/// leaked.
const NOT_BY_VALGRIND: &str = "--skip on_huge_pages --skip become_huge --skip a_child_is_refused";
/// A report ends the program; a slice that a test keeps for ever is no leak.
const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite \
                        --errors-for-leak-kinds=definite";

/// Runs them with the options `--smoke`, a short selection of tests, and `--only T`, one of them
/// alone. True if nothing failed.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let (mut smoke, mut only) = (false, "");
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--smoke" => smoke = true,
            "--only" => only = options.next().ok_or("--only takes the beginning of a name")?,
            other => return Err(format!("expected --smoke or --only T, found {other:?}")),
        }
    }
    let mut tools = tools(smoke, &tools::host()?);
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    tools.retain(|tool| tool.name.starts_with(only));
    if tools.is_empty() {
        return Err(format!("expected the beginning of one of {names:?}, found {only:?}"));
    }
    Ok(parts::summarise(&tools::run_all(&tools, &Workspace::load()?.root)))
}

/// The short selection.
pub(crate) fn smoke(workspace: &Workspace) -> Result<Vec<Part>, String> {
    Ok(tools::run_all(&tools(true, &tools::host()?), &workspace.root))
}

fn tools(smoke: bool, host: &str) -> Vec<Tool> {
    let variables = |name: &str, flags: &str| {
        let directory = format!("target/sanitize/{name}");
        vec![("CARGO_TARGET_DIR", directory), ("RUSTFLAGS", flags.to_owned())]
    };
    let all = format!("--workspace {EXCLUDED} --lib --bins --tests");
    let address = if smoke { ADDRESS_SMOKE } else { &all };
    let (concurrent, filters) = match smoke {
        true => (CONCURRENT_SMOKE, WITH_THREADS_SMOKE),
        false => (CONCURRENT, WITH_THREADS),
    };
    let (by_hand, names) = match smoke {
        true => (BY_HAND_SMOKE, BY_HAND_NAMES_SMOKE),
        false => (BY_HAND, ""),
    };
    vec![
        Tool {
            name: "address sanitizer".to_owned(),
            nightly: true,
            arguments: format!(
                "test --quiet --target {host} --no-fail-fast {address} -- {UNWATCHED}"
            ),
            variables: variables("address", "-Zsanitizer=address"),
            missing: tools::missing_nightly(""),
        },
        Tool {
            name: "thread sanitizer".to_owned(),
            nightly: true,
            arguments: format!(
                "test --quiet --target {host} -Zbuild-std --no-fail-fast {concurrent} \
                 -- --test-threads 1 {filters}"
            ),
            variables: variables("thread", "-Zsanitizer=thread"),
            missing: tools::missing_nightly("rust-src"),
        },
        // In the usual folder: its build is the same with and without valgrind.
        Tool {
            name: "valgrind".to_owned(),
            nightly: false,
            arguments: format!(
                "test --quiet --config 'target.{host}.runner=\"{VALGRIND}\"' --no-fail-fast {by_hand} \
                 -- {NOT_BY_VALGRIND} {names}"
            )
            .trim_end()
            .to_owned(),
            variables: Vec::new(),
            missing: tools::missing_program("valgrind"),
        },
    ]
}
