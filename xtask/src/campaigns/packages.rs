//! `cargo xtask packages`: what people install: Python's source distribution and wheels for each
//! system, and programs for Linux that need no library.
//!
//! Purpose: everything is made in `target/packages/made`, by the tools of `zig.rs`. What can run
//! here is installed and used; the rest is only made. Rust's standard library of a target that is
//! not there (`rustup target add`) is named. Nothing is published.
//! Thread safety: none needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::campaigns::zig::{FOLDER, Tools};
use crate::source::workspace::Workspace;
use crate::testing::parts::{self, Counts, Part};
use crate::testing::python::{self, Halt};
use crate::testing::tools;

/// Systems of the wheels: target, and what pip calls the oldest of its kind that it runs on.
const WHEELS: [(&str, &str); 7] = [
    ("x86_64-unknown-linux-gnu", "manylinux_2_17"),
    ("aarch64-unknown-linux-gnu", "manylinux_2_17"),
    (MUSL, "musllinux_1_2"),
    (MUSL_ARM, "musllinux_1_2"),
    ("x86_64-apple-darwin", "off"),
    ("aarch64-apple-darwin", "off"),
    (WINDOWS, "off"),
];
/// By mingw: with zig, maturin 1.16 has the linker look for a symbol of a name with a dot in it.
const WINDOWS: &str = "x86_64-pc-windows-gnu";
const WINDOWS_COMPILER: &str = "x86_64-w64-mingw32-gcc";
const MUSL: &str = "x86_64-unknown-linux-musl";
const MUSL_ARM: &str = "aarch64-unknown-linux-musl";
/// Programs: where each is made, of which package.
const PROGRAMS: [(&str, &str, &str); 2] = [
    ("adamant", "Cargo.toml", "adamant-cli"),
    ("adamant-server", "services/Cargo.toml", "adamant-server"),
];
/// Where cargo finds the crates of the source distribution.
const VENDORED: &str = "vendor";
const VENDORED_SETTINGS: &str = "\
[source.crates-io]
replace-with = \"vendored\"

[source.vendored]
directory = \"vendor\"

[net]
offline = true
";

/// Folders of the packages.
struct Home {
    root: PathBuf,
    folder: PathBuf,
    tools: Tools,
}

/// Makes all, with the option `--smoke` the source distribution alone. True if nothing failed.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let is_smoke = match options {
        [] => false,
        ["--smoke"] => true,
        other => return Err(format!("expected --smoke or nothing, found {other:?}")),
    };
    let root = Workspace::load()?.root;
    let folder = root.join(FOLDER);
    let tools = match Tools::install(&root) {
        Ok(tools) => tools,
        Err(Halt::Skipped(why)) => {
            return Ok(parts::summarise(&[tools::left_out("packages", &why)]));
        }
        Err(Halt::Failed(why)) => return Err(why),
    };
    let home = Home { root, folder, tools };
    let made = home.made();
    let _ = fs::remove_dir_all(&made);
    fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
    let mut ran = vec![part("source distribution", || home.source_distribution())];
    if !is_smoke {
        ran.push(part("installed from source, offline", || home.install_from_source()));
        for (target, oldest) in WHEELS {
            ran.push(part(&format!("wheel, {target}"), || home.wheel(target, oldest)));
        }
        ran.push(part("installed from a wheel", || {
            home.install(&home.file("manylinux_2_17_x86")?)
        }));
        for target in [MUSL, MUSL_ARM] {
            for program in PROGRAMS {
                let name = format!("{}, {target}", program.0);
                ran.push(part(&name, || home.program(target, program)));
            }
        }
    }
    let is_whole = parts::summarise(&ran);
    home.list(&made)?;
    Ok(is_whole)
}

/// A part that makes one package.
fn part(name: &str, make: impl FnOnce() -> Result<(), Halt>) -> Part {
    python::part(name, "a package", || make().map(|()| Counts { passed: 1, ..Counts::default() }))
}

fn failed(what: impl std::fmt::Display) -> impl Fn(String) -> Halt {
    let what = what.to_string();
    move |said| Halt::Failed(format!("{what}: {said}"))
}

fn needs(target: &str) -> Result<(), Halt> {
    match tools::has_target(target) {
        true => Ok(()),
        false => Err(Halt::Skipped(format!("rustup target add {target}"))),
    }
}

impl Home {
    fn made(&self) -> PathBuf {
        self.folder.join("made")
    }

    /// A command that builds in the packages' own folder.
    fn tool(&self, name: &str) -> Command {
        let mut command = self.tools.command(name);
        command.env("CARGO_TARGET_DIR", self.folder.join("build"));
        command
    }

    /// A package that was made, by a part of its name.
    fn file(&self, part: &str) -> Result<PathBuf, Halt> {
        let files = fs::read_dir(self.made()).into_iter().flatten().flatten();
        let mut paths = files.map(|file| file.path());
        paths
            .find(|path| path.file_name().is_some_and(|it| it.to_string_lossy().contains(part)))
            .ok_or_else(|| Halt::Skipped(format!("no {part} was made")))
    }

    /// Packs the sources with all crates that they need, so that building them asks no registry.
    fn source_distribution(&self) -> Result<(), Halt> {
        let mut maturin = self.tool("maturin");
        maturin.args(["sdist", "--manifest-path", "interfaces/python/Cargo.toml"]);
        python::succeeds(maturin.arg("--out").arg(self.made()), failed("maturin sdist"))?;
        let (packed, unpacked) = (self.file(".tar.gz")?, self.folder.join("source"));
        let _ = fs::remove_dir_all(&unpacked);
        let mut unpack = self.tool("python");
        unpack.args(["-m", "tarfile", "-e"]).arg(&packed).arg(&unpacked);
        python::succeeds(&mut unpack, failed("unpacking"))?;
        let name = packed.file_name().unwrap_or_default().to_string_lossy().replace(".tar.gz", "");
        let source = unpacked.join(&name);
        self.vendor(&source)?;
        for required in ["LICENSE-APACHE", "LICENSE-MIT", "Cargo.lock", "README.md", VENDORED] {
            if !source.join(required).exists() {
                return Err(Halt::Failed(format!("{name} holds no {required}")));
            }
        }
        let mut pack = self.tool("python");
        pack.args(["-m", "tarfile", "-c"]).arg(&packed).arg(&name).current_dir(&unpacked);
        python::succeeds(&mut pack, failed("packing"))
    }

    /// Puts the crates beside unpacked sources, and has cargo take those.
    fn vendor(&self, source: &Path) -> Result<(), Halt> {
        let mut vendor = Command::new(env!("CARGO"));
        vendor.args(["vendor", "--quiet", VENDORED]).current_dir(source);
        let done = vendor.output().map_err(|error| Halt::Failed(error.to_string()))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(Halt::Skipped(format!("the crates could not be fetched: {said}")));
        }
        let folder = source.join(".cargo");
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("config.toml"), VENDORED_SETTINGS))
            .map_err(|error| Halt::Failed(format!("{}: {error}", folder.display())))
    }

    /// Builds the source distribution as pip does, without an index and without crates that this
    /// machine has, and installs that.
    fn install_from_source(&self) -> Result<(), Halt> {
        let (built, empty) = (self.folder.join("from_source"), self.folder.join("no_crates"));
        for folder in [&built, &empty] {
            let _ = fs::remove_dir_all(folder);
        }
        let mut pip = self.tool("python");
        pip.args(["-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps"]);
        pip.args(["--no-build-isolation", "--wheel-dir"]).arg(&built).arg(self.file(".tar.gz")?);
        python::succeeds(pip.env("CARGO_HOME", &empty), failed("pip wheel of the sources"))?;
        self.install(&python::only_file(&built)?)
    }

    /// Installs a wheel where nothing else is, and uses it.
    fn install(&self, wheel: &Path) -> Result<(), Halt> {
        let venv = self.folder.join("user");
        let _ = fs::remove_dir_all(&venv);
        python::succeeds(self.tool("python").args(["-m", "venv"]).arg(&venv), failed("venv"))?;
        let python = venv.join("bin/python");
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]).arg(wheel);
        python::succeeds(&mut pip, failed("pip install"))?;
        let mut first = Command::new(&python);
        first.arg(self.root.join("xtask/packages/first.py")).current_dir(&self.folder);
        python::succeeds(&mut first, failed("first.py"))
    }

    /// A wheel for a target.
    fn wheel(&self, target: &str, oldest: &str) -> Result<(), Halt> {
        needs(target)?;
        let mut maturin = self.tool("maturin");
        maturin.args(["build", "--quiet", "--locked", "--target", target]);
        match (target, tools::missing_program(WINDOWS_COMPILER)) {
            (WINDOWS, Some(missing)) => return Err(Halt::Skipped(missing)),
            (WINDOWS, None) => {}
            _ => _ = maturin.arg("--zig"),
        }
        maturin.args(["--compatibility", oldest, "--interpreter", "python3.11"]);
        maturin.args(["--manifest-path", "interfaces/python/Cargo.toml", "--out"]);
        python::succeeds(maturin.arg(self.made()), failed(format!("maturin for {target}")))
    }

    /// A program that needs no library of its system.
    fn program(
        &self,
        target: &str,
        (program, manifest, package): (&str, &str, &str),
    ) -> Result<(), Halt> {
        needs(target)?;
        let mut build = self.tool("cargo-zigbuild");
        build.args(["zigbuild", "--quiet", "--locked", "--profile", "installed"]);
        build.args(["--manifest-path", manifest, "--package", package, "--target", target]);
        // Not among the wheels' objects, which on musl are compiled in another way.
        let programs = self.folder.join("programs");
        build.env("CARGO_TARGET_DIR", &programs);
        python::succeeds(&mut build, failed(format!("{program} for {target}")))?;
        let built = programs.join(target).join("installed").join(program);
        let machine = target.split('-').next().unwrap_or(target);
        let made = self.made().join(format!("{program}-{machine}-linux"));
        fs::copy(&built, &made)
            .map_err(|error| Halt::Failed(format!("{}: {error}", built.display())))?;
        if machine != std::env::consts::ARCH {
            return Ok(());
        }
        python::succeeds(Command::new(&made).arg("--version"), failed(made.display()))
    }

    /// Prints what was made, with sizes.
    fn list(&self, made: &Path) -> Result<(), String> {
        let files = fs::read_dir(made).map_err(|error| format!("{}: {error}", made.display()))?;
        let mut lines: Vec<String> = files
            .flatten()
            .map(|file| {
                let bytes = file.metadata().map_or(0, |found| found.len());
                format!("{:7.2} MB  {}", bytes as f64 / 1e6, file.file_name().to_string_lossy())
            })
            .collect();
        lines.sort_by(|one, other| one[12..].cmp(&other[12..]));
        println!("\n{}\n{}", made.display(), lines.join("\n"));
        Ok(())
    }
}
