//! The goals: `goals.toml`, and how they are judged.

use adamant_bench::harness::error::Result;

use crate::peer::Kind;
use crate::results::figures::{Figures, Spread};
use crate::run::roster::JUDGED;

/// What is asked of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The rate by that of the best peer.
    RatioAtLeast(f64),
    /// The figure itself.
    FigureAtMost(f64),
}

/// A goal.
#[derive(Clone, Debug)]
pub struct Goal {
    /// For people.
    pub name: String,
    /// The row.
    pub row: String,
    /// What is asked.
    pub bound: Bound,
    /// Whether only trees are compared with.
    pub trees_only: bool,
}

/// A goal and how far it is.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The goal.
    pub goal: Goal,
    /// The judged engine's figure.
    pub own: Spread,
    /// The best peer and its figure.
    pub best: Option<(String, Spread)>,
    /// By the best peer, round by round; of a figure at most, the figure.
    pub ratio: Spread,
}

impl Judged {
    /// Whether the goal is reached.
    pub fn holds(&self) -> bool {
        match self.goal.bound {
            Bound::RatioAtLeast(least) => self.ratio.median >= least,
            Bound::FigureAtMost(most) => self.ratio.median <= most,
        }
    }

    /// Whether a peer is better, whatever the goal.
    pub fn is_behind(&self) -> bool {
        match self.goal.bound {
            Bound::RatioAtLeast(_) => self.ratio.median < 1.0,
            Bound::FigureAtMost(_) => !self.holds(),
        }
    }
}

/// Reads `goals.toml`.
///
/// # Errors
/// When it is malformed.
pub fn read() -> Result<Vec<Goal>> {
    let table: toml::Table = include_str!("../../goals.toml").parse()?;
    let goals = table.get("goal").and_then(toml::Value::as_array).ok_or("no [[goal]]")?;
    goals
        .iter()
        .map(|goal| {
            let text = |name: &str| {
                let text = goal.get(name).and_then(toml::Value::as_str);
                text.map(str::to_owned).ok_or_else(|| format!("goals.toml: {name} is missing"))
            };
            let number = |name: &str| goal.get(name).and_then(toml::Value::as_float);
            let bound = match (number("at_least"), number("at_most")) {
                (Some(least), None) => Bound::RatioAtLeast(least),
                (None, Some(most)) => Bound::FigureAtMost(most),
                _ => return Err("goals.toml: a goal needs at_least or at_most".into()),
            };
            let trees_only = goal.get("trees_only").and_then(toml::Value::as_bool) == Some(true);
            Ok(Goal { name: text("name")?, row: text("row")?, bound, trees_only })
        })
        .collect()
}

/// The peer with the best median in a row of rates; references are no peers, and who was seen not
/// to sync is none in rows of durable puts.
pub fn best_peer(figures: &Figures, row: &str, trees_only: bool) -> Option<(String, Spread)> {
    let engines = figures.engines().into_iter().filter(|&engine| {
        let kind = figures.kind(engine);
        let compared = kind == Kind::Tree.name() || (kind == Kind::Lsm.name() && !trees_only);
        let is_unsynced = row.starts_with("put.sync.") && figures.is_unsynced(engine);
        compared && !is_unsynced && engine != JUDGED
    });
    engines
        .filter_map(|engine| Some((engine.to_owned(), figures.spread(row, engine)?)))
        .max_by(|(_, left), (_, right)| left.median.total_cmp(&right.median))
}

/// Judges those goals whose rows were measured.
pub fn judge(figures: &Figures, goals: Vec<Goal>) -> Vec<Judged> {
    let judged = goals.into_iter().filter_map(|goal| {
        let own = figures.spread(&goal.row, JUDGED)?;
        match goal.bound {
            Bound::FigureAtMost(_) => Some(Judged { goal, own, best: None, ratio: own }),
            Bound::RatioAtLeast(_) => {
                let best = best_peer(figures, &goal.row, goal.trees_only)?;
                let ratio = figures.ratio(&goal.row, JUDGED, &best.0)?;
                Some(Judged { goal, own, best: Some(best), ratio })
            }
        }
    });
    judged.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_file_can_be_read() {
        let goals = read().unwrap();
        assert_eq!(goals.len(), 37);
        assert_eq!(goals[0].bound, Bound::RatioAtLeast(1.5));
    }

    #[test]
    fn the_best_peer_is_no_reference_and_missing_gets_are_compared_with_trees() {
        let row = |row: &str, engine: &str, median: f64| json!({"row": row, "engine": engine, "round": 0, "median": median});
        let lines = [
            json!({"run": "quick", "peers": [
                {"engine": "adamant", "kind": "tree"}, {"engine": "redb", "kind": "tree"},
                {"engine": "fjall", "kind": "LSM"}, {"engine": "btreemap", "kind": "reference"},
            ]}),
            row("get.missing.1t", "adamant", 3.0),
            row("get.missing.1t", "redb", 1.0),
            row("get.missing.1t", "fjall", 7.0),
            row("get.uniform.1t", "adamant", 1.2),
            row("get.uniform.1t", "redb", 1.0),
            row("get.uniform.1t", "btreemap", 9.0),
            row("open.clean", "adamant", 2.0),
        ];
        let judged = judge(&Figures::of(&lines).unwrap(), read().unwrap());
        let find = |name: &str| judged.iter().find(|judged| judged.goal.name == name).unwrap();
        assert!(find("missing get").holds());
        let get = find("uniform get");
        assert!(!get.holds() && !get.is_behind());
        assert_eq!(get.best.as_ref().unwrap().0, "redb");
        assert!(find("clean open, ms").is_behind());
        assert_eq!(judged.len(), 3);
    }
}
