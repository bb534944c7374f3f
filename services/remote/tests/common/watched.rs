//! Objects in memory, with somebody who is asked before each call and told after each change.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use adamant_remote::object_store::memory::InMemory;
use adamant_remote::object_store::path::Path;
use adamant_remote::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;

/// Who watches.
pub(crate) trait Watch: Send + Sync + 'static {
    /// Before a call, but for removals; an error is its answer.
    fn before(&self, _is_change: bool) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// After a change, be it done or refused.
    fn after(&self, _objects: &InMemory) {}
}

/// What SlateDB gets.
pub(crate) struct Watched<W> {
    pub(crate) objects: Arc<InMemory>,
    pub(crate) watch: Arc<W>,
}

impl<W> Watched<W> {
    pub(crate) fn new(watch: W) -> Self {
        Self { objects: Arc::new(InMemory::new()), watch: Arc::new(watch) }
    }
}

impl<W> Clone for Watched<W> {
    fn clone(&self) -> Self {
        Self { objects: Arc::clone(&self.objects), watch: Arc::clone(&self.watch) }
    }
}

impl<W> fmt::Debug for Watched<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl<W> fmt::Display for Watched<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

#[async_trait]
impl<W: Watch> ObjectStore for Watched<W> {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.watch.before(true).await?;
        let made = self.objects.put_opts(location, payload, options).await;
        self.watch.after(&self.objects);
        made
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.watch.before(true).await?;
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.watch.before(false).await?;
        self.objects.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let watched = self.clone();
        let deleted = self.objects.delete_stream(locations);
        deleted.inspect(move |_| watched.watch.after(&watched.objects)).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.watch.before(false).await?;
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.watch.before(true).await?;
        let made = self.objects.copy_opts(from, to, options).await;
        self.watch.after(&self.objects);
        made
    }
}
