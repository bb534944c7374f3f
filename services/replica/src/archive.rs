//! Snapshot archives: a store's directory as one stream of bytes, and back.
//!
//! Purpose: openraft sends a file, but a store is a directory. Files go in pieces, and pieces of
//! zeros are left out.
//! Invariants: each frame has a checksum that continues that of the previous frame, and the last
//! frame is marked as the last: a truncated, changed, incomplete or reordered stream is an error.
//! Names from a stream must be plain file names, and every length is checked against its limit
//! before it is used.
//! Thread safety: none is needed; a piece at a time is in memory.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use adamant::{Directory, DirectoryFile};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::layout::{
    FRAME_DIRECTORY, FRAME_END, FRAME_FILE, FRAME_HEAD_BYTES, FRAME_META, FRAME_PIECE, LOCK,
    PAYLOAD_BYTES_MAX, PIECE_BYTES, SNAPSHOT_MAGIC,
};
use crate::types::SnapshotMeta;

/// The directories within a store's directory.
const DIRECTORIES: [&str; 3] = ["log", "tables", "blobs"];

/// Writes the metadata of a snapshot and all files of a store that is not being written.
///
/// # Errors
/// Those of the storage backend, and of `to`.
pub(crate) fn pack(meta: &SnapshotMeta, from: &dyn Directory, to: impl Write) -> Result<()> {
    let mut frames = Writer { to, checksum: 0 };
    frames.raw(&SNAPSHOT_MAGIC)?;
    frames.value(FRAME_META, meta)?;
    let names = from.list()?;
    let (directories, files): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| DIRECTORIES.contains(&&name[..]));
    pack_files(from, files, &mut frames)?;
    for name in directories {
        frames.value(FRAME_DIRECTORY, &name)?;
        let directory = from.subdirectory(&name)?;
        let files = directory.list()?;
        pack_files(directory.as_ref(), files, &mut frames)?;
    }
    frames.frame(FRAME_END, &[])?;
    frames.to.flush().map_err(written)
}

fn pack_files(
    from: &dyn Directory,
    names: Vec<String>,
    frames: &mut Writer<impl Write>,
) -> Result<()> {
    for name in names.into_iter().filter(|name| name != LOCK) {
        let file = from.open(&name)?;
        let file = file.ok_or_else(|| Error::snapshot(format!("a file {name}"), "none"))?;
        let len = file.len()?;
        frames.value(FRAME_FILE, &(&name, len))?;
        // The offset of the piece, and the piece.
        let mut payload = Vec::with_capacity(8 + PIECE_BYTES);
        let mut offset = 0;
        while offset < len {
            let bytes = (len - offset).min(PIECE_BYTES as u64);
            payload.clear();
            payload.extend_from_slice(&offset.to_le_bytes());
            payload.resize(8 + bytes as usize, 0);
            file.read_at(&mut payload[8..], offset)?;
            if payload[8..].iter().any(|&byte| byte != 0) {
                frames.frame(FRAME_PIECE, &payload)?;
            }
            offset += bytes;
        }
    }
    Ok(())
}

/// Reads the metadata at the beginning of a snapshot.
///
/// # Errors
/// [`Error::Snapshot`] if it is no snapshot.
pub(crate) fn read_meta(from: impl Read) -> Result<SnapshotMeta> {
    Reader::start(from)?.meta()
}

/// Creates the files of a snapshot in an empty directory, and makes them and all names but that of
/// the directory itself durable.
///
/// # Errors
/// [`Error::Snapshot`] for an incomplete snapshot; those of the storage backend. The directory
/// holds a part of it then.
pub(crate) fn unpack(from: impl Read, to: &Arc<dyn Directory>) -> Result<SnapshotMeta> {
    let mut frames = Reader::start(from)?;
    let meta = frames.meta()?;
    let mut target = Target { root: to, directory: Arc::clone(to), file: None };
    loop {
        let kind = frames.advance()?;
        match kind {
            FRAME_DIRECTORY => target.enter(&frames.value::<String>()?)?,
            FRAME_FILE => target.create(frames.value()?)?,
            FRAME_PIECE => target.write(&frames.payload)?,
            FRAME_END => break,
            other => return Err(Error::snapshot("a known kind of frame", format!("kind {other}"))),
        }
    }
    target.finish_directory()?;
    to.sync()?;
    frames.end()?;
    Ok(meta)
}

/// The directory in which files of a snapshot are created.
struct Target<'a> {
    root: &'a Arc<dyn Directory>,
    directory: Arc<dyn Directory>,
    /// The file whose pieces come, and its length.
    file: Option<(Arc<dyn DirectoryFile>, u64)>,
}

impl Target<'_> {
    fn enter(&mut self, name: &str) -> Result<()> {
        if !DIRECTORIES.contains(&name) {
            return Err(Error::snapshot("a directory of a store", format!("{name:?}")));
        }
        self.finish_directory()?;
        self.directory = self.root.subdirectory(name)?;
        Ok(())
    }

    fn create(&mut self, (name, len): (String, u64)) -> Result<()> {
        self.finish_file()?;
        let file = self.directory.create(&name)?;
        file.set_len(len)?;
        self.file = Some((file, len));
        Ok(())
    }

    fn write(&self, payload: &[u8]) -> Result<()> {
        let Some((file, len)) = &self.file else {
            return Err(Error::snapshot("a file before its pieces", "none"));
        };
        let Some((offset, piece)) = payload.split_first_chunk() else {
            return Err(Error::snapshot("the place of a piece", "nothing"));
        };
        let offset = u64::from_le_bytes(*offset);
        if offset.checked_add(piece.len() as u64).is_none_or(|end| end > *len) {
            let found = format!("{} bytes at {offset}", piece.len());
            return Err(Error::snapshot(format!("a piece within {len} bytes"), found));
        }
        Ok(file.write_at(piece, offset)?)
    }

    fn finish_file(&mut self) -> Result<()> {
        match self.file.take() {
            Some((file, _)) => Ok(file.sync()?),
            None => Ok(()),
        }
    }

    fn finish_directory(&mut self) -> Result<()> {
        self.finish_file()?;
        Ok(self.directory.sync()?)
    }
}

/// Frames, each with a checksum over everything so far.
struct Writer<W> {
    to: W,
    checksum: u32,
}

impl<W: Write> Writer<W> {
    fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.to.write_all(bytes).map_err(written)
    }

    fn value<T: Serialize>(&mut self, kind: u8, value: &T) -> Result<()> {
        let payload = postcard::to_stdvec(value);
        let payload = payload.map_err(|error| Error::Encoding { found: error.to_string() })?;
        self.frame(kind, &payload)
    }

    fn frame(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if payload.len() > PAYLOAD_BYTES_MAX {
            let found = format!("a frame of {len} bytes");
            return Err(Error::Encoding { found });
        }
        self.checksum = continued(self.checksum, kind, len, payload);
        self.raw(&[kind])?;
        self.raw(&len.to_le_bytes())?;
        self.raw(&self.checksum.to_le_bytes())?;
        self.raw(payload)
    }
}

struct Reader<R> {
    from: R,
    checksum: u32,
    payload: Vec<u8>,
}

impl<R: Read> Reader<R> {
    fn start(from: R) -> Result<Self> {
        let mut reader = Self { from, checksum: 0, payload: Vec::new() };
        let mut magic = [0; SNAPSHOT_MAGIC.len()];
        reader.fill(&mut magic)?;
        if magic != SNAPSHOT_MAGIC {
            let expected = format!("a snapshot, which begins {:02x?}", SNAPSHOT_MAGIC);
            return Err(Error::snapshot(expected, format!("{magic:02x?}")));
        }
        Ok(reader)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        fill(&mut self.from, buffer)
    }

    /// The kind of the next frame; its payload is verified.
    fn advance(&mut self) -> Result<u8> {
        let mut head = [0; FRAME_HEAD_BYTES];
        self.fill(&mut head)?;
        let [kind, len @ .., c0, c1, c2, c3] = head;
        let (len, found) = (u32::from_le_bytes(len), u32::from_le_bytes([c0, c1, c2, c3]));
        if len as usize > PAYLOAD_BYTES_MAX {
            let expected = format!("a frame of at most {PAYLOAD_BYTES_MAX} bytes");
            return Err(Error::snapshot(expected, format!("{len} bytes")));
        }
        self.payload.resize(len as usize, 0);
        fill(&mut self.from, &mut self.payload)?;
        self.checksum = continued(self.checksum, kind, len, &self.payload);
        if self.checksum != found {
            let expected = format!("a frame with checksum {:08x}", self.checksum);
            return Err(Error::snapshot(expected, format!("{found:08x}")));
        }
        Ok(kind)
    }

    fn value<T: DeserializeOwned>(&self) -> Result<T> {
        let decoded = postcard::from_bytes(&self.payload);
        decoded.map_err(|error| Error::snapshot("a frame of its kind", error.to_string()))
    }

    fn meta(&mut self) -> Result<SnapshotMeta> {
        match self.advance()? {
            FRAME_META => self.value(),
            other => {
                Err(Error::snapshot("what the snapshot is", format!("a frame of kind {other}")))
            }
        }
    }

    /// Fails if there is more.
    fn end(mut self) -> Result<()> {
        match self.from.read(&mut [0]).map_err(read)? {
            0 => Ok(()),
            _ => Err(Error::snapshot("the end of the snapshot", "more bytes")),
        }
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<()> {
    match from.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Error::snapshot(format!("{} bytes more", buffer.len()), "the end of the file"))
        }
        done => done.map_err(read),
    }
}

fn continued(checksum: u32, kind: u8, len: u32, payload: &[u8]) -> u32 {
    let checksum = crc32c::crc32c_append(checksum, &[kind]);
    let checksum = crc32c::crc32c_append(checksum, &len.to_le_bytes());
    crc32c::crc32c_append(checksum, payload)
}

fn written(error: io::Error) -> Error {
    Error::system("write", Path::new("a snapshot"))(error)
}

fn read(error: io::Error) -> Error {
    Error::system("read", Path::new("a snapshot"))(error)
}

#[cfg(test)]
mod tests {
    use adamant::Store;
    use adamant_sim::{SimDirectory, SimDisk};

    use super::*;

    fn directory() -> Arc<dyn Directory> {
        Arc::new(SimDirectory::root(&SimDisk::new(1).without_history()))
    }

    /// A small directory that looks like a store's.
    fn small() -> Vec<u8> {
        let from = directory();
        let mut sparse = vec![0; 3 * PIECE_BYTES + 5];
        sparse[PIECE_BYTES + 7] = 7;
        from.create("pool").unwrap().write_at(&sparse, 0).unwrap();
        from.create("lock").unwrap().write_at(b"process 7", 0).unwrap();
        let log = from.subdirectory("log").unwrap();
        log.create("0001").unwrap().write_at(b"records", 0).unwrap();
        let mut bytes = Vec::new();
        pack(&SnapshotMeta::default(), from.as_ref(), &mut bytes).unwrap();
        bytes
    }

    fn content(directory: &Arc<dyn Directory>, name: &str) -> Vec<u8> {
        let file = directory.open(name).unwrap().unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn files_come_out_as_they_went_in_and_zeros_take_no_room() {
        let bytes = small();
        assert!(bytes.len() < PIECE_BYTES + 300, "{}", bytes.len());
        let to = directory();
        assert_eq!(unpack(&bytes[..], &to).unwrap(), SnapshotMeta::default());
        assert_eq!(to.list().unwrap(), ["log", "pool"]);
        let pool = content(&to, "pool");
        assert_eq!((pool.len(), pool[PIECE_BYTES + 7]), (3 * PIECE_BYTES + 5, 7));
        assert_eq!(pool.iter().filter(|&&byte| byte != 0).count(), 1);
        assert_eq!(content(&to.subdirectory("log").unwrap(), "0001"), b"records");
    }

    #[test]
    fn what_is_cut_changed_or_longer_is_no_snapshot() {
        let bytes = small();
        let refused = |bytes: &[u8], what: &str| {
            let error = unpack(bytes, &directory()).unwrap_err();
            assert!(matches!(error, Error::Snapshot { .. }), "{what}: {error}");
        };
        let step = |at: usize| if at < 200 || bytes.len() - at < 200 { 1 } else { 1009 };
        let mut at = 0;
        while at < bytes.len() {
            refused(&bytes[..at], &format!("cut at {at}"));
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            refused(&changed, &format!("changed at {at}"));
            at += step(at);
        }
        let mut longer = bytes.clone();
        longer.push(0);
        refused(&longer, "longer");
    }

    /// Other nodes are trusted, but a faulty one must not write elsewhere.
    #[test]
    fn names_lead_nowhere_else() {
        let snapshot = |write: &dyn Fn(&mut Writer<&mut Vec<u8>>)| {
            let mut bytes = Vec::new();
            let mut frames = Writer { to: &mut bytes, checksum: 0 };
            frames.raw(&SNAPSHOT_MAGIC).unwrap();
            frames.value(FRAME_META, &SnapshotMeta::default()).unwrap();
            write(&mut frames);
            frames.frame(FRAME_END, &[]).unwrap();
            bytes
        };
        for name in ["..", ".", "", "a/b", "../pool"] {
            let file = snapshot(&|frames| frames.value(FRAME_FILE, &(name, 7_u64)).unwrap());
            assert!(unpack(&file[..], &directory()).is_err(), "a file {name:?}");
            let entered = snapshot(&|frames| frames.value(FRAME_DIRECTORY, &name).unwrap());
            assert!(unpack(&entered[..], &directory()).is_err(), "a directory {name:?}");
        }
        let beyond = snapshot(&|frames| {
            frames.value(FRAME_FILE, &("pool", 7_u64)).unwrap();
            frames
                .frame(FRAME_PIECE, &[u64::MAX.to_le_bytes().as_slice(), b"piece"].concat())
                .unwrap();
        });
        assert!(unpack(&beyond[..], &directory()).is_err());
    }

    #[test]
    fn a_backup_becomes_the_store_that_it_was() {
        let store = Store::in_memory().unwrap();
        store.keyspace("towns").unwrap().insert("Bern", "134,000").unwrap();
        let copy = directory();
        store.backup_into(&copy).unwrap();
        let mut bytes = Vec::new();
        pack(&SnapshotMeta::default(), copy.as_ref(), &mut bytes).unwrap();
        let to = directory();
        unpack(&bytes[..], &to).unwrap();
        let store = Store::open_directory(to, adamant::Options::new().create(false)).unwrap();
        let towns = store.open_keyspace("towns").unwrap();
        assert_eq!(towns.get("Bern").unwrap(), Some("134,000".into()));
        assert!(store.check().unwrap().is_clean());
    }
}
