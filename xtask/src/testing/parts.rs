//! The parts of a test run: a command each, its seconds, and the output of its tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::testing::together;

/// Tests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    /// The sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// The time of a part: seconds, and processor seconds of the programs that it ran. A busy machine
/// changes the first by a factor of two, the second hardly; without support by the system they are
/// 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    pub(crate) seconds: f64,
    processor_seconds: f64,
}

/// The start of a part.
pub(crate) struct Clock {
    start: Instant,
    processor_seconds: f64,
}

impl Clock {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), processor_seconds: processor_seconds_of_children() }
    }

    /// The time since then.
    pub(crate) fn took(&self) -> Took {
        Took {
            seconds: self.start.elapsed().as_secs_f64(),
            processor_seconds: processor_seconds_of_children() - self.processor_seconds,
        }
    }
}

/// Of all programs that this process ran and waited for, and of those that they waited for (Linux:
/// `proc(5)`, `cutime` and `cstime`, in ticks of 10 ms on every machine that Rust runs on).
fn processor_seconds_of_children() -> f64 {
    let status = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in brackets, may have spaces; fields 16 and 17 of the whole are 13 and 14
    // after it.
    let behind_name = status.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks =
        behind_name.split(' ').skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// The start of the line in which a test says why it did nothing.
const SKIPPED: &str = "skipped: ";

/// A part that ran.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) took: Took,
    pub(crate) counts: Counts,
    /// It reported no tests, and counts as one.
    pub(crate) is_command: bool,
    /// Skipped work, with the reasons.
    pub(crate) skipped: Vec<String>,
    /// The tests of it that failed; for a command, the end of its output.
    pub(crate) failed: Vec<String>,
}

impl Part {
    /// For a part that ran beside others, whose figures include its processor seconds.
    pub(crate) fn beside_others(mut self) -> Self {
        self.took.processor_seconds = 0.0;
        self
    }
}

/// Lines at the end of a command's output that are repeated at the very end: of a truncated log
/// that is the visible part.
const LAST_LINES: usize = 30;

/// Runs cargo with `arguments` in the folder `root`, as a part.
pub(crate) fn run(
    root: &Path,
    name: &str,
    arguments: &[&str],
    variables: &[(&str, String)],
) -> Part {
    println!("== {name}: cargo {}", arguments.join(" "));
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    of(name, command.current_dir(root))
}

/// The same with the words of a line, in which [`together::words`] replaces names of sets.
pub(crate) fn run_line(root: &Path, name: &str, line: &str, variables: &[(&str, String)]) -> Part {
    let words = together::words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(root, name, &words, variables)
}

/// Runs a command and counts the tests that libtest reports; a command without any counts as one
/// test. Shows only the tests' own output of a part that passes, and the failures of one that
/// fails.
pub(crate) fn of(name: &str, command: &mut Command) -> Part {
    let clock = Clock::start();
    let (lines, succeeded) = match output(command) {
        Ok(done) => done,
        Err(problem) => (vec![problem], false),
    };
    let mut counts =
        lines.iter().filter_map(|line| result_line(line)).fold(Counts::default(), Counts::plus);
    let is_command = counts == Counts::default();
    if succeeded && is_command {
        counts.passed = 1;
    } else if !succeeded && counts.failed == 0 {
        counts.failed = 1;
    }
    let mut failed = Vec::new();
    if counts.failed > 0 {
        let failures: Vec<&String> = failures(&lines).collect();
        failed = names(&failures);
        // A command that is no test, or failed earlier: all of its output.
        let shown = if failures.is_empty() { lines.iter().collect() } else { failures };
        shown.iter().for_each(|line| println!("{line}"));
        if failed.is_empty() {
            failed = last(&lines);
        }
    } else {
        reports(&lines).for_each(|line| println!("   {line}"));
    }
    let mut skipped: Vec<String> = lines.iter().filter_map(|line| ignored(line)).collect();
    // A test that cannot work here says so and returns, and counts as passed. A command that leaves
    // out a part of its work, as an item of a list, has done the rest.
    let left_out = lines.iter().filter_map(|line| {
        line.strip_prefix("- ").filter(|_| is_command).unwrap_or(line).strip_prefix(SKIPPED)
    });
    for what in left_out {
        skipped.push(what.to_owned());
        counts.passed = counts.passed.saturating_sub(u64::from(!is_command));
        counts.skipped += 1;
    }
    Part { name: name.to_owned(), took: clock.took(), counts, is_command, skipped, failed }
}

/// Disables backtraces of a command: tests of crashes panic thousands of times to see whether a
/// fault is noticed, and backtraces would be most of the log, and a fourteenth of the time.
pub(crate) fn without_stacks(command: &mut Command) -> &mut Command {
    command.env("RUST_BACKTRACE", "0")
}

/// The lines of standard output, and whether the command succeeded. Passes standard error on.
pub(crate) fn output(command: &mut Command) -> Result<(Vec<String>, bool), String> {
    let command = without_stacks(command);
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |what: &str, error| format!("could not {what} {program}: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| failed("run", error))?;
    let mut lines = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|error| failed("read the output of", error))?;
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
    }
    let status = child.wait().map_err(|error| failed("wait for", error))?;
    Ok((lines, status.success()))
}

/// Prints the table. True if nothing failed.
pub(crate) fn summarise(ran: &[Part]) -> bool {
    println!();
    println!(
        "{:>9}  {:>9}  {:>6}  {:>6}  {:>7}  part",
        "seconds", "processor", "passed", "failed", "skipped"
    );
    let mut all = Took::default();
    for Part { name, took: Took { seconds, processor_seconds }, counts, .. } in ran {
        let Counts { passed, failed, skipped } = counts;
        println!(
            "{seconds:9.1}  {processor_seconds:9.1}  {passed:6}  {failed:6}  {skipped:7}  {name}"
        );
        all.seconds += seconds;
        all.processor_seconds += processor_seconds;
    }
    println!("{:9.1}  {:9.1}  together", all.seconds, all.processor_seconds);
    let total = ran.iter().map(|part| part.counts).fold(Counts::default(), Counts::plus);
    for part in ran {
        part.skipped.iter().for_each(|what| println!("skipped in {}: {what}", part.name));
    }
    for part in ran {
        part.failed.iter().for_each(|what| println!("failed in {}: {what}", part.name));
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    total.failed == 0
}

/// The counts of a line such as
/// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out`.
fn result_line(line: &str) -> Option<Counts> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = Counts::default();
    for field in numbers.split("; ") {
        let Some((number, word)) = field.split_once(' ') else { continue };
        let target = match word {
            "passed" => &mut counts.passed,
            "failed" => &mut counts.failed,
            "ignored" => &mut counts.skipped,
            _ => continue,
        };
        *target = number.parse().ok()?;
    }
    Some(counts)
}

/// The name and reason in a line such as `test a::b ... ignored, takes an hour`.
fn ignored(line: &str) -> Option<String> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = outcome.strip_prefix("ignored")?;
    Some(format!("{name}: ignored{reason}"))
}

/// libtest's report of failed tests: from `failures:` to the result of their program.
fn failures(lines: &[String]) -> impl Iterator<Item = &String> {
    let mut inside = false;
    lines.iter().filter(move |line| {
        let ends = line.starts_with("test result: ");
        let shown = inside || line.as_str() == "failures:";
        inside = shown && !ends;
        shown
    })
}

/// The names in libtest's list after its reports: lines that are indented by four.
fn names(failures: &[&String]) -> Vec<String> {
    let lists = failures.iter().scan(0, |seen, line| {
        *seen = match line.as_str() {
            "failures:" => *seen + 1,
            line if line.starts_with("test result: ") => 0,
            _ => *seen,
        };
        Some((*seen, line))
    });
    let listed = lists.filter(|(seen, line)| *seen == 2 && line.starts_with("    "));
    listed.map(|(_, line)| line.trim().to_owned()).collect()
}

/// The end of a command's output.
pub(crate) fn last(lines: &[String]) -> Vec<String> {
    lines[lines.len().saturating_sub(LAST_LINES)..].to_vec()
}

/// The output of passed tests, with `--show-output`: sections that open with `---- name stdout
/// ----` and end before libtest's list of names.
fn reports(lines: &[String]) -> impl Iterator<Item = &String> {
    let mut inside = false;
    lines.iter().filter(move |line| {
        if line.starts_with("---- ") {
            inside = true;
        } else if line.as_str() == "successes:" || line.starts_with("test result: ") {
            inside = false;
        }
        inside && !line.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_result_lines() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.01s";
        assert_eq!(result_line(line), Some(Counts { passed: 12, failed: 3, skipped: 1 }));
        assert_eq!(result_line("test a::b ... ok"), None);
        assert_eq!(ignored("test a::b ... ok"), None);
        let line = "test a::b ... ignored, takes an hour";
        assert_eq!(ignored(line).as_deref(), Some("a::b: ignored, takes an hour"));
    }

    #[test]
    fn shows_failures_only() {
        let text = "test a ... ok\ntest b ... FAILED\n\nfailures:\n---- b stdout ----\nwhy\n\
                    failures:\n    b\ntest result: FAILED. 1 passed; 1 failed\nrunning 1 test";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let failures: Vec<&String> = failures(&lines).collect();
        assert_eq!((failures.len(), names(&failures)), (6, vec!["b".to_owned()]));
    }

    #[test]
    fn of_a_command_the_end_is_said_again() {
        let lines: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(last(&lines).len(), LAST_LINES);
        assert_eq!(last(&lines).last(), lines.last());
        assert_eq!(last(&lines[..3]), lines[..3]);
    }

    #[test]
    fn shows_what_tests_printed() {
        let text = "test a ... ok\n\nsuccesses:\n\n---- a stdout ----\n123 crash points\n\n\nsuccesses:\n    a\n\ntest result: ok. 1 passed";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let shown: Vec<&String> = reports(&lines).collect();
        assert_eq!(shown, ["---- a stdout ----", "123 crash points"]);
    }
}
