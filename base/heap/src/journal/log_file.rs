//! One log file: made ready, taken into use, recognised.
//!
//! Purpose: the file below the chain of frames.
//! Invariants: a file whose name is a number is allocated, written with zeros (or old frames) in
//! full and durable, its name too: so overwriting it later changes no metadata, and `fdatasync`
//! costs one device flush. A file being made ready is called `new`.
//! Thread safety: a `LogFile` never changes; only one file may be made ready at a time.

use std::sync::Arc;

use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::crc32c;
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{LOG_FILE_BYTES_MAX, LOG_FILE_BYTES_MIN, LOG_HEAD_BYTES, LOG_MAGIC, LogHeader};
use crate::error::{Error, Result};
use crate::layout::FORMAT_VERSION;
use crate::pool_file::COUNTER_MAX;

/// Name of a file that is being made ready.
const NEW_NAME: &str = "new";
/// Zeros are written in pieces of so many bytes.
const ZERO_BYTES: usize = 256 << 10;
/// Names of log files count up to here: more than any log has files.
const NUMBER_MAX: u64 = 99_999_999;

/// A log file that is ready for use.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) number: u64,
    pub(super) file: Arc<dyn File>,
    pub(super) bytes: u64,
}

impl LogFile {
    /// Its name in the log directory.
    pub(super) fn name(&self) -> String {
        format!("{:04}", self.number)
    }

    /// Makes a new file ready and durable, name included.
    ///
    /// # Errors
    /// Those of the medium; then no file of that number exists.
    pub(super) fn prepare(directory: &dyn Directory, number: u64, bytes: u64) -> Result<Self> {
        let made = Self::prepare_new(directory, number, bytes);
        if made.is_err() {
            // Best effort: what is left of it is removed when the next one is made ready.
            let _ = remove_if_there(directory, NEW_NAME);
        }
        made
    }

    fn prepare_new(directory: &dyn Directory, number: u64, bytes: u64) -> Result<Self> {
        remove_if_there(directory, NEW_NAME)?;
        let file = directory.create(NEW_NAME)?;
        file.allocate(0, bytes)?;
        let zeros = vec![0; ZERO_BYTES];
        let mut offset = 0;
        while offset < bytes {
            let taken = (bytes - offset).min(ZERO_BYTES as u64);
            file.write_at(&zeros[..taken as usize], offset)?;
            offset += taken;
        }
        file.sync()?;
        let made = Self { number, file, bytes };
        directory.rename(NEW_NAME, &made.name())?;
        directory.sync()?;
        // Opened again, so that errors name it as it is called now.
        let file = directory.open(&made.name())?.unwrap_or_else(|| Arc::clone(&made.file));
        Ok(Self { file, ..made })
    }

    /// The header for taking this file into use, as a whole sector.
    pub(super) fn head(
        &self,
        uuid: &[u8; 16],
        generation: u64,
        ordinal: u64,
        previous: u32,
    ) -> [u8; LOG_HEAD_BYTES as usize] {
        let mut header = LogHeader {
            magic: LOG_MAGIC,
            version: FORMAT_VERSION.into(),
            uuid: *uuid,
            generation: generation.into(),
            ordinal: ordinal.into(),
            previous: previous.into(),
            length: self.bytes.into(),
            checksum: 0.into(),
        };
        header.checksum = header_checksum(&header).into();
        let mut head = [0; LOG_HEAD_BYTES as usize];
        head[..size_of::<LogHeader>()].copy_from_slice(header.as_bytes());
        head
    }

    /// The header of this file, whatever pool and version it is of; `None` if it has none that is
    /// valid.
    ///
    /// # Errors
    /// Those of the medium.
    pub(super) fn read_any_header(&self) -> Result<Option<LogHeader>> {
        let mut bytes = [0; size_of::<LogHeader>()];
        if self.bytes < bytes.len() as u64 {
            return Ok(None);
        }
        self.file.read_at(&mut bytes, 0)?;
        let header = LogHeader::read_from_bytes(&bytes).ok().filter(|header| {
            header.magic == LOG_MAGIC && header.checksum.get() == header_checksum(header)
        });
        // As for a checkpoint: larger counters are not what any program wrote.
        Ok(header.filter(|h| h.generation.get().max(h.ordinal.get()) <= COUNTER_MAX))
    }

    /// The header of this file; `None` if it has none that is valid.
    ///
    /// # Errors
    /// `Error::Unsupported` for one of a newer format or of another pool, `Error::Damaged` for a
    /// file that was cut; those of the medium.
    pub(super) fn read_header(&self, uuid: &[u8; 16]) -> Result<Option<LogHeader>> {
        let Some(header) = self.read_any_header()? else { return Ok(None) };
        let unsupported = |what| Err(Error::Unsupported { file: self.file.path().into(), what });
        if header.version.get() != FORMAT_VERSION {
            return unsupported(format!(
                "expected a log of format {FORMAT_VERSION}, found format {}; open it with the \
                 version of this program that wrote it",
                header.version
            ));
        }
        if header.uuid != *uuid {
            return unsupported(format!(
                "expected a log of pool {:032x}, found one of pool {:032x}; put the log back that \
                 belongs to this pool",
                u128::from_le_bytes(*uuid),
                u128::from_le_bytes(header.uuid)
            ));
        }
        if header.length.get() != self.bytes {
            return Err(Error::Damaged {
                file: self.file.path().into(),
                offset: self.bytes,
                what: format!(
                    "expected a log file of {} bytes, found {}: it was cut; restore a backup",
                    header.length, self.bytes
                ),
            });
        }
        Ok(Some(header))
    }
}

fn header_checksum(header: &LogHeader) -> u32 {
    let bytes = header.as_bytes();
    crc32c(0, &bytes[..bytes.len() - size_of::<u32>()])
}

/// All files of the log, by number. Others are left alone.
///
/// # Errors
/// `Error::Unsupported` for one that is larger than any (searching it could take for ever); those
/// of the medium.
pub(super) fn list(directory: &dyn Directory) -> Result<Vec<LogFile>> {
    let mut files = Vec::new();
    for name in directory.list()? {
        let Some(number) = number_of(&name) else { continue };
        let Some(file) = directory.open(&name)? else { continue };
        let bytes = file.len()?;
        if bytes > LOG_FILE_BYTES_MAX {
            return Err(Error::Unsupported {
                file: file.path().into(),
                what: format!(
                    "expected a log file of at most {LOG_FILE_BYTES_MAX} bytes, found {bytes}; \
                     this is no log file, take it away"
                ),
            });
        }
        files.push(LogFile { number, file, bytes });
    }
    files.sort_by_key(|file| file.number);
    Ok(files)
}

/// Whether a file has the length of one that this code made ready.
pub(super) fn is_usable(file: &LogFile) -> bool {
    (LOG_FILE_BYTES_MIN..=LOG_FILE_BYTES_MAX).contains(&file.bytes)
        && file.bytes.is_multiple_of(LOG_HEAD_BYTES)
}

fn number_of(name: &str) -> Option<u64> {
    let digits = name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_digit());
    let number = name.parse().ok().filter(|number| digits && (1..=NUMBER_MAX).contains(number))?;
    (format!("{number:04}") == name).then_some(number)
}

/// Removes a file if there is one of that name.
///
/// # Errors
/// Those of the medium.
pub(super) fn remove_if_there(directory: &dyn Directory, name: &str) -> Result<()> {
    if directory.open(name)?.is_some() {
        directory.remove(name)?;
    }
    Ok(())
}

/// Removes what a creation that was cut off left of a log. A log with records belongs to a pool
/// that is missing, and is not ours to remove.
///
/// # Errors
/// `Error::Unsupported` for a log with records; those of the medium.
pub(super) fn remove_abandoned(directory: &dyn Directory) -> Result<()> {
    for file in list(directory)? {
        let bytes = file.bytes;
        let mut head = [0; LOG_HEAD_BYTES as usize];
        if bytes >= LOG_HEAD_BYTES {
            file.file.read_at(&mut head, 0)?;
        }
        if head.iter().any(|&byte| byte != 0) {
            return Err(Error::Unsupported {
                file: file.file.path().into(),
                what: "expected no log where there is no pool, found one that was in use; put \
                       the pool back that it belongs to, or choose another directory"
                    .into(),
            });
        }
        directory.remove(&file.name())?;
    }
    Ok(())
}
