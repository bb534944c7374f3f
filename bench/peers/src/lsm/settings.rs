//! The arguments of `adamant-peers lsm`.

use std::path::PathBuf;

use adamant_bench::commands::lsm;
use adamant_bench::harness::error::Result;

use crate::run::settings::number;

/// What `lsm --help` prints.
pub const USAGE: &str = "\
usage: adamant-peers lsm [options]   (cargo xtask peers lsm [options])

--quick             a tenth of everything
--entries N         entries of 20 + 100 bytes (default 5,000,000); of 20 + 1,024 a fifth of that
--set B             only entries of that many bytes: 100 or 1024
--rounds N          rounds that every engine takes part in (default 1)
--output FILE       where the page is written, beside standard output
--sources           instead: parts of the engine, each by itself, under the allocators that are installed;
                    --output is then a folder, for the page and its pictures
--path DIR          where to work (default: the current directory); all is removed at the end";

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What each engine does in a round.
    pub lsm: lsm::Settings,
    /// Rounds.
    pub rounds: u32,
    /// Whether a tenth of everything.
    pub is_quick: bool,
    /// Whether parts of the engine are measured instead.
    pub is_sources: bool,
    /// Where the page is written.
    pub output: Option<PathBuf>,
}

impl Settings {
    /// Reads the arguments after `lsm`. `None`: help is asked for.
    ///
    /// # Errors
    /// An argument that is not understood, by its name.
    pub fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let path = PathBuf::from(".");
        let is_quick = arguments.iter().any(|argument| argument == "--quick");
        let lsm = if is_quick { lsm::Settings::quick(path) } else { lsm::Settings::full(path) };
        let mut settings = Self { lsm, rounds: 1, is_quick, is_sources: false, output: None };
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--help" | "-h" | "help" => return Ok(None),
                "--quick" => {}
                "--sources" => settings.is_sources = true,
                "--entries" => {
                    settings.lsm = settings.lsm.with_entries(number(option, value()?)?);
                }
                "--set" => {
                    let name = value()?;
                    settings.lsm.sets.retain(|set| set.name == name);
                    if settings.lsm.sets.is_empty() {
                        return Err(format!("--set needs 100 or 1024, found {name}").into());
                    }
                }
                "--rounds" => settings.rounds = u32::try_from(number(option, value()?)?)?,
                "--output" => settings.output = Some(value()?.into()),
                "--path" => settings.lsm.path = value()?.into(),
                _ => return Err(format!("there is no option {option}").into()),
            }
        }
        Ok(Some(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_are_named() {
        let parse = |line: &str| {
            Settings::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let settings = parse("--quick --entries 100000 --rounds 2").unwrap().unwrap();
        let entries: Vec<u64> = settings.lsm.sets.iter().map(|set| set.entries).collect();
        assert_eq!((entries, settings.rounds), (vec![100_000, 20_000], 2));
        let sets = parse("--set 1024").unwrap().unwrap().lsm.sets;
        assert_eq!(sets.iter().map(|set| set.entries).collect::<Vec<_>>(), [1_000_000]);
        assert!(parse("--help").unwrap().is_none());
        for line in ["--fast", "--entries", "--rounds 0", "--set 7"] {
            assert!(parse(line).unwrap_err().to_string().contains(&line[..6]));
        }
    }
}
