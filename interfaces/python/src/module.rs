//! The Python module and its exports.

use pyo3::prelude::*;

/// The module `adamant._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::arrays::column::{Column, get_many, get_many_into, put_many};
    #[pymodule_export]
    use crate::arrays::scan::{Scan, scan};
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::changes::Changes;
    #[pymodule_export]
    use crate::expiring::{Expiring, TransactionExpiring};
    #[pymodule_export]
    use crate::fork::after_fork_in_child;
    #[pymodule_export]
    use crate::keyspace::Keyspace;
    #[pymodule_export]
    use crate::mapping::cursor::Cursor;
    #[pymodule_export]
    use crate::mapping::reader::Reader;
    #[pymodule_export]
    use crate::multimap::Multimap;
    #[pymodule_export]
    use crate::run::{Begun, run, run_exclusive};
    #[pymodule_export]
    use crate::snapshot::{Snapshot, SnapshotExpiring, SnapshotReader};
    #[pymodule_export]
    use crate::store::{Store, encrypt, go_back, rekey, restore};
    #[pymodule_export]
    use crate::transaction::{Transaction, TransactionReader};

    /// The version of the package.
    #[pymodule_export]
    const __VERSION__: &str = env!("CARGO_PKG_VERSION");
}
