//! Command line arguments.

use std::path::PathBuf;
use std::time::Duration;

use adamant_bench::commands::bounded;
use adamant_bench::commands::bplus;
use adamant_bench::commands::heap::{self, Medium};
use adamant_bench::commands::kv::Settings;
use adamant_bench::commands::lsm;
use adamant_bench::commands::maps;
use adamant_bench::commands::slice;
use adamant_bench::commands::splits;
use adamant_bench::commands::transactions;
use adamant_bench::workload::{kill, memory};

/// The text of `--help`.
pub(crate) const USAGE: &str = "\
usage: adamant-bench kv [options]
       adamant-bench heap [options]
       adamant-bench maps [options]
       adamant-bench bplus [options]
       adamant-bench splits [options]
       adamant-bench slice [options]
       adamant-bench transactions [options]
       adamant-bench memory [options]
       adamant-bench lsm [options]

kv            a keyspace of byte strings, beside the raw disk and a BTreeMap

--quick             under 40 seconds: 300,000 entries, fewer rounds
--entries N         entries of 20 + 100 bytes (default 1,000,000)
--large-entries N   entries of 20 + 800 bytes (default 300,000)
--rounds N          rounds that every engine takes part in (default 5)
--log-bytes-max N   bytes of log that a store may keep (default 128 MiB)
--seed N            where everything random comes from (default 1)
--path DIR          where to work (default: the current directory); all is removed at the end
--json FILE         also write the rows as JSON lines

heap          the persistent heap by itself, on each medium

--quick             3 rounds instead of 5, fewer operations
--medium NAME      only this medium: memory or files
--group NAME        only this group of rows
--operations N      single operations of a row (default 200,000)
--inserts N         inserts of one transaction, objects of a heap (default 1,000,000)
--frees N           objects freed by the largest transaction (default 100,000)
--large N           operations of a transaction whose memory is measured (default 10,000,000)
--sizes N           sizes, of 41,943, whose fragmentation is measured (default: all)
--rounds N, --path DIR, --json FILE: as above, but for memory the default is tmpfs
                    (a tmpfs), where there is one

maps          the ordered maps on a heap: random u64 keys, by transactions of all, one, and 1,000

--quick             100,000 pairs instead of 1,000,000
--pairs N           pairs
--structure NAME    only this structure, such as critbit or btree-16
--rounds N (default 1), --path DIR, --json FILE: as above; the default is memory (a tmpfs),
                    where there is some

bplus         the B+ tree: keys of 20 bytes, values of 800 and 15, in order and at random

--quick             150,000 pairs instead of 1,000,000
--pairs N           pairs
--scans N           scans of 100 pairs (default 100,000)
--rounds N (default 1), --path DIR, --json FILE: as above; the default is memory (a tmpfs),
                    where there is some

splits        three ways of splitting a leaf, and what each costs

--quick             100,000 pairs instead of 1,000,000, one round instead of 3
--pairs N           pairs
--markdown FILE     also write a page: docs/splits.md
--rounds N, --path DIR, --json FILE: as above

slice         the string of bytes that keys and values are, beside a vector

--quick             3 rounds instead of 7
--operations N      operations of a batch (default 40,000)
--strings N         strings that are sorted and searched (default 1,000,000)
--records N         records of a block that is read (default 2,000)
--rounds N, --json FILE: as above

transactions  snapshots, transactions, and how long readers and writers wait for one another

--quick             200,000 entries and smaller batches, one round instead of 3
--batch-bytes N     bytes of the batch beside which gets are timed (default 100,000,000)
--load-seconds N    seconds of the load that lasts (default 15)
--full-log-bytes N  bytes of the log that is filled twice (default 128 MiB)
--entries N, --rounds N, --seed N, --path DIR, --json FILE: as above

memory        a store of three times the memory that it may take, beside one without a bound

--quick             a bound of 32 MiB instead of 128
--memory-bytes N    the bound
--rounds N (default 1), --seed N, --path DIR, --json FILE: as above

lsm           the log-structured merge tree, with a cache of a tenth of the data

--quick             a tenth of everything
--entries N         entries of 20 + 100 bytes (default 5,000,000); of 20 + 1,024 a fifth of that
--sources           instead: parts of the engine, each by itself
--pairs N           of a table (default 1,000,000); with --sources only
--rounds N (default 1), --seed N, --path DIR, --json FILE: as above";

/// The parsed command.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Kv(KvArguments),
    Heap(HeapArguments),
    Maps(MapsArguments),
    Bplus(BplusArguments),
    Splits(SplitsArguments),
    Slice(SliceArguments),
    Transactions(TransactionsArguments),
    Bounded(BoundedArguments),
    Lsm(LsmArguments),
    LsmSources(LsmSourcesArguments),
    LsmChild { engine: String, task: Vec<String> },
    KillChild { engine: String, task: Vec<String> },
    MemoryChild { engine: String, task: Vec<String> },
    BplusMemoryChild { task: Vec<String> },
}

/// Time limit of a row, per entry.
const ENTRY_TIME_MAX: Duration = Duration::from_micros(5);

/// Arguments of `kv`.
#[derive(Debug)]
pub(crate) struct KvArguments {
    pub(crate) settings: Settings,
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `heap`.
#[derive(Debug)]
pub(crate) struct HeapArguments {
    pub(crate) settings: heap::Settings,
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `maps`.
#[derive(Debug)]
pub(crate) struct MapsArguments {
    pub(crate) settings: maps::Settings,
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `bplus`.
#[derive(Debug)]
pub(crate) struct BplusArguments {
    pub(crate) settings: bplus::Settings,
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `splits`.
#[derive(Debug)]
pub(crate) struct SplitsArguments {
    pub(crate) settings: splits::Settings,
    pub(crate) json: Option<PathBuf>,
    pub(crate) markdown: Option<PathBuf>,
}

/// Arguments of `slice`.
#[derive(Debug)]
pub(crate) struct SliceArguments {
    pub(crate) settings: slice::Settings,
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `transactions`.
#[derive(Debug)]
pub(crate) struct TransactionsArguments {
    pub(crate) settings: transactions::Settings,
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `memory`.
#[derive(Debug)]
pub(crate) struct BoundedArguments {
    pub(crate) settings: bounded::Settings,
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `lsm`.
#[derive(Debug)]
pub(crate) struct LsmArguments {
    pub(crate) settings: lsm::Settings,
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `lsm --sources`.
#[derive(Debug)]
pub(crate) struct LsmSourcesArguments {
    pub(crate) settings: lsm::SourcesSettings,
    pub(crate) json: Option<PathBuf>,
}

/// Minimum memory bound.
const MEMORY_BYTES_MIN: u64 = 4 << 20;
/// Minimum bytes of a log.
const LOG_BYTES_MIN: u64 = 4 << 20;

/// Minimum entries for a meaningful figure.
const ENTRIES_MIN: u64 = 1_000;

/// Minimum strings for a meaningful search.
const STRINGS_MIN: u64 = 100;

/// Parses the arguments, without the program's name.
pub(crate) fn parse(arguments: &[String]) -> Result<Command, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &words[..] {
        [] | ["help" | "--help" | "-h", ..] => Ok(Command::Help),
        [kill::CHILD_COMMAND, engine, ..] => {
            let task = arguments[2..].to_vec();
            Ok(Command::KillChild { engine: (*engine).to_owned(), task })
        }
        [memory::CHILD_COMMAND, engine, ..] => {
            let task = arguments[2..].to_vec();
            Ok(Command::MemoryChild { engine: (*engine).to_owned(), task })
        }
        [lsm::CHILD_COMMAND, engine, ..] => {
            let task = arguments[2..].to_vec();
            Ok(Command::LsmChild { engine: (*engine).to_owned(), task })
        }
        [bplus::CHILD_COMMAND, ..] => {
            Ok(Command::BplusMemoryChild { task: arguments[1..].to_vec() })
        }
        ["kv", options @ ..] => parse_kv(options),
        ["heap", options @ ..] => parse_heap(options),
        ["maps", options @ ..] => parse_maps(options),
        ["bplus", options @ ..] => parse_bplus(options),
        ["splits", options @ ..] => parse_splits(options),
        ["slice", options @ ..] => parse_slice(options),
        ["transactions", options @ ..] => parse_transactions(options),
        ["memory", options @ ..] => parse_bounded(options),
        ["lsm", options @ ..] if options.contains(&"--sources") => parse_lsm_sources(options),
        ["lsm", options @ ..] => parse_lsm(options),
        [other, ..] => Err(format!("there is no subcommand {other}")),
    }
}

/// The result of parsing options.
enum Options {
    /// Help is requested.
    Help,
    /// All were parsed; the rows also go to this file.
    Read { json: Option<PathBuf> },
}

/// Parses the options of all subcommands, and passes the others to `set`, with a function that
/// returns the value after one; `set` returns whether there is such an option.
fn read_options<'a>(
    options: &[&'a str],
    mut set: impl FnMut(&str, &mut dyn FnMut() -> Result<&'a str, String>) -> Result<bool, String>,
) -> Result<Options, String> {
    let mut json = None;
    let mut options = options.iter();
    while let Some(&option) = options.next() {
        let mut value =
            || options.next().copied().ok_or_else(|| format!("{option} needs a value after it"));
        match option {
            "--quick" => {}
            "--help" | "-h" => return Ok(Options::Help),
            "--json" => json = Some(value()?.into()),
            _ if set(option, &mut value)? => {}
            _ => return Err(format!("there is no option {option}")),
        }
    }
    Ok(Options::Read { json })
}

fn parse_kv(options: &[&str]) -> Result<Command, String> {
    let path = PathBuf::from(".");
    let is_quick = options.contains(&"--quick");
    let mut settings = if is_quick { Settings::quick(path) } else { Settings::full(path) };
    let read = read_options(options, |option, value| {
        match option {
            "--entries" => settings.entries = number(option, value()?, ENTRIES_MIN)?,
            "--large-entries" => settings.large_entries = number(option, value()?, ENTRIES_MIN)?,
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--log-bytes-max" => settings.log_bytes_max = number(option, value()?, 1)?,
            "--seed" => settings.seed = number(option, value()?, 0)?,
            "--path" => settings.path = value()?.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    // No row does more operations than there are entries.
    settings.gets = settings.gets.min(settings.entries);
    settings.puts = settings.puts.min(settings.entries);
    settings.killed_puts = settings.killed_puts.min(settings.entries);
    // A small run only shows that it works, not how fast.
    let time_max =
        ENTRY_TIME_MAX.saturating_mul(u32::try_from(settings.entries).unwrap_or(u32::MAX));
    settings.row_time = settings.row_time.min(time_max);
    Ok(Command::Kv(KvArguments { settings, json }))
}

fn parse_heap(options: &[&str]) -> Result<Command, String> {
    let is_quick = options.contains(&"--quick");
    let mut settings = if is_quick { heap::Settings::quick() } else { heap::Settings::full() };
    let read = read_options(options, |option, value| {
        match option {
            "--medium" => settings.media = vec![medium(value()?)?],
            "--group" => settings.group = Some(value()?.to_owned()),
            "--operations" => settings.operations = number(option, value()?, 1)?,
            "--inserts" => settings.inserts = number(option, value()?, 1)?,
            "--frees" => settings.frees_max = number(option, value()?, 10)?,
            "--large" => settings.large_operations = number(option, value()?, ENTRIES_MIN)?,
            "--sizes" => settings.sizes = number(option, value()?, 1)?,
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--path" => settings.path = Some(value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::Heap(HeapArguments { settings, json }))
}

fn parse_maps(options: &[&str]) -> Result<Command, String> {
    let is_quick = options.contains(&"--quick");
    let mut settings = if is_quick { maps::Settings::quick() } else { maps::Settings::full() };
    let read = read_options(options, |option, value| {
        match option {
            "--pairs" => settings.pairs = number(option, value()?, 1)?,
            "--structure" => settings.structure = Some(value()?.to_owned()),
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--path" => settings.path = Some(value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::Maps(MapsArguments { settings, json }))
}

fn parse_bplus(options: &[&str]) -> Result<Command, String> {
    let is_quick = options.contains(&"--quick");
    let mut settings = if is_quick { bplus::Settings::quick() } else { bplus::Settings::full() };
    let read = read_options(options, |option, value| {
        match option {
            "--pairs" => settings.pairs = u64::from(number::<u32>(option, value()?, ENTRIES_MIN)?),
            "--scans" => settings.scans = number(option, value()?, 1)?,
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--path" => settings.path = Some(value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::Bplus(BplusArguments { settings, json }))
}

fn parse_splits(options: &[&str]) -> Result<Command, String> {
    let is_quick = options.contains(&"--quick");
    let mut settings = if is_quick { splits::Settings::quick() } else { splits::Settings::full() };
    let mut markdown = None;
    let read = read_options(options, |option, value| {
        match option {
            "--pairs" => settings.pairs = number(option, value()?, 100)?,
            "--markdown" => markdown = Some(value()?.into()),
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--path" => settings.path = Some(value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::Splits(SplitsArguments { settings, json, markdown }))
}

fn medium(name: &str) -> Result<Medium, String> {
    Medium::of(name).ok_or_else(|| format!("there is no medium {name}"))
}

fn parse_slice(options: &[&str]) -> Result<Command, String> {
    let is_quick = options.contains(&"--quick");
    let mut settings = if is_quick { slice::Settings::quick() } else { slice::Settings::full() };
    let read = read_options(options, |option, value| {
        match option {
            "--operations" => settings.operations = number(option, value()?, 1)?,
            "--strings" => settings.strings = number(option, value()?, STRINGS_MIN)?,
            "--records" => settings.records = number(option, value()?, 1)?,
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::Slice(SliceArguments { settings, json }))
}

fn parse_transactions(options: &[&str]) -> Result<Command, String> {
    let is_quick = options.contains(&"--quick");
    let mut settings =
        if is_quick { transactions::Settings::quick() } else { transactions::Settings::full() };
    let read = read_options(options, |option, value| {
        match option {
            "--entries" => settings.entries = number(option, value()?, ENTRIES_MIN)?,
            "--batch-bytes" => settings.batch_bytes = number(option, value()?, ENTRIES_MIN)?,
            "--full-log-bytes" => {
                settings.full_log_bytes = number(option, value()?, LOG_BYTES_MIN)?;
            }
            "--load-seconds" => {
                settings.load_time = Duration::from_secs(number(option, value()?, 1)?);
            }
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--seed" => settings.seed = number(option, value()?, 0)?,
            "--path" => settings.path = value()?.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::Transactions(TransactionsArguments { settings, json }))
}

fn parse_bounded(options: &[&str]) -> Result<Command, String> {
    let path = PathBuf::from(".");
    let is_quick = options.contains(&"--quick");
    let mut settings =
        if is_quick { bounded::Settings::quick(path) } else { bounded::Settings::full(path) };
    let read = read_options(options, |option, value| {
        match option {
            "--memory-bytes" => {
                let bytes = number(option, value()?, MEMORY_BYTES_MIN)?;
                let path = std::mem::take(&mut settings.path);
                let (seed, rounds) = (settings.seed, settings.rounds);
                settings = bounded::Settings { seed, rounds, ..bounded::Settings::of(path, bytes) };
            }
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--seed" => settings.seed = number(option, value()?, 0)?,
            "--path" => settings.path = value()?.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::Bounded(BoundedArguments { settings, json }))
}

fn parse_lsm(options: &[&str]) -> Result<Command, String> {
    let path = PathBuf::from(".");
    let is_quick = options.contains(&"--quick");
    let mut settings =
        if is_quick { lsm::Settings::quick(path) } else { lsm::Settings::full(path) };
    let read = read_options(options, |option, value| {
        match option {
            "--entries" => {
                settings = settings.clone().with_entries(number(option, value()?, ENTRIES_MIN)?);
            }
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--seed" => settings.seed = number(option, value()?, 0)?,
            "--path" => settings.path = value()?.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::Lsm(LsmArguments { settings, json }))
}

fn parse_lsm_sources(options: &[&str]) -> Result<Command, String> {
    let path = PathBuf::from(".");
    let is_quick = options.contains(&"--quick");
    let mut settings =
        if is_quick { lsm::SourcesSettings::quick(path) } else { lsm::SourcesSettings::full(path) };
    let read = read_options(options, |option, value| {
        match option {
            "--sources" => {}
            "--pairs" => settings.pairs = number(option, value()?, 1_000)?,
            "--rounds" => settings.rounds = number(option, value()?, 1)?,
            "--seed" => settings.seed = number(option, value()?, 0)?,
            "--path" => settings.path = value()?.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Options::Read { json } = read else { return Ok(Command::Help) };
    Ok(Command::LsmSources(LsmSourcesArguments { settings, json }))
}

/// A whole number of at least `least`; commas and underscores may stand between digits.
fn number<N>(option: &str, text: &str, least: u64) -> Result<N, String>
where
    N: TryFrom<u64>,
{
    let digits: String = text.chars().filter(|char| !matches!(char, ',' | '_')).collect();
    digits
        .parse::<u64>()
        .ok()
        .filter(|&number| number >= least)
        .and_then(|number| N::try_from(number).ok())
        .ok_or_else(|| format!("{option} needs a whole number of at least {least}, not {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Command, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let line = "kv --quick --entries 400,000 --rounds 2 --path here --json rows";
        let Ok(Command::Kv(arguments)) = parse_line(line) else { panic!("not read") };
        assert_eq!(arguments.settings.entries, 400_000);
        assert_eq!(arguments.settings.rounds, 2);
        assert_eq!(arguments.settings.path, PathBuf::from("here"));
        assert_eq!(arguments.json, Some(PathBuf::from("rows")));
        assert!(arguments.settings.large_entries < 300_000, "quick");
        assert!(matches!(parse_line("--help"), Ok(Command::Help)));
        let line = "lsm --quick --sources --pairs 5,000";
        let Ok(Command::LsmSources(arguments)) = parse_line(line) else { panic!("not read") };
        assert_eq!((arguments.settings.pairs, arguments.settings.reads), (5_000, 100_000));
    }

    #[test]
    fn mistakes_are_named() {
        for line in [
            "heap --medium none",
            "heap --frees 1",
            "maps --pairs 0",
            "bplus --pairs 5000000000",
            "slice --strings 1",
            "lsm --pairs 5000",
            "lsm --sources --pairs 12",
            "lsm --sources --entries 400000",
            "put",
            "kv --fast",
            "kv --entries",
            "kv --entries 12",
            "kv --rounds x",
        ] {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }

    #[test]
    fn quick_keeps_enough_entries_on_judged_rows() {
        assert!(Settings::quick(PathBuf::new()).entries >= 300_000);
    }
}
