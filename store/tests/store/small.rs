//! Options under which little data makes many tables, and keyspaces that are named by their engine.

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, LsmOptions, Options, Store};

pub(crate) fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    lsm.table_bytes_max = 64 << 10;
    lsm.base_bytes_min = 128 << 10;
    lsm.level0_tables_max = 3;
    lsm.level_ratio = 4;
    lsm.blob_bytes_min = Some(1000);
    Options::new().durability(Durability::Buffered).lsm(lsm).log_bytes_max(4 << 20)
}

pub(crate) fn keyspace(store: &Store, engine: Engine) -> Keyspace {
    store.keyspace_with(engine.name(), KeyspaceOptions::new().engine(engine)).unwrap()
}
