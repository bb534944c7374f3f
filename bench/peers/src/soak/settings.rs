//! The arguments of `adamant-peers soak`.

use std::path::PathBuf;

use adamant_bench::engines::adamant::AdamantEngine;
use adamant_bench::harness::engine::Engine;
use adamant_bench::harness::error::Result;

use crate::engines::fjall3::Fjall3Engine;
use crate::engines::redb::RedbEngine;
use crate::run::settings::number;

/// What `soak --help` prints.
pub const USAGE: &str = "\
usage: adamant-peers soak [options]   (cargo xtask peers soak [options])

--seconds N         seconds of each engine (default 600)
--pieces N          pieces of that time, between which the others have theirs (default 5)
--entries N         entries of 20 + 100 bytes (default 1,000,000)
--engines A,B       which engines (default: adamant,fjall,redb)
--output DIR        where soak.md is written (default: docs)
--path DIR          where to work (default: the current directory); all is removed at the end";

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seconds of each engine.
    pub seconds: u64,
    /// Pieces of that time.
    pub pieces: u32,
    /// Entries.
    pub entries: u64,
    /// Names of engines.
    pub engines: Vec<String>,
    /// Bytes of log that an engine may keep.
    pub log_bytes_max: u64,
    /// Where the page is written.
    pub output: PathBuf,
    /// Where to work.
    pub path: PathBuf,
}

impl Settings {
    /// Reads the arguments after `soak`. `None`: help is asked for.
    ///
    /// # Errors
    /// An argument that is not understood, by its name.
    pub fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let engines = [AdamantEngine::NAME, Fjall3Engine::NAME, RedbEngine::NAME];
        let mut settings = Self {
            seconds: 600,
            pieces: 5,
            entries: 1_000_000,
            engines: engines.map(str::to_owned).to_vec(),
            log_bytes_max: 128 << 20,
            output: PathBuf::from("docs"),
            path: PathBuf::from("."),
        };
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--help" | "-h" | "help" => return Ok(None),
                "--seconds" => settings.seconds = number(option, value()?)?,
                "--pieces" => settings.pieces = u32::try_from(number(option, value()?)?)?,
                "--entries" => settings.entries = number(option, value()?)?,
                "--engines" => {
                    settings.engines = value()?.split(',').map(str::to_owned).collect();
                }
                "--output" => settings.output = value()?.into(),
                "--path" => settings.path = value()?.into(),
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
        let settings = parse("--seconds 20 --engines adamant,lmdb").unwrap().unwrap();
        assert_eq!((settings.seconds, settings.engines.len()), (20, 2));
        assert!(parse("--help").unwrap().is_none());
        for line in ["--fast", "--seconds", "--pieces 0"] {
            assert!(parse(line).unwrap_err().to_string().contains(&line[..6]));
        }
    }
}
