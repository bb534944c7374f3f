//! Encryption at rest: a directory whose files are encrypted and authenticated.
//!
//! [`directory`] wraps any directory; what is above it reads and writes plain bytes. Sizes, names
//! of files and times are not hidden. See docs/format/encryption.md and
//! docs/decisions/0136-encryption-at-rest.md.

mod layout;
pub mod key;
mod key_command;
mod cipher;
mod key_file;
mod file;
pub mod directory;
