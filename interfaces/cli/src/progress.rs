//! Progress bars with rates, shown only if standard error is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const BYTES: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
const ENTRIES: &str = "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}";

/// A bar over bytes.
pub(crate) fn bytes(words: &'static str, total: u64) -> ProgressBar {
    bar(words, total, BYTES)
}

/// A bar over entries.
pub(crate) fn entries(words: &'static str, total: u64) -> ProgressBar {
    bar(words, total, ENTRIES)
}

/// A spinner, for work of unknown amount.
pub(crate) fn spinner(words: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner().with_message(words);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn bar(words: &'static str, total: u64, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    ProgressBar::new(total).with_style(style).with_message(words)
}
