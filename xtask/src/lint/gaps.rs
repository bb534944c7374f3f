//! Why a handle of the store does not have a method, for `methods.rs`.

/// Methods that some handles lack, for one reason.
pub(crate) struct Gap {
    pub(crate) methods: &'static [&'static str],
    pub(crate) handles: &'static [&'static str],
    pub(crate) reason: &'static str,
}

impl Gap {
    pub(crate) fn covers(&self, handle: &str, method: &str) -> bool {
        self.methods.contains(&method) && self.handles.contains(&handle)
    }

    /// Its methods, each with each of its handles.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let handles = self.handles;
        self.methods
            .iter()
            .flat_map(move |method| handles.iter().map(move |handle| (*method, *handle)))
    }
}

/// Methods of what only one kind of handle is or has: not rows of the table.
pub(crate) const OWN: [&str; 38] = [
    "after",
    "at",
    "attempt",
    "commit",
    "compact",
    "declare_types",
    "durability",
    "engine",
    "estimate",
    "get_with_deadline",
    "insert_reserved",
    "keep_savepoint",
    "keyspaces",
    "kind",
    "load_stored",
    "lsm",
    "name",
    "next_deadline",
    "now",
    "on_heap",
    "pair_of",
    "remove_expired",
    "reserve",
    "retype",
    "savepoint",
    "set_cursor",
    "set_deadline",
    "set_savepoint",
    "share",
    "split_stored",
    "stats",
    "typed",
    "types",
    "undo_savepoint",
    "untyped",
    "with_clock",
    "within",
    "within_shared",
];

/// Methods of typed keyspaces that are those of another handle, by its name and theirs.
pub(crate) const OTHER_NAMES: [(&str, &str, &str); 6] = [
    ("Batch", "put", "put_into"),
    ("Batch", "merge", "merge_into"),
    ("Batch", "delete", "delete_from"),
    ("Batch", "rename", "rename_in"),
    ("Batch", "move_to", "move_in"),
    ("Batch", "swap", "swap_in"),
];

const SNAPSHOTS: &[&str] = &["Snapshot", "TypedSnapshot", "ExpiringSnapshot"];
const TRANSACTIONS: &[&str] = &["Transaction", "TypedTransaction", "ExpiringTransaction"];
const BATCH: &[&str] = &["Batch"];

/// All reasons, in the order of their numbers.
pub(crate) const GAPS: &[Gap] = &[
    Gap {
        methods: &[
            "clear",
            "compare_and_swap",
            "delete",
            "delete_range",
            "extend",
            "extract_if",
            "fetch_update",
            "insert",
            "insert_unique",
            "load_sorted",
            "merge",
            "move_range",
            "move_to",
            "pop_first",
            "pop_last",
            "put",
            "put_reserved",
            "remove",
            "rename",
            "retain",
            "settle",
            "swap",
            "take",
            "update_fetch",
            "with_durability",
        ],
        handles: SNAPSHOTS,
        reason: "A snapshot is only read.",
    },
    Gap {
        methods: &[
            "contains",
            "first",
            "get",
            "get_briefly",
            "get_with",
            "iter",
            "last",
            "multi_get",
            "prefix",
            "range",
        ],
        handles: BATCH,
        reason: "A batch only writes. A transaction does both.",
    },
    Gap {
        methods: &[
            "compare_and_swap",
            "extract_if",
            "fetch_update",
            "insert",
            "insert_unique",
            "pop_first",
            "pop_last",
            "remove",
            "retain",
            "take",
            "update_fetch",
        ],
        handles: BATCH,
        reason: "It depends on what is there, which a batch finds out at its commit. Use a \
                 transaction.",
    },
    Gap {
        methods: &["clear", "delete_range", "move_range"],
        handles: BATCH,
        reason: "A batch is a list of changes of single keys. A transaction takes ranges.",
    },
    Gap {
        methods: &["put_reserved"],
        handles: BATCH,
        reason: "A batch copies its values into one list. `Transaction::put_reserved` does not.",
    },
    Gap {
        methods: &["compare_and_swap", "fetch_update", "update_fetch"],
        handles: TRANSACTIONS,
        reason: "In a transaction `get` and `put` are as atomic.",
    },
    Gap {
        methods: &["extend", "load_sorted"],
        handles: &[
            "Transaction",
            "TypedTransaction",
            "ExpiringTransaction",
            "MultimapTransaction",
            "Batch",
        ],
        reason: "Loads have any length and are committed in chunks. Put the entries one by one.",
    },
    Gap {
        methods: &["settle", "with_durability"],
        handles: &[
            "Transaction",
            "TypedTransaction",
            "ExpiringTransaction",
            "TypedExpiringTransaction",
            "MultimapTransaction",
            "Batch",
        ],
        reason: "The commit waits, also one that changed nothing: as long as `durability` says.",
    },
    Gap {
        methods: &["get_briefly"],
        handles: &[
            "Expiring",
            "Snapshot",
            "TypedSnapshot",
            "ExpiringSnapshot",
            "Transaction",
            "TypedTransaction",
            "ExpiringTransaction",
        ],
        reason: "`get_with` does it. The brief form is for reads of a keyspace that are not to wait \
                 behind other closures.",
    },
    Gap {
        methods: &["put_reserved"],
        handles: &["TypedKeyspace", "TypedTransaction"],
        reason: "A reserved value is filled with bytes, a typed one is encoded: use `untyped`.",
    },
    Gap {
        methods: &["put_reserved"],
        handles: &["Expiring"],
        reason: "`store.exclusive(|tx| expiring.within(tx).put_reserved(..))`.",
    },
    Gap {
        methods: &["compare_and_swap", "fetch_update", "update_fetch"],
        handles: &["Expiring"],
        reason: "An entry and its deadline change together: `within` a transaction reads and \
                 writes both.",
    },
    Gap {
        methods: &["merge"],
        handles: &["Expiring", "ExpiringTransaction"],
        reason: "A value begins with its deadline, which no operator knows how to merge.",
    },
    Gap {
        methods: &["move_range", "move_to", "rename", "swap"],
        handles: &["Expiring", "ExpiringTransaction"],
        reason: "A deadline has a row of its own under the old key: in a transaction get the entry \
                 by `get_with_deadline`, put it and delete the old one.",
    },
    Gap {
        methods: &["extend", "load_sorted"],
        handles: &["Expiring"],
        reason: "A load fills one keyspace, and entries that expire are kept in two: put them \
                 within transactions.",
    },
    Gap {
        methods: &[
            "clear",
            "delete",
            "extend",
            "insert",
            "load_sorted",
            "put",
            "remove",
            "remove_all",
            "settle",
            "with_durability",
        ],
        handles: &["MultimapSnapshot"],
        reason: "As of a keyspace: a snapshot is only read.",
    },
    Gap {
        methods: &[
            "clear",
            "delete",
            "delete_range",
            "extract_if",
            "insert",
            "insert_unique",
            "pop_first",
            "pop_last",
            "put",
            "remove",
            "retain",
            "settle",
            "take",
            "with_durability",
        ],
        handles: &["TypedExpiringSnapshot"],
        reason: "As of a keyspace of bytes: a snapshot is only read.",
    },
];
