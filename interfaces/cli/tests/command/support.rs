//! Runs the command and looks at what came of it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The records that ship with the command.
pub(crate) const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/packages-sample.jsonl");

/// A temporary folder, and the command in it.
pub(crate) struct Shell {
    folder: tempfile::TempDir,
}

/// What a run of the command gave.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("write a file");
        path
    }

    /// The command in the folder.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_adamant"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    /// Runs the command in the folder with empty input.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Run {
        self.run_with(arguments, b"")
    }

    /// Runs the command in the folder with `input` as standard input.
    pub(crate) fn run_with<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run the command");
        let mut stdin = child.stdin.take().expect("its input");
        // A command that fails early may not read it.
        let _ = stdin.write_all(input);
        drop(stdin);
        Run::from(child.wait_with_output().expect("wait for the command"))
    }

    /// Runs the command, which must succeed; its standard output.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Vec<u8> {
        let run = self.run(arguments);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    }

    /// Runs the command, which must exit with `code`; its standard error.
    pub(crate) fn fails<S: AsRef<OsStr>>(
        &self,
        code: i32,
        arguments: impl IntoIterator<Item = S>,
    ) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, code, "{}{}", run.text(), run.stderr);
        run.stderr
    }

    /// A store with the sample in it.
    pub(crate) fn with_sample() -> Self {
        let shell = Self::new();
        shell.ok(["import", "store", SAMPLE]);
        shell
    }
}

impl Run {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("the command was not killed"),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The records of a file of JSON Lines with `key` and `value`, in its order.
pub(crate) fn records(path: impl AsRef<Path>) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).expect("read the records");
    text.lines()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).expect("a record");
            let field = |name: &str| record[name].as_str().expect("a text").to_owned();
            (field("key"), field("value"))
        })
        .collect()
}
