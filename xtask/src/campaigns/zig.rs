//! Cross compilers: zig compiles and links C for other systems, and maturin and cargo-zigbuild have
//! cargo use it. All three come from the package index, into `target/packages/tools`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::testing::python::{self, Halt};

/// The folder of the build, below the workspace.
pub(crate) const FOLDER: &str = "target/packages";

/// The installed programs.
pub(crate) struct Tools {
    root: PathBuf,
    folder: PathBuf,
}

impl Tools {
    /// Installs them, if they are not there.
    pub(crate) fn install(root: &Path) -> Result<Self, Halt> {
        let requirements = root.join("xtask/packages/requirements.txt");
        let python = python::environment(&root.join(FOLDER).join("tools"), &requirements)?;
        let folder = python.parent().unwrap_or(root).to_path_buf();
        Ok(Self { root: root.to_path_buf(), folder })
    }

    /// A command of one of them, or of their interpreter, at the root, which finds the others.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.join(name));
        let others = env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.folder.clone()).chain(env::split_paths(&others));
        if let Ok(path) = env::join_paths(path) {
            command.env("PATH", path);
        }
        command.current_dir(&self.root);
        command
    }
}
