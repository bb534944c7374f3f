//! The process on the machine that is tried: it verifies the store that it finds, then writes to
//! it.
//!
//! Purpose: it tells what it does in lines that begin with [`PREFIX`], over a serial line or a
//! pipe: what was said to be durable there must be there ever after.
//! Invariants: a line is written after what it says, never before.
//! Thread safety: one thread.

use std::io::Write;
use std::path::{Path, PathBuf};

use adamant::Durability;
use fastrand::Rng;

use crate::work::{self, Commit, Field, Ground, Problem};

/// How often a batch that was refused is tried again: a fault that happens once is over by then.
const RETRIES: u32 = 3;

/// How each line of the agent begins: others write to the same serial line.
pub(crate) const PREFIX: &str = "adamant-field: ";

/// What an agent is told.
pub(crate) struct Orders {
    /// The store.
    pub(crate) path: PathBuf,
    /// Where it is.
    pub(crate) ground: Ground,
    /// Of the batches.
    pub(crate) seed: u64,
    /// Of this run: options are other ones each time.
    pub(crate) round: u64,
    /// Batches that were said to be durable: at least so many must be there.
    pub(crate) durable: u64,
    /// Batches to write, then it verifies and closes the store; `None`: until it is killed.
    pub(crate) commits: Option<u64>,
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It begins to open the store.
    Opening,
    /// The store holds the first so many batches and nothing else.
    Verified(u64),
    /// So many batches are durable.
    Durable(u64),
    /// All is done and the store is closed.
    Closed,
    /// The store refuses, in words; nothing more is to be expected.
    Refused(String),
    /// The store is not as it has to be, in words.
    Failed(String),
}

impl Said {
    /// Understands a whole line, of which the end is there; `None` for those of others.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (_, words) = line.strip_suffix('\n')?.trim_end().split_once(PREFIX)?;
        let number = |text: &str| text.parse().ok();
        match words.split_once(' ').unwrap_or((words, "")) {
            ("opening", _) => Some(Self::Opening),
            ("verified", text) => number(text).map(Self::Verified),
            ("durable", text) => number(text).map(Self::Durable),
            ("closed", _) => Some(Self::Closed),
            ("refused", text) => Some(Self::Refused(text.to_owned())),
            ("failed", text) => Some(Self::Failed(text.to_owned())),
            _ => None,
        }
    }

    /// The line that says it.
    fn line(&self) -> String {
        match self {
            Self::Opening => format!("{PREFIX}opening\n"),
            Self::Verified(number) => format!("{PREFIX}verified {number}\n"),
            Self::Durable(number) => format!("{PREFIX}durable {number}\n"),
            Self::Closed => format!("{PREFIX}closed\n"),
            Self::Refused(words) => format!("{PREFIX}refused {}\n", words.replace('\n', "; ")),
            Self::Failed(words) => format!("{PREFIX}failed {}\n", words.replace('\n', "; ")),
        }
    }
}

/// Does as told. False if the store refuses or is not as it has to be, which was said.
pub(crate) fn run(orders: &Orders) -> bool {
    let say = |said: Said| {
        // Nobody who listens is told by exit.
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(said.line().as_bytes()).and_then(|()| output.flush());
    };
    let outcome = obey(orders, say);
    let is_done = outcome.is_ok();
    say(match outcome {
        Ok(()) => Said::Closed,
        Err(Problem::Refused(words)) => Said::Refused(words),
        Err(Problem::Wrong(words)) => Said::Failed(words),
    });
    is_done
}

fn obey(orders: &Orders, mut say: impl FnMut(Said)) -> Result<(), Problem> {
    let mut random = Rng::with_seed(orders.seed ^ orders.round);
    say(Said::Opening);
    let field = Field::open(&orders.path, orders.ground, &mut random)
        .map_err(Problem::refused("opening the store"))?;
    if orders.ground == Ground::Memory {
        check_mapping(&orders.path).map_err(Problem::Wrong)?;
    }
    let there = field.verify(orders.seed)?;
    if there < orders.durable {
        let words = format!("{} batches were durable, {there} are there", orders.durable);
        return Err(Problem::Wrong(words));
    }
    say(Said::Verified(there));
    let last = orders.commits.map_or(u64::MAX, |commits| there + commits);
    for number in there + 1..=last {
        let commit = work::commit(orders.seed, number);
        insist(&field, &commit).map_err(Problem::refused(&format!("batch {number}")))?;
        if commit.durability == Durability::Sync {
            say(Said::Durable(number));
        }
        if commit.is_compacted {
            let what = format!("the compaction after batch {number}");
            field.compact().map_err(Problem::refused(&what))?;
        }
    }
    let there = field.verify(orders.seed)?;
    if there != last {
        return Err(Problem::Wrong(format!("{last} batches were written, {there} are there")));
    }
    field.close().map_err(Problem::refused("closing the store"))
}

/// Commits a batch, again if it is refused: it does the same however often it is done.
fn insist(field: &Field, commit: &Commit) -> adamant::Result<()> {
    let mut outcome = field.apply(commit);
    for _ in 0..RETRIES {
        match &outcome {
            Err(error) if !error.is_poisoned() => outcome = field.apply(commit),
            _ => break,
        }
    }
    outcome
}

/// Whether a file of the store is mapped so that what is stored to it needs no sync of the file
/// system: the kernel says so with the flag `sf`, for synchronous faults.
fn check_mapping(store: &Path) -> Result<(), String> {
    let maps = std::fs::read_to_string("/proc/self/smaps")
        .map_err(|error| format!("could not read the mappings: {error}"))?;
    if is_mapped_synchronously(&maps, store) {
        return Ok(());
    }
    let store = store.display();
    Err(format!("expected a mapping of a file of {store} with the flag sf (MAP_SYNC), found none"))
}

fn is_mapped_synchronously(maps: &str, store: &Path) -> bool {
    let mut is_of_store = false;
    maps.lines().any(|line| {
        // A mapping opens with its addresses; its other lines with a word and a colon.
        let is_head = line.split(' ').next().is_some_and(|word| !word.ends_with(':'));
        if is_head {
            let path = line.split_once('/').map(|(_, path)| format!("/{path}"));
            is_of_store = path.is_some_and(|path| Path::new(&path).starts_with(store));
        }
        is_of_store && line.starts_with("VmFlags:") && line.split(' ').any(|flag| flag == "sf")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_says_nothing() {
        assert_eq!(Said::parse("adamant-field: durable 12"), None);
        assert_eq!(Said::parse("adamant-field: durable 123\r\n"), Some(Said::Durable(123)));
        assert_eq!(Said::parse("[ 1.2] noise adamant-field: opening\n"), Some(Said::Opening));
        assert_eq!(Said::parse("noise\n"), None);
    }

    #[test]
    fn only_the_flag_of_a_file_of_the_store_counts() {
        let maps = "7f00-7f01 rw-s 0 00:01 12 /mnt/other/log/0001\nVmFlags: rd wr sh sf\n\
                    7f02-7f03 rw-p 0 00:01 13 /mnt/store/pool\nRss: 4 kB\nVmFlags: rd wr\n";
        assert!(is_mapped_synchronously(maps, Path::new("/mnt/other")));
        assert!(!is_mapped_synchronously(maps, Path::new("/mnt/store")));
        assert!(!is_mapped_synchronously(maps, Path::new("/mnt/oth")));
    }

    #[test]
    fn an_agent_goes_on_where_another_ended() {
        let folder = tempfile::tempdir().unwrap();
        let orders = |round, durable| Orders {
            path: folder.path().join("store"),
            ground: Ground::Disk,
            seed: 7,
            round,
            durable,
            commits: Some(60),
        };
        let mut said = Vec::new();
        let mut obey = |round, durable| obey(&orders(round, durable), |it| said.push(it.line()));
        assert!(obey(1, 0).is_ok() && obey(2, 60).is_ok());
        let Err(Problem::Wrong(problem)) = obey(3, 121) else { panic!("it is not 121 batches") };
        assert!(said.iter().all(|line| Said::parse(line).is_some_and(|it| it.line() == *line)));
        assert!(said.contains(&Said::Verified(60).line()));
        assert_eq!(problem, "121 batches were durable, 120 are there");
    }
}
