//! The `adamant-server` command: a store served to Redis clients.
//!
//! Its address goes to standard output, talk to standard error.

#![forbid(unsafe_code)]

mod args;

use std::io::Write;
use std::process::ExitCode;

use adamant_server::{Result, Server};
use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    match serve(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("adamant-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(args: Args) -> Result<()> {
    let (path, options) = args.options()?;
    let server = Server::start(&path, options)?;
    let address = server.address();
    // Who started it may not listen; the server does not need that.
    let _ = writeln!(std::io::stdout(), "listening on {address}")
        .and_then(|()| std::io::stdout().flush());
    server.wait()?;
    server.end()
}
