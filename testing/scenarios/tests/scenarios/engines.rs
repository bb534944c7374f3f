//! All scenarios in memory, on the file system and on one whose files are memory.
//!
//! Purpose: those of entries run with every engine. Those of the store run with `bplus` and `lsm`
//! alone: above the map, the other trees differ in nothing. All run with compressed values, too.

use adamant::{Compression, Engine, ValueCompression};
use adamant_scenarios::{Disk, Kept, Mapped, Memory, Packed, Place, Tiny};

/// Scenarios of the store: with `bplus` in three places, with `lsm`, and with an `lsm` whose
/// memtables are tiny.
macro_rules! scenarios {
    ($($group:ident { $($name:ident)+ })+) => {
        $(mod $group {
            $(mod $name {
                use adamant_scenarios::$group::$name as scenario;

                #[test]
                fn in_memory() {
                    super::super::in_memory(scenario);
                }

                #[test]
                fn on_disk() {
                    super::super::on_disk(scenario);
                }

                #[test]
                fn on_tmpfs() {
                    super::super::on_tmpfs(scenario);
                }

                #[test]
                fn by_lsm() {
                    super::super::by_engine(adamant::Engine::Lsm, scenario);
                }

                #[test]
                fn by_tiny_lsm() {
                    super::super::by_tiny_lsm(scenario);
                }

                #[test]
                fn with_compressed_values() {
                    super::super::with_compressed_values(adamant::Engine::Bplus, scenario);
                }
            })+
        })+
    };
}

/// The same, and with the trees that exist for comparison.
macro_rules! scenarios_of_entries {
    ($($group:ident { $($name:ident)+ })+) => {
        scenarios! { $($group { $($name)+ })+ }

        mod by_other_trees {
            $(mod $group {
                $(#[test]
                fn $name() {
                    super::super::by_other_trees(adamant_scenarios::$group::$name);
                })+
            })+
        }
    };
}

type Scenario = fn(&dyn Place);

fn in_memory(scenario: Scenario) {
    scenario(&Memory::new());
}

fn on_disk(scenario: Scenario) {
    let directory = tempfile::tempdir().unwrap();
    scenario(&Disk::new(directory.path().join("store")));
}

/// Most Linux systems have a tmpfs there; elsewhere there is nothing to test.
fn on_tmpfs(scenario: Scenario) {
    if std::path::Path::new("/dev/shm").is_dir() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        scenario(&Mapped(Disk::new(directory.path().join("store"))));
    }
}

fn by_engine(engine: Engine, scenario: Scenario) {
    scenario(&Kept(Memory::new(), engine));
}

fn by_tiny_lsm(scenario: Scenario) {
    scenario(&Tiny(Memory::new()));
}

fn by_other_trees(scenario: Scenario) {
    for engine in [Engine::Btree, Engine::Critbit, Engine::Redblack] {
        println!("{engine:?}");
        by_engine(engine, scenario);
        with_compressed_values(engine, scenario);
    }
}

/// Also the shortest ones, so that a scenario meets both kinds.
fn with_compressed_values(engine: Engine, scenario: Scenario) {
    for (compression, bytes_min) in [(Compression::Lz4, 1), (Compression::Zstd(1), 15)] {
        println!("{engine:?} {compression}");
        let values = ValueCompression::from(compression).with_bytes_min(bytes_min);
        scenario(&Packed(Memory::new(), engine, values));
    }
}

scenarios_of_entries! {
    lazy {
        keys_and_entries_of_a_map
        an_entry_keeps_its_value
        entries_of_a_store_that_was_closed
    }
    removals {
        ranges
        ranges_conflict
    }
    chosen {
        as_of_a_map
        pops_of_threads
        pops_conflict
        closures_that_panic_or_write
    }
    reserved {
        values_of_all_sizes
        own_writes
        what_is_dropped_was_never_there
        many_at_once
        of_another_store
    }
    point {
        insert_get_replace_remove
        take_returns_the_value
        values_of_all_sizes
        keys_of_all_kinds
        a_panic_within_get_with_leaves_the_store_usable
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
    lend {
        lends_what_a_map_holds
        commits_between_are_seen_from_there_on
        bytes_stay_while_they_are_lent
        closures_that_write_fail_or_panic
    }
    moves {
        renames
        between_keyspaces
        swaps
        ranges
        in_batches
        other_stores_are_refused
        lent_values_stay
        are_there_after_reopening
    }
    load {
        in_order
        what_does_not_ascend_is_refused
        in_any_order
        from_the_same_store
    }
    engines {
        count_entries
        dropping_frees_all
        engines_are_kept
        converting_keeps_all
    }
    snapshots {
        see_one_moment
        see_thousands_that_went
        of_a_key_written_time_and_again
        beside_closures
        of_keyspaces_that_go
        of_values_that_move
        that_take_too_much_end
        are_dropped_anywhere
        beside_writers
        against_a_model
    }
    empty_key {
        is_a_key
    }
}

scenarios! {
    reentrance {
        using_the_store_within_get_with_is_an_error
    }
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
    transactions {
        see_own_writes
        write_skew_is_refused
        of_threads_are_run_again
        refuse_what_cannot_be
        single_keys_as_one
    }
    validation {
        a_conflict_says_where
        ends_that_meet
        phantoms_are_refused
        those_that_cannot_conflict
        savepoints
    }
    limits {
        keys
        names
    }
    persistence {
        after_close
        after_drop
        handles_after_close
        without_create
        second_opener
        a_small_log
    }
    threads {
        readers_see_whole_entries_beside_a_writer
        writers_of_several_threads
        keyspaces_come_and_go_beside_readers
    }
}

/// Twelve seeds of 1,500 steps in memory, four on disk; four with each other engine.
mod model {
    use super::{Disk, Engine, Memory, by_engine};

    #[test]
    fn in_memory() {
        for seed in 0..12 {
            adamant_scenarios::model::random_work(&Memory::new(), seed, 1_500);
        }
    }

    #[test]
    fn on_disk() {
        for seed in 100..104 {
            let directory = tempfile::tempdir().unwrap();
            let place = Disk::new(directory.path().join("store"));
            adamant_scenarios::model::random_work(&place, seed, 1_500);
        }
    }

    #[test]
    fn by_other_engines() {
        for engine in Engine::ALL {
            by_engine(engine, |place| adamant_scenarios::model::random_work(place, 200, 1_500));
            by_engine(engine, |place| adamant_scenarios::model::random_work(place, 201, 1_500));
        }
    }

    #[test]
    fn with_compressed_values() {
        for engine in Engine::ALL.into_iter().filter(|engine| *engine != Engine::Lsm) {
            super::with_compressed_values(engine, |place| {
                adamant_scenarios::model::random_work(place, 202, 1_500);
            });
        }
    }
}
