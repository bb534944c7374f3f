//! The folders of files of LSM trees.

/// A folder of files of LSM trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Folder {
    Tables = 0,
    Blobs = 1,
}

impl Folder {
    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::Tables, Self::Blobs];

    /// That of a number on disk.
    pub(super) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|folder| *folder as u8 == number)
    }

    /// Its name in a store.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Blobs => "blobs",
        }
    }

    /// That of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|folder| folder.name() == name)
    }
}
