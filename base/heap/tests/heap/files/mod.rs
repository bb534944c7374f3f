//! The files of a heap in memory, as a dying process leaves them.

use std::sync::Arc;

use adamant_heap::{Directory, MemoryDirectory};

/// Directory, name and bytes of each file.
pub(crate) type Files = Vec<(&'static str, String, Vec<u8>)>;

pub(crate) fn new_directory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

/// The pool comes first.
pub(crate) fn files_of(directory: &Arc<dyn Directory>) -> Files {
    let log = directory.subdirectory("log").expect("in memory");
    let mut files = Vec::new();
    let mut read = |place: &Arc<dyn Directory>, folder, name: String| {
        let file = place.open(&name).expect("in memory").expect("is there");
        let mut bytes = vec![0; file.len().expect("in memory") as usize];
        file.read_at(&mut bytes, 0).expect("in memory");
        files.push((folder, name, bytes));
    };
    read(directory, "", "pool".into());
    for name in log.list().expect("in memory") {
        read(&log, "log", name);
    }
    files
}

pub(crate) fn directory_of(files: &Files) -> Arc<dyn Directory> {
    let directory = new_directory();
    let log = directory.subdirectory("log").expect("in memory");
    for (folder, name, bytes) in files {
        let place = if folder.is_empty() { &directory } else { &log };
        place.create(name).expect("new").write_at(bytes, 0).expect("in memory");
    }
    directory
}
