//! Options of a store on objects.

/// Options of a store: built by methods, like those of `adamant`.
///
/// ```
/// use adamant_remote::{Options, Store};
///
/// let options = Options::new().flush_ms(1).cache_bytes_max(16 << 20);
/// let store = Store::open_with("slatedb+memory://", options)?;
/// # Ok::<(), adamant_remote::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) flush_ms: u64,
    pub(crate) poll_ms: u64,
    pub(crate) wait_ms_max: u64,
    pub(crate) cache_bytes_max: u64,
    pub(crate) memtable_bytes_max: u64,
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            create: true,
            read_only: false,
            flush_ms: 20,
            poll_ms: 1_000,
            wait_ms_max: 300_000,
            cache_bytes_max: 64 << 20,
            memtable_bytes_max: 64 << 20,
        }
    }

    /// Whether a store is created where there is none. Default: true.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Opens for reading only, beside the writer: see
    /// [`Store::open_read_only`](crate::Store::open_read_only).
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Milliseconds that a commit waits for others to share its object. Object stores charge by
    /// objects written: at 20, the default, at most 50 in a second.
    #[must_use]
    pub fn flush_ms(mut self, milliseconds: u64) -> Self {
        self.flush_ms = milliseconds.max(1);
        self
    }

    /// Milliseconds between two polls of the objects: the lag of a reader, and the time after which
    /// an idle writer detects another one. Default: 1,000.
    #[must_use]
    pub fn poll_ms(mut self, milliseconds: u64) -> Self {
        self.poll_ms = milliseconds.max(1);
        self
    }

    /// Milliseconds that a call waits for objects that cannot be reached, or that have no room.
    /// Then it fails with [`Error::Unavailable`](crate::Error::Unavailable), and the outcome of a
    /// commit is unknown: the store must be opened again. Default: 300,000, five minutes.
    ///
    /// ```
    /// use adamant_remote::{Options, Store};
    ///
    /// let store = Store::open_with("slatedb+memory://", Options::new().wait_ms_max(10_000))?;
    /// # Ok::<(), adamant_remote::Error>(())
    /// ```
    #[must_use]
    pub fn wait_ms_max(mut self, milliseconds: u64) -> Self {
        self.wait_ms_max = milliseconds.max(1);
        self
    }

    /// Bytes of cached blocks. Default: 64 MiB.
    #[must_use]
    pub fn cache_bytes_max(mut self, bytes: u64) -> Self {
        self.cache_bytes_max = bytes;
        self
    }

    /// Bytes of commits that are gathered in memory, beside their log, before they become a table.
    /// Eight times as many may wait to be written. Default: 64 MiB.
    #[must_use]
    pub fn memtable_bytes_max(mut self, bytes: u64) -> Self {
        self.memtable_bytes_max = bytes.max(1 << 10);
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
