//! Pictures of a run, as SVG.
//!
//! Purpose: to see ratios, waits and stalls at a glance. Text is left to whoever shows the picture,
//! so that no font is needed to draw it.

mod bars;
mod curves;

use std::fs;
use std::path::Path;

use adamant_bench::harness::error::Result;
use plotters::style::RGBColor;

use crate::results::figures::Figures;
use crate::results::goals::Judged;

/// A picture that was drawn.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its file is so named, with `.svg`.
    pub name: String,
    /// What it shows.
    pub about: String,
}

/// Family of all text.
const FONT: &str = "sans-serif";

/// Draws all that the run has figures for into a folder, which it creates.
///
/// # Errors
/// When a file cannot be written.
pub fn draw(run: &Figures, judged: &[Judged], folder: &Path) -> Result<Vec<Plot>> {
    fs::create_dir_all(folder)?;
    let mut plots = Vec::new();
    plots.extend(bars::ratios(judged, folder)?);
    for threads in ["1t", "8t"] {
        plots.extend(curves::waits(run, threads, folder)?);
    }
    plots.extend(curves::throughput(run, folder)?);
    Ok(plots)
}

/// A colour for each engine, told apart also by those who see few colours (after Okabe and Ito).
fn color_of(engine: &str) -> RGBColor {
    match engine {
        "adamant" => RGBColor(213, 94, 0),
        "fjall" => RGBColor(0, 114, 178),
        "fjall2" => RGBColor(86, 180, 233),
        "redb" => RGBColor(204, 121, 167),
        "lmdb" => RGBColor(0, 158, 115),
        "rocksdb" => RGBColor(130, 130, 130),
        "sled" => RGBColor(230, 159, 0),
        "libmdbx" => RGBColor(0, 90, 65),
        "sqlite" => RGBColor(200, 185, 30),
        "canopydb" => RGBColor(102, 80, 190),
        "raw append" => RGBColor(190, 190, 190),
        _ => RGBColor(0, 0, 0),
    }
}
