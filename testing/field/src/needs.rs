//! What of the system a campaign needs, and which packages have it.
//!
//! Purpose: a campaign that cannot run here says why, with the names of Debian's packages.
//! Thread safety: pure functions over files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of programs that are for administrators and on few paths.
const FOLDERS: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
/// Modules of the kernel that a disk, a piece of persistent memory and ext4 need, before what needs
/// them.
const MODULES: [&str; 6] =
    ["virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "nfit", "nd_pmem"];

/// A program of the system.
///
/// # Errors
/// In words, with the package that has it.
pub(crate) fn program(name: &str, package: &str) -> Result<PathBuf, String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&paths).chain(FOLDERS.map(PathBuf::from));
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| format!("{name} is not installed (apt-get install {package})"))
}

/// A shell for the virtual machine, which has no libraries.
///
/// # Errors
/// In words, also when it is there but needs libraries.
pub(crate) fn shell() -> Result<Vec<u8>, String> {
    let path = program("busybox", "busybox-static")?;
    let bytes = read(&path)?;
    let loader = b"/ld-linux";
    if bytes.windows(loader.len()).any(|window| window == loader) {
        let what = "needs libraries (apt-get install busybox-static)";
        return Err(format!("{} {what}", path.display()));
    }
    Ok(bytes)
}

/// The shared libraries that this process runs with, its loader among them: another machine needs
/// them to run the same program. None, if it was linked statically.
///
/// # Errors
/// In words.
pub(crate) fn libraries() -> Result<BTreeSet<PathBuf>, String> {
    let maps = fs::read_to_string("/proc/self/maps")
        .map_err(|error| format!("could not read what this process has mapped: {error}"))?;
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let is_library = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.ends_with(".so") || name.contains(".so.")
    };
    Ok(paths.filter(is_library).map(PathBuf::from).collect())
}

/// A kernel and those of its modules that a machine needs, in the order in which they are loaded.
pub(crate) struct Kernel {
    /// The kernel.
    pub(crate) image: PathBuf,
    /// Names and bytes of modules.
    pub(crate) modules: Vec<(String, Vec<u8>)>,
}

/// The newest kernel that this system has with its modules.
///
/// # Errors
/// In words, when there is none.
pub(crate) fn kernel() -> Result<Kernel, String> {
    let missing =
        || "there is no kernel with modules (apt-get install linux-image-amd64)".to_owned();
    let entries = fs::read_dir("/boot").map_err(|_| missing())?;
    let mut versions: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.strip_prefix("vmlinuz-").map(str::to_owned)
        })
        .filter(|version| folder(version).join("modules.dep").is_file())
        .collect();
    versions.sort();
    let version = versions.pop().ok_or_else(missing)?;
    let dependencies = fs::read_to_string(folder(&version).join("modules.dep"))
        .map_err(|error| format!("could not read the dependencies of modules: {error}"))?;
    let mut paths = Vec::new();
    for name in MODULES {
        order(&dependencies, name, &mut paths);
    }
    let modules = paths.iter().enumerate().map(|(index, path)| {
        let bytes = module(&folder(&version).join(path))?;
        Ok((format!("{index:02}.ko"), bytes))
    });
    let modules = modules.collect::<Result<_, String>>()?;
    Ok(Kernel { image: format!("/boot/vmlinuz-{version}").into(), modules })
}

fn folder(version: &str) -> PathBuf {
    Path::new("/lib/modules").join(version)
}

/// Adds a module and what it needs, deepest first; one that is part of the kernel is in no list.
/// Lines are `path: path path`, where what is needed first comes last.
fn order(dependencies: &str, name: &str, paths: &mut Vec<String>) {
    let is_it = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().unwrap_or_default();
        stem.replace('-', "_") == name
    };
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    for (path, needed) in lines.filter(|(path, _)| is_it(path)) {
        for path in needed.split_whitespace().rev().chain([path]) {
            if !paths.iter().any(|there| there == path) {
                paths.push(path.to_owned());
            }
        }
    }
}

/// The bytes of a module; some systems compress them.
fn module(path: &Path) -> Result<Vec<u8>, String> {
    let tool = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => ("xz", "xz-utils"),
        Some("zst") => ("zstd", "zstd"),
        _ => return read(path),
    };
    let output = Command::new(program(tool.0, tool.1)?)
        .args(["--decompress", "--stdout"])
        .arg(path)
        .output()
        .map_err(|error| format!("could not run {}: {error}", tool.0))?;
    if !output.status.success() {
        return Err(format!("{} could not decompress {}", tool.0, path.display()));
    }
    Ok(output.stdout)
}

/// The bytes of a file.
///
/// # Errors
/// In words.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("could not read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_after_what_they_need() {
        let lines = "kernel/lib/crc16.ko:\nkernel/fs/jbd2/jbd2.ko:\n\
                     kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko kernel/lib/crc16.ko\n\
                     kernel/drivers/virtio-blk.ko: kernel/lib/crc16.ko\n";
        let mut paths = Vec::new();
        for name in ["ext4", "virtio_blk", "built_in"] {
            order(lines, name, &mut paths);
        }
        let names: Vec<&str> = paths.iter().filter_map(|path| path.rsplit('/').next()).collect();
        assert_eq!(names, ["crc16.ko", "jbd2.ko", "ext4.ko.xz", "virtio-blk.ko"]);
    }

    #[test]
    fn a_program_knows_its_libraries() {
        let found = libraries().unwrap();
        for path in &found {
            assert!(path.is_absolute() && path.is_file(), "{}", path.display());
        }
        // Without one it would not run on another machine, unless it is linked statically.
        let is_loader = |path: &PathBuf| path.to_string_lossy().contains("/ld-");
        assert!(cfg!(target_feature = "crt-static") || found.iter().any(is_loader), "{found:?}");
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let words = program("no-such-program", "some-package").unwrap_err();
        assert!(words.contains("apt-get install some-package"), "{words}");
    }
}
