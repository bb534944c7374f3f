//! What a virtual machine boots from: an archive of files, in memory.
//!
//! Purpose: the "newc" form of cpio, as the kernel's `early-userspace/buffer-format` describes it:
//! for each file a head of 13 numbers of 8 hexadecimal digits, its name, its bytes, each filled up
//! to 4 bytes.
//! Thread safety: a value with one owner.

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive that is being made.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a directory, whose parents come before it.
    pub(crate) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    /// Adds a file that may be run.
    pub(crate) fn program(&mut self, name: &str, bytes: &[u8]) {
        self.entry(name, PROGRAM, bytes);
    }

    /// All of it.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let name_bytes = name.len() as u32 + 1;
        // Number, mode, owner, group, links, time, bytes, device, device stood for, name, checksum.
        let fields =
            [self.entries, mode, 0, 0, 1, 0, content.len() as u32, 0, 0, 0, 0, name_bytes, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.fill();
        self.bytes.extend(content);
        self.fill();
    }

    fn fill(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_one_to_the_byte() {
        let mut archive = Archive::default();
        archive.program("init", b"#!/bin/sh\n");
        let bytes = archive.finish();
        let head = "07070100000001000081ed000000000000000000000001000000000000000a\
                    0000000000000000000000000000000000000005 00000000init";
        let head = head.replace(' ', "");
        assert_eq!(&bytes[..head.len()], head.as_bytes());
        assert_eq!(&bytes[head.len()..][..2], [0, 0], "the name ends, and is filled up to 116");
        assert_eq!(&bytes[116..128], b"#!/bin/sh\n\0\0");
        assert!(bytes[128..].starts_with(b"07070100000002") && bytes.len() % 4 == 0);
    }
}
