//! Ratios to the best peer, as bars beside their goals.

use std::path::Path;

use adamant_bench::harness::error::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::goals::{Bound, Judged};
use crate::results::plots::{FONT, Plot, color_of};
use crate::results::text;
use crate::run::roster::JUDGED;

/// Pixels of a bar and the space around it.
const ROW_PIXELS: i32 = 30;
/// Pixels of the whole width.
const WIDTH_PIXELS: i32 = 900;
/// Pixels left of the bars, for names.
const LEFT_PIXELS: i32 = 200;
/// Pixels right of the bars, for figures.
const RIGHT_PIXELS: i32 = 160;
/// Pixels above the bars, for the title.
const TOP_PIXELS: i32 = 60;

/// Draws `ratios.svg`, if there are any.
pub(super) fn ratios(judged: &[Judged], folder: &Path) -> Result<Option<Plot>> {
    let bars: Vec<(&Judged, f64)> = judged
        .iter()
        .filter_map(|judged| match judged.goal.bound {
            Bound::RatioAtLeast(least) => Some((judged, least)),
            Bound::FigureAtMost(_) => None,
        })
        .collect();
    if bars.is_empty() {
        return Ok(None);
    }
    let bars_pixels = ROW_PIXELS * i32::try_from(bars.len())?;
    let height = TOP_PIXELS + bars_pixels + ROW_PIXELS;
    let path = folder.join("ratios.svg");
    let size = (u32::try_from(WIDTH_PIXELS)?, u32::try_from(height)?);
    let root = SVGBackend::new(&path, size).into_drawing_area();
    root.fill(&WHITE)?;
    let title = "Adamant by the best peer that gives the same durability";
    root.draw(&Text::new(title, (20, 14), (FONT, 20).into_font()))?;
    let hint = "1 = as fast; the mark is the goal; the scale is logarithmic";
    root.draw(&Text::new(hint, (20, 38), (FONT, 13).into_font()))?;

    let all = bars.iter().flat_map(|(judged, least)| [judged.ratio.median, *least, 1.0]);
    let (low, high) = all.fold((0.5_f64, 2.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    let (low, high) = (low.max(0.01).ln() - 0.1, high.ln() + 0.1);
    let room = f64::from(WIDTH_PIXELS - LEFT_PIXELS - RIGHT_PIXELS);
    let x_of =
        |ratio: f64| LEFT_PIXELS + ((ratio.max(0.01).ln() - low) / (high - low) * room) as i32;

    let right = Pos::new(HPos::Right, VPos::Center);
    let left = Pos::new(HPos::Left, VPos::Center);
    for (at, (judged, least)) in (0..).zip(&bars) {
        let middle = TOP_PIXELS + ROW_PIXELS * at + ROW_PIXELS / 2;
        let ratio = judged.ratio.median;
        let style = if judged.is_behind() {
            RGBColor(150, 150, 150).filled()
        } else {
            color_of(JUDGED).filled()
        };
        let corners = [(x_of(ratio.min(1.0)), middle - 9), (x_of(ratio.max(1.0)), middle + 9)];
        root.draw(&Rectangle::new(corners, style))?;
        let goal = [(x_of(*least), middle - 12), (x_of(*least), middle + 12)];
        root.draw(&PathElement::new(goal, BLACK.stroke_width(3)))?;
        let name_style = (FONT, 14).into_font().color(&BLACK).pos(right);
        root.draw(&Text::new(judged.goal.name.clone(), (LEFT_PIXELS - 12, middle), name_style))?;
        let peer = judged.best.as_ref().map_or("", |(name, _)| name.as_str());
        let figure = format!("{} ({peer})", text::figure(ratio));
        let figure_style = (FONT, 14).into_font().color(&BLACK).pos(left);
        let place = (WIDTH_PIXELS - RIGHT_PIXELS + 12, middle);
        root.draw(&Text::new(figure, place, figure_style))?;
    }
    let one = [(x_of(1.0), TOP_PIXELS), (x_of(1.0), TOP_PIXELS + bars_pixels)];
    root.draw(&PathElement::new(one, BLACK.stroke_width(1)))?;
    root.present()?;
    Ok(Some(Plot { name: "ratios".to_owned(), about: title.to_owned() }))
}
