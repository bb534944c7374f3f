//! The files of a store on a simulated disk, to be damaged.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use adamant_medium::storage::{Directory, File};
use adamant_sim::{SimDirectory, SimDisk};

/// Bytes of one damage, at most.
const PIECE_BYTES: usize = 4096;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Pool,
    Log,
    Tables,
    Blobs,
    Key,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Pool => "pool",
            Place::Log => "log",
            Place::Tables => "tables",
            Place::Blobs => "blobs",
            Place::Key => "key",
        })
    }
}

/// All files with a byte in them that is not zero.
pub(crate) struct Files {
    files: Vec<(Place, Arc<dyn File>, Vec<u8>)>,
}

impl Files {
    pub(crate) fn of(disk: &SimDisk) -> Self {
        let root: Arc<dyn Directory> = Arc::new(SimDirectory::root(disk));
        let names = root.list().expect("the names of a disk");
        let mut files = Vec::new();
        for name in names {
            match name.as_str() {
                "pool" => add(&mut files, &root, Place::Pool, &name),
                "log" => add_all(&mut files, &root, Place::Log, &name),
                "tables" => add_all(&mut files, &root, Place::Tables, &name),
                "blobs" => add_all(&mut files, &root, Place::Blobs, &name),
                "key" => add(&mut files, &root, Place::Key, &name),
                _ => {}
            }
        }
        Self { files }
    }

    /// The number of one of them; each kind as often as any other.
    pub(crate) fn some(&self, random: &mut fastrand::Rng) -> usize {
        let places = [Place::Pool, Place::Log, Place::Tables, Place::Blobs, Place::Key];
        let place = places[random.usize(..places.len())];
        let of_place = (0..self.files.len()).filter(|&at| self.files[at].0 == place);
        let of_place: Vec<usize> = of_place.collect();
        match of_place.len() {
            0 => random.usize(..self.files.len()),
            count => of_place[random.usize(..count)],
        }
    }

    pub(crate) fn place(&self, at: usize) -> Place {
        self.files[at].0
    }

    pub(crate) fn name(&self, at: usize) -> String {
        self.files[at].1.path().display().to_string()
    }

    /// One bit.
    pub(crate) fn flip(&mut self, at: usize, random: &mut fastrand::Rng) -> String {
        let byte = self.used_byte(at, random);
        let bit = random.u8(..8);
        self.files[at].2[byte] ^= 1 << bit;
        self.write(at, byte..byte + 1);
        format!("bit {bit} of byte {byte} flipped")
    }

    /// Some bytes.
    pub(crate) fn overwrite(
        &mut self,
        at: usize,
        random: &mut fastrand::Rng,
        fill: impl Fn(&mut fastrand::Rng, &mut [u8]),
    ) -> String {
        let first = self.used_byte(at, random);
        let bytes = 1 << random.u32(..=PIECE_BYTES.ilog2());
        let end = (first + bytes).min(self.files[at].2.len());
        fill(random, &mut self.files[at].2[first..end]);
        self.write(at, first..end);
        format!("bytes {first}..{end} overwritten")
    }

    /// The end is lost.
    pub(crate) fn cut(&mut self, at: usize, random: &mut fastrand::Rng) -> String {
        let bytes = self.used_byte(at, random);
        self.files[at].1.set_len(bytes as u64).expect("a cut");
        format!("cut to {bytes} bytes")
    }

    /// It and another of its kind take each other's place.
    pub(crate) fn swap(&mut self, at: usize, random: &mut fastrand::Rng) -> String {
        let other = self.another(at, random);
        let (one, two) = (self.files[at].2.clone(), self.files[other].2.clone());
        self.replace(at, &two);
        self.replace(other, &one);
        format!("swapped with {}", self.name(other))
    }

    /// It becomes the same as another of its kind.
    pub(crate) fn duplicate(&mut self, at: usize, random: &mut fastrand::Rng) -> String {
        let other = self.another(at, random);
        let bytes = self.files[other].2.clone();
        self.replace(at, &bytes);
        format!("replaced by a copy of {}", self.name(other))
    }

    /// All files of its kind become those of another disk, as far as there are any.
    pub(crate) fn take_from(&mut self, at: usize, other: &Files, whose: &str) -> String {
        let place = self.place(at);
        let mut sources = other.files.iter().filter(|file| file.0 == place);
        for at in 0..self.files.len() {
            if self.place(at) == place
                && let Some((_, _, bytes)) = sources.next()
            {
                self.replace(at, bytes);
            }
        }
        format!("all of {place} are those of {whose}")
    }

    /// A byte that is not zero, or near one; often in the first page.
    fn used_byte(&self, at: usize, random: &mut fastrand::Rng) -> usize {
        let bytes = &self.files[at].2;
        let range = if random.u8(..4) == 0 { bytes.len().min(PIECE_BYTES) } else { bytes.len() };
        let start = random.usize(..range);
        let found = bytes[start..].iter().position(|byte| *byte != 0);
        found.map_or(start, |distance| start + distance)
    }

    fn another(&self, at: usize, random: &mut fastrand::Rng) -> usize {
        let place = self.place(at);
        let others =
            (0..self.files.len()).filter(|&other| other != at && self.place(other) == place);
        let others: Vec<usize> = others.collect();
        match others.len() {
            0 => at,
            count => others[random.usize(..count)],
        }
    }

    fn replace(&mut self, at: usize, bytes: &[u8]) {
        let (_, file, old) = &mut self.files[at];
        file.set_len(bytes.len() as u64).expect("another length");
        file.write_at(bytes, 0).expect("a write");
        *old = bytes.to_vec();
    }

    fn write(&self, at: usize, range: Range<usize>) {
        let (_, file, bytes) = &self.files[at];
        file.write_at(&bytes[range.clone()], range.start as u64).expect("a write");
    }
}

fn add_all(
    files: &mut Vec<(Place, Arc<dyn File>, Vec<u8>)>,
    root: &Arc<dyn Directory>,
    place: Place,
    name: &str,
) {
    let directory = root.subdirectory(name).expect("a directory");
    for name in directory.list().expect("the names in a directory") {
        add(files, &directory, place, &name);
    }
}

fn add(
    files: &mut Vec<(Place, Arc<dyn File>, Vec<u8>)>,
    directory: &Arc<dyn Directory>,
    place: Place,
    name: &str,
) {
    let Ok(Some(file)) = directory.open(name) else { return };
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_at(&mut bytes, 0).expect("a read");
    if bytes.iter().any(|byte| *byte != 0) {
        files.push((place, file, bytes));
    }
}
