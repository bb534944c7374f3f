//! A log file: preparation, header and writes.
//!
//! Purpose: the file below the chain of frames.
//! Invariants: a file whose name is a number is allocated in full and durable, its name too: so
//! writing it never runs out of space. Ranges that small pieces are written to were written before,
//! zeros if nothing else: overwriting changes no metadata, and `fdatasync` costs one device flush.
//! A file under preparation is called `new`.
//! Thread safety: one thread at a time writes a file, and one prepares files.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::crc32c;
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Error, Result};
use crate::image::pool_file::checkpoint_slots::COUNTER_MAX;
use crate::journal::records::layout::{
    LOG_FILE_BYTES_MAX, LOG_FILE_BYTES_MIN, LOG_FORMAT_VERSION, LOG_FORMAT_VERSION_MIN,
    LOG_HEAD_BYTES, LOG_MAGIC, LogHeader,
};

/// Name of a file under preparation.
const NEW_NAME: &str = "new";
/// Zeros are written this far ahead of small pieces: once for 1,400 puts of 120 bytes, 0.1 ms.
const ZERO_BYTES: u64 = 256 << 10;
/// The zeros of one write call.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Pieces above this are few, and need no zeros: a load writes its log once, not twice.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Larger pieces are written by a call: a page costs 4 us when a store instruction is the first to
/// touch it, a call 1 us.
const MAPPED_BYTES_MAX: usize = 512;
/// Names of log files count up to here: more than any log has files.
const NUMBER_MAX: u64 = 99_999_999;

/// A log file that is ready for use.
#[derive(Debug)]
pub(in crate::journal) struct LogFile {
    pub(in crate::journal) number: u64,
    pub(in crate::journal) file: Arc<dyn File>,
    pub(in crate::journal) bytes: u64,
    /// Bytes from the start that were written at some time, as far as this process knows.
    written_bytes: AtomicU64,
    /// Whether it may have the header of some log.
    has_header: AtomicBool,
    /// The bytes of the header, as they were when the file was listed; zeros in a new one.
    listed_header: [u8; size_of::<LogHeader>()],
}

impl LogFile {
    /// Its name in the log directory.
    pub(in crate::journal) fn name(&self) -> String {
        format!("{:04}", self.number)
    }

    /// Makes a new file ready and durable, name included.
    ///
    /// # Errors
    /// Those of the medium; then no file of that number exists.
    pub(in crate::journal) fn prepare(
        directory: &dyn Directory,
        number: u64,
        bytes: u64,
    ) -> Result<Self> {
        let made = Self::prepare_new(directory, number, bytes);
        if made.is_err() {
            // Best effort: preparing the next file removes what is left of it. Its name goes too:
            // if the sync of that failed, it looks durable, and the next process would use it.
            let name = format!("{number:04}");
            let _ = remove_if_there(directory, NEW_NAME).and(remove_if_there(directory, &name));
        }
        made
    }

    fn prepare_new(directory: &dyn Directory, number: u64, bytes: u64) -> Result<Self> {
        remove_if_there(directory, NEW_NAME)?;
        let file = directory.create(NEW_NAME)?;
        file.allocate(0, bytes)?;
        file.sync()?;
        let (written_bytes, has_header) = (AtomicU64::new(0), AtomicBool::new(false));
        let listed_header = [0; size_of::<LogHeader>()];
        let made = Self { number, file, bytes, written_bytes, has_header, listed_header };
        directory.rename(NEW_NAME, &made.name())?;
        directory.sync()?;
        // Opened again, so that errors give its current name.
        let file = directory.open(&made.name())?.unwrap_or_else(|| Arc::clone(&made.file));
        if file.is_direct() {
            // Through this handle: dropping a handle drops what it has mapped.
            file.prepare_stores(0, bytes);
            file.sync()?;
        }
        Ok(Self { file, ..made })
    }

    /// Writes a piece of the log behind what was written before in this use of the file.
    /// `synced_next` says that a sync follows at once.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn write(
        &self,
        piece: &[u8],
        offset: u64,
        synced_next: bool,
    ) -> MediumResult<()> {
        self.forget_torn(offset)?;
        let end = offset + piece.len() as u64;
        let written_bytes = self.written_bytes.load(Ordering::Relaxed);
        let needs_zeros = !self.file.is_direct() && piece.len() <= SMALL_BYTES_MAX;
        if end > written_bytes && needs_zeros {
            // Never before the piece: there are the frames, and the header, before it.
            let mut start = written_bytes.max(offset);
            let zeros_end = (end + ZERO_BYTES).min(self.bytes);
            while start < zeros_end {
                let zeros = &ZEROS[..ZEROS.len().min((zeros_end - start) as usize)];
                self.file.append_at(zeros, start)?;
                start += zeros.len() as u64;
            }
            self.written_bytes.fetch_max(zeros_end, Ordering::Relaxed);
        }
        // A call writes the head of a file: it is one sector, whole or not there.
        if synced_next || piece.len() > MAPPED_BYTES_MAX || offset < LOG_HEAD_BYTES {
            self.file.append_at(piece, offset)?;
        } else {
            self.file.write_mapped_at(piece, offset)?;
        }
        if end > written_bytes {
            self.written_bytes.fetch_max(end, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Erases the file's header durably before another one is written over it, if a write is not
    /// one atomic sector: on memory 8 bytes are. Half of each may be valid. A header holds the CRC
    /// of its generation, and generation and ordinal mostly grow by the same: the older ordinal and
    /// CRC under the newer generation have the checksum of the newer header.
    fn forget_torn(&self, offset: u64) -> MediumResult<()> {
        if offset == 0 && self.file.is_direct() {
            self.file.write_at(&[0; LOG_HEAD_BYTES as usize], 0)?;
        }
        Ok(())
    }

    /// Erases the header of a file that is no longer needed, durably.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn forget_header(&self) -> MediumResult<()> {
        if self.has_header.load(Ordering::Relaxed) {
            self.file.append_at(&[0; LOG_HEAD_BYTES as usize], 0)?;
            self.file.sync()?;
            self.has_header.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A header for taking this file into use, as a whole sector.
    pub(in crate::journal) fn head(
        &self,
        uuid: &[u8; 16],
        generation: u64,
        ordinal: u64,
        previous: u32,
    ) -> [u8; LOG_HEAD_BYTES as usize] {
        self.has_header.store(true, Ordering::Relaxed);
        let mut header = LogHeader {
            magic: LOG_MAGIC,
            version: LOG_FORMAT_VERSION.into(),
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

    /// The header that this file was listed with, of whatever pool and version; `None` if it had no
    /// valid one.
    pub(in crate::journal) fn any_header(&self) -> Option<LogHeader> {
        let header = LogHeader::read_from_bytes(&self.listed_header).ok().filter(|header| {
            let is_sound = header.checksum.get() == header_checksum(header);
            header.magic == LOG_MAGIC && is_sound
        });
        // As for a checkpoint: no program wrote larger counters.
        header.filter(|h| h.generation.get().max(h.ordinal.get()) <= COUNTER_MAX)
    }

    /// The header that this file was listed with; `None` if it had no valid one.
    ///
    /// # Errors
    /// `Error::Unsupported` for one of a newer format or of another pool, `Error::Damaged` for a
    /// file that was cut.
    pub(in crate::journal) fn header(&self, uuid: &[u8; 16]) -> Result<Option<LogHeader>> {
        let Some(header) = self.any_header() else { return Ok(None) };
        let unsupported = |what| Err(Error::Unsupported { file: self.file.path().into(), what });
        if !(LOG_FORMAT_VERSION_MIN..=LOG_FORMAT_VERSION).contains(&header.version.get()) {
            return unsupported(format!(
                "expected a log of format {LOG_FORMAT_VERSION} at most, found format {}; open it with the \
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

/// All files of the log, by number. Other files are left alone.
///
/// # Errors
/// `Error::Unsupported` for one that is larger than any (searching it could take forever); those of
/// the medium.
pub(in crate::journal) fn list(directory: &dyn Directory) -> Result<Vec<LogFile>> {
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
        let mut listed_header = [0; size_of::<LogHeader>()];
        if bytes >= listed_header.len() as u64 {
            file.read_with_lost_at(&mut listed_header, 0)?;
        }
        // A file that was in use was written in full, except for the last one.
        let is_used = listed_header.starts_with(&LOG_MAGIC);
        let written_bytes = AtomicU64::new(if is_used { bytes } else { 0 });
        let has_header = AtomicBool::new(true);
        files.push(LogFile { number, file, bytes, written_bytes, has_header, listed_header });
    }
    files.sort_by_key(|file| file.number);
    Ok(files)
}

/// Whether a file has a length that this code gives to log files.
pub(in crate::journal) fn is_usable(file: &LogFile) -> bool {
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
pub(crate) fn remove_if_there(directory: &dyn Directory, name: &str) -> Result<()> {
    match directory.open(name) {
        Ok(None) => return Ok(()),
        // It is there, whatever it is.
        Ok(Some(_)) | Err(MediumError::NotAuthentic { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    match directory.remove(name) {
        // Another process has removed it meanwhile.
        Err(MediumError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}

/// Removes what an interrupted creation left of a log. A log with records belongs to a pool that is
/// missing, and must not be removed.
///
/// # Errors
/// `Error::Unsupported` for a log with records; those of the medium.
pub(in crate::journal) fn remove_abandoned(directory: &dyn Directory) -> Result<()> {
    for file in list(directory)? {
        let bytes = file.bytes;
        let mut head = [0; LOG_HEAD_BYTES as usize];
        if bytes >= LOG_HEAD_BYTES {
            file.file.read_with_lost_at(&mut head, 0)?;
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
