//! The program, and other programs that talk to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Seconds that another program may take: far beyond what a loaded machine needs.
const SECONDS_MAX: &str = "180";

/// The program, killed when it is dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    /// Serves a store on a free port.
    pub(crate) fn start(store: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_adamant-server"));
        Self::started(command.arg(store).args(["--port", "0"]).args(options))
    }

    /// Runs a command that becomes the program.
    pub(crate) fn started(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().parse().unwrap();
        Self { child, address }
    }

    /// Bytes of memory that it has, and the most that it has had.
    pub(crate) fn resident_bytes(&self) -> (u64, u64) {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            1024 * line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
        };
        (field("VmRSS:"), field("VmHWM:"))
    }
}

/// What another program said, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) output: String,
    pub(crate) errors: String,
    pub(crate) is_success: bool,
}

impl Said {
    /// What it said, if it succeeded and complained of nothing.
    #[track_caller]
    pub(crate) fn fine(self) -> String {
        assert!(self.is_success && self.errors.is_empty(), "{self:?}");
        self.output
    }
}

/// Whether a program can be started here; else says that something was skipped.
pub(crate) fn is_installed(name: &str, package: &str) -> bool {
    let found = Command::new(name)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !found {
        println!("skipped: {name} is not installed (apt-get install {package})");
    }
    found
}

/// Runs a program to its end, which comes in any case.
pub(crate) fn run(name: &str, arguments: &[&str], input: &[u8]) -> Said {
    let mut child = Command::new("timeout")
        .args(["--signal", "KILL", SECONDS_MAX, name])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, mut errors) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // It need not read all of it.
            let _ = to.write_all(input);
        });
        let errors = scope.spawn(move || {
            let mut bytes = Vec::new();
            errors.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said {
            output: text(output),
            errors: text(errors.join().unwrap()),
            is_success: child.wait().unwrap().success(),
        }
    })
}
