//! Goals, and every row in which Adamant is behind.

use std::collections::BTreeMap;

use crate::peer::Kind;
use crate::results::figures::Figures;
use crate::results::goals::{Bound, Judged, best_peer};
use crate::results::notes::Notes;
use crate::results::report::figures::{COSTS, is_rate};
use crate::results::text;
use crate::run::roster::JUDGED;

/// The table of the goals.
pub(super) fn goals(judged: &[Judged]) -> String {
    let rows: Vec<Vec<String>> = judged.iter().map(goal_row).collect();
    let head = ["goal", "row", "adamant", "best peer", "ratio", "asked", "verdict"];
    let holding = judged.iter().filter(|judged| judged.holds()).count();
    format!(
        "## Goals\n\nRatios to the best peer that gives the same durability; references are no \
         peers. {holding} of {} goals are reached.\n\n{}",
        judged.len(),
        text::table(&head.map(str::to_owned), &rows)
    )
}

fn goal_row(judged: &Judged) -> Vec<String> {
    let (asked, ratio) = match judged.goal.bound {
        Bound::RatioAtLeast(least) => (format!(">= {least}"), text::spread(judged.ratio)),
        Bound::FigureAtMost(most) => (format!("<= {most}"), String::new()),
    };
    let best = judged.best.as_ref().map(|(name, own)| format!("{name} {}", text::spread(*own)));
    let verdict = match (judged.holds(), judged.is_behind()) {
        (true, _) => "reached",
        (false, false) => "ahead, but short of the goal",
        (false, true) => "**behind**",
    };
    vec![
        judged.goal.name.clone(),
        format!("`{}`", judged.goal.row),
        text::spread(judged.own),
        best.unwrap_or_default(),
        ratio,
        asked,
        verdict.to_owned(),
    ]
}

/// Every row in which a peer is better, or a goal is not reached, and where the time goes.
pub(super) fn behind(run: &Figures, judged: &[Judged], notes: &Notes) -> String {
    let mut rows = Vec::new();
    let mut explained = BTreeMap::new();
    for row in run.rows() {
        let goal = judged.iter().find(|judged| judged.goal.row == row);
        let short = goal.is_some_and(|judged| !judged.holds());
        let lag = if is_rate(row) { slower(run, row) } else { costlier(run, row) };
        if !short && lag.is_none() {
            continue;
        }
        let lag = lag.unwrap_or_else(|| "short of its goal".to_owned());
        let note = match notes.of(row) {
            Some((name, text)) => {
                explained.insert(name, text.replace('\n', " "));
                format!("`{name}`")
            }
            None => "not explained yet".to_owned(),
        };
        rows.push(vec![format!("`{row}`"), lag, note]);
    }
    let head = ["row", "adamant by the best peer", "note"];
    let notes: String =
        explained.iter().map(|(name, text)| format!("- `{name}`: {text}\n")).collect();
    format!(
        "## Where Adamant is behind\n\nEvery row of the run in which a peer is better by more \
         than the noise of 3 %, or a goal is not reached ({} rows).\n\n{}Where the time \
         goes, and what would help:\n\n{notes}\n",
        rows.len(),
        text::table(&head.map(str::to_owned), &rows)
    )
}

/// Ratios this near to 1 are not told apart.
const NOISE: f64 = 0.03;

fn slower(run: &Figures, row: &str) -> Option<String> {
    let (name, _) = best_peer(run, row, false)?;
    let ratio = run.ratio(row, JUDGED, &name)?;
    (ratio.median < 1.0 - NOISE).then(|| format!("{} ({name})", text::figure(ratio.median)))
}

fn costlier(run: &Figures, row: &str) -> Option<String> {
    if !COSTS.iter().any(|cost| cost.row == row) {
        return None;
    }
    let own = run.spread(row, JUDGED)?.median;
    // Of an LSM, entries are now in a log, now in a table: only the space of trees compares.
    let is_space = row.starts_with("space.") || row.starts_with("log.");
    let peers = run.engines().into_iter().filter(|&engine| {
        let kind = run.kind(engine);
        let compared = kind == Kind::Tree.name() || (kind == Kind::Lsm.name() && !is_space);
        engine != JUDGED && compared
    });
    let (name, best) = peers
        .filter_map(|engine| Some((engine, run.spread(row, engine)?.median)))
        .min_by(|(_, left), (_, right)| left.total_cmp(right))?;
    (own > best * (1.0 + NOISE))
        .then(|| format!("{} to {} ({name})", text::figure(own), text::figure(best)))
}
