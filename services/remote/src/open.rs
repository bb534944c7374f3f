//! Opening and creation of stores.

use std::sync::Arc;
use std::time::Duration;

use slatedb::config::{CompactionWorkerOptions, CompactorOptions, DbReaderOptions, Settings};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::db_cache::{DbCache, SplitCache};
use slatedb::{Db, DbReadOps, DbReader};

use crate::catalogue;
use crate::error::{Error, Result};
use crate::layout::unfinished_key;
use crate::location::Location;
use crate::options::Options;
use crate::shared::{Catalogue, Database, Shared, wait};

/// How long a reader's pins last if it cannot renew them.
const READER_LIFETIME: Duration = Duration::from_secs(600);
/// The part of the cache that is kept for indexes and filters.
const FINDING_PART: u64 = 4;
/// A cache is used by one store, so one identifier is enough.
const CACHE_ID: u64 = 0;
/// Memtables that may wait to be written.
const MEMTABLES_MAX: u64 = 8;
/// Bytes of a table that a compaction writes. Its index and filters are in memory until it is
/// complete, and again when it is read; with tables of this size, one compaction holds little at
/// once.
const TABLE_BYTES_MAX: usize = 64 << 20;
/// Bytes of one read of a compaction from each input table, and the number of such reads in flight.
const READ_AHEAD_BYTES: usize = 1 << 20;
const READS_AHEAD: usize = 2;

/// Opens a store. `is_copying`: also one that a copy has left unfinished.
pub(crate) fn open(location: Location, options: &Options, is_copying: bool) -> Result<Arc<Shared>> {
    let runtime = Shared::runtime()?;
    let url = location.url.clone();
    let opening = async {
        if (options.read_only || !options.create) && !is_there(&location).await? {
            return Err(Error::Missing { url: url.clone() });
        }
        let (database, catalogue) = if options.read_only {
            open_reader(&location, options, is_copying).await?
        } else {
            open_writer(&location, options, is_copying).await?
        };
        let doomed = match &database {
            Database::Writer(db) => catalogue::load_doomed(db, &Error::of_slate(&url)).await?,
            Database::Reader(_) => Vec::new(),
        };
        Ok((database, catalogue, doomed))
    };
    let wait_max = Duration::from_millis(options.wait_ms_max);
    let (database, catalogue, doomed) = match wait(Some(&runtime), wait_max, opening) {
        Ok(opened) => opened,
        Err(error) => {
            // Dropping it would wait, which not every thread may.
            runtime.shutdown_background();
            return Err(error);
        }
    };
    let shared = Shared::new(url, database, catalogue, wait_max, runtime);
    if let Database::Writer(db) = &shared.database {
        doomed.into_iter().for_each(|id| shared.remove_later(db, id));
    }
    Ok(shared)
}

async fn open_writer(
    location: &Location,
    options: &Options,
    is_copying: bool,
) -> Result<(Database, Catalogue)> {
    let Location { url, objects, path } = location;
    let failed = Error::of_slate(url);
    let db = Db::builder(path.clone(), Arc::clone(objects))
        .with_settings(settings(options))
        .with_db_cache(cache(options), CACHE_ID)
        .build()
        .await
        .map_err(&failed)?;
    let next_id = match catalogue::load_head(&db, &failed).await? {
        Some(next_id) => next_id,
        None if !is_empty(&db, &failed).await? => {
            return Err(Error::NotAStore { url: url.clone() });
        }
        None => catalogue::create(&db, is_copying, &failed).await?,
    };
    refuse_unfinished(&db, url, &failed, is_copying).await?;
    let keyspaces = catalogue::load(&db, &failed).await?;
    Ok((Database::Writer(db), Catalogue { keyspaces, next_id }))
}

async fn open_reader(
    location: &Location,
    options: &Options,
    is_copying: bool,
) -> Result<(Database, Catalogue)> {
    let Location { url, objects, path } = location;
    let failed = Error::of_slate(url);
    let poll = Duration::from_millis(options.poll_ms);
    let reader_options = DbReaderOptions {
        manifest_poll_interval: poll,
        checkpoint_lifetime: READER_LIFETIME.max(poll * 4),
        ..DbReaderOptions::default()
    };
    let reader = DbReader::builder(path.clone(), Arc::clone(objects))
        .with_options(reader_options)
        .with_db_cache(cache(options), CACHE_ID)
        .build()
        .await
        .map_err(&failed)?;
    if catalogue::load_head(&reader, &failed).await?.is_none() {
        return Err(Error::NotAStore { url: url.clone() });
    }
    refuse_unfinished(&reader, url, &failed, is_copying).await?;
    Ok((Database::Reader(Box::new(reader)), Catalogue::default()))
}

fn settings(options: &Options) -> Settings {
    Settings {
        flush_interval: Some(Duration::from_millis(options.flush_ms)),
        manifest_poll_interval: Duration::from_millis(options.poll_ms),
        l0_sst_size_bytes: options.memtable_bytes_max as usize,
        max_unflushed_bytes: (options.memtable_bytes_max * MEMTABLES_MAX) as usize,
        compactor_options: Some(compaction()),
        ..Settings::default()
    }
}

/// One compaction at a time, in one part: SlateDB's own defaults run four, of four parts each, and
/// each part reads 8 MiB ahead of every table that it merges.
fn compaction() -> CompactorOptions {
    let worker = CompactionWorkerOptions {
        max_concurrent_compactions: 1,
        max_subcompactions: 1,
        max_sst_size: TABLE_BYTES_MAX,
        bytes_to_fetch: READ_AHEAD_BYTES,
        max_fetch_tasks: READS_AHEAD,
        ..CompactionWorkerOptions::default()
    };
    CompactorOptions {
        max_concurrent_compactions: 1,
        worker: Some(worker),
        ..CompactorOptions::default()
    }
}

/// A cache of blocks, with a separate one of indexes and filters.
fn cache(options: &Options) -> Arc<dyn DbCache> {
    let of = |bytes: u64| -> Option<Arc<dyn DbCache>> {
        let options = MokaCacheOptions { max_capacity: bytes, ..MokaCacheOptions::default() };
        Some(Arc::new(MokaCache::new_with_opts(options)))
    };
    let finding = options.cache_bytes_max / FINDING_PART;
    let split = SplitCache::new().with_block_cache(of(options.cache_bytes_max - finding));
    Arc::new(split.with_meta_cache(of(finding)).build())
}

/// Whether SlateDB has written anything there.
async fn is_there(location: &Location) -> Result<bool> {
    let manifests = location.path.clone().join("manifest");
    let listed = location.objects.list_with_delimiter(Some(&manifests)).await;
    let failed = |error| Error::Unavailable { what: format!("{}: {error}", location.url) };
    Ok(!listed.map_err(failed)?.objects.is_empty())
}

async fn is_empty(db: &Db, failed: &impl Fn(slatedb::Error) -> Error) -> Result<bool> {
    let mut scan = db.scan(..).await.map_err(failed)?;
    Ok(scan.next().await.map_err(failed)?.is_none())
}

async fn refuse_unfinished(
    reader: &(impl DbReadOps + Sync),
    url: &str,
    failed: &impl Fn(slatedb::Error) -> Error,
    is_copying: bool,
) -> Result<()> {
    if !is_copying && reader.get(unfinished_key()).await.map_err(failed)?.is_some() {
        return Err(Error::Unfinished { url: url.to_owned() });
    }
    Ok(())
}
