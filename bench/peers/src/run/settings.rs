//! How much of everything, and the arguments of the command.
//!
//! Child processes get the same arguments again, so that they agree with their parent.

use std::path::PathBuf;
use std::time::Duration;

use adamant_bench::harness::error::Result;

use crate::run::calls::Amount;
use crate::run::datasets::{DATASETS, parts};
use crate::run::roster;

/// What `--help` prints.
pub const USAGE: &str = "\
usage: adamant-peers [options]        (cargo xtask peers [options])
       adamant-peers heap | slice | soak [options], each with its own --help

--quick             under 3 minutes: 300,000 entries, 2 rounds; the default
--full              under 30 minutes: 1,000,000 entries, 3 rounds
--smoke             whether it runs, not how fast: 2,000 entries, 1 round
--entries N         entries of 20 + 100 bytes
--dataset-entries N entries of the other datasets
--ycsb-entries N    entries of the workloads of YCSB, of 20 + 1,000 bytes
--rounds N          rounds that every engine takes part in
--engines A,B       only these, and adamant
--parts A,B         only these: main, bulk, ycsb, watch, memory, calls, suffixes of datasets
--records FILE      the real dataset: JSON lines of {\"key\": .., \"value\": ..}
--seed N            where everything random comes from (default 1)
--path DIR          where to work (default: the current directory); all is removed at the end
--output DIR        where benchmarks.md, benchmarks/ are written (default: docs)
--json FILE         where the rows are written (default: OUTPUT/benchmarks/rows.jsonl)
--from FILE         measure nothing: write the report again from such rows";

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `quick`, `full` or `smoke`.
    pub form: &'static str,
    /// Entries of the dataset that is judged.
    pub entries: u64,
    /// Entries of each other dataset.
    pub dataset_entries: u64,
    /// Entries of the workloads of YCSB, of 1,000 bytes.
    pub ycsb_entries: u64,
    /// Rounds of the judged workloads.
    pub rounds: u32,
    /// Rounds of the other datasets.
    pub dataset_rounds: u32,
    /// The other datasets, by their suffixes.
    pub datasets: Vec<&'static str>,
    /// Entries of the workloads that watch throughput.
    pub watch_entries: u64,
    /// Different keys drawn for the gets of a row.
    pub gets: u64,
    /// Single puts of a row that wait for no disk, at the most; operations of a mixture.
    pub puts: u64,
    /// Time of a row of gets, scans or single puts that wait for no disk.
    pub row_time: Duration,
    /// Turns of the disk and the engine in a round.
    pub turns: u32,
    /// Time of a row in a turn.
    pub turn_time: Duration,
    /// Time in which throughput is watched.
    pub watch_time: Duration,
    /// What is done under a trace of system calls.
    pub calls: Amount,
    /// Puts that a child reports before it is killed.
    pub killed_puts: u64,
    /// Bytes of log that Adamant may keep: its default.
    pub log_bytes_max: u64,
    /// Where everything random comes from.
    pub seed: u64,
    /// Engines that take part, in the order of the first round.
    pub engines: Vec<&'static str>,
    /// The only parts that are measured, or all if there are none.
    pub parts: Vec<String>,
    /// The real dataset; the repository's sample if none.
    pub records: Option<PathBuf>,
    /// A directory to work in.
    pub path: PathBuf,
    /// Where the report is written.
    pub output: PathBuf,
    /// Where the rows are written.
    pub json: Option<PathBuf>,
    /// Rows to report instead of measuring.
    pub from: Option<PathBuf>,
}

impl Settings {
    fn full() -> Self {
        Self {
            form: "full",
            entries: 1_000_000,
            dataset_entries: 200_000,
            ycsb_entries: 500_000,
            rounds: 3,
            dataset_rounds: 2,
            datasets: DATASETS.iter().map(|dataset| dataset.suffix).collect(),
            watch_entries: 1_000_000,
            gets: 500_000,
            puts: 300_000,
            row_time: Duration::from_millis(400),
            turns: 4,
            turn_time: Duration::from_millis(300),
            watch_time: Duration::from_secs(12),
            calls: Amount { entries: 100_000, synced_puts: 500, puts: 5_000 },
            killed_puts: 50_000,
            log_bytes_max: 128 << 20,
            seed: 1,
            engines: roster::ENTRIES.iter().map(|entry| entry.name).collect(),
            parts: Vec::new(),
            records: None,
            path: PathBuf::from("."),
            output: PathBuf::from("docs"),
            json: None,
            from: None,
        }
    }

    fn quick() -> Self {
        Self {
            form: "quick",
            entries: 300_000,
            dataset_entries: 50_000,
            ycsb_entries: 50_000,
            rounds: 2,
            dataset_rounds: 1,
            datasets: vec![".half800", ".real"],
            watch_entries: 100_000,
            gets: 200_000,
            puts: 60_000,
            row_time: Duration::from_millis(80),
            turns: 2,
            turn_time: Duration::from_millis(100),
            watch_time: Duration::from_millis(2_500),
            calls: Amount { entries: 20_000, synced_puts: 100, puts: 2_000 },
            killed_puts: 10_000,
            ..Self::full()
        }
    }

    fn smoke() -> Self {
        Self {
            form: "smoke",
            entries: 2_000,
            dataset_entries: 1_500,
            ycsb_entries: 1_000,
            rounds: 1,
            datasets: Self::full().datasets,
            watch_entries: 2_000,
            gets: 2_000,
            puts: 500,
            row_time: Duration::from_millis(10),
            turns: 1,
            turn_time: Duration::from_millis(10),
            calls: Amount { entries: 2_000, synced_puts: 20, puts: 100 },
            watch_time: Duration::from_millis(300),
            killed_puts: 200,
            ..Self::quick()
        }
    }

    /// Reads the arguments, without the program's name. `None`: help is asked for.
    ///
    /// # Errors
    /// An argument that is not understood, by its name.
    pub fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let has = |form: &str| arguments.iter().any(|argument| argument == form);
        let mut settings = match (has("--full"), has("--smoke")) {
            (true, _) => Self::full(),
            (_, true) => Self::smoke(),
            _ => Self::quick(),
        };
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--quick" | "--full" | "--smoke" => {}
                "--help" | "-h" | "help" => return Ok(None),
                "--entries" => settings.entries = number(option, value()?)?,
                "--dataset-entries" => settings.dataset_entries = number(option, value()?)?,
                "--ycsb-entries" => settings.ycsb_entries = number(option, value()?)?,
                "--rounds" => {
                    settings.rounds = u32::try_from(number(option, value()?)?)?;
                    settings.dataset_rounds = settings.dataset_rounds.min(settings.rounds);
                }
                "--seed" => settings.seed = number(option, value()?)?,
                "--engines" => settings.engines = engines(value()?)?,
                "--parts" => settings.parts = parts(value()?)?,
                "--records" => settings.records = Some(value()?.into()),
                "--path" => settings.path = value()?.into(),
                "--output" => settings.output = value()?.into(),
                "--json" => settings.json = Some(value()?.into()),
                "--from" => settings.from = Some(value()?.into()),
                _ => return Err(format!("there is no option {option}").into()),
            }
        }
        // No row does more operations than there are entries.
        settings.watch_entries = settings.watch_entries.min(settings.entries);
        settings.gets = settings.gets.min(settings.entries);
        settings.puts = settings.puts.min(settings.entries);
        settings.killed_puts = settings.killed_puts.min(settings.entries);
        Ok(Some(settings))
    }

    /// Where the rows are written.
    pub fn json_path(&self) -> PathBuf {
        let default = || self.output.join("benchmarks").join("rows.jsonl");
        self.json.clone().unwrap_or_else(default)
    }
}

/// The engines named, after the one that is compared with them.
fn engines(names: &str) -> Result<Vec<&'static str>> {
    let mut engines = vec![roster::JUDGED];
    for name in names.split(',').filter(|&name| name != roster::JUDGED) {
        let entry = roster::find(name).ok_or_else(|| format!("there is no engine {name} here"))?;
        engines.push(entry.name);
    }
    Ok(engines)
}

/// A whole number above 0; commas and underscores may stand between digits.
pub(crate) fn number(option: &str, text: &str) -> Result<u64> {
    let digits: String = text.chars().filter(|char| !matches!(char, ',' | '_')).collect();
    match digits.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{option} needs a whole number above 0, found {text}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Option<Settings>> {
        Settings::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let settings = parse_line("--full --entries 2,000 --engines redb").unwrap().unwrap();
        assert_eq!((settings.form, settings.entries, settings.gets), ("full", 2_000, 2_000));
        assert_eq!(settings.engines, ["adamant", "redb"]);
        assert_eq!(parse_line("--parts bulk,.real").unwrap().unwrap().parts, ["bulk", ".real"]);
        assert!(parse_line("--parts bulk,real").is_err(), "there is no such part");
        assert!(parse_line("").unwrap().unwrap().entries >= 300_000, "enough to be judged");
        assert!(parse_line("--help").unwrap().is_none());
    }

    #[test]
    fn mistakes_are_named() {
        for line in ["--fast", "--entries", "--entries x", "--engines none", "--rounds 0"] {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }
}
