//! The arguments of `adamant-peers large`.

use std::path::PathBuf;

use adamant_bench::commands::large;
use adamant_bench::harness::error::Result;

use crate::run::settings::number;

/// What `large --help` prints.
pub const USAGE: &str = "\
usage: adamant-peers large [options]   (cargo xtask peers large [options])

--quick             a quarter of the memory, and less time
--memory-bytes N    memory of an engine's process (default 536870912); data are five times as much
--engines A,B       which engines (default: all)
--rounds N          rounds that every engine takes part in (default 1)
--output DIR        where large.md and its pictures are written, beside standard output
--path DIR          where to work (default: the current directory); all is removed at the end";

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What each engine does in a round.
    pub large: large::Settings,
    /// Names of engines; none: all.
    pub engines: Vec<String>,
    /// Where the page is written.
    pub output: Option<PathBuf>,
}

impl Settings {
    /// Reads the arguments after `large`. `None`: help is asked for.
    ///
    /// # Errors
    /// An argument that is not understood, by its name.
    pub fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let path = PathBuf::from(".");
        let is_quick = arguments.iter().any(|argument| argument == "--quick");
        let large =
            if is_quick { large::Settings::quick(path) } else { large::Settings::full(path) };
        let mut settings = Self { large, engines: Vec::new(), output: None };
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--help" | "-h" | "help" => return Ok(None),
                "--quick" => {}
                "--memory-bytes" => settings.large.memory_bytes = number(option, value()?)?,
                "--engines" => settings.engines = value()?.split(',').map(str::to_owned).collect(),
                "--rounds" => settings.large.rounds = u32::try_from(number(option, value()?)?)?,
                "--output" => settings.output = Some(value()?.into()),
                "--path" => settings.large.path = value()?.into(),
                _ => return Err(format!("there is no option {option}").into()),
            }
        }
        Ok(Some(settings))
    }

    /// Whether the engine of that name is measured.
    pub fn takes_part(&self, name: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|engine| engine == name)
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
        let settings = parse("--quick --engines lsm,lmdb --rounds 2").unwrap().unwrap();
        assert_eq!((settings.large.rounds, settings.large.memory_bytes), (2, 128 << 20));
        assert!(settings.takes_part("lmdb") && !settings.takes_part("fjall"));
        assert!(parse("--help").unwrap().is_none());
        for line in ["--fast", "--rounds 0", "--memory-bytes x"] {
            assert!(parse(line).unwrap_err().to_string().contains(&line[..6]));
        }
    }
}
