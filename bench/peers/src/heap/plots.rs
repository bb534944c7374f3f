//! Pictures of the heap, as SVG: the charts that libpmemobj was once described by, made anew.

use std::path::Path;

use adamant_bench::harness::error::Result;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use crate::heap::rounds::{LIBPMEMOBJ, engines, judged};
use crate::results::figures::Figures;
use crate::results::picture::Picture;
use crate::results::text;

/// Family of all text.
const FONT: &str = "sans-serif";
/// Pixels of a picture.
const SIZE_PIXELS: (u32, u32) = (900, 420);

/// A name, how it is drawn, and points.
struct Curve {
    name: String,
    color: RGBColor,
    width_pixels: u32,
    points: Vec<(f64, f64)>,
}

/// A picture of curves, and where their points come from.
struct Chart {
    picture: Picture,
    /// What the axes count.
    across: &'static str,
    upward: &'static str,
    /// Rows are these, with a number between the two; the number is the place across.
    rows: &'static [(&'static str, &'static str)],
    log_upward: bool,
}

const CHARTS: &[Chart] = &[
    Chart {
        picture: Picture {
            name: "free",
            about: "Cost of a free over the objects freed by one transaction, ns each",
            note: "Thin: objects that the transaction wrote to first. libpmemobj looks through \
                   all ranges of the transaction for each free.",
        },
        across: "objects freed by the transaction",
        upward: "ns each",
        rows: &[("tx.free.", ""), ("tx.free.", ".written")],
        log_upward: true,
    },
    Chart {
        picture: Picture {
            name: "post_commit",
            about: "Freeing 100,000 objects of 1 KiB at once, over post-commit workers, ns each",
            note: "libpmemobj 1.12 has no workers any more: what it does after a commit it does \
                   within it.",
        },
        across: "workers",
        upward: "ns each",
        rows: &[("post_commit.", "w")],
        log_upward: false,
    },
    Chart {
        picture: Picture {
            name: "objects",
            about: "Time of an object over the objects allocated by one transaction, ns",
            note: "64 bytes each. All bits of a transaction are one record.",
        },
        across: "objects of the transaction",
        upward: "ns each",
        rows: &[("tx.objects.", "")],
        log_upward: true,
    },
    Chart {
        picture: Picture {
            name: "reserve_threads",
            about: "Reserve over threads, ns of a processor each",
            note: "Flat is perfect scaling. Time that threads wait for a processor is not counted.",
        },
        across: "threads",
        upward: "ns each",
        rows: &[("reserve.", "t")],
        log_upward: true,
    },
    Chart {
        picture: Picture {
            name: "snapshot",
            about: "A transaction that overwrites a range, over its bytes, ns",
            note: "With its snapshot, or what stands for it, and its commit.",
        },
        across: "bytes of the range",
        upward: "ns",
        rows: &[("write.", "")],
        log_upward: true,
    },
];

/// Draws all that the run has figures for into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn draw(run: &Figures, folder: &Path) -> Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    pictures.extend(fragmentation(run, folder)?);
    for chart in CHARTS {
        let curves = curves_of(run, chart);
        if !curves.is_empty() {
            draw_chart(chart, curves, folder)?;
            pictures.push(chart.picture);
        }
    }
    pictures.extend(reserve_and_allocate(run, folder)?);
    Ok(pictures)
}

/// A colour for each engine, as in the other pictures (after Okabe and Ito).
fn color_of(engine: &str) -> RGBColor {
    match engine {
        LIBPMEMOBJ => RGBColor(0, 114, 178),
        _ if engine == judged() => RGBColor(213, 94, 0),
        _ => RGBColor(230, 159, 0),
    }
}

fn name_of(engine: &str) -> String {
    if engine == LIBPMEMOBJ { engine.to_owned() } else { format!("Adamant, {engine}") }
}

/// The number that stands between two parts of a row's name.
fn number_between(row: &str, before: &str, after: &str) -> Option<f64> {
    row.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
}

fn curves_of(run: &Figures, chart: &Chart) -> Vec<Curve> {
    let mut curves = Vec::new();
    for engine in engines() {
        for (before, after) in chart.rows {
            let mut points: Vec<(f64, f64)> = run
                .rows()
                .into_iter()
                .filter_map(|row| {
                    let across = number_between(row, before, after)?;
                    Some((across, run.spread(row, engine)?.median))
                })
                .collect();
            points.sort_by(|left, right| left.0.total_cmp(&right.0));
            if points.is_empty() {
                continue;
            }
            let (suffix, width_pixels) =
                if *after == ".written" { (", written first", 1) } else { ("", 3) };
            let name = name_of(engine) + suffix;
            curves.push(Curve { name, color: color_of(engine), width_pixels, points });
        }
    }
    curves
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

fn draw_chart(chart: &Chart, curves: Vec<Curve>, folder: &Path) -> Result<()> {
    let path = folder.join(format!("{}.svg", chart.picture.name));
    let root = SVGBackend::new(&path, SIZE_PIXELS).into_drawing_area();
    root.fill(&WHITE)?;
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let (left, right) = bounds(all().map(|point| point.0));
    let (low, high) = bounds(all().map(|point| point.1));
    let mut builder = ChartBuilder::on(&root);
    builder
        .caption(chart.picture.about, (FONT, 18))
        .margin(12)
        .margin_right(32)
        .x_label_area_size(36)
        .y_label_area_size(64);
    if chart.log_upward {
        let across = (left..right.max(left * 1.01)).log_scale();
        let upward = (low.max(0.1) * 0.7..high * 1.5).log_scale();
        let mut context = builder.build_cartesian_2d(across, upward)?;
        mesh(&mut context, chart.across, chart.upward)?;
        draw_curves(&mut context, curves)?;
    } else {
        let mut context = builder.build_cartesian_2d(left..right.max(1.0), 0.0..high * 1.3)?;
        mesh(&mut context, chart.across, chart.upward)?;
        draw_curves(&mut context, curves)?;
    }
    root.present()?;
    Ok(())
}

fn mesh<'a, X, Y>(
    context: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    across: &str,
    upward: &str,
) -> Result<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    context
        .configure_mesh()
        .x_desc(across)
        .y_desc(upward)
        .x_label_formatter(&|value| format!("{value:.0}"))
        .y_label_formatter(&|value| text::figure(*value))
        .light_line_style(TRANSPARENT)
        .draw()?;
    Ok(())
}

fn draw_curves<'a, X, Y>(
    context: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    curves: Vec<Curve>,
) -> Result<()>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for Curve { name, color, width_pixels, points } in curves {
        let style = color.stroke_width(width_pixels);
        context
            .draw_series(LineSeries::new(points, style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 14))
        .draw()?;
    Ok(())
}

/// Internal fragmentation over sizes: those of Adamant share an allocator, so one of them is shown.
fn fragmentation(run: &Figures, folder: &Path) -> Result<Option<Picture>> {
    let curves: Vec<Curve> = [LIBPMEMOBJ, judged()]
        .iter()
        .filter_map(|engine| {
            let line = run
                .others
                .iter()
                .find(|line| line["curve"] == "fragmentation" && line["engine"] == *engine)?;
            let points = line["points"].as_array()?.iter();
            let points = points.filter_map(|point| Some((point[0].as_f64()?, point[1].as_f64()?)));
            let (name, color) = (name_of(engine), color_of(engine));
            Some(Curve { name, color, width_pixels: 1, points: points.collect() })
        })
        .collect();
    if curves.is_empty() {
        return Ok(None);
    }
    let picture = Picture {
        name: "fragmentation",
        about: "Internal fragmentation over sizes, %",
        note: "The share of an object's usable bytes that was not asked for, in steps of 100 B: \
               every size to 100 kB, samples above.",
    };
    let (across, upward) = ("bytes asked for", "%");
    let path = folder.join("fragmentation.svg");
    let root = SVGBackend::new(&path, SIZE_PIXELS).into_drawing_area();
    root.fill(&WHITE)?;
    let (_, high) = bounds(curves.iter().flat_map(|curve| &curve.points).map(|point| point.1));
    let mut context = ChartBuilder::on(&root)
        .caption(picture.about, (FONT, 18))
        .margin(12)
        .margin_right(32)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d((100.0..4_194_300.0).log_scale(), 0.0..high * 1.1)?;
    mesh(&mut context, across, upward)?;
    draw_curves(&mut context, curves)?;
    root.present()?;
    Ok(Some(picture))
}

/// What a full allocation costs beside a reservation, alone and published in batches: bars.
fn reserve_and_allocate(run: &Figures, folder: &Path) -> Result<Option<Picture>> {
    const ROWS: [(&str, &str); 5] = [
        ("reserve.1t", "reserve"),
        ("publish.100", "+ publish, 100 at once"),
        ("publish.10", "+ publish, 10 at once"),
        ("publish.1", "+ publish, alone"),
        ("alloc.64", "allocate"),
    ];
    let figure = |row: &str, engine: &str| run.spread(row, engine).map(|spread| spread.median);
    let all = ROWS.iter().flat_map(|(row, _)| engines().filter_map(|engine| figure(row, engine)));
    let (_, high) = bounds(all);
    if high <= 0.0 || figure("reserve.1t", judged()).is_none() {
        return Ok(None);
    }
    let picture = Picture {
        name: "reserve_and_allocate",
        about: "Reserve against full allocation of 64 B, ns each",
        note: "A reservation is nothing on the medium until it is published.",
    };
    let path = folder.join("reserve_and_allocate.svg");
    let root = SVGBackend::new(&path, SIZE_PIXELS).into_drawing_area();
    root.fill(&WHITE)?;
    root.draw(&Text::new(picture.about, (20, 14), (FONT, 20).into_font()))?;
    let mut y = 48;
    for (row, name) in ROWS {
        root.draw(&Text::new(name, (20, y + 22), (FONT, 14).into_font()))?;
        for engine in engines() {
            if let Some(ns) = figure(row, engine) {
                bar(&root, engine, y, ns, ns / high)?;
            }
            y += 20;
        }
        y += 12;
    }
    root.present()?;
    Ok(Some(picture))
}

fn bar(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    engine: &str,
    y: i32,
    figure: f64,
    share: f64,
) -> Result<()> {
    const LEFT: i32 = 220;
    const WIDTH: f64 = 400.0;
    let right = LEFT + (share * WIDTH) as i32;
    let style = color_of(engine).filled();
    root.draw(&Rectangle::new([(LEFT, y), (right.max(LEFT + 1), y + 16)], style))?;
    let words = format!("{} ({})", text::figure(figure), name_of(engine));
    root.draw(&Text::new(words, (right + 8, y + 1), (FONT, 13).into_font()))?;
    Ok(())
}
