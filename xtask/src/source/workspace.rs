//! The packages of the workspace, from `cargo metadata`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The workspace: its folder and packages.
pub(crate) struct Workspace {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// The build folder.
    pub(crate) target: PathBuf,
    /// All members, sorted by folder.
    pub(crate) packages: Vec<Package>,
}

/// A package of the workspace.
pub(crate) struct Package {
    /// Its name, such as `adamant-heap`.
    pub(crate) name: String,
    /// Its folder, relative to the root, with `/` between the parts, such as `base/heap`.
    pub(crate) folder: String,
    /// Its dependencies on other packages of the workspace.
    pub(crate) dependencies: Vec<Dependency>,
    /// Root files of its libraries and programs, without tests, benches and examples.
    pub(crate) entries: Vec<PathBuf>,
    /// Names of its programs.
    pub(crate) programs: Vec<String>,
    /// Names of its example programs.
    pub(crate) examples: Vec<String>,
    /// Whether it is published.
    pub(crate) is_published: bool,
}

/// A dependency on another package of the workspace.
pub(crate) struct Dependency {
    /// The package depended on.
    pub(crate) name: String,
    /// Only for tests, benches and examples.
    pub(crate) development: bool,
}

impl Workspace {
    /// Runs cargo. Builds nothing and fetches nothing beyond the lock file.
    ///
    /// # Errors
    /// In words, when cargo fails or gives an unexpected answer.
    pub(crate) fn load() -> Result<Self, String> {
        Self::with(&[])
    }

    /// The same with the packages of the workspace `services`.
    ///
    /// # Errors
    /// As [`Workspace::load`].
    pub(crate) fn with_services() -> Result<Self, String> {
        Self::with(&["services"])
    }

    /// The workspace of the current folder, with the packages of others in `folders` below it.
    fn with(folders: &[&str]) -> Result<Self, String> {
        let own = metadata(None)?;
        let root = PathBuf::from(text(&own, "workspace_root")?);
        let target = PathBuf::from(text(&own, "target_directory")?);
        let others = folders.iter().map(|folder| metadata(Some(&root.join(folder))));
        let mut packages = Vec::new();
        for workspace in std::iter::once(Ok(own)).chain(others) {
            for package in list(&workspace?, "packages")? {
                packages.push(Package::from_metadata(package, &root)?);
            }
        }
        packages.sort_by(|a, b| a.folder.cmp(&b.folder));
        let names: Vec<String> = packages.iter().map(|package| package.name.clone()).collect();
        for package in &mut packages {
            package.dependencies.retain(|dependency| names.contains(&dependency.name));
        }
        Ok(Self { root, target, packages })
    }

    /// The package with that name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The published packages.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_published)
    }
}

impl Package {
    fn from_metadata(package: &Value, root: &std::path::Path) -> Result<Self, String> {
        let manifest = PathBuf::from(text(package, "manifest_path")?);
        let folder = manifest
            .parent()
            .and_then(|folder| folder.strip_prefix(root).ok())
            .ok_or_else(|| format!("{} is outside of the workspace", manifest.display()))?;
        let dependencies = list(package, "dependencies")?
            .iter()
            .map(|dependency| {
                let name = text(dependency, "name")?.to_owned();
                let development = dependency["kind"] == "dev";
                Ok(Dependency { name, development })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let mut entries = Vec::new();
        let mut programs = Vec::new();
        let mut examples = Vec::new();
        for target in list(package, "targets")? {
            let is = |kind: &str| {
                target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|it| it == kind))
            };
            if is("example") {
                examples.push(text(target, "name")?.to_owned());
            }
            if is("test") || is("bench") || is("example") || is("custom-build") {
                continue;
            }
            entries.push(PathBuf::from(text(target, "src_path")?));
            if is("bin") {
                programs.push(text(target, "name")?.to_owned());
            }
        }
        Ok(Self {
            name: text(package, "name")?.to_owned(),
            folder: folder.to_string_lossy().replace('\\', "/"),
            dependencies,
            entries,
            programs,
            examples,
            // `publish = false` comes as a list of no registries.
            is_published: package["publish"].is_null(),
        })
    }
}

/// What `cargo metadata` prints of the workspace of a folder, if not of the current one.
fn metadata(folder: Option<&Path>) -> Result<Value, String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1", "--no-deps"]);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let output =
        command.output().map_err(|error| format!("could not run cargo metadata: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata failed: {words}"));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata printed no JSON: {error}"))
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value[field].as_str().ok_or_else(|| format!("cargo metadata has no text field {field}"))
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>, String> {
    value[field].as_array().ok_or_else(|| format!("cargo metadata has no list {field}"))
}
