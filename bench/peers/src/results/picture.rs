//! Pictures of a report, which lie beside it.

/// A picture that was drawn.
#[derive(Clone, Copy, Debug)]
pub struct Picture {
    /// Its file is so named, with `.svg`.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// What to know when looking at it.
    pub note: &'static str,
}

/// The part of a report that shows pictures in a folder, as seen from the report.
pub fn section(pictures: &[Picture], folder: &str) -> String {
    let mut out = String::from("## Pictures\n\n");
    for Picture { name, about, note } in pictures {
        out += &format!("![{about}]({folder}/{name}.svg)\n\n{note}\n\n");
    }
    out
}
