//! How much of everything `adamant-peers heap` does, and its arguments.

use std::path::PathBuf;

use adamant_bench::commands::heap;
use adamant_bench::harness::error::Result;

use crate::run::settings::number;

/// What `heap --help` prints.
pub const USAGE: &str = "\
usage: adamant-peers heap [options]   (cargo xtask peers heap [options])

--quick             3 rounds, 100,000 operations; the default
--full              5 rounds, 200,000 operations, 1,000,000 inserts
--smoke             whether it runs, not how fast: 1 round
--rounds N          rounds that every library takes part in
--pmdk DIR          where the programs are that measure libpmemobj; xtask builds them
--memory DIR        memory that both work on directly (default: /dev/shm)
--path DIR          where Adamant works on files (default: the current directory)
--output DIR        where heap.md and heap/ are written (default: docs)
--from FILE         measure nothing: write the report again from such rows";

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `quick`, `full` or `smoke`.
    pub form: &'static str,
    /// Sizes, and rounds.
    pub work: heap::Settings,
    /// Mebibytes of the pool of libpmemobj whose creation is timed.
    pub large_pool_mib: u64,
    /// Folder of the programs that measure libpmemobj, where it is installed.
    pub pmdk: Option<PathBuf>,
    /// A folder on directly accessed memory.
    pub memory: PathBuf,
    /// A folder on a file system.
    pub path: PathBuf,
    /// Where the report is written.
    pub output: PathBuf,
    /// Rows to report instead of measuring.
    pub from: Option<PathBuf>,
}

impl Settings {
    fn of_form(form: &str) -> Self {
        let (form, work, large_pool_mib) = match form {
            "full" => ("full", heap::Settings::full(), 8192),
            "smoke" => ("smoke", smoke(), 64),
            _ => ("quick", heap::Settings::quick(), 8192),
        };
        Self {
            form,
            work,
            large_pool_mib,
            pmdk: None,
            memory: PathBuf::from("/dev/shm"),
            path: PathBuf::from("."),
            output: PathBuf::from("docs"),
            from: None,
        }
    }

    /// Reads the arguments after `heap`. `None`: help is asked for.
    ///
    /// # Errors
    /// An argument that is not understood, by its name.
    pub fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let forms = ["full", "smoke"];
        let asked = |form: &&str| arguments.iter().any(|argument| *argument == format!("--{form}"));
        let mut settings = Self::of_form(forms.into_iter().find(asked).unwrap_or_default());
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--quick" | "--full" | "--smoke" => {}
                "--help" | "-h" | "help" => return Ok(None),
                "--rounds" => settings.work.rounds = u32::try_from(number(option, value()?)?)?,
                "--pmdk" => settings.pmdk = Some(value()?.into()),
                "--memory" => settings.memory = value()?.into(),
                "--path" => settings.path = value()?.into(),
                "--output" => settings.output = value()?.into(),
                "--from" => settings.from = Some(value()?.into()),
                _ => return Err(format!("there is no option {option}").into()),
            }
        }
        Ok(Some(settings))
    }
}

fn smoke() -> heap::Settings {
    heap::Settings {
        operations: 1_000,
        inserts: 1_000,
        frees_max: 1_000,
        large_operations: 10_000,
        sizes: 100,
        rounds: 1,
        ..heap::Settings::quick()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Option<Settings>> {
        Settings::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_and_mistakes_are_named() {
        let settings = parse_line("--full --rounds 7 --memory there").unwrap().unwrap();
        assert_eq!((settings.form, settings.work.rounds), ("full", 7));
        assert_eq!(settings.memory, PathBuf::from("there"));
        assert_eq!(parse_line("").unwrap().unwrap().form, "quick");
        assert!(parse_line("--help").unwrap().is_none());
        for line in ["--fast", "--rounds", "--rounds 0"] {
            let error = parse_line(line).unwrap_err().to_string();
            assert!(error.contains(&line[..6]), "{error}");
        }
    }
}
