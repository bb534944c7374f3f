//! The files of a directory as text.
//!
//! ```text
//! file log/0001 4194304        a file of that many bytes, all zero but for what follows
//! 0000001000 41 64 61 6d ..    offset and bytes in hexadecimal, 32 bytes a line at most
//! ```

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Bytes of a line at most.
const LINE_BYTES: usize = 32;
/// The longest file that an image may ask for: nothing here comes near it.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The image of a directory and those in it, files in the order of their names.
///
/// # Errors
/// A file cannot be read.
pub fn pack(directory: &Path) -> io::Result<String> {
    let mut image = String::new();
    pack_into(&mut image, directory, "")?;
    Ok(image)
}

fn pack_into(image: &mut String, directory: &Path, prefix: &str) -> io::Result<()> {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(directory)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            pack_into(image, &entry.path(), &format!("{name}/"))?;
            continue;
        }
        let bytes = fs::read(entry.path())?;
        writeln!(image, "file {name} {}", bytes.len()).expect("a String takes all");
        for (line, chunk) in bytes.chunks(LINE_BYTES).enumerate() {
            let used = chunk.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if used > 0 {
                write!(image, "{:010x}", line * LINE_BYTES).expect("a String takes all");
                for byte in &chunk[..used] {
                    write!(image, " {byte:02x}").expect("a String takes all");
                }
                image.push('\n');
            }
        }
    }
    Ok(())
}

/// Writes the files of an image into a directory, which is created.
///
/// # Errors
/// A line is not understood, or a file cannot be written.
pub fn unpack(image: &str, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut file: Option<(String, Vec<u8>)> = None;
    for (number, line) in image.lines().enumerate() {
        let misread = || {
            let what = format!("line {} of the image is not understood: {line}", number + 1);
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        if let Some(header) = line.strip_prefix("file ") {
            save(directory, file.take())?;
            let (name, bytes) = header.rsplit_once(' ').ok_or_else(misread)?;
            let bytes: u64 = bytes.parse().map_err(|_| misread())?;
            if bytes > FILE_BYTES_MAX {
                return Err(misread());
            }
            file = Some((name.into(), vec![0; bytes as usize]));
        } else {
            let (_, bytes) = file.as_mut().ok_or_else(misread)?;
            fill(bytes, line).ok_or_else(misread)?;
        }
    }
    save(directory, file)
}

fn fill(bytes: &mut [u8], line: &str) -> Option<()> {
    let mut words = line.split(' ');
    let offset = usize::from_str_radix(words.next()?, 16).ok()?;
    for (at, word) in words.enumerate() {
        *bytes.get_mut(offset + at)? = u8::from_str_radix(word, 16).ok()?;
    }
    Some(())
}

fn save(directory: &Path, file: Option<(String, Vec<u8>)>) -> io::Result<()> {
    let Some((name, bytes)) = file else { return Ok(()) };
    let path = directory.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)
}
