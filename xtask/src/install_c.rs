//! `cargo xtask install-c --prefix P`: installs the C interface.
//!
//! Purpose: builds it, and puts the header, both libraries and the files for pkg-config and CMake
//! under the prefix. The shared library has its ABI version in its name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::source::workspace::Workspace;
use crate::testing::together;

const PACKAGE: &str = "adamant-capi";
/// The name under which a starting program looks for the shared library: see
/// interfaces/capi/build.rs.
const SONAME: &str = "libadamant.so.1";
/// What build systems ask for the library: templates, in its folder, and where each belongs.
const TEMPLATES: [(&str, &str); 3] = [
    ("adamant.pc", "lib/pkgconfig"),
    ("adamantConfig.cmake", "lib/cmake/adamant"),
    ("adamantConfigVersion.cmake", "lib/cmake/adamant"),
];

/// Builds and installs; `is_development`: quickly, with assertions, as the tests need it.
pub(crate) fn run(prefix: &str, is_development: bool) -> Result<bool, String> {
    let root = Workspace::load()?.root;
    let prefix = std::path::absolute(prefix).map_err(|error| format!("{prefix}: {error}"))?;
    let artifacts = build(&root, is_development)?;
    let folder = root.join("interfaces/capi");
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    for folder in [&include, &lib] {
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    copy(&folder.join("include/adamant.h"), &include.join("adamant.h"))?;
    for (extension, name) in [("a", "libadamant.a"), ("so", SONAME)] {
        copy(&artifact(&artifacts, extension)?, &lib.join(name))?;
    }
    let link = lib.join("libadamant.so");
    match std::fs::remove_file(&link) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed(&link, &error));
        }
        _ => std::os::unix::fs::symlink(SONAME, &link).map_err(|error| failed(&link, &error))?,
    }
    for (name, target) in TEMPLATES {
        fill_in(&folder.join(format!("{name}.in")), &prefix, &prefix.join(target).join(name))?;
    }
    println!("install-c: {}", prefix.display());
    Ok(true)
}

/// Makes a file of its template.
fn fill_in(template: &Path, prefix: &Path, file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(template).map_err(|error| failed(template, &error))?;
    let text = text.replace("@PREFIX@", &prefix.to_string_lossy()).replace("@SONAME@", SONAME);
    let text = text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let folder = file.parent().unwrap_or(prefix);
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    std::fs::write(file, text).map_err(|error| failed(file, &error))
}

/// Builds the package; returns the files that cargo has made.
fn build(root: &Path, is_development: bool) -> Result<Vec<PathBuf>, String> {
    // The tests have built it already, with the command.
    let packages = if is_development { "USERS" } else { "-p adamant-capi --profile installed" };
    let mut command = Command::new(env!("CARGO"));
    command.args(together::words(&format!("build --quiet --message-format json {packages}")));
    let output = command.current_dir(root).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("could not run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("{PACKAGE} could not be built"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let made = messages.filter(|message| {
        message["reason"] == "compiler-artifact" && message["target"]["name"] == "adamant_capi"
    });
    let files =
        made.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    Ok(files.filter_map(|file| file.as_str().map(PathBuf::from)).collect())
}

fn artifact(artifacts: &[PathBuf], extension: &str) -> Result<PathBuf, String> {
    let found = artifacts.iter().find(|file| file.extension().is_some_and(|it| it == extension));
    found.cloned().ok_or_else(|| format!("cargo made no .{extension} of {PACKAGE}"))
}

/// Copies a library without debug information, and puts the copy in place in one step: a running
/// program keeps the old one.
fn copy(source: &Path, target: &Path) -> Result<(), String> {
    let new = target.with_extension("new");
    std::fs::copy(source, &new).map_err(|error| failed(source, &error))?;
    // The profile leaves the standard library's lines in a static library. Without the tool they
    // stay, which is harmless.
    let strip = Command::new("strip").arg("--strip-debug").arg(&new).status();
    if !strip.is_ok_and(|status| status.success()) {
        println!(
            "install-c: could not run strip: {} keeps what debuggers look at",
            target.display()
        );
    }
    std::fs::rename(&new, target).map_err(|error| failed(target, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
