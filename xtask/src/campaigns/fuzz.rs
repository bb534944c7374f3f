//! `cargo xtask fuzz`: coverage-guided fuzzing.
//!
//! Purpose: runs the targets of testing/fuzz, each for its share of the time, and reports the
//! number of executions as a line of `proof_lines.rs`. They begin with the programs of
//! testing/fuzz/corpus, to which nothing is added; the finds of a run stay in target/fuzz. They
//! need a nightly toolchain, for coverage and the address sanitizer. A test of adamant-scenarios
//! runs most of them without either.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::source::workspace::Workspace;
use crate::testing::tools::{host, missing_nightly};
use crate::testing::workers::side_by_side;

/// All targets.
const TARGETS: [&str; 8] =
    ["slice", "table", "blob", "encrypted", "store", "log", "operations", "import"];
/// Default seconds of a target, and those of a short run.
const SECONDS: u64 = 60;
const SECONDS_SMOKE: u64 = 5;
/// The build profile, and that of a short run, which would otherwise compile for longer than it
/// fuzzes.
const PROFILE: &str = "release";
const PROFILE_SMOKE: &str = "smoke";
/// A program that takes longer hangs: even a slow one on a busy machine takes less.
const PROGRAM_SECONDS_MAX: u64 = 60;
/// Maximum megabytes of one allocation, and in all: no program justifies more.
const ALLOCATION_MEGABYTES_MAX: u64 = 256;
const MEGABYTES_MAX: u64 = 2048;
/// The flags for branch coverage.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares \
                     --cfg fuzzing -Zsanitizer=address";
/// The build folder, and the folder of finds, under the root.
const DIRECTORY: &str = "target/fuzz";
/// The fuzzer's line with the number of executions.
const EXECUTED: &str = "stat::number_of_executed_units:";

/// The parsed options.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    targets: Vec<&'static str>,
    /// For each target.
    seconds: u64,
    /// The build profile.
    profile: &'static str,
    /// Seed of the random changes; without one they differ from run to run.
    seed: Option<u32>,
}

/// Runs the fuzzer with the options `--smoke`, `--seconds N` (for all targets together), `--target
/// T` and `--seed N`. True if nothing failed.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let asked = asked(options)?;
    if let Some(why) = missing_nightly("") {
        println!("skipped: fuzz targets: {why}");
        return Ok(true);
    }
    let (root, host) = (Workspace::load()?.root, host()?);
    // A failed build, perhaps for lack of a package, has lost nothing.
    let built = build(&root, &host, &asked).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("could not build the fuzz targets".to_owned());
    }
    let programs = root.join(DIRECTORY).join(host).join(asked.profile);
    // A target uses one processor; the short ones would leave the others idle.
    side_by_side(asked.targets.clone(), |target| fuzz(&root, &programs, target, &asked))
}

fn asked(options: &[&str]) -> Result<Asked, String> {
    let (mut targets, mut total, mut smoke, mut seed) = (TARGETS.to_vec(), None, false, None);
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or_else(|| format!("{option} takes a value"));
        let number = |text: &str| {
            let wrong = |_| format!("{option} takes a number, found {text:?}");
            text.parse::<u64>().map_err(wrong)
        };
        match option {
            "--smoke" => smoke = true,
            "--seconds" => total = Some(number(value()?)?),
            // The fuzzer replaces seed 0 by a random one.
            "--seed" => seed = Some((number(value()?)? as u32).max(1)),
            "--target" => {
                let name = value()?;
                targets.retain(|&target| target == name);
                if targets.is_empty() {
                    return Err(format!("there is no target {name:?}, there are {TARGETS:?}"));
                }
            }
            other => {
                let known = "--smoke, --seconds N, --target T or --seed N";
                return Err(format!("expected {known}, found {other:?}"));
            }
        }
    }
    let each = if smoke { SECONDS_SMOKE } else { SECONDS };
    let seconds = total.map_or(each, |total| (total / targets.len() as u64).max(1));
    let profile = if smoke { PROFILE_SMOKE } else { PROFILE };
    Ok(Asked { targets, seconds, profile, seed })
}

/// Runs one target; true unless it failed.
fn fuzz(root: &Path, programs: &Path, target: &str, asked: &Asked) -> Result<bool, String> {
    println!("{target}, {} s", asked.seconds);
    let found = format!("{DIRECTORY}/corpus/{target}");
    fs::create_dir_all(root.join(&found)).map_err(|error| format!("{found}: {error}"))?;
    let mut command = Command::new(programs.join(target));
    command
        .args([&found, &format!("testing/fuzz/corpus/{target}")])
        .arg(format!("-max_total_time={}", asked.seconds))
        .arg(format!("-timeout={PROGRAM_SECONDS_MAX}"))
        .arg(format!("-malloc_limit_mb={ALLOCATION_MEGABYTES_MAX}"))
        .arg(format!("-rss_limit_mb={MEGABYTES_MAX}"))
        .args(["-max_len=4096", "-verbosity=0", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={DIRECTORY}/{target}-"))
        .args(asked.seed.map(|seed| format!("-seed={seed}")))
        .current_dir(root)
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("could not run {target}: {error}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success();
    if !passed {
        // They include the failing program, and where it was kept.
        eprintln!("{words}");
    }
    let (executed, losses) = (executed(&words), u64::from(!passed));
    println!("proof\tfuzz\t{target}\t{executed}\t{losses}");
    Ok(passed)
}

/// Cargo of the nightly toolchain, which builds the targets in their workspace.
fn build(root: &Path, host: &str, asked: &Asked) -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo", "build", "--quiet", "--locked"])
        .args(asked.targets.iter().flat_map(|&target| ["--bin", target]))
        .args(["--profile", asked.profile])
        .args(["--manifest-path", "testing/fuzz/Cargo.toml", "--target", host])
        .env("CARGO_TARGET_DIR", DIRECTORY)
        .env("RUSTFLAGS", FLAGS)
        .current_dir(root)
        .stdin(Stdio::null());
    command
}

/// The number of programs that it has run, if it prints it.
fn executed(words: &str) -> u64 {
    let numbers = words.lines().filter_map(|line| line.strip_prefix(EXECUTED));
    numbers.filter_map(|number| number.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read() {
        let words = "Done\nstat::number_of_executed_units: 1234\nstat::average_exec_per_sec: 9\n";
        assert_eq!(executed(words), 1234);
        assert_eq!(executed("ERROR: libFuzzer: deadly signal"), 0);
    }

    #[test]
    fn options_are_read() {
        let all = TARGETS.to_vec();
        let count = all.len() as u64;
        let (seconds, profile) = (SECONDS_SMOKE, PROFILE_SMOKE);
        let expected = Asked { targets: all.clone(), seconds, profile, seed: None };
        assert_eq!(asked(&["--smoke"]), Ok(expected));
        let seconds = (7 * count).to_string();
        let profile = PROFILE;
        let expected = Asked { targets: all, seconds: 7, profile, seed: Some(5) };
        assert_eq!(asked(&["--seconds", &seconds, "--seed", "5"]), Ok(expected));
        let expected = Asked { targets: vec!["table"], seconds: 9, profile, seed: None };
        assert_eq!(asked(&["--target", "table", "--seconds", "9"]), Ok(expected));
        assert!(asked(&["--target", "tables"]).is_err() && asked(&["--hours", "3"]).is_err());
    }

    #[test]
    fn every_target_has_a_program_and_a_corpus() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/fuzz");
        for target in TARGETS {
            assert!(directory.join(format!("src/{target}.rs")).exists(), "{target}");
            let kept = fs::read_dir(directory.join("corpus").join(target)).unwrap();
            assert!(kept.count() > 0, "{target}");
        }
    }
}
