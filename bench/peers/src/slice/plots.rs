//! Pictures of the slice, as SVG: every line beside byteview and the best, and the memory.

use std::path::Path;

use adamant_bench::commands::slice::JUDGED;
use adamant_bench::harness::error::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::figures::Figures;
use crate::results::picture::Picture;
use crate::results::text;
use crate::slice::memory::LENGTHS;
use crate::slice::table::{Judged, engines};
use crate::slice::types::BYTEVIEW;

/// Family of all text.
const FONT: &str = "sans-serif";
/// Pixels of a picture's width.
const WIDTH_PIXELS: i32 = 900;
/// Pixels left of the bars, for names.
const LEFT_PIXELS: i32 = 340;
/// Pixels right of the bars, for figures.
const RIGHT_PIXELS: i32 = 80;
/// Pixels of a group of bars, and above all of them.
const ROW_PIXELS: i32 = 26;
const TOP_PIXELS: i32 = 64;
/// The longest bar stands for so many times byteview.
const RATIO_SHOWN_MAX: f64 = 1.5;

const RATIOS: Picture = Picture {
    name: "ratios",
    about: "Adamant's slice by byteview, time by time",
    note: "Shorter is better; the line is byteview. Bars that go on to the right end at 1.5.",
};

const MEMORY: Picture = Picture {
    name: "memory",
    about: "Bytes that an element takes beside its content",
    note: "Strings of up to 20 bytes are within the 24 bytes; longer ones cost 8 bytes more than \
           these.",
};

/// Draws all that the run has figures for into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn draw(run: &Figures, judged: &[Judged], folder: &Path) -> Result<Vec<Picture>> {
    ratios(judged, folder)?;
    memory(run, folder)?;
    Ok(vec![RATIOS, MEMORY])
}

/// A colour for each type (after Okabe and Ito).
fn color_of(engine: &str) -> RGBColor {
    match engine {
        JUDGED => RGBColor(213, 94, 0),
        BYTEVIEW => RGBColor(0, 114, 178),
        "bytes" => RGBColor(86, 180, 233),
        "Arc<[u8]>" => RGBColor(204, 121, 167),
        "Vec<u8>" => RGBColor(130, 130, 130),
        _ => RGBColor(0, 158, 115),
    }
}

fn ratios(judged: &[Judged], folder: &Path) -> Result<()> {
    let bars: Vec<(&Judged, f64)> =
        judged.iter().filter_map(|one| Some((one, one.by_byteview?.median))).collect();
    let height = TOP_PIXELS + ROW_PIXELS * (i32::try_from(bars.len())? + 1);
    let path = folder.join(format!("{}.svg", RATIOS.name));
    let size = (u32::try_from(WIDTH_PIXELS)?, u32::try_from(height)?);
    let root = SVGBackend::new(&path, size).into_drawing_area();
    root.fill(&WHITE)?;
    root.draw(&Text::new(RATIOS.about, (20, 14), (FONT, 20).into_font()))?;
    let hint = "median of the ratios of all rounds; grey: not all that is asked of the line holds";
    root.draw(&Text::new(hint, (20, 38), (FONT, 13).into_font()))?;
    let room = f64::from(WIDTH_PIXELS - LEFT_PIXELS - RIGHT_PIXELS);
    let x_of =
        |ratio: f64| LEFT_PIXELS + (ratio.min(RATIO_SHOWN_MAX) / RATIO_SHOWN_MAX * room) as i32;
    let right = Pos::new(HPos::Right, VPos::Center);
    let left = Pos::new(HPos::Left, VPos::Center);
    for (at, (judged, ratio)) in (0..).zip(&bars) {
        let middle = TOP_PIXELS + ROW_PIXELS * at + ROW_PIXELS / 2;
        let color = match judged.holds() {
            Some(true) => color_of(JUDGED),
            _ => RGBColor(150, 150, 150),
        };
        let corners = [(LEFT_PIXELS, middle - 8), (x_of(*ratio), middle + 8)];
        root.draw(&Rectangle::new(corners, color.filled()))?;
        let name = (FONT, 13).into_font().color(&BLACK).pos(right);
        root.draw(&Text::new(judged.line.about, (LEFT_PIXELS - 8, middle), name))?;
        let figure = (FONT, 13).into_font().color(&BLACK).pos(left);
        root.draw(&Text::new(text::figure(*ratio), (x_of(*ratio) + 6, middle), figure))?;
    }
    let one = [(x_of(1.0), TOP_PIXELS), (x_of(1.0), height - ROW_PIXELS)];
    root.draw(&PathElement::new(one, BLACK.stroke_width(1)))?;
    root.present()?;
    Ok(())
}

fn memory(run: &Figures, folder: &Path) -> Result<()> {
    let engines = engines(run);
    let path = folder.join(format!("{}.svg", MEMORY.name));
    let root = SVGBackend::new(&path, (900, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let over = |len: usize, engine: &str| {
        let spread = run.spread(&format!("memory.{len}"), engine);
        spread.map(|spread| spread.median - len as f64)
    };
    let all = LENGTHS.iter().flat_map(|&len| engines.iter().filter_map(move |one| over(len, one)));
    let (low, high) = all.fold((0.0_f64, 1.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    let mut chart = ChartBuilder::on(&root)
        .caption(MEMORY.about, (FONT, 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0..LENGTHS.len() - 1, low..high * 1.1)?;
    chart
        .configure_mesh()
        .x_desc("bytes of content")
        .y_desc("bytes beside it")
        .x_label_formatter(&|at| LENGTHS.get(*at).map(usize::to_string).unwrap_or_default())
        .draw()?;
    for engine in &engines {
        let points = (0..).zip(LENGTHS).filter_map(|(at, len)| Some((at, over(len, engine)?)));
        let color = color_of(engine);
        let width = if *engine == JUDGED { 4 } else { 2 };
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(width)))?
            .label(*engine)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(3)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}
