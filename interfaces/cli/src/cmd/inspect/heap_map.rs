//! A heap as a picture: pages in reading order, and the fill of each class.
//!
//! A cell is one page, or several of a large heap, and shows what takes most of it: free pages are
//! white, extents grey, runs blue to red by block size and darker the fuller they are.

use std::fmt::Write;

use adamant::{Occupancy, Usage};

/// Cells of a row.
const COLUMNS: u64 = 128;
/// Cells at most, so that the file stays a picture.
const CELLS_MAX: u64 = 16_384;
/// Pixels of a cell.
const CELL: u64 = 7;
/// Pixels of a line of text, and of a bar.
const LINE: u64 = 16;
/// Pixels of a full bar.
const BAR: u64 = 400;

/// Draws a heap.
pub(crate) fn svg(heap: &Occupancy) -> String {
    let pages = heap.page_ranges.last().map_or(0, |last| last.page + last.pages);
    let (pages_per_cell, cells) = heap.cells(CELLS_MAX);
    let rows = pages.div_ceil(pages_per_cell).div_ceil(COLUMNS);
    let (width, top) = (COLUMNS * CELL + 20, 40);
    let bars = top + rows * CELL + 2 * LINE;
    let height = bars + (heap.classes.len() as u64 + 1) * LINE + 10;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"10\" y=\"16\">{pages} pages of 4 KiB, {pages_per_cell} in a cell; {} free, {} in \
         {} extents (grey), the rest in runs: blue small blocks, red large ones, darker when \
         fuller</text>\n",
        heap.free_pages, heap.extent_pages, heap.extents,
    );
    for (cell, usage) in (0..).zip(cells) {
        let (x, y) = (10 + cell % COLUMNS * CELL, top + cell / COLUMNS * CELL);
        let (size, colour) = (CELL - 1, colour(usage));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{size}\" height=\"{size}\" fill=\"{colour}\" \
             stroke=\"#dddddd\" stroke-width=\"0.5\"/>"
        );
    }
    for (line, class) in (0..).zip(&heap.classes) {
        let y = bars + line * LINE;
        let fill = class.allocated * BAR / class.blocks.max(1);
        let usage = Usage::Run {
            block_bytes: class.block_bytes,
            blocks: class.blocks,
            allocated: class.blocks,
        };
        let _ = writeln!(
            text,
            "<text x=\"70\" y=\"{}\" text-anchor=\"end\">{} B</text>\
             <rect x=\"80\" y=\"{y}\" width=\"{BAR}\" height=\"11\" fill=\"none\" \
             stroke=\"#aaaaaa\"/><rect x=\"80\" y=\"{y}\" width=\"{fill}\" height=\"11\" \
             fill=\"{}\"/><text x=\"490\" y=\"{}\">{} of {} blocks in {} runs</text>",
            y + 10,
            class.block_bytes,
            colour(usage),
            y + 10,
            class.allocated,
            class.blocks,
            class.runs,
        );
    }
    text.push_str("</svg>\n");
    text
}

fn colour(usage: Usage) -> String {
    match usage {
        Usage::Free => "#ffffff".into(),
        Usage::System => "#333333".into(),
        Usage::Extent => "#9a9a9a".into(),
        Usage::Run { block_bytes, blocks, allocated } => {
            // 8 B (2^3) is blue, 32 KiB (2^15) red.
            let exponent = (block_bytes.max(1) as f64).log2();
            let hue = 230.0 + (exponent - 3.0).clamp(0.0, 12.0) / 12.0 * 130.0;
            let fill = allocated as f64 / blocks.max(1) as f64;
            format!("hsl({hue:.0},70%,{:.0}%)", 90.0 - 45.0 * fill)
        }
        _ => "#000000".into(),
    }
}
