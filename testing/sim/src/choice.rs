//! Choices: which versions survive a power cut.
//!
//! Purpose: each thing in doubt (a sector, a length, a name) has versions, from the durable one to
//! the newest; a [`Choice`] picks one of each. Cache lines are one thing each, or, if a choice
//! tears them, one for each of their words.

use std::ops::Range;

/// Picks the versions that survive a power cut.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Nothing that was not synced.
    None,
    /// Everything.
    All,
    /// The state of this number, from 0 to `Cursor::state_count`: all combinations in order.
    Number(u64),
    /// Everything but the thing of this number.
    AllBut(usize),
    /// Nothing but the thing of this number.
    Only(usize),
    /// At random, differently each time. Apart from fair coins it often keeps all but one, one
    /// only, some of the operations, or the first ones: these reveal single faults.
    Random(fastrand::Rng),
    /// At random too, each word of a cache line independently.
    Torn(fastrand::Rng),
}

impl Choice {
    /// Decides at random.
    pub fn random(seed: u64) -> Choice {
        Choice::Random(fastrand::Rng::with_seed(seed))
    }

    /// Decides at random, each word of a cache line independently.
    pub fn torn(seed: u64) -> Choice {
        Choice::Torn(fastrand::Rng::with_seed(seed))
    }

    /// Whether the words of a cache line are separate things.
    pub(crate) fn is_torn(&self) -> bool {
        matches!(self, Choice::Torn(_))
    }

    /// For each thing in doubt the number of the version that survives, 0 for the durable one.
    fn decide(&mut self, doubts: &Doubts) -> Vec<usize> {
        let versions = doubts.things.iter().map(|thing| thing.len());
        match self {
            Choice::None => vec![0; doubts.things.len()],
            Choice::All => versions.collect(),
            Choice::Number(number) => {
                let mut rest = *number;
                let mut digit = |versions: usize| {
                    let base = versions as u64 + 1;
                    let digit = rest % base;
                    rest /= base;
                    digit as usize
                };
                versions.map(&mut digit).collect()
            }
            Choice::AllBut(number) => {
                let mut decisions: Vec<usize> = versions.collect();
                decisions[*number] = 0;
                decisions
            }
            Choice::Only(number) => {
                let mut decisions = vec![0; doubts.things.len()];
                decisions[*number] = doubts.things[*number].len();
                decisions
            }
            Choice::Random(random) | Choice::Torn(random) => decide_at_random(random, doubts),
        }
    }
}

fn decide_at_random(random: &mut fastrand::Rng, doubts: &Doubts) -> Vec<usize> {
    let count = doubts.things.len();
    if count == 0 {
        return Vec::new();
    }
    let newest = || doubts.things.iter().map(|thing| thing.len()).collect::<Vec<_>>();
    match random.u8(..6) {
        0 => doubts.things.iter().map(|thing| random.usize(..=thing.len())).collect(),
        1 => {
            let mut decisions = newest();
            let lost = random.usize(..count);
            decisions[lost] = random.usize(..decisions[lost]);
            decisions
        }
        2 => {
            let mut decisions = vec![0; count];
            let kept = random.usize(..count);
            decisions[kept] = random.usize(1..=doubts.things[kept].len());
            decisions
        }
        // All operations up to some moment, and none after it.
        3 => {
            let moment = *random.choice(&doubts.operations).expect("a thing has a version");
            doubts.keep(|operation| operation <= moment)
        }
        // Some operations as a whole: reordered, not torn.
        4 => {
            let mut operations = doubts.operations.clone();
            operations.sort_unstable();
            operations.dedup();
            let share = random.f64();
            operations.retain(|_| random.f64() < share);
            doubts.keep(|operation| operations.binary_search(&operation).is_ok())
        }
        // All of them but one.
        _ => {
            let lost = *random.choice(&doubts.operations).expect("a thing has a version");
            doubts.keep(|operation| operation != lost)
        }
    }
}

/// All that is in doubt at a crash point.
#[derive(Debug)]
pub(crate) struct Doubts {
    /// By thing: its versions beyond the durable one, in `operations`; at least one each.
    things: Vec<Range<usize>>,
    /// The operations that made the versions, in order for each thing.
    operations: Vec<u64>,
    torn: bool,
}

impl Doubts {
    /// None yet; `torn`: the words of cache lines will be added, not the lines.
    pub(crate) fn new(torn: bool) -> Doubts {
        Doubts { things: Vec::new(), operations: Vec::new(), torn }
    }

    pub(crate) fn torn(&self) -> bool {
        self.torn
    }

    /// Number of things in doubt.
    pub(crate) fn thing_count(&self) -> usize {
        self.things.len()
    }

    /// Adds a thing, by the operations that made its versions, unless there are none.
    pub(crate) fn add(&mut self, versions: impl Iterator<Item = u64>) {
        let start = self.operations.len();
        self.operations.extend(versions);
        if self.operations.len() > start {
            self.things.push(start..self.operations.len());
        }
    }

    /// Number of combinations, at most `u64::MAX`.
    pub(crate) fn state_count(&self) -> u64 {
        let combined =
            |count: u64, thing: &Range<usize>| count.saturating_mul(thing.len() as u64 + 1);
        self.things.iter().fold(1, combined)
    }

    /// The newest version of each thing among those whose operation is kept.
    fn keep(&self, kept: impl Fn(u64) -> bool) -> Vec<usize> {
        let newest = |thing: &Range<usize>| {
            let versions = &self.operations[thing.clone()];
            versions.iter().rposition(|&operation| kept(operation)).map_or(0, |at| at + 1)
        };
        self.things.iter().map(newest).collect()
    }
}

/// Hands out the decisions in the order in which the doubts were added.
pub(crate) struct Decisions {
    decisions: std::vec::IntoIter<usize>,
    torn: bool,
}

impl Decisions {
    pub(crate) fn new(choice: &mut Choice, doubts: &Doubts) -> Decisions {
        debug_assert_eq!(doubts.torn, choice.is_torn());
        Decisions { decisions: choice.decide(doubts).into_iter(), torn: doubts.torn }
    }

    pub(crate) fn torn(&self) -> bool {
        self.torn
    }

    /// The decision on the next thing: of `versions` beyond the durable one; 0 if there are none.
    pub(crate) fn next(&mut self, versions: usize) -> usize {
        if versions == 0 {
            return 0;
        }
        let decision = self.decisions.next().expect("one decision for each doubt");
        debug_assert!(decision <= versions);
        decision
    }
}
