//! File identity: pool and number.
//!
//! Purpose: names of files, their headers, and the seed of all checksums in them.
//! Invariants: a file of another kind, pool or number is refused, whatever its name.
//! Thread safety: pure functions.

use std::sync::Arc;

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::crc32c;
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{FILE_HEADER_BYTES, FileHeader};
use crate::error::{Error, Result};

/// The kind of a numbered file, each in a directory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileKind {
    Tables = 0,
    Blobs = 1,
}

impl FileKind {
    /// A file's name relative to the store's directory, for messages.
    pub(crate) fn name(self, number: u64) -> String {
        match self {
            Self::Tables => format!("tables/{}", file_name(number)),
            Self::Blobs => format!("blobs/{}", file_name(number)),
        }
    }
}

/// The format of a kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileFormat {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
    /// For messages.
    pub(crate) name: &'static str,
}

/// The identity of a file: its pool and number, part of every checksum in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Identity of the pool.
    pub uuid: [u8; 16],
    /// Number of the file; never reused for another file of the same kind.
    pub number: u64,
}

impl Identity {
    /// The seed of the checksums of the file's blocks and records.
    pub(crate) fn seed(&self) -> u32 {
        crc32c(crc32c(0, &self.uuid), &self.number.to_le_bytes())
    }

    /// Name of the finished file.
    pub(crate) fn name(&self) -> String {
        file_name(self.number)
    }

    /// Name of the file while it is being written.
    pub(crate) fn name_new(&self) -> String {
        format!("{:04}{NEW_SUFFIX}", self.number)
    }

    pub(crate) fn header(&self, kind: FileFormat) -> [u8; FILE_HEADER_BYTES] {
        let mut header = FileHeader {
            magic: kind.magic,
            version: kind.version.into(),
            uuid: self.uuid,
            number: self.number.into(),
            checksum: 0.into(),
        };
        header.checksum = checksum(&header).into();
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes.copy_from_slice(header.as_bytes());
        bytes
    }

    /// Opens the file of this number and verifies its header.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub(crate) fn open(
        &self,
        directory: &dyn Directory,
        kind: FileFormat,
    ) -> Result<Arc<dyn File>> {
        let name = self.name();
        let Some(file) = directory.open(&name)? else {
            return Err(Error::Missing { file: directory.path().join(name) });
        };
        self.verify(&*file, kind)?;
        Ok(file)
    }

    /// The same, for reads of single blocks. The system would read far ahead of a short scan:
    /// 1 MB for one of 70 KB, where its device is set up for 8 MiB.
    ///
    /// # Errors
    /// As [`Identity::open`].
    pub(crate) fn open_for_blocks(
        &self,
        directory: &dyn Directory,
        kind: FileFormat,
    ) -> Result<Arc<dyn File>> {
        let file = self.open(directory, kind)?;
        file.expect_random();
        Ok(file)
    }

    /// Verifies that the file's header has this identity.
    ///
    /// # Errors
    /// `Unsupported`, `Damaged`; those of the storage backend.
    pub(crate) fn verify(&self, file: &dyn File, kind: FileFormat) -> Result<()> {
        let found = read_identity(file, kind)?;
        let unsupported = |what| Err(Error::Unsupported { file: file.path().into(), what });
        if found.uuid != self.uuid {
            return unsupported(format!(
                "expected a {} of pool {:032x}, found one of pool {:032x}; put the file back that \
                 belongs to this pool",
                kind.name,
                u128::from_le_bytes(self.uuid),
                u128::from_le_bytes(found.uuid)
            ));
        }
        if found.number != self.number {
            return unsupported(format!(
                "expected {} {}, found {} {} under its name; put the files back under their own \
                 names",
                kind.name, self.number, kind.name, found.number
            ));
        }
        Ok(())
    }
}

/// The identity in the header of a file.
///
/// # Errors
/// `Damaged` for a file that is too short or of another kind, `Unsupported` for another format;
/// those of the storage backend.
pub(crate) fn read_identity(file: &dyn File, kind: FileFormat) -> Result<Identity> {
    let mut bytes = [0; FILE_HEADER_BYTES];
    file.read_at(&mut bytes, 0)?;
    let damaged = |what: String| Err(Error::damaged(file.path(), 0, what));
    let Ok(header) = FileHeader::read_from_bytes(&bytes) else {
        return damaged("expected a header".into());
    };
    if header.magic != kind.magic {
        let (expected, found) = (kind.magic.escape_ascii(), header.magic.escape_ascii());
        return damaged(format!("expected a {} ({expected}), found {found}", kind.name));
    }
    let expected = checksum(&header);
    if header.checksum.get() != expected {
        let found = header.checksum.get();
        return damaged(format!("expected the checksum {expected:#010x}, found {found:#010x}"));
    }
    if header.version.get() != kind.version {
        let what = format!(
            "expected a {} of format {}, found format {}; open it with the version of this program \
             that wrote it",
            kind.name, kind.version, header.version
        );
        return Err(Error::Unsupported { file: file.path().into(), what });
    }
    Ok(Identity { uuid: header.uuid, number: header.number.get() })
}

/// The pool in the header of a file of any kind and format; `None` if the header was never written
/// in full or is damaged.
///
/// # Errors
/// Those of the storage backend.
pub fn owner_of(directory: &dyn Directory, name: &str) -> Result<Option<[u8; 16]>> {
    let file = match directory.open(name) {
        Ok(Some(file)) => file,
        Ok(None) | Err(MediumError::NotAuthentic { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = [0; FILE_HEADER_BYTES];
    if file.len()? < bytes.len() as u64 {
        return Ok(None);
    }
    file.read_with_lost_at(&mut bytes, 0)?;
    let header = FileHeader::read_from_bytes(&bytes).ok();
    let header = header.filter(|header| header.checksum.get() == checksum(header));
    Ok(header.map(|header| header.uuid))
}

fn checksum(header: &FileHeader) -> u32 {
    let bytes = header.as_bytes();
    crc32c(0, &bytes[..bytes.len() - size_of::<u32>()])
}

/// The name suffix of a file that is being written.
pub(crate) const NEW_SUFFIX: &str = ".new";

/// Name of the finished file with that number, in the directory of its kind.
pub fn file_name(number: u64) -> String {
    format!("{number:04}")
}

/// The number of a file with that name, and whether it is finished; `None` if the name is not that
/// of a table or a blob file.
pub fn number_of(name: &str) -> Option<(u64, bool)> {
    let digits = name.strip_suffix(NEW_SUFFIX).unwrap_or(name);
    let number = digits.parse().ok().filter(|&number| file_name(number) == digits)?;
    Some((number, digits.len() == name.len()))
}

#[cfg(test)]
mod tests {
    use adamant_medium::memory::MemoryDirectory;

    use super::*;

    const KIND: FileFormat = FileFormat { magic: *b"TESTFILE", version: 1, name: "file" };

    #[test]
    fn a_file_says_whose_it_is_or_nothing() {
        let directory = MemoryDirectory::new();
        let identity = Identity { uuid: [9; 16], number: 3 };
        let file = directory.create("0003").unwrap();
        assert_eq!(owner_of(&directory, "0003").unwrap(), None);
        assert_eq!(owner_of(&directory, "0004").unwrap(), None);
        let header = identity.header(KIND);
        file.write_at(&header, 0).unwrap();
        assert_eq!(owner_of(&directory, "0003").unwrap(), Some([9; 16]));
        assert!(identity.open(&directory, KIND).is_ok());
        for bit in 0..header.len() * 8 {
            let mut changed = header;
            changed[bit / 8] ^= 1 << (bit % 8);
            file.write_at(&changed, 0).unwrap();
            assert_eq!(owner_of(&directory, "0003").unwrap(), None, "bit {bit}");
            let error = identity.open(&directory, KIND).unwrap_err();
            assert!(error.is_damage(), "bit {bit}: {error}");
        }
    }

    #[test]
    fn files_of_others_are_refused() {
        let directory = MemoryDirectory::new();
        let identity = Identity { uuid: [9; 16], number: 3 };
        let file = directory.create("0003").unwrap();
        let error_of = |identity: Identity, kind| {
            file.write_at(&identity.header(kind), 0).unwrap();
            Identity { uuid: [9; 16], number: 3 }.open(&directory, KIND).unwrap_err().to_string()
        };
        let other_pool = error_of(Identity { uuid: [8; 16], ..identity }, KIND);
        assert!(other_pool.contains("expected a file of pool 0909"), "{other_pool}");
        let other_number = error_of(Identity { number: 4, ..identity }, KIND);
        assert!(other_number.contains("expected file 3, found file 4"), "{other_number}");
        let newer = error_of(identity, FileFormat { version: 2, ..KIND });
        assert!(newer.contains("expected a file of format 1, found format 2"), "{newer}");
        let other_kind = error_of(identity, FileFormat { magic: *b"OTHERONE", ..KIND });
        assert!(other_kind.contains("expected a file (TESTFILE), found OTHERONE"), "{other_kind}");
        let missing = Identity { number: 5, ..identity }.open(&directory, KIND).unwrap_err();
        assert!(matches!(missing, Error::Missing { .. }));
    }

    #[test]
    fn names_and_numbers() {
        for number in [0, 1, 9_999, 10_000, u64::MAX] {
            let identity = Identity { uuid: [1; 16], number };
            assert_eq!(number_of(&identity.name()), Some((number, true)));
            assert_eq!(number_of(&identity.name_new()), Some((number, false)));
        }
        for name in ["", "1", "00001", "+001", "0001.old", "0001.new.new", "x001", ".new"] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
