//! Golden images, unpacked.

use std::fs;
use std::path::{Path, PathBuf};

use adamant_golden::image;
use tempfile::TempDir;

pub(crate) fn stored(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A store as an image has it, and the folder that it is in.
pub(crate) fn unpacked(image: &Path) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    image::unpack(&stored(image), &path).unwrap();
    (directory, path)
}
