//! Command-line arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use adamant::{
    BuiltInOperator, Durability, Engine, KeyspaceOptions, LevelCompression, ValueCompression,
};
use adamant_cli::table::Layout;
use clap::{Parser, Subcommand, ValueEnum};

use crate::failure::EXIT_CODES;
use crate::follow_args::{ChangesArgs, WatchArgs};
use crate::key_args::{DecryptArgs, EncryptArgs, KeyArgs, KeyVerbArgs};
use crate::merge_args::{MergeArgs, parse_operator};
use crate::target::{Encoding, Target};

/// Looks after Adamant stores: import, export, single keys, scans, checks.
///
/// Every verb takes the store's path first. Verbs that only read change nothing, and any number of
/// them run at once. import, set and keyspace create make the store if
/// there is none; import and set make the keyspace too. Data goes to standard output, talk to
/// standard error.
#[derive(Debug, Parser)]
#[command(name = "adamant", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    /// Print results and failures as JSON, one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) key: KeyArgs,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show in a temporary folder what a store does, and that it survives a kill
    Demo,
    /// The part of the demo that is killed
    #[command(hide = true)]
    DemoChild(DemoChildArgs),
    /// Import JSON Lines, {"key": .., "value": ..} or key_base64 and value_base64, or CSV
    Import(ImportArgs),
    /// Export a keyspace as JSON Lines or CSV, sorted by key
    Export(ExportArgs),
    /// Set the value of a key
    Put(PutArgs),
    /// Print the value of a key, byte for byte
    Get(GetArgs),
    /// Delete a key, whether it exists or not
    Delete(DeleteArgs),
    /// Merge an operand with the value of a key, by the merge operator of its keyspace
    Merge(MergeArgs),
    /// Set the value of a key, and say whether it had one
    Insert(PutArgs),
    /// Remove a key; fails if there is none
    Remove(DeleteArgs),
    /// Move a value to another key, also of another keyspace; it replaces what is there
    Rename(RenameArgs),
    /// Print the entries of a range, or count them
    Scan(ScanArgs),
    /// Print what each commit changes as it comes, beside a program that writes the store
    Watch(WatchArgs),
    /// Have a store record its changes, which watch prints; or say which it has
    Changes(ChangesArgs),
    /// List, create, convert, rename and drop keyspaces
    Keyspace(KeyspaceArgs),
    /// Name moments of a store: list, make, delete, copy them, go back to one
    Savepoint(SavepointArgs),
    /// Print the store's figures
    Stat(StatArgs),
    /// Verify every checksum and every structure of a store
    Check(CheckArgs),
    /// Copy a store to a path where nothing is
    Backup(BackupArgs),
    /// Verify a backup and copy it to a path where nothing is
    Restore(RestoreArgs),
    /// Copy a store to objects, or back, by the program adamant-remote
    Copy(CopyArgs),
    /// Make a store's files as small as its contents
    Compact(CompactArgs),
    /// Save what can be read of a damaged store into a new one that takes its place
    Repair(RepairArgs),
    /// Encrypt a store that is not, or anew, by writing it anew
    Encrypt(EncryptArgs),
    /// Write an encrypted store anew that is not
    Decrypt(DecryptArgs),
    /// Have another key open an encrypted store, or an increment, at once
    Rekey(EncryptArgs),
    /// Make keys for encrypted stores
    Key(KeyVerbArgs),
    /// Look at the heap below a store: figures, a map, a check
    Heap(HeapArgs),
    /// Look at keyspaces of the engine lsm: figures, levels; merge their tables
    Lsm(LsmArgs),
    /// Print what a shell needs to complete this command's words
    Completions(CompletionsArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoChildArgs {
    pub(crate) store: PathBuf,
}

/// What a change waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// Survives power loss
    Sync,
    /// Survives the death of this process
    Buffered,
    /// Kept in memory for a bounded time
    Deferred,
}

impl Verb {
    /// Whether it opens a store, with the key that was given.
    pub(crate) fn opens_store(&self) -> bool {
        !matches!(self, Self::Completions(_) | Self::Key(_))
    }
}

impl From<DurabilityArg> for adamant::Durability {
    fn from(durability: DurabilityArg) -> Self {
        match durability {
            DurabilityArg::Sync => Self::Sync,
            DurabilityArg::Buffered => Self::Buffered,
            DurabilityArg::Deferred => Self::Deferred,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// JSON Lines, or CSV with --csv; - is standard input
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    /// Into a multimap, which is made if there is none: a key may have several values
    #[arg(long)]
    pub(crate) multimap: bool,

    /// Leave malformed lines out instead of importing nothing
    #[arg(long)]
    pub(crate) partial: bool,

    /// Records of a commit
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch: u32,

    /// What each commit waits for; all are durable when the command returns
    #[arg(long, value_enum, default_value = "deferred")]
    pub(crate) durability: DurabilityArg,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Where to; - is standard output
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

/// Whether records are CSV, and what its columns mean.
#[derive(Debug, clap::Args)]
pub(crate) struct CsvArgs {
    /// Records are CSV, whose first line names the columns
    #[arg(long)]
    pub(crate) csv: bool,

    /// Column of the key; several, separated by commas, are joined
    #[arg(long = "key", value_name = "COLUMNS", value_delimiter = ',', default_value = "key")]
    #[arg(requires = "csv")]
    pub(crate) keys: Vec<String>,

    /// Column of the value; several, separated by commas, are joined
    #[arg(long = "value", value_name = "COLUMNS", value_delimiter = ',', default_value = "value")]
    #[arg(requires = "csv")]
    pub(crate) values: Vec<String>,

    /// What stands between the columns that a key or a value is joined of
    #[arg(long, value_name = "TEXT", default_value = "\t", requires = "csv")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) separator: String,

    /// Fields are taken as they are: no \xNN for bytes that are no UTF-8, no \\ for a backslash
    #[arg(long, requires = "csv")]
    pub(crate) raw: bool,
}

impl CsvArgs {
    /// The layout of the columns, if records are CSV.
    ///
    /// # Errors
    /// A message, if the layout is invalid.
    pub(crate) fn layout(&self) -> std::result::Result<Option<Layout>, String> {
        let Self { csv, keys, values, separator, raw } = self;
        let layout = || Layout::new(keys.clone(), values.clone(), separator.clone(), *raw);
        csv.then(layout).transpose()
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// The key; any bytes that the shell can pass
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: OsString,

    /// Print the value, an integer of 64 bits, little-endian, as merge operators keep it, in
    /// decimal
    #[arg(long)]
    pub(crate) integer: bool,

    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// The key
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: OsString,

    /// The value; - reads it from standard input, byte for byte
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: OsString,

    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// The key
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: OsString,

    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// The key
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: OsString,

    /// The key that the value is to have
    #[arg(allow_negative_numbers = true)]
    pub(crate) new_key: OsString,

    /// Move it to this keyspace, which exists
    #[arg(long, value_name = "NAME")]
    pub(crate) to: Option<String>,

    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// First key of the range
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) from: Option<OsString>,

    /// Key where the range ends; it is not part of it
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) to: Option<OsString>,

    /// Only keys that begin with this
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) prefix: Option<OsString>,

    /// At most so many entries
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    /// From the highest key down
    #[arg(long)]
    pub(crate) reverse: bool,

    /// Print only the number of entries
    #[arg(long)]
    pub(crate) count: bool,

    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyspaceArgs {
    #[command(subcommand)]
    pub(crate) action: KeyspaceAction,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SavepointArgs {
    #[command(subcommand)]
    pub(crate) action: SavepointAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SavepointAction {
    /// Bytes that each holds, commits, names; not beside a process that writes the store
    List {
        /// Folder of the store
        store: PathBuf,
    },
    /// Give the store as it is now a name; an error if there is one
    Create {
        /// Folder of the store
        store: PathBuf,
        /// Its name: 1 to 255 bytes, any characters
        name: String,
    },
    /// Forget a savepoint, and give back what only it held
    Delete {
        /// Folder of the store
        store: PathBuf,
        /// Its name
        name: String,
    },
    /// Copy what a savepoint shows to a path where nothing is: a store like any other
    Backup {
        /// Folder of the store
        store: PathBuf,
        /// Its name
        name: String,
        /// Folder of the copy
        target: PathBuf,
    },
    /// Make the store what a savepoint shows; later commits are undone, and savepoints stay
    Restore {
        /// Folder of the store
        store: PathBuf,
        /// Its name
        name: String,
    },
}

/// Options of a keyspace; they stay with it.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct OwnArgs {
    /// For the engine lsm: none, lz4, zstd or zstd:LEVEL; several for the first levels, with
    /// commas, as "none, lz4"; and for the last level alone, as "lz4, last zstd"
    #[arg(long)]
    compression: Option<LevelCompression>,
    /// For the engine lsm: bytes of a block before compression, 64 to 8 MiB
    #[arg(long)]
    block_bytes: Option<u32>,
    /// For the engine lsm: bits of the filters per key, 0 to 30
    #[arg(long)]
    filter_bits: Option<u8>,
    /// For the engine lsm: whether blocks have a hash index
    #[arg(long)]
    hash_index: Option<bool>,
    /// For the engine lsm: bytes of a value from which on it is kept in a blob file
    #[arg(long)]
    blob_bytes_min: Option<u32>,
    /// For the other engines: compression of values, none, lz4, zstd or zstd:LEVEL, for those of
    /// 128 bytes or more; or from other bytes on, as "lz4, from 200"
    #[arg(long)]
    value_compression: Option<ValueCompression>,
    /// For the engine lsm: whether data stays in the block cache after it was read
    #[arg(long)]
    caches_data: Option<bool>,
    /// What commits to the keyspace wait for that do not say it themselves: sync, buffered or
    /// deferred; store: what the store is opened with
    #[arg(long, value_parser = parse_durability)]
    durability: Option<Own>,
    /// For good, the operator by which the verb merge merges: add, max_u64, min_u64, max_i64 or
    /// min_i64, whose values are integers of 64 bits; append or or, whose values are any bytes
    #[arg(long, value_name = "NAME", value_parser = parse_operator)]
    merge_operator: Option<BuiltInOperator>,
}

/// A durability of a keyspace's own; `None`: that of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Own(Option<Durability>);

fn parse_durability(text: &str) -> std::result::Result<Own, String> {
    match text {
        "sync" => Ok(Own(Some(Durability::Sync))),
        "buffered" => Ok(Own(Some(Durability::Buffered))),
        "deferred" => Ok(Own(Some(Durability::Deferred))),
        "store" => Ok(Own(None)),
        _ => Err(format!("expected sync, buffered, deferred or store, found {text:?}")),
    }
}

impl OwnArgs {
    /// Whether none is given.
    pub(crate) fn is_empty(self) -> bool {
        let Self { compression, block_bytes, filter_bits, hash_index, blob_bytes_min, .. } = self;
        (compression, block_bytes, filter_bits, hash_index, blob_bytes_min)
            == (None, None, None, None, None)
            && (self.value_compression, self.caches_data, self.durability) == (None, None, None)
            && self.merge_operator.is_none()
    }

    /// Those that are given.
    pub(crate) fn over(self, options: KeyspaceOptions) -> KeyspaceOptions {
        let set = self.compression.into_iter();
        let options = set.fold(options, KeyspaceOptions::compression);
        let set = self.block_bytes.into_iter();
        let options = set.fold(options, KeyspaceOptions::block_bytes);
        let set = self.filter_bits.into_iter();
        let options = set.fold(options, KeyspaceOptions::filter_bits_per_key);
        let set = self.hash_index.into_iter();
        let options = set.fold(options, KeyspaceOptions::hash_index);
        let set = self.blob_bytes_min.into_iter().map(Some);
        let options = set.fold(options, KeyspaceOptions::blob_bytes_min);
        let set = self.value_compression.into_iter();
        let options = set.fold(options, KeyspaceOptions::value_compression);
        let set = self.caches_data.into_iter();
        let options = set.fold(options, KeyspaceOptions::caches_data);
        let set = self.merge_operator.into_iter();
        let options = set.fold(options, |options, it| options.merge_operator(it.name()));
        self.durability.into_iter().fold(options, |options, Own(own)| options.durability(own))
    }
}

/// What a keyspace is to become.
#[derive(clap::Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct ConvertArgs {
    /// The engine that is to keep it: bplus, btree, critbit, redblack or lsm
    #[arg(long)]
    pub(crate) engine: Option<Engine>,
    /// Compression of its values in an engine other than lsm: none, lz4, zstd or zstd:LEVEL, for
    /// those of 128 bytes or more; or from other bytes on, as "lz4, from 200"
    #[arg(long)]
    pub(crate) value_compression: Option<ValueCompression>,
    /// For zstd: a file with a dictionary, of at most 64 KiB
    #[arg(long, value_name = "FILE", requires = "value_compression")]
    pub(crate) dictionary: Option<PathBuf>,
    /// For zstd: a dictionary of at most so many bytes, 256 to 65536, trained from its values
    #[arg(long, value_name = "BYTES", requires = "value_compression")]
    #[arg(conflicts_with = "dictionary")]
    pub(crate) train_dictionary: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyspaceAction {
    /// Names, engines and numbers of entries
    List {
        /// Folder of the store
        store: PathBuf,
    },
    /// Create a keyspace; an error if there is one of that name
    Create {
        /// Folder of the store
        store: PathBuf,
        /// Its name: 1 to 255 bytes, any characters
        name: String,
        /// The engine that keeps it: bplus, btree, critbit, redblack or lsm
        #[arg(long, default_value_t)]
        engine: Engine,
        #[command(flatten)]
        lsm: OwnArgs,
    },
    /// Print the options of a keyspace, after those that are given were recorded
    Options {
        /// Folder of the store
        store: PathBuf,
        /// Its name
        name: String,
        #[command(flatten)]
        lsm: OwnArgs,
    },
    /// Make a keyspace one of another engine, or compress its values, each in one commit
    Convert {
        /// Folder of the store
        store: PathBuf,
        /// Its name
        name: String,
        #[command(flatten)]
        to: ConvertArgs,
    },
    /// Give a keyspace another name; an error if there is one of that name
    Rename {
        /// Folder of the store
        store: PathBuf,
        /// Its name
        name: String,
        /// The name that it is to have: 1 to 255 bytes, any characters
        new_name: String,
    },
    /// Drop a keyspace with all its entries
    Drop {
        /// Folder of the store
        store: PathBuf,
        /// Its name
        name: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatArgs {
    /// Folder of the store
    pub(crate) store: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Folder of the store
    pub(crate) store: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// Folder of the store
    pub(crate) store: PathBuf,
    /// Folder that the copy is to be; nothing may be there
    pub(crate) target: PathBuf,
    /// Share the files of keyspaces of the engine lsm by hard links, if the copy is on the same
    /// file system
    #[arg(long)]
    pub(crate) link: bool,
    /// Copy only what the store has otherwise than this backup, which lies in the same folder as
    /// the target: a full one, or one that was made with this option
    #[arg(long, value_name = "PARENT", conflicts_with = "link")]
    pub(crate) since: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// What is copied: the folder of a store, or a URL: slatedb+s3://BUCKET/PREFIX,
    /// slatedb+file:///FOLDER
    pub(crate) source: OsString,
    /// Where to: a folder or a URL, where nothing is
    pub(crate) target: OsString,
    /// Drop the keyspaces of a store on objects first
    #[arg(long)]
    pub(crate) replace: bool,
    /// The engine of all keyspaces in a folder: bplus, btree, critbit, redblack or lsm; each keeps
    /// its own if not said
    #[arg(long)]
    pub(crate) engine: Option<Engine>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// Folder of the backup, which stays as it is
    pub(crate) backup: PathBuf,
    /// Folder that the store is to be; nothing may be there, or an empty folder
    pub(crate) target: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompactArgs {
    /// Folder of the store; as much space as its contents is needed beside it
    pub(crate) store: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// Folder of the store; the damaged one is kept beside it, as NAME.damaged
    pub(crate) store: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell: bash, zsh or fish
    pub(crate) shell: ShellArg,
}

/// A shell that can be served.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ShellArg {
    /// Source it, or put it into /usr/share/bash-completion/completions
    Bash,
    /// Put it as _adamant into a folder of $fpath
    Zsh,
    /// Put it as adamant.fish into ~/.config/fish/completions
    Fish,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HeapArgs {
    #[command(subcommand)]
    pub(crate) action: HeapAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HeapAction {
    /// Occupancy by class of blocks, free space, fragmentation
    Stat {
        /// Folder of the store
        store: PathBuf,
    },
    /// What each page is used for: in words a line a run, with --json an object a run
    Map {
        /// Folder of the store
        store: PathBuf,
        /// Draw the map as SVG into this file instead
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Verify checksums and allocator structures, not the keyspaces
    Check {
        /// Folder of the store
        store: PathBuf,
    },
    /// Give free space back to the file system: at the end of the pool, and as holes within
    Shrink {
        /// Folder of the store
        store: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct LsmArgs {
    #[command(subcommand)]
    pub(crate) action: LsmAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LsmAction {
    /// Memtables, levels and blob files of each keyspace
    Stat(LsmTarget),
    /// The tables of each level, with the keys that they span; with --json an object a table
    Levels {
        #[command(flatten)]
        target: LsmTarget,
        /// Draw the levels over the order of the keys as SVG into this file instead
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Merge all tables of each keyspace to one ordered run, without what nobody sees any more
    Compact(LsmTarget),
}

/// Keyspaces of the engine lsm.
#[derive(Debug, clap::Args)]
pub(crate) struct LsmTarget {
    /// Folder of the store
    pub(crate) store: PathBuf,
    /// Only the keyspace of this name; all of the engine lsm if not said
    pub(crate) name: Option<String>,
}
