//! Authenticated encryption of units, by AES-256-GCM-SIV (RFC 8452).
//!
//! Purpose: to seal the bytes of one place, and to open what is there only if it was sealed for
//! that place by this key.
//! Invariants: each seal has a nonce of its own: 96 bits that start at random whenever a directory
//! is opened and count from there. Should two starts lie so close that they meet, the cipher
//! reveals only whether the same bytes were sealed twice for the same place.
//! Thread safety: any thread.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use aes_gcm_siv::aead::AeadInOut;
use aes_gcm_siv::{Aes256GcmSiv, KeyInit};

use super::layout::{
    FORMAT_VERSION, Geometry, HEAD_FILE_ID, HEAD_KEY_ID, HEAD_MAGIC, HEAD_NONCE, HEAD_TAG,
    HEAD_UNIT_BYTES, HEAD_VERSION, ID_BYTES, KEY_BYTES, NONCE_BYTES, TAG_BYTES, UNIT_LENGTH,
    UNIT_NONCE, UNIT_PAYLOAD, UNIT_TAG,
};
use crate::error::Result;
use crate::storage::Directory;

/// The identity of a file: random, so that a unit of one is never taken for a unit of another.
pub(super) type FileId = [u8; ID_BYTES];

/// What every unit of a file is sealed with, beside the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileHead {
    pub(super) id: FileId,
    pub(super) geometry: Geometry,
}

/// A cipher with the nonces of one opening.
pub(super) struct Cipher {
    cipher: Aes256GcmSiv,
    first_nonce: [u8; NONCE_BYTES],
    count: AtomicU64,
}

impl Cipher {
    /// A cipher of that key, whose nonces start at random.
    ///
    /// # Errors
    /// Those of the directory's source of randomness.
    pub(super) fn new(key: &[u8; KEY_BYTES], directory: &dyn Directory) -> Result<Self> {
        let mut first_nonce = [0; NONCE_BYTES];
        directory.random(&mut first_nonce)?;
        let cipher = Aes256GcmSiv::new(key.into());
        Ok(Self { cipher, first_nonce, count: AtomicU64::new(0) })
    }

    fn nonce(&self) -> [u8; NONCE_BYTES] {
        let mut wide = [0; size_of::<u128>()];
        wide[..NONCE_BYTES].copy_from_slice(&self.first_nonce);
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let next = u128::from_le_bytes(wide).wrapping_add(count.into());
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&next.to_le_bytes()[..NONCE_BYTES]);
        nonce
    }

    /// Encrypts bytes where they are; returns the nonce and the tag. O(bytes), and some 0.3 us.
    pub(super) fn seal(
        &self,
        context: &[u8],
        bytes: &mut [u8],
    ) -> ([u8; NONCE_BYTES], [u8; TAG_BYTES]) {
        let nonce = self.nonce();
        let sealed = self.cipher.encrypt_inout_detached(&nonce.into(), context, bytes.into());
        let tag = sealed.expect("the only failure is a length of 64 GiB or more");
        (nonce, tag.into())
    }

    /// Decrypts bytes where they are, if they were sealed with this context; else they are
    /// undefined.
    pub(super) fn open(
        &self,
        (context, nonce, tag): (&[u8], &[u8; NONCE_BYTES], &[u8; TAG_BYTES]),
        bytes: &mut [u8],
    ) -> bool {
        let opened =
            self.cipher.decrypt_inout_detached(nonce.into(), context, bytes.into(), tag.into());
        opened.is_ok()
    }

    /// Seals the payload in a unit, of which `length` bytes count.
    pub(super) fn seal_unit(&self, file: &FileHead, number: u64, length: usize, unit: &mut [u8]) {
        let end = UNIT_PAYLOAD + file.geometry.capacity(number);
        let length = (length as u16).to_le_bytes();
        unit[end..].fill(0);
        let (nonce, tag) =
            self.seal(&unit_context(file, number, length), &mut unit[UNIT_PAYLOAD..end]);
        unit[UNIT_NONCE].copy_from_slice(&nonce);
        unit[UNIT_TAG].copy_from_slice(&tag);
        unit[UNIT_LENGTH].copy_from_slice(&length);
        unit[UNIT_LENGTH.end..UNIT_PAYLOAD].fill(0);
    }

    /// Opens the payload of a unit where it is, and returns how many bytes of it count; `None` if
    /// it was not sealed for this place. A unit that was never written is zeros: its payload is.
    pub(super) fn open_unit(&self, file: &FileHead, number: u64, unit: &mut [u8]) -> Option<usize> {
        let capacity = file.geometry.capacity(number);
        if is_zero(unit) {
            return Some(capacity);
        }
        let (head, payload) = unit.split_at_mut(UNIT_PAYLOAD);
        let (payload, padding) = payload.split_at_mut(capacity);
        let length: [u8; 2] = head[UNIT_LENGTH].try_into().ok()?;
        let (nonce, tag) = (head[UNIT_NONCE].try_into().ok()?, head[UNIT_TAG].try_into().ok()?);
        let context = unit_context(file, number, length);
        let is_whole = is_zero(&head[UNIT_LENGTH.end..]) && is_zero(padding);
        let length = usize::from(u16::from_le_bytes(length));
        (is_whole && length <= capacity && self.open((&context, nonce, tag), payload))
            .then_some(length)
    }

    /// The head of a file: at most a sector.
    pub(super) fn head(&self, key_id: &[u8; ID_BYTES], file: &FileHead) -> [u8; HEAD_TAG.end] {
        let mut head = [0; HEAD_TAG.end];
        head[..HEAD_MAGIC.len()].copy_from_slice(&HEAD_MAGIC);
        head[HEAD_VERSION].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        let unit_bytes = file.geometry.unit_bytes() as u32;
        head[HEAD_UNIT_BYTES].copy_from_slice(&unit_bytes.to_le_bytes());
        head[HEAD_KEY_ID].copy_from_slice(key_id);
        head[HEAD_FILE_ID].copy_from_slice(&file.id);
        let (nonce, tag) = self.seal(&head[..HEAD_NONCE.start], &mut []);
        head[HEAD_NONCE].copy_from_slice(&nonce);
        head[HEAD_TAG].copy_from_slice(&tag);
        head
    }

    /// Whether this key made a head.
    pub(super) fn is_authentic_head(&self, head: &[u8; HEAD_TAG.end]) -> bool {
        let (Ok(nonce), Ok(tag)) = (head[HEAD_NONCE].try_into(), head[HEAD_TAG].try_into()) else {
            return false;
        };
        self.open((&head[..HEAD_NONCE.start], nonce, tag), &mut [])
    }
}

impl FileHead {
    /// What a head says; `None` if it is of another format.
    pub(super) fn of(head: &[u8; HEAD_TAG.end]) -> Option<Self> {
        let number = |range: Range<usize>| head.get(range)?.try_into().ok().map(u32::from_le_bytes);
        let is_known = number(HEAD_VERSION) == Some(FORMAT_VERSION);
        let geometry = Geometry::of_unit_bytes(number(HEAD_UNIT_BYTES)?).filter(|_| is_known)?;
        Some(Self { id: head[HEAD_FILE_ID].try_into().ok()?, geometry })
    }
}

/// Says nothing about the key.
impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

/// What a unit is authenticated with: its file, its place, its length.
fn unit_context(file: &FileHead, number: u64, length: [u8; 2]) -> [u8; ID_BYTES + 10] {
    let mut context = [0; ID_BYTES + 10];
    context[..ID_BYTES].copy_from_slice(&file.id);
    context[ID_BYTES..ID_BYTES + 8].copy_from_slice(&number.to_le_bytes());
    context[ID_BYTES + 8..].copy_from_slice(&length);
    context
}

/// Whether all bytes are zero.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    // By words of the machine's widest registers; the first bytes decide nearly always.
    bytes.first().is_none_or(|&byte| byte == 0) && bytes.iter().fold(0, |all, byte| all | byte) == 0
}
