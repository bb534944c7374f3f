//! Waits by percentile, and throughput over time.

use std::path::Path;

use adamant_bench::harness::error::Result;
use plotters::prelude::*;
use serde_json::Value;

use crate::results::figures::{Figures, Spread};
use crate::results::plots::{FONT, Plot, color_of};
use crate::results::text;
use crate::run::waits::{PERCENTILES, STEP};

/// Pixels of a picture.
const SIZE_PIXELS: (u32, u32) = (900, 420);

/// A curve and the engine that it is of.
type Curve = (String, Vec<(f64, f64)>);

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Least and most of what curves show upwards.
fn height_of(curves: &[Curve]) -> (f64, f64) {
    let all = curves.iter().flat_map(|(_, points)| points).map(|point| point.1);
    all.fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(y), high.max(y)))
}

/// Draws `latency_<threads>.svg`, if durable commits were measured: medians over rounds.
pub(super) fn waits(run: &Figures, threads: &str, folder: &Path) -> Result<Option<Plot>> {
    let mut curves: Vec<Curve> = Vec::new();
    let raw = ["raw append", "raw prealloc"];
    for engine in raw.into_iter().chain(run.engines()) {
        let rounds: Vec<Vec<f64>> = run
            .others
            .iter()
            .filter(|line| line["latency"] == threads && line["engine"] == engine)
            .map(|line| numbers(&line["microseconds"]))
            .collect();
        let median_at = |at: usize| {
            let waits = rounds.iter().filter_map(|waits| waits.get(at).copied());
            Some((at as f64, Spread::of(waits.collect())?.median))
        };
        let points: Vec<(f64, f64)> = (0..PERCENTILES.len()).filter_map(median_at).collect();
        if !points.is_empty() {
            curves.push((engine.to_owned(), points));
        }
    }
    if curves.is_empty() {
        return Ok(None);
    }
    let name = format!("latency_{threads}");
    let count = threads.trim_end_matches('t');
    let about = format!("Waits of durable single puts, {count} thread(s), microseconds");
    let path = folder.join(format!("{name}.svg"));
    let root = SVGBackend::new(&path, SIZE_PIXELS).into_drawing_area();
    root.fill(&WHITE)?;
    let (low, high) = height_of(&curves);
    let last = (PERCENTILES.len() - 1) as f64;
    let mut chart = ChartBuilder::on(&root)
        .caption(&about, (FONT, 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..last, (low.max(1.0) * 0.8..high * 1.3).log_scale())?;
    chart
        .configure_mesh()
        .x_labels(PERCENTILES.len())
        .x_label_formatter(&|&at| {
            PERCENTILES.get(at.round() as usize).map(f64::to_string).unwrap_or_default()
        })
        .y_label_formatter(&|&wait| text::figure(wait))
        .x_desc("percentile")
        .light_line_style(TRANSPARENT)
        .draw()?;
    draw_curves(&mut chart, curves)?;
    root.present()?;
    Ok(Some(Plot { name, about }))
}

/// Draws `throughput.svg`, if it was measured.
pub(super) fn throughput(run: &Figures, folder: &Path) -> Result<Option<Plot>> {
    let seconds = STEP.as_secs_f64();
    let mut curves: Vec<Curve> = Vec::new();
    for line in &run.others {
        let Some(durability) = line["throughput"].as_str() else { continue };
        let engine = line["engine"].as_str().unwrap_or_default();
        let name = if durability == "buffered" {
            engine.to_owned()
        } else {
            format!("{engine} ({durability})")
        };
        let rate = |(at, count): (usize, f64)| (at as f64 * seconds, count / seconds / 1e3);
        curves.push((name, numbers(&line["counts"]).into_iter().enumerate().map(rate).collect()));
    }
    if curves.is_empty() {
        return Ok(None);
    }
    let about = "Buffered overwrites of single random records over time, k/s".to_owned();
    let path = folder.join("throughput.svg");
    let root = SVGBackend::new(&path, SIZE_PIXELS).into_drawing_area();
    root.fill(&WHITE)?;
    let (_, high) = height_of(&curves);
    let steps = curves.iter().map(|(_, points)| points.len()).max().unwrap_or(0);
    let mut chart = ChartBuilder::on(&root)
        .caption(&about, (FONT, 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..steps as f64 * seconds, 0.0..high * 1.05)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_label_formatter(&|&rate| text::figure(rate))
        .light_line_style(TRANSPARENT)
        .draw()?;
    draw_curves(&mut chart, curves)?;
    root.present()?;
    Ok(Some(Plot { name: "throughput".to_owned(), about }))
}

/// Draws curves and their names.
fn draw_curves<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    curves: Vec<Curve>,
) -> Result<()>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for (name, points) in curves {
        let engine = match name.as_str() {
            "raw append" => "raw append",
            other => other.split(' ').next().unwrap_or_default(),
        };
        let style = color_of(engine).stroke_width(if engine == "adamant" { 3 } else { 2 });
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 14))
        .draw()?;
    Ok(())
}
