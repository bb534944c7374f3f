//! Command-line arguments of the verbs for the feed of changes.

use std::path::PathBuf;

use crate::figures::parse_bytes;

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Folder of the store
    pub(crate) store: PathBuf,

    /// Begin with the commit of this number, 1 for the first; else with the next one to come
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u64>,

    /// Only changes of the keyspace of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) keyspace: Option<String>,

    /// At most so many commits
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    /// Print the commits that are there, from the first one if --from is not said, and end
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ChangesArgs {
    /// Folder of the store
    pub(crate) store: PathBuf,

    /// Record changes from now on, and keep at most so many bytes of them, such as 64MiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, conflicts_with = "stop")]
    pub(crate) keep: Option<u64>,

    /// Record no more changes, and remove those that were, and all cursors
    #[arg(long)]
    pub(crate) stop: bool,
}
