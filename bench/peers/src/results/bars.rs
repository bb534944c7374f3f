//! Pictures of bars in groups, as SVG.

use std::path::Path;

use adamant_bench::harness::error::Result;
use adamant_bench::harness::rows::Rows;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::text;

/// Family of all text.
const FONT: &str = "sans-serif";
/// Pixels of a picture's width, left of the bars for names, and right of them for figures.
const WIDTH_PIXELS: i32 = 900;
const LEFT_PIXELS: i32 = 260;
const RIGHT_PIXELS: i32 = 160;
/// Pixels above the bars, of a bar, and between groups.
const TOP_PIXELS: i32 = 50;
const BAR_PIXELS: i32 = 18;
const SPACE_PIXELS: i32 = 14;
/// Colours of the bars of a group, in order (after Okabe and Ito).
const COLORS: [RGBColor; 5] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// A picture.
pub struct Bars {
    /// Its file is so named, with `.svg`.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// From top to bottom.
    pub groups: Vec<Group>,
}

/// Bars beside each other, by name.
pub struct Group {
    /// What stands beside them.
    pub label: String,
    /// Names and figures.
    pub bars: Vec<(String, f64)>,
}

impl Group {
    /// The medians of a row, by engine.
    pub fn of(rows: &Rows, label: &str, row: &str, engines: &[&str]) -> Self {
        let bar = |&name: &&str| Some((name.to_owned(), rows.median(row, name)?));
        Self { label: label.to_owned(), bars: engines.iter().filter_map(bar).collect() }
    }
}

impl Bars {
    /// Draws it into a folder.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn draw(&self, folder: &Path) -> Result<()> {
        let bars: usize = self.groups.iter().map(|group| group.bars.len()).sum();
        let spaces = SPACE_PIXELS * i32::try_from(self.groups.len())?;
        let height = TOP_PIXELS + BAR_PIXELS * i32::try_from(bars)? + spaces;
        let path = folder.join(format!("{}.svg", self.name));
        let size = (u32::try_from(WIDTH_PIXELS)?, u32::try_from(height)?);
        let root = SVGBackend::new(&path, size).into_drawing_area();
        root.fill(&WHITE)?;
        root.draw(&Text::new(self.about, (20, 14), (FONT, 20).into_font()))?;
        let all = self.groups.iter().flat_map(|group| &group.bars);
        let most = all.map(|(_, figure)| *figure).fold(1.0, f64::max);
        let room = f64::from(WIDTH_PIXELS - LEFT_PIXELS - RIGHT_PIXELS);
        let (left, right) = (Pos::new(HPos::Left, VPos::Top), Pos::new(HPos::Right, VPos::Top));
        let mut top = TOP_PIXELS;
        for Group { label, bars } in &self.groups {
            let style = (FONT, 13).into_font().color(&BLACK).pos(right);
            root.draw(&Text::new(label.as_str(), (LEFT_PIXELS - 8, top), style))?;
            for (at, (name, figure)) in bars.iter().enumerate() {
                let end = LEFT_PIXELS + (figure / most * room) as i32;
                let color = COLORS[at % COLORS.len()];
                let corners = [(LEFT_PIXELS, top + 1), (end, top + BAR_PIXELS - 1)];
                root.draw(&Rectangle::new(corners, color.filled()))?;
                let style = (FONT, 13).into_font().color(&BLACK).pos(left);
                let words = format!("{} {name}", text::figure(*figure));
                root.draw(&Text::new(words, (end + 6, top), style))?;
                top += BAR_PIXELS;
            }
            top += SPACE_PIXELS;
        }
        root.present()?;
        Ok(())
    }
}
