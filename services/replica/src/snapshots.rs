//! Snapshot files: the current one, and unfinished ones.
//!
//! Purpose: files of the system that openraft reads and fills.
//! Invariants: the file `current` is complete and durable. It is replaced by a rename, and never by
//! an older one. Other files in the directory are unfinished, and removed at opening.
//! Thread safety: any thread; a lock serialises replacements.

use std::fs::{self, File};
use std::io::{self, BufReader, Seek};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::archive;
use crate::error::{Error, Result};
use crate::layout::CURRENT;
use crate::types::SnapshotMeta;

const BUILT: &str = "built";
const INSTALLED: &str = "installed";
const RECEIVED: &str = "received";

/// The directory of the snapshots' files.
#[derive(Debug)]
pub(crate) struct Snapshots {
    path: PathBuf,
    turn: Mutex<()>,
}

impl Snapshots {
    /// Opens the directory, and creates it if it is missing: snapshots can be made again.
    pub(crate) fn open(path: PathBuf) -> Result<Self> {
        fs::create_dir_all(&path).map_err(Error::system("create", &path))?;
        for entry in fs::read_dir(&path).map_err(Error::system("list", &path))? {
            let entry = entry.map_err(Error::system("list", &path))?;
            if entry.file_name() != CURRENT {
                fs::remove_file(entry.path()).map_err(Error::system("remove", &entry.path()))?;
            }
        }
        Ok(Self { path, turn: Mutex::new(()) })
    }

    /// An empty file to be filled from the network. It has no name, so nothing is left of it when
    /// it is dropped.
    pub(crate) fn receive(&self) -> Result<File> {
        let (path, file) = self.create(RECEIVED)?;
        fs::remove_file(&path).map_err(Error::system("remove", &path))?;
        Ok(file)
    }

    /// Makes the output of `write` the current snapshot, unless there is a newer one, and returns
    /// it, positioned at its beginning.
    pub(crate) fn build(
        &self,
        meta: &SnapshotMeta,
        write: impl FnOnce(&File) -> Result<()>,
    ) -> Result<File> {
        let (path, file) = self.create(BUILT)?;
        write(&file)?;
        self.publish(&path, &file, meta)?;
        rewound(file, &path)
    }

    /// Makes a received file the current snapshot, unless there is a newer one.
    pub(crate) fn keep(&self, meta: &SnapshotMeta, received: &mut File) -> Result<()> {
        let (path, mut file) = self.create(INSTALLED)?;
        io::copy(received, &mut file).map_err(Error::system("write", &path))?;
        self.publish(&path, &file, meta)
    }

    /// The current snapshot; `None` if it cannot be read, because it can be made again.
    pub(crate) fn current(&self) -> Result<Option<(SnapshotMeta, File)>> {
        let path = self.path.join(CURRENT);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(Error::system("open", &path))?,
        };
        match archive::read_meta(BufReader::new(&file)) {
            Ok(meta) => Ok(Some((meta, rewound(file, &path)?))),
            Err(Error::Snapshot { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, name: &str) -> Result<(PathBuf, File)> {
        let path = self.path.join(name);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&path).map_err(Error::system("create", &path))?;
        Ok((path, file))
    }

    fn publish(&self, path: &Path, file: &File, meta: &SnapshotMeta) -> Result<()> {
        file.sync_all().map_err(Error::system("sync", path))?;
        let _turn = self.turn.lock();
        let current = self.current()?;
        if current.is_some_and(|(current, _)| current.last_log_id > meta.last_log_id) {
            return fs::remove_file(path).map_err(Error::system("remove", path));
        }
        let target = self.path.join(CURRENT);
        fs::rename(path, &target).map_err(Error::system("rename", path))?;
        let directory = File::open(&self.path).and_then(|directory| directory.sync_all());
        directory.map_err(Error::system("sync", &self.path))
    }
}

/// The file, positioned at its beginning.
pub(crate) fn rewound(mut file: File, path: &Path) -> Result<File> {
    file.rewind().map_err(Error::system("read", path))?;
    Ok(file)
}
