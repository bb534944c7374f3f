//! The copy of the tree in which `cargo xtask mutants` builds: with all mutations, below `target`.
//!
//! Purpose: nothing of mutations is compiled into the product. All of them are built at once, and
//! each asks at run time whether it is the chosen one.
//! Invariants: only files whose contents differ are written, so what was built of the others stays;
//! files that the tree no longer has are removed. Thread safety: one process at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::mutations::{self, Mutated, Mutation};
use crate::source::sources;
use crate::source::workspace::Workspace;

/// The folder of copy and build in the build folder.
const FOLDER: &str = "mutants";
/// The module that answers which mutation was chosen; its place in the copy; and where it is named.
const MODULE: &str = "xtask/mutations/is_planted.rs";
const MODULE_COPY: &str = "base/wire/src/mutants.rs";
const MODULE_PARENT: &str = "base/wire/src/lib.rs";

/// A copy of the tree with mutations.
pub(crate) struct Copy {
    /// The folder of its root manifest.
    pub(crate) root: PathBuf,
    /// Its build folder.
    pub(crate) target: PathBuf,
    mutated: BTreeMap<String, Mutated>,
}

impl Copy {
    /// Makes the copy, or brings the last one up to date.
    ///
    /// # Errors
    /// In words: files that cannot be read or written, and mutations that do not fit.
    pub(crate) fn make(workspace: &Workspace, mutations: &[Mutation]) -> Result<Self, String> {
        let mutated = mutations::apply(&workspace.root, mutations);
        let mutated = mutated.map_err(|problems| problems.join("\n"))?;
        let folder = workspace.target.join(FOLDER);
        let copy = Self { root: folder.join("tree"), target: folder.join("build"), mutated };
        let mut names = BTreeSet::from([PathBuf::from(MODULE_COPY)]);
        for path in sources::files(&workspace.root, "")? {
            let name = path.strip_prefix(&workspace.root).unwrap_or(&path);
            let bytes = read(&path)?;
            copy.write(name, &copy.changed(&name.to_string_lossy(), bytes))?;
            names.insert(name.to_owned());
        }
        copy.write(Path::new(MODULE_COPY), &read(&workspace.root.join(MODULE))?)?;
        for path in sources::files(&copy.root, "")? {
            if !names.contains(path.strip_prefix(&copy.root).unwrap_or(&path)) {
                let failed = |error| format!("could not remove {}: {error}", path.display());
                fs::remove_file(&path).map_err(failed)?;
            }
        }
        Ok(copy)
    }

    /// The contents of a file in the copy.
    fn changed(&self, name: &str, bytes: Vec<u8>) -> Vec<u8> {
        let mut bytes = match self.mutated.get(name) {
            Some(mutated) => mutated.text.clone().into_bytes(),
            None => bytes,
        };
        if name == MODULE_PARENT {
            bytes.extend_from_slice(b"\npub mod mutants;\n");
        }
        bytes
    }

    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), String> {
        let path = self.root.join(name);
        if fs::read(&path).is_ok_and(|known| known == bytes) {
            return Ok(());
        }
        let failed = |error| format!("could not write {}: {error}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(&self.root)).map_err(failed)?;
        fs::write(&path, bytes).map_err(failed)
    }

    /// A place in the copy, such as `base/heap/src/heap.rs:10:3`, by the line of the source.
    pub(crate) fn source_place(&self, place: &str) -> String {
        let of = || {
            let mut words = place.splitn(3, ':');
            let (file, line, column) = (words.next()?, words.next()?, words.next()?);
            let line = self.mutated.get(file)?.source_line(line.parse().ok()?);
            Some(format!("{file}:{line}:{column}"))
        };
        of().unwrap_or_else(|| place.to_owned())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("could not read {}: {error}", path.display()))
}
