//! The text format of Prometheus, version 0.0.4.
//!
//! A library for it would keep its own counters; these are the store's, read at each request.

use std::fmt::{Display, Write};

use adamant::Latencies;

use crate::serving::figures::within_bounds;

/// Names and values of the labels that distinguish samples of one name.
pub(crate) type Labels<'l> = [(&'static str, &'l str)];

/// The text under construction: families of samples, each named once.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// A gauge.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// A counter.
    pub(crate) fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    /// Begins a family; its samples follow.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// A sample of the family that was begun last.
    pub(crate) fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        self.text.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            self.write(format_args!("{before}{label}=\"{}\"", escaped(value)));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        self.write(format_args!("{after} {value}\n"));
    }

    /// Samples of a family of histograms, in seconds.
    pub(crate) fn histogram(&mut self, name: &str, label: (&'static str, &str), all: &Latencies) {
        let bucket = format!("{name}_bucket");
        for (micros, count) in within_bounds(all) {
            let bound = (micros as f64 / 1e6).to_string();
            self.sample(&bucket, &[label, ("le", &bound)], count);
        }
        self.sample(&bucket, &[label, ("le", "+Inf")], all.count());
        let seconds = all.mean().as_secs_f64() * all.count() as f64;
        self.sample(&format!("{name}_sum"), &[label], seconds);
        self.sample(&format!("{name}_count"), &[label], all.count());
    }

    /// The complete text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn write(&mut self, words: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(words);
    }
}

/// A label's value, escaped for quotation marks.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_samples() {
        let mut text = Exposition::default();
        text.gauge("a_bytes", "Bytes of a.", 7);
        text.family("b_total", "counter", "Bs.");
        text.sample("b_total", &[("name", "x\"\\\ny"), ("level", "0")], 1.5);
        let expected = "# HELP a_bytes Bytes of a.\n# TYPE a_bytes gauge\na_bytes 7\n\
                        # HELP b_total Bs.\n# TYPE b_total counter\n\
                        b_total{name=\"x\\\"\\\\\\ny\",level=\"0\"} 1.5\n";
        assert_eq!(text.finish(), expected);
    }
}
