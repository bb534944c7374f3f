//! `adamant-remote`: the part of the command `adamant` that is a program of its own, so that
//! `adamant` need not contain SlateDB. `adamant copy` runs it. As there, data goes to standard
//! output, messages to standard error.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use adamant::{EncryptionKey, Engine};
use adamant_remote::{CopyError, CopyOptions, Digest, Error, copy};
use clap::{Parser, Subcommand};
use serde_json::json;

/// Copies Adamant stores between machines and objects.
///
/// A place is the folder of a store, or a URL: slatedb+s3://BUCKET/PREFIX (keys, region and server
/// by the usual variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT) or
/// slatedb+file:///FOLDER.
#[derive(Debug, Parser)]
#[command(name = "adamant-remote", version, max_term_width = 100)]
struct Args {
    /// Print results and failures as JSON, one object a line
    #[arg(long, global = true)]
    json: bool,

    /// The key of an encrypted store in a folder: a file with 64 hexadecimal digits or 32 bytes, -
    /// for standard input; a store that is made there is encrypted by it, objects are not
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<PathBuf>,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Copy all keyspaces of a store to a place where none is, and read the copy again
    Copy {
        /// The source: a folder or a URL
        source: String,
        /// The destination: a folder or a URL
        target: String,
        /// Drop the keyspaces of a store on objects first
        #[arg(long)]
        replace: bool,
        /// The engine of all keyspaces in a folder; by default each keeps its own
        #[arg(long, value_parser = engine)]
        engine: Option<Engine>,
    },
}

fn engine(name: &str) -> Result<Engine, String> {
    name.parse().map_err(|error: adamant::Error| error.to_string())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let Verb::Copy { source, target, replace, engine } = args.verb;
    let options = CopyOptions::new().replace(replace).engine(engine);
    let copied = match key_in(args.key_file.as_deref()) {
        Ok(key) => copy(&source, &target, &options.encryption_key(key)),
        Err(error) => Err(error.into()),
    };
    match copied {
        Ok(digest) if args.json => println!("{}", object(&target, &digest)),
        Ok(digest) => eprintln!("{target} is a copy: {digest}"),
        Err(error) => {
            let (code, message) = (code(&error), error.to_string());
            if args.json {
                eprintln!("{}", json!({"error": {"code": code, "message": message}}));
            } else {
                eprintln!("adamant-remote: {message}");
            }
            return ExitCode::from(code);
        }
    }
    ExitCode::SUCCESS
}

fn key_in(file: Option<&Path>) -> adamant::Result<Option<EncryptionKey>> {
    let key = file.map(|file| match file == Path::new("-") {
        true => EncryptionKey::read_from(std::io::stdin().lock(), Path::new("standard input")),
        false => EncryptionKey::read(file),
    });
    Ok(key.transpose()?)
}

fn object(target: &str, digest: &Digest) -> serde_json::Value {
    json!({
        "copy": target,
        "keyspaces": digest.keyspaces,
        "entries": digest.entries,
        "bytes": digest.bytes,
        "checksum": format!("{:032x}", digest.checksum),
    })
}

/// The exit codes of the command `adamant`, as far as they apply.
fn code(error: &CopyError) -> u8 {
    const OTHER: u8 = 1;
    const NOT_FOUND: u8 = 3;
    const BAD_INPUT: u8 = 4;
    const DAMAGED: u8 = 5;
    const LOCKED: u8 = 6;
    const OUT_OF_SPACE: u8 = 7;
    const UNSUPPORTED: u8 = 8;
    const KEY: u8 = 9;
    match error {
        CopyError::Local(adamant::Error::Missing { .. })
        | CopyError::Remote(Error::Missing { .. }) => NOT_FOUND,
        CopyError::Local(adamant::Error::Locked { .. }) => LOCKED,
        CopyError::Local(
            adamant::Error::KeyNeeded { .. }
            | adamant::Error::WrongKey { .. }
            | adamant::Error::NotEncrypted { .. },
        ) => KEY,
        CopyError::Local(error) if error.is_damaged() => DAMAGED,
        CopyError::Local(error) if error.is_out_of_space() => OUT_OF_SPACE,
        CopyError::Local(error) if error.is_unsupported() => UNSUPPORTED,
        CopyError::Remote(Error::NotAStore { .. } | Error::Format { .. }) => UNSUPPORTED,
        CopyError::Remote(error) if error.is_damaged() => DAMAGED,
        CopyError::Remote(Error::Location { .. } | Error::KeyTooLong { .. })
        | CopyError::TargetExists { .. }
        | CopyError::OtherObjects { .. } => BAD_INPUT,
        _ => OTHER,
    }
}
