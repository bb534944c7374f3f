//! The store class.
//!
//! Thread safety: any number of threads.

use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use adamant::{Durability, KeyspaceOptions, Options, SavepointState};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::choices;
use crate::convert::key::{key_in, key_of};
use crate::convert::keyspace_options::value_compression;
use crate::convert::path::path_of;
use crate::convert::stats;
use crate::errors;
use crate::fork::Kept;
use crate::mapping::place::hold;
use crate::mapping::reader::cannot_pickle;
use crate::waiting::wait;

/// A store that is open, or was closed.
#[pyclass(frozen, subclass, weakref, module = "adamant._native")]
pub(crate) struct Store {
    /// Held for a moment, but by a refresh.
    store: Kept<Mutex<adamant::Store>>,
    is_read_only: bool,
}

/// A keyspace's name, engine, entries, kind, recorded durability and merge operator.
type Listed = (String, &'static str, u64, &'static str, Option<&'static str>, Option<String>);

fn listed(info: adamant::KeyspaceInfo) -> Listed {
    let durability = info.durability.map(choices::durability_name);
    let (engine, kind) = (info.engine.name(), info.kind.name());
    (info.name, engine, info.entries, kind, durability, info.merge_operator)
}

impl Store {
    /// The handle of now: a refresh puts another one in its place. Nothing may keep it beyond its
    /// call, or that takes as long as opening the store.
    pub(crate) fn store(&self, py: Python<'_>) -> PyResult<adamant::Store> {
        let store = self.store.get()?;
        Ok(store.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// The keyspace with this name, whose commits have that durability if one is given. In a
    /// read-only store a missing one is not created.
    pub(crate) fn open_keyspace(
        &self,
        py: Python<'_>,
        name: &str,
        options: KeyspaceOptions,
        durability: Option<Durability>,
    ) -> PyResult<adamant::Keyspace> {
        let keyspace = self.detached(py, |store| {
            if self.is_read_only {
                store.open_keyspace(name)?;
            }
            store.keyspace_with(name, options)
        })?;
        Ok(durability.map_or_else(|| keyspace.clone(), |it| keyspace.with_durability(it)))
    }

    /// Like [`Store::open_keyspace`], for an expiring keyspace.
    pub(crate) fn open_expiring(
        &self,
        py: Python<'_>,
        name: &str,
        options: KeyspaceOptions,
        durability: Option<Durability>,
    ) -> PyResult<adamant::Expiring> {
        let expiring = self.detached(py, |store| {
            if self.is_read_only {
                store.open_expiring(name)?;
            }
            store.expiring_with(name, options)
        })?;
        Ok(durability.map_or_else(|| expiring.clone(), |it| expiring.with_durability(it)))
    }

    /// Like [`Store::open_keyspace`], for a multimap.
    pub(crate) fn open_multimap(
        &self,
        py: Python<'_>,
        name: &str,
        options: KeyspaceOptions,
        durability: Option<Durability>,
    ) -> PyResult<adamant::Multimap> {
        let multimap = self.detached(py, |store| {
            if self.is_read_only {
                store.open_multimap(name)?;
            }
            store.multimap_with(name, options)
        })?;
        Ok(durability.map_or_else(|| multimap.clone(), |it| multimap.with_durability(it)))
    }

    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&adamant::Store) -> adamant::Result<T> + Send,
    ) -> PyResult<T> {
        let store = self.store(py)?;
        py.detach(move || work(&store)).map_err(errors::of_store)
    }
}

/// Sets the options of a dict.
fn with_options(mut options: Options, given: &Bound<'_, PyDict>) -> PyResult<Options> {
    for (name, value) in given {
        if value.is_none() {
            continue;
        }
        let name: String = name.extract()?;
        options = match name.as_str() {
            "create" => options.create(value.extract()?),
            "read_only" => options.read_only(value.extract()?),
            "beside_writer" => options.beside_writer(value.extract()?),
            "reader_bytes_max" => options.reader_bytes_max(value.extract()?),
            "durability" => options.durability(choices::durability(value.extract()?)?),
            "flushing" => options.flushing(choices::flushing(value.extract()?)?),
            "log_bytes_max" => options.log_bytes_max(value.extract()?),
            "deferred_ms_max" => options.deferred_ms_max(value.extract()?),
            "deferred_bytes_max" => options.deferred_bytes_max(value.extract()?),
            "sweep_expired" => options.sweep_expired(value.extract()?),
            "verify_first_touch" => options.verify_first_touch(value.extract()?),
            "memory_bytes_max" => options.memory_bytes_max(value.extract()?),
            "address_bytes_max" => options.address_bytes_max(value.extract()?),
            "huge_bytes_max" => options.huge_bytes_max(value.extract()?),
            "encryption_key" => options.encryption_key(key_of(&value)?),
            "key_file" => options.encryption_key(key_in(&path_of(&value)?)?),
            "image" => options.image(choices::image(value.extract()?)?),
            "snapshot_bytes_max" => options.snapshot_bytes_max(value.extract()?),
            "cache_bytes_max" => options.cache_bytes_max(value.extract()?),
            "pinned_bytes_max" => options.pinned_bytes_max(value.extract()?),
            "open_files_max" => options.open_files_max(value.extract()?),
            _ => {
                let words = format!("there is no option {name:?} of a store");
                return Err(errors::named("InvalidArgument", words));
            }
        };
    }
    Ok(options)
}

#[pymethods]
impl Store {
    /// Opens the store at a path; None: one in memory.
    #[new]
    fn new(
        py: Python<'_>,
        path: Option<Bound<'_, PyAny>>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let given = |name: &str| options.get_item(name).map(|it| it.filter(|it| !it.is_none()));
        let is_set =
            |name: &str| given(name).map(|it| it.is_some_and(|it| it.is_truthy().unwrap_or(false)));
        let is_read_only = is_set("read_only")? || is_set("beside_writer")?;
        if let Some(savepoint) = given("savepoint")? {
            // Not an option of the user: a store and the name of its savepoint.
            let (of, name): (PyRef<'_, Self>, String) = savepoint.extract()?;
            let store = of.detached(py, |store| store.open_savepoint(&name))?;
            return Ok(Self { store: Kept::new(Mutex::new(store)), is_read_only: true });
        }
        let options = with_options(Options::new(), options)?;
        let path = path.as_ref().map(path_of).transpose()?;
        let open = || match path {
            Some(path) => adamant::Store::open_with(path, options),
            None => adamant::Store::in_memory(),
        };
        let store = py.detach(open).map_err(errors::of_store)?;
        Ok(Self { store: Kept::new(Mutex::new(store)), is_read_only })
    }

    /// All keyspaces: name, engine, entries, kind.
    fn _keyspaces(&self, py: Python<'_>) -> PyResult<Vec<Listed>> {
        let list = self.detached(py, adamant::Store::keyspaces)?;
        Ok(list.into_iter().map(listed).collect())
    }

    /// Drops a keyspace and all that it holds, in one commit; returns whether there was one.
    #[pyo3(signature = (name, /))]
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.detached(py, |store| store.drop_keyspace(name))
    }

    /// Drops an expiring keyspace and its deadlines; returns whether there was one.
    #[pyo3(signature = (name, /))]
    fn drop_expiring(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.detached(py, |store| store.drop_expiring(name))
    }

    /// Renames a keyspace, in one commit.
    #[pyo3(signature = (name, new_name, /))]
    fn rename_keyspace(&self, py: Python<'_>, name: &str, new_name: &str) -> PyResult<()> {
        self.detached(py, |store| store.rename_keyspace(name, new_name))
    }

    /// Converts a keyspace to another engine, in one commit; False if it uses that engine already.
    #[pyo3(signature = (name, engine, /))]
    fn convert_keyspace(&self, py: Python<'_>, name: &str, engine: &str) -> PyResult<bool> {
        let engine = choices::engine(engine)?;
        self.detached(py, |store| store.convert_keyspace(name, engine))
    }

    /// Has a keyspace store its values by another compression, those that are there and all later
    /// ones, in one commit; False if it does so already.
    #[pyo3(signature = (name, compression, /, *, dictionary=None))]
    fn compress_values(
        &self,
        py: Python<'_>,
        name: &str,
        compression: &str,
        dictionary: Option<Vec<u8>>,
    ) -> PyResult<bool> {
        let values = value_compression(compression)?;
        self.detached(py, |store| store.compress_values(name, values, dictionary.as_deref()))
    }

    /// The compression of the values of a keyspace; None for none.
    #[pyo3(signature = (name, /))]
    fn value_compression(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        let all = self.detached(py, |store| {
            store.open_stored(name)?;
            store.keyspaces()
        })?;
        let found = all.into_iter().find(|info| info.name == name);
        Ok(found.and_then(|info| info.values).map(|values| values.to_string()))
    }

    /// Trains a dictionary of at most so many bytes from the values of a keyspace.
    #[pyo3(signature = (name, bytes_max=16384, /))]
    fn train_dictionary<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        bytes_max: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.detached(py, |store| store.train_dictionary(name, bytes_max))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Makes everything committed so far durable, whatever the durability of its commits.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, adamant::Store::sync)
    }

    /// Copies the store to a free path, while it is in use; or what changed since another backup.
    #[pyo3(signature = (path, /, *, link=false, since=None))]
    fn backup(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        link: bool,
        since: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let path = path_of(path)?;
        let Some(parent) = since.map(path_of).transpose()? else {
            return self.detached(py, |store| match link {
                true => store.backup_linked(path),
                false => store.backup(path),
            });
        };
        if link {
            let words = "expected either link or since, found both".to_string();
            return Err(errors::named("InvalidArgument", words));
        }
        self.detached(py, |store| store.backup_since(parent, path).map(drop))
    }

    /// Makes a persistent savepoint.
    #[pyo3(signature = (name, /))]
    fn create_savepoint(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.detached(py, |store| store.create_savepoint(name))
    }

    /// Deletes a persistent savepoint; returns whether there was one.
    #[pyo3(signature = (name, /))]
    fn delete_savepoint(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.detached(py, |store| store.delete_savepoint(name))
    }

    /// All persistent savepoints: name, commit, seconds since 1970, bytes, state.
    fn _savepoints(&self, py: Python<'_>) -> PyResult<Vec<ListedSavepoint>> {
        let list = self.detached(py, adamant::Store::savepoints)?;
        Ok(list.into_iter().map(listed_savepoint).collect())
    }

    /// Compacts all keyspaces, and gives free space back to the file system.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, adamant::Store::compact)
    }

    /// Gives free space of the pool file back to the file system.
    fn shrink(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, |store| store.shrink().map(|_| ()))
    }

    /// Figures of the store.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats::to_dict(py, &self.detached(py, adamant::Store::stats)?)
    }

    /// Verifies all of the store; returns the findings by place.
    fn _check(&self, py: Python<'_>) -> PyResult<Vec<(String, String, bool)>> {
        let report = self.detached(py, adamant::Store::check)?;
        Ok(report.findings.into_iter().map(|it| (it.place, it.what, it.is_unread)).collect())
    }

    /// Brings all commits to the device and closes the store. Closing it again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.store(py)?;
        match py.detach(|| store.close()) {
            Ok(()) | Err(adamant::Error::Closed) => Ok(()),
            Err(error) => Err(errors::of_store(error)),
        }
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(matches!(self.store(py)?.check_writable(), Err(adamant::Error::Closed)))
    }

    /// Has a store that was opened beside a writer show its last commit; False if it does already.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let store = self.store.get()?;
        py.detach(|| hold(store).refresh()).map_err(errors::of_store)
    }

    /// Waits until a refresh would show a later commit; whether it would.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_change(&self, py: Python<'_>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        let store = self.store(py)?;
        if !store.is_beside_writer() {
            return Ok(false);
        }
        let changed =
            wait(py, timeout, |longest| Ok(store.wait_for_change(longest)?.then_some(())));
        py.detach(move || drop(store));
        Ok(changed?.is_some())
    }

    /// Records what each commit changes, in at most so many bytes; None: no more.
    #[pyo3(signature = (bytes_max, /))]
    fn record_changes(&self, py: Python<'_>, bytes_max: Option<u64>) -> PyResult<()> {
        self.detached(py, |store| store.record_changes(bytes_max))
    }

    /// First and last commit of the history of changes, its bytes and their bound.
    fn _changes_info(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64)> {
        let info = self.detached(py, adamant::Store::changes_info)?;
        Ok((info.first, info.last, info.bytes, info.bytes_max))
    }

    /// The number of the last commit in the feed of changes; 0 before the first.
    #[getter]
    fn last_change(&self, py: Python<'_>) -> PyResult<u64> {
        self.detached(py, adamant::Store::last_change)
    }

    /// The number of the last commit in the feed that this thread made; None if it made none.
    #[getter]
    fn own_change(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.store(py)?.own_change())
    }

    /// Waits until the commit of a number survives power loss.
    #[pyo3(signature = (number, /))]
    fn wait_durable(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        self.detached(py, |store| store.wait_durable(number))
    }

    /// The number that a cursor was set to; None if there is none of that name.
    #[pyo3(signature = (name, /))]
    fn _cursor(&self, py: Python<'_>, name: &str) -> PyResult<Option<u64>> {
        self.detached(py, |store| store.cursor(name))
    }

    /// Sets a cursor; None removes it.
    #[pyo3(signature = (name, number, /))]
    fn _set_cursor(&self, py: Python<'_>, name: &str, number: Option<u64>) -> PyResult<()> {
        self.detached(py, |store| match number {
            Some(number) => store.set_cursor(name, number),
            None => store.remove_cursor(name),
        })
    }

    /// All cursors.
    fn _cursors(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        self.detached(py, adamant::Store::cursors)
    }

    /// Whether its files are encrypted.
    #[getter]
    fn is_encrypted(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.store(py)?.is_encrypted())
    }

    /// Has another key open the store.
    #[pyo3(signature = (new, /))]
    fn rekey(&self, py: Python<'_>, new: &Bound<'_, PyAny>) -> PyResult<()> {
        let new = key_of(new)?;
        self.detached(py, |store| store.rekey(&new))
    }

    /// Whether it was opened beside a writer.
    #[getter]
    fn beside_writer(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.store(py)?.is_beside_writer())
    }

    /// Whether it was opened for reading only.
    #[getter]
    fn read_only(&self) -> bool {
        self.is_read_only
    }

    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__(slf: &Bound<'_, Self>, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = protocol;
        Err(cannot_pickle(slf.as_any()))
    }
}

/// A persistent savepoint in a list.
type ListedSavepoint = (String, u64, Option<f64>, u64, &'static str);

fn listed_savepoint(savepoint: adamant::PersistentSavepoint) -> ListedSavepoint {
    let since = savepoint.made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let state = match savepoint.state {
        SavepointState::Whole => "whole",
        SavepointState::Lost => "lost",
        _ => "damaged",
    };
    let made = since.map(|since| since.as_secs_f64());
    (savepoint.name, savepoint.commit, made, savepoint.bytes, state)
}

/// Makes a closed store, opened with options, what one of its savepoints shows.
#[pyfunction]
#[pyo3(signature = (path, name, options, /))]
pub(crate) fn go_back(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    name: &str,
    options: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let path = path_of(path)?;
    let options = with_options(Options::new(), options)?;
    py.detach(|| adamant::go_back_with(path, name, options)).map_err(errors::of_store)
}

/// Verifies a backup, opened with options, and copies it to a free path.
#[pyfunction]
#[pyo3(signature = (backup, path, options, /))]
pub(crate) fn restore(
    py: Python<'_>,
    backup: &Bound<'_, PyAny>,
    path: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let (backup, path) = (path_of(backup)?, path_of(path)?);
    let options = with_options(Options::new(), options)?;
    py.detach(|| adamant::restore_with(backup, path, options)).map_err(errors::of_store)
}

/// Has another key open a closed store.
#[pyfunction]
#[pyo3(signature = (path, old, new, /))]
pub(crate) fn rekey(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    old: &Bound<'_, PyAny>,
    new: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (path, old, new) = (path_of(path)?, key_of(old)?, key_of(new)?);
    py.detach(|| adamant::rekey(path, &old, &new)).map_err(errors::of_store)
}

/// Writes a closed store anew, encrypted by another key; None: not encrypted.
#[pyfunction]
#[pyo3(signature = (path, new, /, *, old=None))]
pub(crate) fn encrypt(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    new: Option<&Bound<'_, PyAny>>,
    old: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let options = |key: Option<&Bound<'_, PyAny>>| -> PyResult<Options> {
        let key = key.map(key_of).transpose()?;
        Ok(key.into_iter().fold(Options::new(), Options::encryption_key))
    };
    let (path, options, new_options) = (path_of(path)?, options(old)?, options(new)?);
    py.detach(|| adamant::encrypt(path, options, new_options)).map_err(errors::of_store)?;
    Ok(())
}
