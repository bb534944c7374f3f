//! The scenarios of `testing/scenarios`, over stores on objects: the same sources, in which
//! `adamant` is this crate.
//!
//! Left out are those that ask for what there is not: `engines`, `lend`, `lazy`, `load`, `moves`,
//! `reserved`, `reentrance` (no closure runs under a lock), `validation` (SlateDB's transactions
//! conflict also by what they write, and have no savepoints), and `persistence`, `snapshots` and
//! `model`, which look at logs, versions and moves: `opening.rs` and `model.rs` are in their place.

#![allow(missing_docs, unreachable_pub, reason = "as in the crate that they are from")]

extern crate adamant_remote as adamant;

#[path = "common/place.rs"]
mod place;

#[path = "../../../testing/scenarios/src/writes/batch.rs"]
mod batch;
#[path = "../../../testing/scenarios/src/keyspaces.rs"]
mod keyspaces;
#[path = "../../../testing/scenarios/src/limits.rs"]
mod limits;
#[path = "../../../testing/scenarios/src/reads/order.rs"]
mod order;
#[path = "../../../testing/scenarios/src/point.rs"]
mod point;
#[path = "../../../testing/scenarios/src/writes/removals.rs"]
mod removals;
#[path = "../../../testing/scenarios/src/concurrency/threads.rs"]
mod threads;
#[path = "../../../testing/scenarios/src/concurrency/transactions.rs"]
mod transactions;

/// Tables that hold all of a scenario's entries, and tables of a few of them.
const MEMTABLE_BYTES: [u64; 2] = [64 << 20, 16 << 10];

macro_rules! scenarios {
    ($($group:ident { $($name:ident)+ })+) => {
        mod over_objects {
            $(mod $group {
                $(mod $name {
                    #[test]
                    fn in_large_tables() {
                        let place = crate::place::Memory::new(crate::MEMTABLE_BYTES[0]);
                        crate::$group::$name(&place);
                    }

                    #[test]
                    fn in_small_tables() {
                        let place = crate::place::Memory::new(crate::MEMTABLE_BYTES[1]);
                        crate::$group::$name(&place);
                    }
                })+
            })+
        }
    };
}

scenarios! {
    batch {
        over_several_keyspaces
        empty_dropped_and_by_durability
        refuses_what_cannot_be_stored
        is_undone_whole
        large
    }
    keyspaces {
        create_open_list_drop
        handles_to_a_dropped_keyspace
        many
    }
    limits {
        keys
        names
    }
    order {
        ends
        both_directions_and_both_ends
        ranges_as_of_a_map
        prefixes_at_the_upper_end
        iterators_go_on_while_others_write
        an_iterator_ends_with_an_error_when_its_keyspace_is_dropped
        large_values_in_a_scan
    }
    point {
        insert_get_replace_remove
        take_returns_the_value
        values_of_all_sizes
        keys_of_all_kinds
        a_panic_within_get_with_leaves_the_store_usable
    }
    removals {
        ranges
        ranges_conflict
    }
    threads {
        readers_see_whole_entries_beside_a_writer
        writers_of_several_threads
        keyspaces_come_and_go_beside_readers
    }
    transactions {
        see_own_writes
        write_skew_is_refused
        of_threads_are_run_again
        refuse_what_cannot_be
        single_keys_as_one
    }
}
