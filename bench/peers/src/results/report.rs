//! The report: `benchmarks.md`.
//!
//! Purpose: one document from the rows of a run, with every row in which Adamant is behind.

mod environment;
mod figures;
mod judgement;
mod waits;

use adamant_bench::harness::error::Result;

use crate::results::figures::Figures;
use crate::results::goals::Judged;
use crate::results::notes::Notes;
use crate::results::plots::Plot;

/// Writes the report; `plots` were drawn into `folder`, as seen from it.
///
/// # Errors
/// When the header of the run is not complete.
pub fn build(
    run: &Figures,
    judged: &[Judged],
    notes: &Notes,
    plots: &[Plot],
    folder: &str,
) -> Result<String> {
    let mut text = String::from("# Adamant beside its peers\n\n");
    text += &environment::how(run)?;
    text += &judgement::goals(judged);
    text += &picture(plots, folder, "ratios");
    text += &judgement::behind(run, judged, notes);
    text += &figures::rates(run);
    text += &figures::datasets(run);
    text += "## Waiting\n\n";
    for threads in ["1t", "8t"] {
        text += &picture(plots, folder, &format!("latency_{threads}"));
        text += &waits::waits(run, threads);
    }
    text += &picture(plots, folder, "throughput");
    text += &waits::stalls(run);
    text += &figures::costs(run);
    text += &waits::calls(run);
    text += &environment::durability(run);
    text += &environment::machine(run);
    text += &environment::peers(run);
    Ok(text.trim_end().to_owned() + "\n")
}

fn picture(plots: &[Plot], folder: &str, name: &str) -> String {
    let plot = plots.iter().find(|plot| plot.name == name);
    plot.map(|plot| format!("![{}]({folder}/{name}.svg)\n\n", plot.about)).unwrap_or_default()
}
