//! The arguments of `adamant-peers slice`.

use std::path::PathBuf;

use adamant_bench::commands::slice;
use adamant_bench::harness::error::Result;

use crate::run::settings::number;

/// What `slice --help` prints.
pub const USAGE: &str = "\
usage: adamant-peers slice [options]   (cargo xtask peers slice [options])

--quick             3 rounds: about a minute
--full              7 rounds: under three minutes; the default
--smoke             whether it runs, not how fast: 1 round
--rounds N          rounds that every type takes part in
--output DIR        where slice.md and slice/ are written (default: docs)
--from FILE         measure nothing: write the report again from such rows";

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `quick`, `full` or `smoke`.
    pub form: &'static str,
    /// Sizes, and rounds.
    pub work: slice::Settings,
    /// Strings of each length whose memory is counted.
    pub memory_strings: usize,
    /// Where the report is written.
    pub output: PathBuf,
    /// Rows to report instead of measuring.
    pub from: Option<PathBuf>,
}

impl Settings {
    fn of_form(form: &str) -> Self {
        let smoke = slice::Settings { operations: 50, strings: 500, records: 50, rounds: 1 };
        let (form, work) = match form {
            "quick" => ("quick", slice::Settings::quick()),
            "smoke" => ("smoke", smoke),
            _ => ("full", slice::Settings::full()),
        };
        Self { form, work, memory_strings: 1_000, output: PathBuf::from("docs"), from: None }
    }

    /// Reads the arguments after `slice`. `None`: help is asked for.
    ///
    /// # Errors
    /// An argument that is not understood, by its name.
    pub fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let forms = ["quick", "smoke"];
        let asked = |form: &&str| arguments.iter().any(|argument| *argument == format!("--{form}"));
        let mut settings = Self::of_form(forms.into_iter().find(asked).unwrap_or_default());
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--quick" | "--full" | "--smoke" => {}
                "--help" | "-h" | "help" => return Ok(None),
                "--rounds" => settings.work.rounds = u32::try_from(number(option, value()?)?)?,
                "--output" => settings.output = value()?.into(),
                "--from" => settings.from = Some(value()?.into()),
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
        let settings = parse("--quick --rounds 5").unwrap().unwrap();
        assert_eq!((settings.form, settings.work.rounds), ("quick", 5));
        assert_eq!(parse("").unwrap().unwrap().form, "full");
        assert!(parse("--help").unwrap().is_none());
        for line in ["--fast", "--rounds", "--rounds 0"] {
            assert!(parse(line).unwrap_err().to_string().contains(&line[..6]));
        }
    }
}
