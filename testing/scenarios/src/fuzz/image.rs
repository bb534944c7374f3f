//! Images: the files of a small store, kept in memory, and restored into new directories.

use std::sync::Arc;

use adamant::Directory;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::File;

/// Directories of a store; the first is itself.
const DIRECTORIES: [&str; 4] = ["", "log", "tables", "blobs"];
/// Bytes of a unit that is kept, or left out if it is all zeros.
const PAGE_BYTES: usize = 4096;
/// Bytes of a line.
pub(super) const LINE_BYTES: u64 = 64;

/// A file with a byte in it that is not zero.
#[derive(Clone)]
pub(super) struct Kept {
    directory: &'static str,
    pub(super) name: String,
    len: u64,
    /// The pages that are not zeros, by offset.
    pages: Vec<(u64, Vec<u8>)>,
    /// Offsets of lines with a byte that is not zero; at least one.
    pub(super) used: Vec<u64>,
}

impl Kept {
    fn of(directory: &'static str, name: String, file: &Arc<dyn File>) -> Self {
        let bytes = bytes_of(file);
        let used = |unit: usize| {
            let pieces = bytes.chunks(unit).enumerate();
            pieces
                .filter(|(_, piece)| piece.iter().any(|byte| *byte != 0))
                .map(move |(number, piece)| ((number * unit) as u64, piece.to_vec()))
        };
        let pages = used(PAGE_BYTES).collect();
        let lines = used(LINE_BYTES as usize).map(|(offset, _)| offset).collect();
        Self { directory, name, len: bytes.len() as u64, pages, used: lines }
    }

    /// Whether it belongs to the log.
    pub(super) fn is_log(&self) -> bool {
        self.directory == "log"
    }

    /// The same under another name.
    pub(super) fn renamed(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// Its bytes, up to the last that is not zero and some more.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (offset, page) in &self.pages {
            bytes.resize(*offset as usize, 0);
            bytes.extend_from_slice(page);
        }
        bytes
    }
}

/// All files of a store.
pub(super) struct Image {
    pub(super) files: Vec<Kept>,
}

impl Image {
    /// The current content of a directory: for an open store, the state after a kill.
    ///
    /// # Panics
    /// If it cannot be read.
    pub(super) fn of(root: &Arc<dyn Directory>) -> Self {
        let mut files = Vec::new();
        for directory in DIRECTORIES {
            let folder = folder(root, directory);
            for name in folder.list().unwrap() {
                let Ok(Some(file)) = folder.open(&name) else { continue };
                let kept = Kept::of(directory, name, &file);
                files.extend((!kept.used.is_empty()).then_some(kept));
            }
        }
        Self { files }
    }
}

/// Puts files into a new directory; returns them in the same order.
///
/// # Panics
/// If they cannot be created.
pub(super) fn put<'k>(
    files: impl IntoIterator<Item = &'k Kept>,
) -> (Arc<dyn Directory>, Vec<Arc<dyn File>>) {
    let root: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let put = |kept: &Kept| {
        let file = folder(&root, kept.directory).create(&kept.name).unwrap();
        file.set_len(kept.len).unwrap();
        for (offset, page) in &kept.pages {
            file.write_at(page, *offset).unwrap();
        }
        file
    };
    let files = files.into_iter().map(put).collect();
    (root, files)
}

/// All bytes of a file.
fn bytes_of(file: &Arc<dyn File>) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn folder(root: &Arc<dyn Directory>, name: &str) -> Arc<dyn Directory> {
    if name.is_empty() { root.clone() } else { root.subdirectory(name).unwrap() }
}
