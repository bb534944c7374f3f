//! `cargo xtask package`: packs the published crates as a registry would get them.
//!
//! Purpose: packs each crate, and builds it from its package alone, with its dependencies among the
//! others taken from their packages, too: cargo (1.90 or later) lets the packages of one call stand
//! in for a registry. Then it installs the command from its folder, and asks for its version. With
//! `--quick` they are only packed and checked: seconds instead of minutes.
//!
//! It publishes nothing, so the tree may have uncommitted changes.

use std::path::{Component, Path};
use std::process::Command;

use crate::source::sources;
use crate::source::workspace::{Package, Workspace};

/// Files that every package has beside its sources.
const REQUIRED: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// Constructs that take a file by its path, up to the opening quotation mark.
const INCLUDES: [&str; 3] = ["include_str!(\"", "include_bytes!(\"", "#[path = \""];
/// What cargo says when it cannot ask the registry.
const UNREACHED: [&str; 4] = ["network", "HTTP", "failed to query", "failed to download"];
/// The trial installation folder, below the build folder.
const INSTALLED: &str = "package/installed";

/// Packs all; builds and installs them, too, unless it is to be quick. True if there are no
/// problems.
pub(crate) fn run(quick: bool) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let packages: Vec<&Package> = workspace.published().collect();
    let mut problems = Vec::new();
    for package in &packages {
        problems.extend(check(&workspace, package)?);
    }
    for problem in &problems {
        eprintln!("package: {problem}");
    }
    if !problems.is_empty() {
        return Ok(false);
    }
    // Packages of the lock file may not be here yet; after this nothing is fetched.
    succeeds(&workspace.root, &["fetch", "--quiet", "--locked"])?;
    let named: Vec<&str> = packages.iter().flat_map(|package| ["-p", &package.name]).collect();
    let mut arguments = vec!["package", "--quiet", "--offline", "--allow-dirty"];
    if quick {
        arguments.push("--no-verify");
    }
    succeeds(&workspace.root, &[&arguments, &named[..]].concat())?;
    rehearse(&workspace.root, &named)?;
    let libraries = packages.iter().filter(|package| package.programs.is_empty());
    let libraries: Vec<&str> = libraries.flat_map(|package| ["-p", &package.name]).collect();
    compare(&workspace.root, &libraries)?;
    if !quick {
        for command in packages.iter().filter(|package| !package.programs.is_empty()) {
            install(&workspace, command)?;
        }
    }
    let done = if quick { "packed" } else { "packed and built, the command installed" };
    println!("package: {} {done}", packages.len());
    Ok(true)
}

/// Goes through `cargo publish` without its uploads.
fn rehearse(root: &Path, named: &[&str]) -> Result<(), String> {
    let publish = ["publish", "--dry-run", "--no-verify", "--allow-dirty", "--locked"];
    let ran = Command::new(env!("CARGO")).args(publish).args(named).current_dir(root).output();
    let ran = ran.map_err(|error| format!("could not run cargo: {error}"))?;
    let words = String::from_utf8_lossy(&ran.stderr);
    let uploads = words.lines().filter_map(|line| line.trim().strip_prefix("Uploading "));
    let order: Vec<&str> = uploads.filter_map(|line| line.split(' ').next()).collect();
    if ran.status.success() {
        println!("package: cargo publish would upload {}", order.join(", "));
        return Ok(());
    }
    if UNREACHED.iter().any(|word| words.contains(word)) {
        println!("package: skipped cargo publish --dry-run: the registry does not answer");
        return Ok(());
    }
    Err(format!("cargo publish --dry-run failed: {words}"))
}

/// Compares the interface of libraries with that of the newest release.
fn compare(root: &Path, libraries: &[&str]) -> Result<(), String> {
    let tags = Command::new("git")
        .args(["tag", "--list", "v*", "--sort=-version:refname"])
        .current_dir(root)
        .output();
    let tags = tags.map_err(|error| format!("could not run git: {error}"))?.stdout;
    let tags = String::from_utf8_lossy(&tags);
    let Some(newest) = tags.lines().next() else {
        println!("package: skipped cargo semver-checks: nothing was released");
        return Ok(());
    };
    if output(root, &["semver-checks", "--version"]).is_err() {
        println!("package: skipped cargo semver-checks: it is not installed");
        return Ok(());
    }
    succeeds(root, &[&["semver-checks", "--baseline-rev", newest], libraries].concat())
}

/// Installs a package's programs as its users do, but without optimisation, and asks each for its
/// version.
fn install(workspace: &Workspace, package: &Package) -> Result<(), String> {
    let root = workspace.target.join(INSTALLED);
    let root = root.to_str().ok_or_else(|| format!("{} is no UTF-8", root.display()))?;
    let arguments = ["install", "--quiet", "--offline", "--locked", "--force", "--debug", "--path"];
    let arguments: Vec<&str> =
        arguments.into_iter().chain([package.folder.as_str(), "--root", root]).collect();
    succeeds(&workspace.root, &arguments)?;
    for program in &package.programs {
        let path = Path::new(root).join("bin").join(program);
        let output = Command::new(&path).arg("--version").output();
        let output =
            output.map_err(|error| format!("could not run {}: {error}", path.display()))?;
        let words = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || words.trim().is_empty() {
            return Err(format!("{} --version said {words:?}", path.display()));
        }
        println!("package: installed {}", words.trim());
    }
    Ok(())
}

/// Missing files of a package, licences of another text than the project's, and its references to
/// files outside of its folder.
fn check(workspace: &Workspace, package: &Package) -> Result<Vec<String>, String> {
    let list = ["package", "--list", "--offline", "--allow-dirty", "-p", &package.name];
    let listed = output(&workspace.root, &list)?;
    let mut problems: Vec<String> = REQUIRED
        .iter()
        .filter(|required| !listed.lines().any(|line| line == **required))
        .map(|required| format!("{} holds no {required}", package.name))
        .collect();
    let folder = workspace.root.join(&package.folder);
    for name in REQUIRED.iter().filter(|name| name.starts_with("LICENSE")) {
        // A symbolic link is a file with a path in it where the system or git makes no links.
        let of = |folder: &Path| std::fs::read(folder.join(name)).unwrap_or_default();
        if of(&folder) != of(&workspace.root) {
            problems.push(format!("{}: {name} is not the project's", package.name));
        }
    }
    for file in sources::rust_files(&folder.join("src"))? {
        for path in included(&sources::read(&file)?) {
            let parent = file.parent().unwrap_or(&folder).strip_prefix(&folder).unwrap_or(&folder);
            if leaves(&parent.join(path)) {
                problems.push(format!("{}: {path} is outside of the package", file.display()));
            }
        }
    }
    Ok(problems)
}

/// The paths of files that a source includes.
fn included(text: &str) -> impl Iterator<Item = &str> {
    INCLUDES.into_iter().flat_map(move |include| {
        let starts = text.match_indices(include).map(move |(at, _)| at + include.len());
        starts.filter_map(move |start| Some(text[start..].split_once('"')?.0))
    })
}

/// Whether a relative path leads out of its starting folder.
fn leaves(path: &Path) -> bool {
    let mut depth = 0_i32;
    path.components().any(|component| {
        match component {
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => depth = i32::MIN,
        }
        depth < 0
    })
}

/// Runs cargo; passes its output on.
fn succeeds(root: &Path, arguments: &[&str]) -> Result<(), String> {
    println!("== cargo {}", arguments.join(" "));
    let status = Command::new(env!("CARGO")).args(arguments).current_dir(root).status();
    let status = status.map_err(|error| format!("could not run cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {} failed", arguments[0])) }
}

/// The output of cargo.
fn output(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("could not run cargo: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo {} failed: {words}", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_taken_from_outside() {
        let text = "const A: &str = include_str!(\"../../data/a\");\n#[path = \"b.rs\"]\nmod b;";
        assert_eq!(included(text).collect::<Vec<_>>(), ["../../data/a", "b.rs"]);
        assert!(!leaves(Path::new("src/cmd/../../data/a")));
        assert!(leaves(Path::new("src/../../data/a")));
        assert!(leaves(Path::new("/a")));
    }
}
