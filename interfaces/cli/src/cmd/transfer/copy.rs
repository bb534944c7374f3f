//! `adamant copy SOURCE TARGET`: to object storage and back, by a program of its own.
//!
//! Purpose: users with only local stores need not have SlateDB in their command, nor wait for its
//! compilation.

use std::env;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::args::CopyArgs;
use crate::failure::{Code, Failure, Result};
use crate::opening::Stores;

/// The program to run: beside this one, or on the search path.
const PROGRAM: &str = "adamant-remote";

/// Runs the program. Its exit codes are those of this one.
pub(crate) fn run(args: &CopyArgs, stores: &Stores, is_json: bool) -> Result<ExitCode> {
    let beside = env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
    let mut command = stores.command(&program);
    command.args(is_json.then_some("--json")).arg("copy");
    command.args(args.replace.then_some("--replace"));
    if let Some(engine) = args.engine {
        command.args(["--engine", engine.name()]);
    }
    command.arg("--").arg(&args.source).arg(&args.target);
    let status = stores.start(&mut command).and_then(|mut child| child.wait());
    let status = status.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::new(
            Code::Unsupported,
            format!(
                "there is no program {PROGRAM}, which copies stores: install it (`cargo install --path \
                 remote` in the sources of Adamant); `adamant backup` copies from folder to folder \
                 without it"
            ),
        ),
        _ => Failure::new(Code::Other, format!("{PROGRAM} could not be run: {error}")),
    })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    let killed = || Failure::new(Code::Other, format!("{PROGRAM} ended without a code: {status}"));
    code.map(ExitCode::from).ok_or_else(killed)
}
