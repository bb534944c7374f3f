//! The pool's header: what makes a file a pool, and of which format.
//!
//! Invariants: the checksum lies at the same offset in all versions, so that damage and a newer
//! version can be told apart.
//! Thread safety: free functions.

use adamant_medium::storage::File;
use adamant_wire::checksum::crc32c;
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Error, Result};
use crate::layout::{
    FORMAT_VERSION, HEAD_BYTES, INCOMPAT_UNDO_JOURNAL, PAGE_BYTES, POOL_HEADER_OFFSET, POOL_MAGIC,
    PoolHeader,
};

/// The header of a pool.
pub(super) fn header_of(uuid: &[u8; 16]) -> PoolHeader {
    let mut header = PoolHeader {
        magic: POOL_MAGIC,
        version: FORMAT_VERSION.into(),
        page_bytes: (PAGE_BYTES as u32).into(),
        compat: 0.into(),
        ro_compat: 0.into(),
        incompat: 0.into(),
        uuid: *uuid,
        checksum: 0.into(),
    };
    header.checksum = header_checksum(&header).into();
    header
}

fn header_checksum(header: &PoolHeader) -> u32 {
    let bytes = header.as_bytes();
    crc32c(0, &bytes[..bytes.len() - size_of::<u32>()])
}

/// Whether a file begins with the pool's magic.
///
/// # Errors
/// Those of the medium.
pub(crate) fn has_magic(file: &dyn File) -> Result<bool> {
    let mut magic = [0; POOL_MAGIC.len()];
    if file.len()? < magic.len() as u64 {
        return Ok(false);
    }
    file.read_at(&mut magic, POOL_HEADER_OFFSET)?;
    Ok(magic == POOL_MAGIC)
}

/// Reads and verifies the header of a file of this length.
///
/// # Errors
/// `Error::Unsupported` for a file of another program or of a newer version, `Error::Damaged` for a
/// damaged header; those of the medium.
pub(super) fn read_header(file: &dyn File, len: u64) -> Result<PoolHeader> {
    let mut bytes = [0; size_of::<PoolHeader>()];
    if len < bytes.len() as u64 {
        let what = format!(
            "expected a pool of at least {HEAD_BYTES} bytes, found a file of {len} bytes: it was cut, \
             or is no pool; restore a backup, or choose another directory"
        );
        return Err(Error::Unsupported { file: file.path().into(), what });
    }
    file.read_at(&mut bytes, POOL_HEADER_OFFSET)?;
    check_header(file, &bytes)
}

fn check_header(file: &dyn File, bytes: &[u8]) -> Result<PoolHeader> {
    let unsupported = |what: String| Error::Unsupported { file: file.path().into(), what };
    let damaged = |offset: u64, what: String| Error::Damaged {
        file: file.path().into(),
        offset: POOL_HEADER_OFFSET + offset,
        what,
    };
    let Ok(header) = PoolHeader::read_from_bytes(bytes) else {
        return Err(damaged(0, "expected a pool header".into()));
    };
    let expected = header_checksum(&PoolHeader { magic: POOL_MAGIC, ..header });
    let found = header.checksum.get();
    if header.magic != POOL_MAGIC && found != expected {
        return Err(unsupported(format!(
            "expected a file that starts with {}, found {}; this is no pool, choose another \
             directory",
            POOL_MAGIC.escape_ascii(),
            header.magic.escape_ascii()
        )));
    }
    // Otherwise its checksum matches, and so does all but this.
    if header.magic != POOL_MAGIC {
        return Err(damaged(
            0,
            format!(
                "expected a pool, which starts with {}, found {}; restore a backup, or let `adamant \
                 repair` save what can be read",
                POOL_MAGIC.escape_ascii(),
                header.magic.escape_ascii()
            ),
        ));
    }
    // The checksum lies at the same offset in all versions, so damage and a newer version can be
    // told apart.
    if found != expected {
        return Err(damaged(
            0,
            format!(
                "expected a pool header with checksum {expected:#010x}, found {found:#010x}; \
                 restore a backup"
            ),
        ));
    }
    if header.version.get() != FORMAT_VERSION {
        return Err(unsupported(format!(
            "expected a pool of format {FORMAT_VERSION}, found format {}; open it with the \
             version of this program that wrote it",
            header.version
        )));
    }
    if u64::from(header.page_bytes.get()) != PAGE_BYTES {
        let pages = header.page_bytes;
        return Err(unsupported(format!("expected pages of {PAGE_BYTES} bytes, found {pages}")));
    }
    if header.incompat.get() & INCOMPAT_UNDO_JOURNAL != 0 {
        return Err(unsupported(
            "expected a pool of the redo log, found one of the undo journal, which this version no \
             longer has; export it by the version that made it (`adamant export`), and import that \
             into a new store"
                .into(),
        ));
    }
    if header.incompat.get() != 0 || header.ro_compat.get() != 0 {
        return Err(unsupported(format!(
            "expected no features that must be known, found incompat {:#x} and ro-compat {:#x}; \
             open it with the version of this program that wrote it",
            header.incompat, header.ro_compat
        )));
    }
    Ok(header)
}
