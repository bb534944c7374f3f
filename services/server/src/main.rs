//! The `adamant-server` command: serves a store to Redis clients.
//!
//! It writes its address to standard output, messages to standard error.

#![forbid(unsafe_code)]

mod args;
mod files;

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
    let (path, mut options) = args.options()?;
    let clients_max = files::clients_max(options.clients_max);
    if clients_max < options.clients_max {
        eprintln!(
            "adamant-server: the system allows so few open files (ulimit -n) that {clients_max} clients \
             may be connected at once, not {}",
            options.clients_max
        );
        options.clients_max = clients_max;
    }
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let server = Server::start(&path, options)?;
    let mut words = format!("listening on {}\n", server.address());
    if let Some(address) = server.http_address() {
        words.push_str(&format!("status on {scheme}://{address}/\n"));
    }
    // The starting process may not read the output; the server does not need that.
    let mut output = std::io::stdout();
    let _ = output.write_all(words.as_bytes()).and_then(|()| output.flush());
    server.wait()?;
    server.end()
}
