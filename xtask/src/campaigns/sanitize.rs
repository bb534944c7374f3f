//! `cargo xtask sanitize`: the tests, watched by what finds accesses that no test would notice.
//!
//! Purpose: the address sanitizer over all tests of Rust, the thread sanitizer over those with threads, valgrind
//! over those of the crates that access memory by hand. The sanitizers need a nightly toolchain, that of threads the
//! component `rust-src`, too: a standard library that it does not see into hides what orders accesses. What
//! cannot run on this machine is named, with the reason.
//! Thread safety: none needed.
//!
//! Left out, and why: the tests of capi and of the Python package build or load libraries into programs without
//! the runtime of a sanitizer (those in C are run under valgrind and the address sanitizer by capi's own tests);
//! those of xtask access nothing. A pool's memory is mapped by system calls that sanitizers do not intercept:
//! they see accesses to it, and what orders these, but not that it is given back, so that a sanitizer says nothing
//! of a slice that outlives its mapping; the tests of `lent` do. And that of threads would take two tests side by
//! side, of which one gets addresses that the other has given back, for a race: it runs one test at a time.

use crate::source::workspace::Workspace;
use crate::testing::parts::{self, Part};
use crate::testing::tools::{self, Tool};

/// What the sanitizers leave out: see above.
const EXCLUDED: &str = "--exclude adamant-capi --exclude adamant-python --exclude xtask";

/// The crates that access memory by hand, as far as their tests take seconds.
const ADDRESS_SMOKE: &str = "-p adamant-slice -p adamant-medium --all-features --lib --tests";
/// One limits the memory of its process, of which the sanitizers need terabytes for themselves; two
/// measure it, and what the sanitizer puts around each allocation with it. The last ones plant a mistake at each
/// site in turn and go through what the tests beside them do, which takes longer than all others together.
const UNWATCHED: &str = "--skip a_region_takes_what_the_limits_allow --skip five_thousand_connections \
                         --skip large_requests_of_many --skip left_out";

/// Programs with tests that have threads, by package.
const CONCURRENT: &str = "-p adamant-slice -p adamant-medium -p adamant-heap -p adamant-lsm -p adamant \
                          --lib --test owners --test heap --test lent --test cache \
                          --test tree --test backup --test exclusive --test lsm --test pieces";
/// What their names have in them.
const WITH_THREADS: &str = "thread gate group commit keeper order readers seat turns lent pieces \
                            meanwhile beside skip_list whole huge serializability exclusive pulse \
                            publishes freeing_twice others_wait closing_ends";
const CONCURRENT_SMOKE: &str = "-p adamant-slice -p adamant-heap --lib --test owners --test lent";
const WITH_THREADS_SMOKE: &str = "thread gate group order readers seat turns lent";

/// Of the slice, and of the heap: by themselves. Built together with all others `rustix` reads the mapping of the
/// kernel's own functions, which valgrind hides.
const BY_HAND: &str = "-p adamant-slice -p adamant-heap --lib --test soundness --test owners --test heap \
                       --test lent --test held --test growth --test hostile --test salvage";
const BY_HAND_SMOKE: &str =
    "-p adamant-slice -p adamant-heap --test soundness --test owners --test lent --test held";
/// Valgrind moves no pages without unmapping them (`MREMAP_DONTUNMAP`), as huge ones are put in place; and what the
/// other threads of a process hold is leaked to it in the child of a fork.
const NOT_BY_VALGRIND: &str = "--skip on_huge_pages --skip become_huge --skip a_child_is_refused";
/// Reports end the program; a slice that is lent for ever is no leak to a test.
const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite \
                        --errors-for-leak-kinds=definite";

/// Runs them with the options `--smoke`, a short choice of tests, and `--only T`, one of them alone. True if
/// nothing failed.
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

/// The short choice.
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
    let by_hand = if smoke { BY_HAND_SMOKE } else { BY_HAND };
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
        // In the usual folder: what is built for it is no other than without it.
        Tool {
            name: "valgrind".to_owned(),
            nightly: false,
            arguments: format!(
                "test --quiet --config 'target.{host}.runner=\"{VALGRIND}\"' --no-fail-fast {by_hand} \
                 -- {NOT_BY_VALGRIND}"
            ),
            variables: Vec::new(),
            missing: tools::missing_program("valgrind"),
        },
    ]
}
