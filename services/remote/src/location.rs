//! Store locations: URLs and the objects that they name.

use std::fs::{self, File};
use std::io;
use std::path::Path as FilePath;
use std::sync::Arc;

use slatedb::object_store::ObjectStore;
use slatedb::object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::path::Path;

use crate::error::{Error, Result};

/// The prefix of all URLs of stores.
pub(crate) const SCHEME_PREFIX: &str = "slatedb+";
const S3: &str = "slatedb+s3://";
const FILE: &str = "slatedb+file://";
const MEMORY: &str = "slatedb+memory://";

/// The location of a store.
pub(crate) struct Location {
    /// The original URL.
    pub(crate) url: String,
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// The prefix of its objects' names.
    pub(crate) path: Path,
}

impl Location {
    /// Parses a URL. For S3, keys, region and the server come from the usual environment variables
    /// (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`,
    /// `AWS_ALLOW_HTTP`). Creates a directory if `create` is set.
    ///
    /// # Errors
    /// [`Error::Location`], [`Error::Missing`] of a directory, [`Error::Unavailable`] if it cannot
    /// be created.
    pub(crate) fn parse(url: &str, create: bool) -> Result<Self> {
        let refused = |why: String| Error::Location { url: url.to_owned(), why };
        if let Some(rest) = url.strip_prefix(S3) {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(refused("it names no bucket".to_owned()));
            }
            let path = Path::parse(prefix.trim_end_matches('/'));
            let path = path.map_err(|error| refused(error.to_string()))?;
            // A writer detects another one because an object that it is about to create exists:
            // servers that cannot report this are excluded.
            let builder = AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_conditional_put(S3ConditionalPut::ETagMatch);
            let objects = builder.build().map_err(|error| refused(error.to_string()))?;
            return Ok(Self { url: url.to_owned(), objects: Arc::new(objects), path });
        }
        if let Some(directory) = url.strip_prefix(FILE) {
            return Self::directory(url, directory, create);
        }
        if url == MEMORY {
            let path = Path::default();
            return Ok(Self { url: url.to_owned(), objects: Arc::new(InMemory::new()), path });
        }
        let known = url.strip_prefix(SCHEME_PREFIX).is_some();
        Err(refused(if known { "its scheme is none of these" } else { "it is no such URL" }.into()))
    }

    /// A directory of the file system, whose path is taken literally, without escapes.
    fn directory(url: &str, directory: &str, create: bool) -> Result<Self> {
        let refused = |why: &str| Error::Location { url: url.to_owned(), why: why.to_owned() };
        if !FilePath::new(directory).is_absolute() {
            return Err(refused("the path of a directory begins with /"));
        }
        let failed = |what: &str| Error::Unavailable { what: format!("{directory}: {what}") };
        if create {
            make(FilePath::new(directory)).map_err(|error| failed(&error.to_string()))?;
        } else if !FilePath::new(directory).is_dir() {
            return Err(Error::Missing { url: url.to_owned() });
        }
        let objects = LocalFileSystem::new_with_prefix(directory);
        // An object that counts as written must be on the device, with its name: by default it is
        // not.
        let objects = objects.map_err(|error| failed(&error.to_string()))?.with_fsync(true);
        Ok(Self { url: url.to_owned(), objects: Arc::new(objects), path: Path::default() })
    }

    /// The caller's objects, under the caller's path.
    ///
    /// # Errors
    /// [`Error::Location`] for an invalid path.
    pub(crate) fn of_objects(objects: Arc<dyn ObjectStore>, path: &str) -> Result<Self> {
        let refused = |why: String| Error::Location { url: path.to_owned(), why };
        let url = format!("{objects}/{path}");
        let path = Path::parse(path).map_err(|error| refused(error.to_string()))?;
        Ok(Self { url, objects, path })
    }
}

/// Creates a directory and its parents durably: without its name its content would be lost.
fn make(directory: &FilePath) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = directory.ancestors().skip(1);
    let new_count = above.clone().take_while(|above| !above.exists()).count();
    fs::create_dir_all(directory)?;
    above.take(new_count + 1).try_for_each(|above| File::open(above)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_place_is_refused() {
        for url in [
            "",
            "app.adamant",
            "s3://bucket",
            "slatedb+",
            "slatedb+ftp://x",
            "slatedb+s3:///prefix",
        ] {
            let refused = Location::parse(url, true).err();
            assert!(matches!(refused, Some(Error::Location { .. })), "{url}: {refused:?}");
        }
        for url in ["slatedb+file://relative", "slatedb+file://", "slatedb+memory://name"] {
            let refused = Location::parse(url, true).err();
            assert!(matches!(refused, Some(Error::Location { .. })), "{url}: {refused:?}");
        }
    }

    #[test]
    fn a_directory_is_made_only_if_it_may_be() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a store \u{e9}%20#?");
        let url = format!("{FILE}{}", directory.display());
        assert!(matches!(Location::parse(&url, false), Err(Error::Missing { .. })));
        assert!(!directory.exists());
        assert!(Location::parse(&url, true).is_ok() && directory.is_dir());
        assert!(Location::parse(&url, false).is_ok());
    }
}
