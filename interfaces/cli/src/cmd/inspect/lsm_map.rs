//! Levels of LSM trees as a picture: a row for each level, a box for each table.
//!
//! Keys have an order but no distances: the lowest and highest keys of all tables of a keyspace are
//! placed evenly from left to right, and a box goes from the lowest to the highest key of its
//! table. So boxes above one another are tables that a merge has to read together. Tables of level
//! 0 may overlap, and have a row each. The redder a box, the more of the entries are tombstones.

use std::collections::BTreeSet;
use std::fmt::Write;

use adamant::LsmTable;

use crate::figures::{bytes, thousands};
use crate::output::escape;

/// Pixels of a whole row.
const WIDTH: f64 = 900.0;
/// Pixels left of the rows, for their names.
const LEFT: f64 = 190.0;
/// Pixels of a row.
const ROW: usize = 18;
/// The least width of a box in pixels, so that it is visible.
const BOX_WIDTH_MIN: f64 = 1.5;

/// Draws the levels of keyspaces.
pub(crate) fn svg(keyspaces: &[(String, Vec<Vec<LsmTable>>)]) -> String {
    let mut body = String::new();
    let mut y = 10;
    for (name, levels) in keyspaces {
        draw(&mut body, &mut y, name, levels);
        y += ROW;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{y}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n",
        LEFT + WIDTH + 20.0,
    )
}

fn draw(body: &mut String, y: &mut usize, name: &str, levels: &[Vec<LsmTable>]) {
    let bounds: BTreeSet<&[u8]> = levels
        .iter()
        .flatten()
        .flat_map(|table| [&table.key_min[..], &table.key_max[..]])
        .collect();
    let bounds: Vec<&[u8]> = bounds.into_iter().collect();
    let place = |key: &[u8]| {
        let rank = bounds.partition_point(|bound| *bound < key);
        LEFT + WIDTH * rank as f64 / (bounds.len().max(2) - 1) as f64
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        body,
        "<text x=\"10\" y=\"{}\" font-weight=\"bold\">{}</text>",
        *y + 13,
        xml(&escape(name.as_bytes())),
    );
    *y += ROW;
    for (level, tables) in levels.iter().enumerate().filter(|(_, tables)| !tables.is_empty()) {
        let total = tables.iter().map(|table| table.file_bytes).sum();
        let _ = writeln!(
            body,
            "<text x=\"10\" y=\"{}\">level {level}: {}, {}</text>",
            *y + 13,
            thousands(tables.len() as u64),
            bytes(total),
        );
        for table in tables {
            let (x, end) = (place(&table.key_min), place(&table.key_max));
            let width = (end - x).max(BOX_WIDTH_MIN);
            let _ = writeln!(
                body,
                "<rect x=\"{x:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\" fill=\"{}\" \
                 stroke=\"#ffffff\" stroke-width=\"0.5\"><title>{}</title></rect>",
                *y + 2,
                ROW - 4,
                colour(table),
                xml(&title(table)),
            );
            if level == 0 {
                *y += ROW;
            }
        }
        if level > 0 {
            *y += ROW;
        }
    }
}

/// Blue without tombstones, red if there is nothing else.
fn colour(table: &LsmTable) -> String {
    let removed = table.tombstones + table.range_tombstones;
    let share = removed as f64 / (table.entries + table.range_tombstones).max(1) as f64;
    format!("hsl({:.0},65%,60%)", 220.0 + 140.0 * share)
}

fn title(table: &LsmTable) -> String {
    format!(
        "table {}: {}, {} entries, {} tombstones, {} .. {}",
        table.number,
        bytes(table.file_bytes),
        thousands(table.entries),
        thousands(table.tombstones + table.range_tombstones),
        escape(&table.key_min),
        escape(&table.key_max),
    )
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
