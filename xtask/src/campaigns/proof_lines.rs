//! The line format of campaigns: lines of five words, read and summed.
//!
//! A campaign prints, beside prose, lines of `proof<TAB>KIND<TAB>DETAIL<TAB>COUNT<TAB>LOSSES`: the
//! kind of trial, its object, how often it was made, and how often something was lost or went
//! unnoticed. One that cannot run here prints `skipped: REASON`.

use std::collections::BTreeMap;

/// All kinds, in the order of the table.
pub(crate) const KINDS: [&str; 8] =
    ["crash-states", "kills", "power-cuts", "faults", "damage", "fuzz", "mutants", "histories"];
/// The start of the line in which a campaign says why it did nothing.
const SKIPPED: &str = "skipped: ";
/// Maximum rows of one kind in the table; the rest is in the sum.
const ROWS_MAX: usize = 24;

/// The number of trials, and of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) count: u64,
    pub(crate) losses: u64,
}

impl Tried {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.losses += other.losses;
    }
}

/// All trials, by kind and detail.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    by_kind: BTreeMap<&'static str, BTreeMap<String, Tried>>,
    skipped: Vec<String>,
}

impl Tries {
    /// Takes a line that a campaign printed; false if it was prose.
    ///
    /// # Errors
    /// In words, when a line begins like one of these but is invalid.
    pub(crate) fn take(&mut self, campaign: &str, line: &str) -> Result<bool, String> {
        if let Some(reason) = line.strip_prefix(SKIPPED) {
            self.skipped.push(format!("{campaign}: {reason}"));
            return Ok(true);
        }
        let Some(words) = line.strip_prefix("proof\t") else { return Ok(false) };
        let words: Vec<&str> = words.split('\t').collect();
        let wrong = || format!("{campaign}: expected a kind, a detail and two numbers in {line:?}");
        let [kind, detail, count, losses] = words[..] else { return Err(wrong()) };
        let kind = *KINDS.iter().find(|known| **known == kind).ok_or_else(wrong)?;
        let number = |word: &str| word.parse::<u64>().map_err(|_| wrong());
        let tried = Tried { count: number(count)?, losses: number(losses)? };
        let details = self.by_kind.entry(kind).or_default();
        details.entry(detail.to_owned()).or_default().add(tried);
        Ok(true)
    }

    /// The sum of one kind.
    pub(crate) fn sum(&self, kind: &str) -> Tried {
        let mut sum = Tried::default();
        let details = self.by_kind.get(kind).into_iter().flat_map(BTreeMap::values);
        details.for_each(|tried| sum.add(*tried));
        sum
    }

    /// Losses and unnoticed faults of all kinds.
    pub(crate) fn losses(&self) -> u64 {
        KINDS.iter().map(|kind| self.sum(kind).losses).sum()
    }

    /// The table, in Markdown, a line each: the details of a kind, those with losses first, and its
    /// sum; after it the skipped campaigns, as a list.
    pub(crate) fn table(&self) -> Vec<String> {
        let mut lines = vec!["| count | losses | what was tried |".to_owned()];
        lines.push("|---:|---:|---|".to_owned());
        for kind in KINDS {
            let Some(details) = self.by_kind.get(kind) else {
                lines.push(format!("| - | - | **{kind}**: not tried |"));
                continue;
            };
            let mut rows: Vec<(&String, &Tried)> = details.iter().collect();
            rows.sort_by_key(|(_, tried)| std::cmp::Reverse(tried.losses));
            for (detail, tried) in rows.iter().take(ROWS_MAX) {
                let (count, losses) = (thousands(tried.count), thousands(tried.losses));
                let detail = detail.replace('|', "\\|");
                lines.push(format!("| {count} | {losses} | {kind}: {detail} |"));
            }
            let rest = &rows[rows.len().min(ROWS_MAX)..];
            if !rest.is_empty() {
                let sum = |of: fn(&Tried) -> u64| rest.iter().map(|(_, it)| of(it)).sum::<u64>();
                let (count, losses) = (sum(|it| it.count), sum(|it| it.losses));
                let (count, losses) = (thousands(count), thousands(losses));
                lines.push(format!("| {count} | {losses} | {kind}: {} others |", rest.len()));
            }
            let Tried { count, losses } = self.sum(kind);
            let (count, losses) = (thousands(count), thousands(losses));
            lines.push(format!("| **{count}** | **{losses}** | **{kind}, all** |"));
        }
        if !self.skipped.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.skipped.iter().map(|what| format!("- skipped: {what}")));
        lines
    }
}

/// A number with commas.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_summed_by_kind_and_detail() {
        let mut tries = Tries::default();
        for line in
            ["proof\tkills\tredo\t3\t0", "proof\tkills\tredo\t4\t1", "proof\tfuzz\tpool\t9\t0"]
        {
            assert_eq!(tries.take("campaign", line), Ok(true));
        }
        assert_eq!(tries.take("campaign", "12 kills in 3 s"), Ok(false));
        assert_eq!(tries.take("campaign", "skipped: no emulator"), Ok(true));
        assert_eq!(tries.sum("kills"), Tried { count: 7, losses: 1 });
        assert_eq!(tries.losses(), 1);
        let table = tries.table();
        assert!(table.contains(&"| **7** | **1** | **kills, all** |".to_owned()), "{table:#?}");
        assert!(table.contains(&"- skipped: campaign: no emulator".to_owned()), "{table:#?}");
        assert!(table.contains(&"| - | - | **mutants**: not tried |".to_owned()), "{table:#?}");
    }

    #[test]
    fn what_has_no_row_of_its_own_is_in_one_with_others() {
        let mut tries = Tries::default();
        for number in 0..ROWS_MAX + 2 {
            let line = format!("proof\tfaults\t{number} | x\t1000\t0");
            assert_eq!(tries.take("campaign", &line), Ok(true));
        }
        let table = tries.table();
        assert!(table.contains(&"| 2,000 | 0 | faults: 2 others |".to_owned()), "{table:#?}");
        assert!(table.contains(&"| 1,000 | 0 | faults: 0 \\| x |".to_owned()), "{table:#?}");
        assert!(
            table.contains(&"| **26,000** | **0** | **faults, all** |".to_owned()),
            "{table:#?}"
        );
        assert_eq!(thousands(1_234_567), "1,234,567");
    }

    #[test]
    fn a_broken_line_is_an_error() {
        let mut tries = Tries::default();
        for line in
            ["proof\tkills\tredo\t3", "proof\tdreams\tredo\t3\t0", "proof\tkills\tredo\t-1\t0"]
        {
            assert!(tries.take("campaign", line).is_err(), "{line}");
        }
        assert_eq!(tries.losses(), 0);
    }
}
