//! The faults that `cargo xtask mutants` plants, with the tests that must notice each.
//!
//! Purpose: one line for every name in the tables of `xtask/mutations`, which say what each fault
//! is. The command checks that the list is complete and has no other names. The order within a rule
//! is that of the design; the tests of a line are tried one after the other until one notices.
//! Thread safety: constants.

use std::collections::BTreeSet;

/// A test program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suite {
    /// The package.
    pub(crate) package: &'static str,
    /// The test file in it; empty for unit tests.
    pub(crate) target: &'static str,
}

/// A test by its name in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    pub(crate) suite: Suite,
    pub(crate) name: &'static str,
}

/// A fault that is planted by its name.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// The rule that it breaks, a point, and how.
    pub(crate) name: &'static str,
    /// The tests that must notice it.
    pub(crate) tests: &'static [Test],
}

impl Suite {
    const fn test(self, name: &'static str) -> Test {
        Test { suite: self, name }
    }
}

const fn suite(package: &'static str, target: &'static str) -> Suite {
    Suite { package, target }
}

const fn mutant(name: &'static str, tests: &'static [Test]) -> Mutant {
    Mutant { name, tests }
}

const MEDIUM: Suite = suite("adamant-medium", "medium");
const WIRE: Suite = suite("adamant-wire", "frame");
const HEAP: Suite = suite("adamant-heap", "");
const HEAP_WHOLE: Suite = suite("adamant-heap", "heap");
const LSM_TABLES: Suite = suite("adamant-lsm", "tables");
const SIMULATOR: Suite = suite("adamant-sim", "sim");
const SCENARIOS: Suite = suite("adamant-scenarios", "scenarios");
const LSM_UNITS: Suite = suite("adamant-lsm", "");
const LSM_TREE: Suite = suite("adamant-lsm", "tree");
const STORE: Suite = suite("adamant", "");
const STORE_WHOLE: Suite = suite("adamant", "store");

const REOPENED: Test = HEAP_WHOLE
    .test("reopened::what_is_stored_to_pages_of_the_file_stays_and_all_else_is_as_it_was");
const READERS_MOMENT: Test =
    HEAP_WHOLE.test("beside::each_reader_sees_its_moment_whatever_is_written_since");
const READER_FOLLOWS: Test = HEAP_WHOLE.test("beside::a_reader_follows");
const READER_IN_USE: Test = HEAP_WHOLE.test("beside::a_reader_in_use_stays");
const READER_COPIES: Test =
    HEAP.test("journal::checkpoints::old_pages::tests::copies_between_readers_go");
const BATCH_BESIDE_REFRESH: Test = SIMULATOR.test("beside::a_batch_between_two_calls_of_a_refresh");
const FEED: Test = STORE_WHOLE.test("changes::the_feed_gives_the_store");
const SMALL: Test = SIMULATOR.test("heap_crashes::every_crash_point_of_small_commits");
const LARGE: Test = SIMULATOR.test("heap_crashes::large_records_fill_and_recycle_the_log");
const BEYOND: Test =
    SIMULATOR.test("heap_crashes::beyond::a_log_beyond_its_limit_is_kept_until_nobody_needs_it");
const UNSYNCED: Test = SIMULATOR.test("heap_crashes::many_unsynced_commits");
const NOTHING_CHANGED: Test = SCENARIOS
    .test("nothing_changed::what_a_sync_operation_found_survives_though_it_changed_nothing");
const COMMIT_SYNC: Test = HEAP.test("journal::tests::commit::a_failed_sync_ends_writing");
const FAILED_RECOVERY: Test = SIMULATOR
    .test("heap_crashes::recovery_faults::a_call_that_fails_within_recovery_loses_nothing");
const FAILED_SYNC: Test =
    SIMULATOR.test("heap_crashes::a_failing_sync_poisons_and_reopening_recovers");
const FORGED_PARTS: Test =
    HEAP.test("journal::tests::forged::a_commit_frame_that_does_not_fit_its_parts_is_damage");
const OTHER_HISTORY: Test =
    HEAP.test("journal::tests::forged::records_of_another_history_do_not_follow");
const OTHER_NUMBER: Test =
    HEAP.test("journal::tests::forged::a_record_of_another_number_does_not_follow");
const FRAME_OTHERS: Test = WIRE.test("a_frame_of_another_pool_or_generation_is_refused");
const LOG_DAMAGE: Test =
    HEAP.test("journal::tests::recovery::damage_in_what_was_durable_is_an_error");
const LOST_HEADER: Test = HEAP.test("journal::tests::space::a_lost_header_of_a_log_file_is_damage");
const LOG_TORN: Test =
    HEAP.test("journal::tests::recovery::a_torn_record_before_a_whole_one_is_a_tail");
const BATCHES: Test = HEAP.test("journal::tests::batches::pages_of_two_batches_may_be_torn");
const BESIDE_BATCHES: Test = HEAP.test("journal::tests::batches::damage_beside_batches_is_told");
const COPIED: Test =
    HEAP.test("journal::tests::copied::the_log_that_a_copy_needs_is_not_used_again");
const NAMED_HOLE: Test =
    SIMULATOR.test("heap_crashes::shrink::pages_that_the_log_names_may_become_a_hole");
const BETWEEN: Test =
    HEAP_WHOLE.test("checkpoints::what_is_clean_between_dirty_pages_is_not_written");
const CIRCLES: Test = HEAP_WHOLE.test("circles::nobody_waits_in_a_circle");
const COPIES_STAY: Test =
    HEAP.test("memory::evictor::tests::what_is_copied_stays_until_its_batch_is_written");
const SHORTER: Test =
    HEAP.test("journal::tests::recovery::a_log_shorter_than_its_checkpoint_knew_is_damage");
const LOST_LOG: Test =
    HEAP.test("journal::tests::recovery::both_checkpoints_or_the_log_lost_is_damage");
const UNMAPPED: Test =
    SIMULATOR.test("heap_crashes::direct::what_is_not_mapped_is_durable_when_it_is_synced");
const FAILED_UNMAPPED: Test = SIMULATOR
    .test("heap_crashes::direct::a_failing_write_of_what_is_not_mapped_is_undone_or_poisons");
const DIRECT_CHECKPOINTS: Test =
    SIMULATOR.test("heap_crashes::direct::a_checkpoint_in_the_caches_is_not_trusted");
const DIRECT_HEADERS: Test = SIMULATOR.test("heap_crashes::direct::headers_of_many_generations");
const FAILING_READS: Test =
    SIMULATOR.test("heap_crashes::reads::a_read_that_fails_leaves_nothing_half_done");
const DURING_RECOVERY: Test = SIMULATOR.test("heap_crashes::crashes_during_recovery");
const KILLED: Test = SIMULATOR.test("heap_crashes::a_killed_process_loses_no_buffered_commit");
const CLOSING: Test =
    SIMULATOR.test("heap_crashes::closing::a_close_that_failed_is_not_built_upon");
const CLOSING_LONG: Test =
    SIMULATOR.test("heap_crashes::closing::a_log_is_not_trimmed_after_a_close_that_failed");
const LOST_CHECKPOINTS: Test =
    HEAP.test("journal::tests::recovery::lost_checkpoints_are_noticed_or_harmless");
const MIXTURES: Test = HEAP
    .test("journal::tests::mixtures::a_pool_beside_another_log_is_an_error_or_the_newest_state");
const OLDER_POOL: Test =
    HEAP.test("journal::tests::mixtures::a_closed_pool_of_an_earlier_moment_is_found");
const SHORTER_LOG: Test =
    HEAP.test("journal::tests::mixtures::a_log_that_is_made_shorter_keeps_its_newest_header");
const GIVEN_LOG: Test = HEAP
    .test("journal::tests::mixtures::a_log_that_is_given_back_has_a_newest_header_at_each_moment");
const LOST_CHECKPOINT: Test =
    SCENARIOS.test("repair::moments::nothing_older_is_opened_in_silence_and_what_follows_is_saved");
const LEFT_BLOCK: Test =
    SCENARIOS.test("repair::moments::a_block_that_nothing_leads_to_is_a_finding");
const FULL: Test = SIMULATOR.test("heap_crashes::a_full_disk_refuses_and_loses_nothing");
const FULL_LOG: Test =
    HEAP.test("journal::tests::space::a_full_disk_stops_large_records_and_not_small_ones");
const NO_GROWTH: Test = HEAP.test("journal::tests::space::a_pool_that_cannot_grow_stays_as_it_was");
const HOLE: Test =
    SIMULATOR.test("heap_crashes::shrink::a_hole_is_backed_before_it_is_used_or_refused");
const RESTORES: Test = HEAP_WHOLE.test("transactions::an_error_or_a_panic_restores_every_byte");
const COMMIT_WRITE: Test =
    HEAP.test("journal::tests::commit::a_failed_write_ends_writing_for_all_who_wait");
const FAILED_OTHERS: Test =
    SIMULATOR.test("heap_crashes::any_other_failing_operation_is_undone_or_poisons");
const DROPPED: Test = SIMULATOR.test("heap_crashes::bounded::crashes_while_pages_are_dropped");
const MISSED: Test = HEAP.test("memory::evictor::tests::nobody_sees_a_byte_change");
const RESERVED: Test =
    SIMULATOR.test("heap_crashes::bounded::a_reservation_that_is_filled_meanwhile_keeps_its_bytes");
const LENT: Test =
    SIMULATOR.test("heap_crashes::bounded::what_is_lent_keeps_bytes_that_no_record_has");
const FORK: Test = HEAP_WHOLE.test("fork::a_child_is_refused_and_the_parent_goes_on");
const RECOVERY_VERIFIES: Test =
    HEAP_WHOLE.test("damage_under_changes::recovery_verifies_what_no_checkpoint_was_at_work_on");
const STORE_VERIFIES: Test = HEAP_WHOLE
    .test("damage_under_changes::a_store_to_a_damaged_page_is_refused_and_nothing_else_ends");
const SHORT_COMMIT: Test = LSM_TREE.test("faults::values_are_refused_while_a_flush_finds_no_space");
const EVICTED: Test = HEAP_WHOLE.test("checkpoints::damage_below_an_evicted_page_is_told");
const UNPUBLISHED: Test = HEAP_WHOLE.test("checkpoints::what_nobody_published_is_not_in_the_file");
const FREE_PAGES: Test =
    HEAP_WHOLE.test("checkpoints::pages_that_became_free_are_not_copied_whoever_fills_them");
const RUNNING: Test =
    HEAP_WHOLE.test("checkpoints::a_checkpoint_takes_nothing_of_a_transaction_that_runs");
const TOLD: Test = HEAP_WHOLE.test("checkpoints::a_panic_of_who_is_told_of_a_commit_ends_writing");
const WAITING: Test =
    HEAP_WHOLE.test("checkpoints::a_checkpoint_that_waited_for_who_ended_writing_takes_nothing");
const PINNED: Test =
    HEAP_WHOLE.test("checkpoints::what_a_pin_looks_at_stays_readable_when_threads_reserve");
const ALLOCATOR: Test =
    HEAP.test("memory::copier::tests::a_checkpoint_waits_for_who_has_the_allocator");
const BEHIND: Test =
    HEAP.test("journal::tests::beside::a_caller_that_writes_waits_while_a_checkpoint_is_behind");
const BESIDE: Test = HEAP
    .test("journal::tests::beside::what_is_appended_beside_a_checkpoint_is_there_after_a_crash");
const LEFT_OUT: Test =
    HEAP.test("journal::tests::beside::a_checkpoint_passes_durable_records_only");
const FINISHED_TABLE: Test =
    HEAP_WHOLE.test("damage_under_changes::what_a_finished_table_names_may_not_be_torn");
const TORN_NAMED: Test =
    HEAP_WHOLE.test("damage_under_changes::a_torn_page_that_a_table_names_is_mended");
const TORN_EARLIER: Test =
    HEAP.test("journal::tests::recovery::a_pool_torn_by_an_earlier_version_is_made_whole");
const COPY_DAMAGE: Test =
    SIMULATOR.test("heap_crashes::backup::a_damaged_page_is_named_and_not_copied");
const FIRST_TOUCH: Test =
    HEAP_WHOLE.test("first_touch::a_flipped_bit_is_an_error_at_first_touch_when_asked_for");
const LSM_CRASHES: Test = LSM_TREE.test("crashes::crashes");
const LSM_THREADS: Test = LSM_TREE.test("threads::each_moment_is_seen_whole_beside_all_work");
const LSM_MODEL: Test = LSM_TREE.test("model::it_agrees_with_maps");
const EMPTIED: Test = LSM_TREE.test("emptied::what_is_removed_stays_away_at_each_moment");
const PASSED_OVER: Test =
    LSM_TREE.test("emptied::a_scan_passes_over_what_a_range_tombstone_covers_in_tables");
const BACKUP_LSM: Test =
    STORE_WHOLE.test("backup_lsm::files_that_are_let_go_while_they_are_copied_are_in_the_copy");
const ORPHANS: Test =
    LSM_TREE.test("orphans::orphans_of_this_store_go_and_their_numbers_with_them");
const FRAME_BITS: Test = WIRE.test("every_flipped_bit_is_found");
const LOOK_ALIKE: Test =
    HEAP.test("journal::tests::forged::a_torn_record_that_looks_like_frames_is_a_tail");
const FRAME_PADDING: Test = WIRE.test("padding_must_be_zero");
const HEADERS: Test = HEAP
    .test("journal::tests::recovery::every_flipped_bit_of_the_header_and_other_files_are_errors");
const LSM_CHANGED: Test =
    LSM_TREE.test("heap_damage::a_changed_byte_is_an_error_or_changes_nothing");
const LSM_FLUSH_PROVES: Test = LSM_TREE.test("heap_damage::a_flush_proves_what_it_writes");
const TABLE_BITS: Test = LSM_TABLES.test("damage::a_flipped_bit_of_a_table_never_shows_other_data");
const FILES_OF_OTHERS: Test = LSM_TABLES.test("damage::files_of_others_and_none_are_refused");
const BLOB_BITS: Test =
    LSM_TABLES.test("damage::a_flipped_bit_of_a_blob_file_never_shows_another_value");
const BLOB_CUT: Test = LSM_TABLES.test("damage::a_blob_file_that_is_cut_or_longer_is_refused");
const STORE_HEAD: Test =
    STORE.test("common::catalogue::tests::a_head_that_is_none_or_of_another_version_is_refused");
const BOTH_HALVES: Test =
    STORE_WHOLE.test("kinds::both_halves_are_made_renamed_exchanged_and_dropped_as_one");
const KIND_WITHIN: Test =
    STORE.test("expiring::tests::the_kind_is_asked_within_the_commit_that_drops");
const TYPES_DAMAGED: Test =
    STORE.test("tests::kinds::types_that_say_nothing_are_damage_and_keep_nobody_from_the_bytes");
const OTHER_TYPES: Test = STORE_WHOLE.test("types::other_types_are_refused_and_bytes_never");
const TYPES_GO: Test = STORE_WHOLE.test("types::types_go_where_the_keyspace_goes");
const OPTIONS_GO: Test =
    STORE_WHOLE.test("lsm_options::options_stay_whatever_happens_to_the_keyspace");
const OPTIONS_FORMAT: Test =
    STORE.test("tests::options::the_head_has_a_higher_format_from_the_first_options_on");
const LEVELS_COMPRESSED: Test =
    LSM_UNITS.test("compact::tests::pick::a_table_moves_only_to_a_level_of_its_compression");
const ONLY_LOOKED_AT: Test = STORE_WHOLE.test("kinds::what_is_stored_is_only_looked_at");
const RENAMED: Test = STORE_WHOLE.test("rename::a_renamed_keyspace_is_the_same_to_all_who_have_it");
const COPY_CRASHES: Test =
    SIMULATOR.test("heap_crashes::backup::a_copy_is_some_commit_whole_or_nothing");
const SYNC_BESIDE: Test = LSM_TREE.test("faults::a_sync_that_fails_beside_a_merge_fails_the_merge");
const BACKED_UP: Test = STORE.test("tests::renames::a_backup_has_its_name_whole_or_not_at_all");
const BACKUP_FAILS: Test =
    STORE.test("tests::renames::a_backup_that_fails_says_so_and_leaves_no_name");
const CHAIN: Test =
    STORE_WHOLE.test("backup_since::every_moment_of_a_chain_can_be_read_and_restored");
const CHAIN_UNCHANGED: Test = STORE_WHOLE.test("backup_since::what_did_not_change_takes_no_space");
const SAME_NUMBER: Test =
    STORE_WHOLE.test("backup_since::a_file_of_the_same_number_and_length_is_compared");
const CHAIN_FOREIGN: Test =
    STORE_WHOLE.test("backup_since::links::a_link_of_another_chain_is_refused");
const CHAIN_READ: Test = STORE_WHOLE.test("backup_since::links::a_link_that_is_read_stays_one");
const CHAIN_DAMAGED: Test = STORE_WHOLE.test("backup_since::damage::every_damaged_byte_is_told");
const FULL_DAMAGED: Test = STORE_WHOLE.test("backup_since::damage::a_damaged_full_backup_is_told");
const INCREMENT_CRASHES: Test =
    SCENARIOS.test("increment_crashes::a_crash_leaves_an_increment_whole_or_not_there");
const RUNS: Test =
    STORE.test("increment::runs::tests::runs_of_a_chain_are_those_of_a_map_of_blocks");
const MADE_SMALLER: Test =
    STORE.test("tests::renames::a_store_made_smaller_takes_its_place_in_one_step");
const COMPACT_FAILS: Test =
    STORE.test("tests::renames::a_store_that_could_not_be_made_smaller_is_as_it_was");
const REPAIRED: Test = STORE.test("tests::renames::a_repaired_store_takes_its_place_in_one_step");
const REPAIR_FAILS: Test =
    STORE.test("tests::renames::a_store_that_could_not_be_repaired_is_as_it_was");
const BY_STEPS: Test = STORE.test(
    "tests::renames::\
     a_store_made_smaller_takes_its_place_in_three_steps_where_there_is_no_other_way",
);
const REPAIRED_BY_STEPS: Test = STORE.test(
    "tests::renames::\
     a_repaired_store_takes_its_place_in_three_steps_where_there_is_no_other_way",
);
const STEPS_FAIL: Test =
    STORE.test("tests::renames::a_store_that_could_not_be_made_smaller_by_steps_is_as_it_was");
const STEPS_KILLED: Test =
    STORE.test("tests::renames::what_is_committed_after_a_replacement_was_cut_short_is_kept");
const CHANGED_MEANWHILE: Test =
    STORE.test("tests::renames::a_store_that_another_process_changed_is_not_replaced");
const DIFFERENCE: Test =
    STORE.test("increment::difference::tests::a_pool_file_is_what_was_written_to_it");
const SHELVES: Test =
    STORE.test("tests::renames::directories_of_trees_are_durable_before_a_tree_is");

const LENT_BLOCK: Test = HEAP_WHOLE.test("lent::a_lent_block_cannot_be_overwritten");
const SAVEPOINTS: Test =
    HEAP_WHOLE.test("savepoints::each_savepoint_takes_back_exactly_what_it_did");
const GIVEN_BACK: Test = HEAP_WHOLE.test("savepoints::what_was_given_back_is_not_put_back");
const PUT_BACK: Test = HEAP_WHOLE.test("ranges::are_put_back_and_recorded_byte_by_byte");
const SNAPSHOTS: Test = SCENARIOS.test("engines::snapshots::see_one_moment::in_memory");
const LET_IN: Test =
    STORE_WHOLE.test("pieces::who_reads_beside_large_commits_sees_all_of_them_or_nothing");
const MAP_CRASHES: Test = SCENARIOS.test("map_crashes::bplus::changes");

const HELD_BACK: Test =
    HEAP.test("journal::tests::holds::what_is_held_back_is_there_after_a_crash");
const SERIALIZABLE: Test =
    STORE.test("tests::serializability::what_each_transaction_read_is_there_at_its_commit");
const SHARED_RECORD: Test = HEAP.test("actions::tests::all_that_wait_share_a_record");
const OWN_OUTCOMES: Test =
    HEAP.test("actions::tests::what_cannot_be_done_is_told_to_who_asked_and_hurts_nobody");
const COMBINED_RESULTS: Test =
    HEAP.test("combined::tests::all_that_wait_share_a_record_and_each_has_its_result");
const COMBINED_ERRORS: Test =
    HEAP.test("combined::tests::an_error_is_told_to_its_owner_and_hurts_nobody");
const COMBINED_UNWRITTEN: Test =
    HEAP.test("combined::tests::who_waits_for_what_is_not_written_is_told");
const NOT_WRITTEN: Test = HEAP.test("actions::tests::who_waits_for_what_is_not_written_is_told");

const VALUES_PREPARED: Test =
    STORE.test("engine::value_codec::tests::what_was_prepared_counts_for_its_codec_alone");
const VALUES_DICTIONARY: Test =
    STORE.test("engine::value_codec::tests::a_dictionary_is_needed_to_decode_all");
const VALUES_COPIED: Test = STORE_WHOLE.test("value_compression::a_dictionary_has_one_owner");
const VALUES_OPTIONS: Test =
    STORE_WHOLE.test("value_compression::an_option_is_for_a_new_keyspace_or_for_new_values");
const VALUES_MODEL: Test =
    STORE_WHOLE.test("value_compression_random::random_work_agrees_with_a_model");

const NEW_BYTES: Test = MEDIUM.test("encrypted::files_show_nothing_of_what_they_hold");
const NONCES: Test = MEDIUM.test("encrypted::no_nonce_is_used_twice");
const NO_HEADS: Test = MEDIUM.test("encrypted::files_without_heads_are_not_the_same_file");
const ENCRYPTED_HOLE: Test =
    MEDIUM.test("encrypted::a_hole_holds_nothing_of_what_was_written_last");
const TORN_BESIDE: Test =
    MEDIUM.test("encrypted::torn::what_another_process_is_writing_is_read_again");
const TORN_WITHIN: Test =
    MEDIUM.test("encrypted::torn::what_another_thread_is_writing_is_read_again");
const MOVED_UNITS: Test =
    MEDIUM.test("encrypted::a_sector_that_is_moved_or_of_another_file_is_not_shown");
const CHANGED_UNITS: Test = MEDIUM.test("encrypted::nothing_that_was_changed_is_shown");
const AS_PLAIN: Test = MEDIUM.test("encrypted::a_file_is_as_if_it_were_plain");
const KEY_RECORDS: Test = MEDIUM.test("encrypted::either_record_of_the_key_file_opens_the_store");
const KEY_FILE: Test = MEDIUM.test("encrypted::a_key_file_is_not_written_over");
const KEY_CUTS: Test =
    STORE_WHOLE.test("encryption::a_power_cut_leaves_one_key_that_opens_the_store");
const OTHER_KEYS: Test =
    STORE_WHOLE.test("encryption::a_store_becomes_encrypted_gets_other_keys_and_becomes_plain");
const KEY_FAULTS: Test =
    STORE_WHOLE.test("encryption::a_key_file_whose_name_was_not_synced_is_not_built_upon");
const LINKED_KEYS: Test = MEDIUM.test("encrypted::a_file_is_linked_to_where_its_key_opens_it");
const SAVEPOINT_KEYS: Test = STORE_WHOLE.test("savepoints::savepoints_of_encrypted_stores");

const FOLDED: Test = LSM_UNITS.test("compact::fold::tests::operands_become_one_or_a_value");
const CUTS: Test = LSM_UNITS
    .test("compact::fold::tests::nothing_is_folded_across_what_a_newer_operand_goes_on_below");
const UNMERGED: Test =
    LSM_UNITS.test("compact::fold::tests::what_cannot_be_merged_stays_with_what_is_below");
const MERGED_MODEL: Test = LSM_TREE.test("model::merged_values_agree_with_maps");
const MERGED_ENGINES: Test = STORE_WHOLE.test("merge::operands_agree_with_a_model_in_every_engine");
const MERGE_CHECKS: Test = STORE_WHOLE.test("merge::operands_are_checked_before_they_are_written");
const TWO_OPERATORS: Test =
    STORE_WHOLE.test("merge::of_two_operators_that_are_given_at_once_one_is_refused");
const MERGE_LARGE: Test = LSM_TREE.test("costs::a_large_value_below_an_operand_is_written_once");
const MERGE_RECLAIMS: Test = LSM_TREE.test("costs::a_rewrite_for_a_full_device_folds_nothing");
const MERGE_COSTS: Test = LSM_TREE.test("costs::a_merge_reads_no_file_and_chains_stay_short");

const EACH_SAVEPOINT: Test = STORE_WHOLE.test("savepoints::each_savepoint_shows_its_moment");
const SAVEPOINT_READ: Test =
    STORE_WHOLE.test("savepoints::a_savepoint_is_read_while_its_store_is_written");
const SAVEPOINT_CRASHES: Test =
    SCENARIOS.test("savepoint_crashes::a_crash_leaves_each_savepoint_at_its_commit");
const SAVEPOINT_FAILURES: Test = SCENARIOS
    .test("savepoint_crashes::a_power_cut_behind_a_failure_leaves_each_savepoint_at_its_commit");
const GOING_BACK_FAULTS: Test =
    SCENARIOS.test("savepoint_crashes::going_back_on_disks_that_fail_and_fill_up");
const SAVEPOINT_DEATHS: Test = SCENARIOS
    .test("savepoint_crashes::a_power_cut_behind_a_death_leaves_each_savepoint_at_its_commit");

const FILTERED: Test = LSM_TREE.test("filters::a_filtered_compaction_is_whole_or_nothing");
const FILTER_ASKED: Test = LSM_UNITS
    .test("compaction_filter::tests::only_the_newest_version_that_no_snapshot_sees_is_asked_about");
const FILTER_PAUSES: Test = LSM_UNITS.test(
    "compaction_filter::tests::\
     after_a_result_that_could_not_be_used_there_are_compactions_without_a_filter",
);
const FILTER_MEANWHILE: Test =
    STORE_WHOLE.test("compaction_filter::a_snapshot_that_is_opened_meanwhile_keeps_what_it_sees");
const FILTER_BLOBS: Test = STORE_WHOLE.test("compaction_filter::blobs_panics_and_merge_operators");
const FILTER_EXPIRED: Test =
    STORE_WHOLE.test("compaction_filter::compactions_drop_expired_entries");
const FILTER_STORED: Test = STORE_WHOLE
    .test("compaction_filter::filters_change_nothing_that_the_library_stores_with_values");

const MULTIMAP_MODEL: Test = STORE.test("multimap::tests::random_bytes_are_sorted_sets");
const MULTIMAP_LENGTH: Test =
    STORE.test("multimap::tests::a_pair_has_as_many_bytes_as_a_key_and_an_error_says_so");
const MULTIMAP_TYPES: Test =
    STORE_WHOLE.test("multimaps::a_handle_of_bytes_does_not_write_what_has_other_types");

const SWEEP_STEPS: Test = STORE
    .test("expiring::sweep_tests::steps_are_bounded_and_remove_what_has_expired_and_nothing_else");
const SWEEP_DEADLINES: Test = STORE.test(
    "expiring::sweep_tests::\
     an_entry_that_got_another_deadline_stays_and_rows_without_entries_go",
);
const SWEEP_LOOKS: Test = STORE
    .test("expiring::sweep_tests::an_entry_that_gets_another_deadline_between_two_looks_stays");
const PUT_AGAIN: Test = STORE.test("cache::tests::what_is_put_again_behind_a_sweep_counts");
const SWEPT_CACHE: Test = STORE.test("cache::tests::swept_entries_count_no_more");

/// Every fault that can be planted.
pub(crate) const PLANTED: &[Mutant] = &[
    mutant("R1.applies-before-the-log-is-durable", &[SMALL]),
    mutant("R1.position-before-the-pool-is-durable", &[SMALL, LARGE]),
    mutant("R1.reuses-the-log-before-the-position", &[BEYOND]),
    mutant("R1.syncs-the-newest-file-only", &[LARGE, UNSYNCED]),
    mutant("R1.goes-on-after-a-failed-sync", &[COMMIT_SYNC, FAILED_SYNC]),
    mutant("R1.recovery-goes-on-after-a-failed-sync", &[FAILED_RECOVERY]),
    mutant("R1.what-memory-is-written-to-by-calls-is-not-synced", &[UNMAPPED]),
    mutant("R1.what-changes-nothing-waits-for-nothing", &[NOTHING_CHANGED]),
    mutant("R1.a-checkpoint-passes-what-is-held-back", &[HELD_BACK]),
    mutant("R1.a-place-is-looked-for-behind-the-last-hold", &[HELD_BACK]),
    mutant("R2.counts-before-its-commit-frame", &[LARGE]),
    mutant("R2.commit-covers-no-parts", &[FORGED_PARTS]),
    mutant("R2.frames-need-no-chain", &[OTHER_HISTORY]),
    mutant("R2.frames-of-any-record", &[OTHER_NUMBER]),
    mutant("R2.generations-are-alike", &[FRAME_OTHERS, LARGE, SMALL]),
    mutant("R2.logs-of-all-pools-are-alike", &[FRAME_OTHERS]),
    mutant("R3.ends-without-looking-on", &[LOG_DAMAGE, LOST_HEADER]),
    mutant("R3.every-later-record-is-proof", &[LOG_TORN, UNSYNCED]),
    mutant("R3.forgets-what-the-checkpoint-knew", &[SHORTER]),
    mutant("R3.a-log-may-be-missing", &[LOST_LOG]),
    mutant("R3.files-without-header-are-passed-over", &[LOST_HEADER]),
    mutant("R3.the-log-may-be-of-an-earlier-moment", &[MIXTURES]),
    mutant("R4.trims-beside-a-checkpoint-in-the-cache", &[CLOSING_LONG]),
    mutant("R4.replays-what-is-not-durable", &[DURING_RECOVERY, KILLED]),
    mutant("R4.trusts-the-page-cache", &[FAILED_SYNC, DURING_RECOVERY]),
    mutant("R4.goes-on-in-the-same-generation", &[SMALL, LARGE, LOG_TORN]),
    mutant("R4.appends-before-the-generation-is-durable", &[SMALL]),
    mutant("R4.goes-on-from-a-checkpoint-in-the-cache", &[CLOSING]),
    mutant("R4.trusts-a-checkpoint-in-the-cache", &[DIRECT_CHECKPOINTS]),
    mutant("R4.a-header-over-a-header", &[DIRECT_HEADERS]),
    mutant("R4.later-generations-are-forgotten", &[LOST_CHECKPOINTS]),
    mutant("R4.readers-pass-over-findings", &[LOST_CHECKPOINT]),
    mutant("R4.a-repair-passes-over-findings", &[LOST_CHECKPOINT]),
    mutant("R4.generations-may-be-skipped", &[OLDER_POOL]),
    mutant("R4.a-file-that-went-on-is-taken-for-a-new-one", &[SHORTER_LOG]),
    mutant("R4.removes-the-newest-header", &[SHORTER_LOG]),
    mutant("R4.gives-the-newest-header-back", &[GIVEN_LOG]),
    mutant("R4.gaps-in-the-log-look-like-its-end", &[GIVEN_LOG]),
    mutant("R5.log-files-have-no-space", &[FULL, FULL_LOG]),
    mutant("R5.a-pool-has-no-space", &[FULL, NO_GROWTH]),
    mutant("R5.holes-are-used-without-space", &[HOLE]),
    mutant("R5.a-refused-commit-stays", &[RESTORES, FULL]),
    mutant("R5.what-was-saved-last-is-put-back-last", &[PUT_BACK]),
    mutant("R5.goes-on-after-a-failed-write", &[COMMIT_WRITE, FAILED_OTHERS]),
    mutant("R5.goes-on-after-a-failed-write-to-memory", &[FAILED_UNMAPPED]),
    mutant("R5.a-flush-whose-commit-finds-no-space-refuses-nothing", &[SHORT_COMMIT]),
    mutant("R6.stores-are-not-marked", &[DROPPED, MISSED]),
    mutant("R6.drops-what-is-reserved", &[MISSED, RESERVED]),
    mutant("R6.drops-what-is-lent", &[LENT]),
    mutant("R6.drops-what-no-sync-covers", &[DROPPED, MISSED]),
    mutant("R6.copies-over-what-was-stored", &[REOPENED]),
    mutant("R6.copies-are-not-stamped", &[COPIES_STAY]),
    mutant("R6.a-child-goes-on", &[FORK]),
    mutant("R7.recovery-verifies-no-page", &[RECOVERY_VERIFIES]),
    mutant("R7.torn-pages-are-damage", &[TORN_EARLIER]),
    mutant("R7.a-repair-trusts-checksums", &[LEFT_BLOCK]),
    mutant("R7.check-and-copy-verify-no-page", &[COPY_DAMAGE]),
    mutant("R7.no-page-is-verified-when-first-loaded", &[FIRST_TOUCH]),
    mutant("R7.sums-are-not-kept", &[SMALL]),
    mutant("R9.files-go-before-their-commit-is-durable", &[LSM_CRASHES]),
    mutant("R9.files-go-beside-a-reader", &[LSM_THREADS, LSM_MODEL]),
    mutant("R9.files-go-beside-a-backup", &[BACKUP_LSM]),
    mutant("R9.orphans-of-others-go", &[ORPHANS]),
    mutant("R9.numbers-are-used-again", &[ORPHANS]),
    mutant("R9.numbers-of-orphans-are-used-again", &[ORPHANS]),
    mutant("R9.memtables-flush-in-any-order", &[LSM_MODEL, LSM_CRASHES]),
    mutant("R9.ranges-forget-what-snapshots-see", &[EMPTIED]),
    mutant("R9.gaps-hide-what-is-written", &[EMPTIED]),
    mutant("R9.scans-pass-over-what-is-newer", &[PASSED_OVER, EMPTIED]),
    mutant("R9.an-undone-transaction-leaves-entries", &[LSM_MODEL, LSM_CRASHES]),
    mutant("checksum.log-frame", &[FRAME_BITS, LOG_DAMAGE]),
    mutant("checksum.log-frame-beyond", &[LOOK_ALIKE]),
    mutant("checksum.log-padding", &[FRAME_PADDING]),
    mutant("checksum.log-header", &[LOST_LOG]),
    mutant("checksum.checkpoint", &[LOST_CHECKPOINTS, HEADERS, SMALL]),
    mutant("checksum.pool-header", &[HEADERS]),
    mutant("checksum.page", &[STORE_VERIFIES]),
    mutant("checksum.tree-head", &[LSM_CHANGED]),
    mutant("checksum.manifest", &[LSM_CHANGED]),
    mutant("checksum.memtable-record", &[LSM_CHANGED]),
    mutant("checksum.memtable-value", &[LSM_FLUSH_PROVES]),
    mutant("checksum.memtable-end", &[LSM_CHANGED]),
    mutant("checksum.memtable-buffer", &[LSM_CHANGED]),
    mutant("checksum.table-header", &[TABLE_BITS, FILES_OF_OTHERS]),
    mutant("checksum.table-block", &[TABLE_BITS]),
    mutant("checksum.table-index", &[TABLE_BITS]),
    mutant("checksum.table-filter", &[TABLE_BITS]),
    mutant("checksum.table-ranges", &[TABLE_BITS]),
    mutant("checksum.table-top", &[TABLE_BITS]),
    mutant("checksum.table-meta", &[TABLE_BITS]),
    mutant("checksum.table-footer", &[TABLE_BITS]),
    mutant("checksum.blob-record", &[BLOB_BITS]),
    mutant("checksum.blob-footer", &[BLOB_BITS, BLOB_CUT]),
    mutant("checksum.store-head", &[STORE_HEAD]),
    mutant("checksum.store-format", &[STORE_HEAD]),
    mutant("checksum.types", &[TYPES_DAMAGED]),
    mutant("rename.a-keyspace-keeps-its-old-name", &[RENAMED]),
    mutant("expiring.the-deadlines-come-later", &[BOTH_HALVES]),
    mutant("expiring.one-half-keeps-its-name", &[BOTH_HALVES]),
    mutant("expiring.deadlines-are-not-dropped", &[BOTH_HALVES]),
    mutant("expiring.any-kind-is-dropped", &[KIND_WITHIN]),
    mutant("types.any-are-taken", &[OTHER_TYPES]),
    mutant("types.another-tree-has-none", &[TYPES_GO]),
    mutant("options.a-copy-has-none", &[OPTIONS_GO]),
    mutant("options.the-head-keeps-its-format", &[OPTIONS_FORMAT]),
    mutant("options.tables-move-to-other-compressions", &[LEVELS_COMPRESSED]),
    mutant("values.what-was-prepared-is-for-any-codec", &[VALUES_PREPARED]),
    mutant("values.move-without-their-dictionary", &[VALUES_DICTIONARY]),
    mutant("values.a-dictionary-has-two-owners", &[VALUES_COPIED]),
    mutant("values.handles-keep-their-codec", &[VALUES_OPTIONS, VALUES_MODEL]),
    mutant("expiring.everybody-writes-what-is-lent", &[ONLY_LOOKED_AT]),
    mutant("rename.a-pool-before-it-is-durable", &[SMALL]),
    mutant("rename.a-copy-before-it-is-durable", &[COPY_CRASHES]),
    mutant("rename.a-table-before-it-is-durable", &[LSM_CRASHES]),
    mutant("rename.names-lost-beside-others-are-durable", &[SYNC_BESIDE]),
    mutant("rename.a-finished-store-is-not-synced", &[BACKED_UP]),
    mutant("rename.a-doubtful-name-stays", &[BACKUP_FAILS]),
    mutant("rename.a-copied-table-is-not-synced", &[BACKED_UP]),
    mutant("rename.copied-tables-have-no-durable-names", &[BACKED_UP]),
    mutant("rename.copied-shelves-have-no-durable-names", &[BACKED_UP]),
    mutant("rename.a-successor-is-not-synced", &[MADE_SMALLER, REPAIRED]),
    mutant("rename.a-doubtful-successor-stays", &[COMPACT_FAILS, REPAIR_FAILS]),
    mutant("rename.a-step-is-not-synced", &[BY_STEPS, REPAIRED_BY_STEPS]),
    mutant("rename.a-doubtful-step-stays", &[STEPS_FAIL]),
    mutant("rename.what-a-killed-process-renamed-is-durable", &[STEPS_KILLED]),
    mutant("rename.what-a-killed-process-exchanged-is-durable", &[STEPS_KILLED]),
    mutant("rename.a-closed-store-is-nobody-elses", &[CHANGED_MEANWHILE]),
    mutant("rename.a-repaired-store-before-it-is-durable", &[REPAIRED]),
    mutant("rename.shelves-have-no-durable-names", &[SHELVES]),
    mutant("rename.a-left-shelf-keeps-its-name", &[SHELVES]),
    mutant("increment.what-was-not-written-is-the-parents", &[CHAIN]),
    mutant("increment.files-of-one-number-are-the-same", &[SAME_NUMBER]),
    mutant("increment.any-link-is-taken", &[CHAIN_FOREIGN]),
    mutant("increment.the-full-backup-is-not-locked", &[CHAIN_READ]),
    mutant("increment.a-block-is-not-verified", &[CHAIN_DAMAGED]),
    mutant("increment.a-page-of-the-full-backup-is-not-verified", &[FULL_DAMAGED]),
    mutant("increment.what-moves-keeps-its-checksum", &[CHAIN_UNCHANGED, CHAIN]),
    mutant("increment.the-file-is-not-synced", &[INCREMENT_CRASHES]),
    mutant("increment.what-was-cut-off-comes-back", &[RUNS]),
    mutant("increment.the-end-of-a-block-is-lost", &[DIFFERENCE]),
    mutant("S1.what-was-given-back-is-put-back", &[GIVEN_BACK]),
    mutant("S2.an-overwrite-changes-what-is-lent", &[LENT_BLOCK]),
    mutant("S2.snapshots-see-an-overwrite", &[SNAPSHOTS]),
    mutant("S2.who-is-let-in-sees-an-overwrite", &[LET_IN]),
    mutant("S2.an-overwrite-is-not-put-back", &[SAVEPOINTS]),
    mutant("S2.an-overwrite-is-in-no-record", &[MAP_CRASHES, SAVEPOINTS]),
    mutant("S.transactions-read-ranges-unseen", &[SERIALIZABLE]),
    mutant("C1.begins-outside-the-turn", &[RUNNING]),
    mutant("C1.copies-without-the-allocator", &[ALLOCATOR]),
    mutant("C2.a-panic-behind-the-append-is-undone", &[TOLD]),
    mutant("C2.a-checkpoint-follows-what-ended-writing", &[WAITING]),
    mutant("C3.copies-what-is-reserved", &[UNPUBLISHED]),
    mutant("C3.writes-the-flag-of-open-runs", &[UNPUBLISHED]),
    mutant("C3.free-pages-stay-dirty", &[FREE_PAGES]),
    mutant("C3.a-run-is-opened-over-retired-blocks", &[PINNED]),
    mutant("C4.what-is-left-out-waits-for-nothing", &[LEFT_OUT]),
    mutant("C6.runs-go-over-clean-pages", &[BETWEEN]),
    mutant("C7.stores-verify-no-page", &[STORE_VERIFIES]),
    mutant("C7.evicted-pages-stay-verified", &[EVICTED]),
    mutant("C7.half-of-a-run-is-stored", &[FAILING_READS]),
    mutant("C8.room-is-waited-for-in-the-turn", &[CIRCLES]),
    mutant("C8.shrinking-takes-the-checkpoint-last", &[CIRCLES]),
    mutant("C9.publishes-the-end", &[BESIDE]),
    mutant("C9.pins-are-forgotten", &[COPIED]),
    mutant("C10.a-put-waits-for-all-of-it", &[BEHIND]),
    mutant("R3.tables-prove-nothing", &[SHORTER]),
    mutant("C5.pages-before-their-names-are-durable", &[DURING_RECOVERY]),
    mutant("C5.only-the-newest-table-counts", &[BATCHES]),
    mutant("C5.a-torn-page-is-damage", &[TORN_NAMED]),
    mutant("C5.whatever-the-tail-names-may-be-torn", &[BESIDE_BATCHES]),
    mutant("C5.a-hole-in-the-tail-of-its-pages", &[NAMED_HOLE]),
    mutant("C5.a-name-of-a-finished-checkpoint-counts", &[FINISHED_TABLE]),
    mutant("C1.a-request-is-acknowledged-without-a-record", &[NOT_WRITTEN]),
    mutant("C1.what-was-taken-along-is-done-again", &[SHARED_RECORD]),
    mutant("C1.a-block-is-freed-twice-at-once", &[OWN_OUTCOMES]),
    mutant("C1.what-shares-a-record-is-done-before-it-is-appended", &[COMBINED_UNWRITTEN]),
    mutant("C1.an-error-of-one-change-reaches-the-others", &[COMBINED_ERRORS]),
    mutant("C1.what-was-changed-for-another-is-changed-again", &[COMBINED_RESULTS]),
    mutant("readers.what-they-need-is-not-kept", &[READERS_MOMENT]),
    mutant("readers.old-pages-are-not-taken", &[READERS_MOMENT]),
    mutant("readers.one-that-moves-says-nothing", &[BATCH_BESIDE_REFRESH]),
    mutant("readers.overwritten-pages-stay", &[READER_FOLLOWS]),
    mutant("readers.slices-change-under-their-owners", &[READER_IN_USE]),
    mutant("readers.a-new-one-is-taken-for-one-that-knows", &[READER_COPIES]),
    mutant("readers.copies-go-that-one-needs", &[READER_COPIES]),
    mutant("encryption.a-doubtful-key-file-stays", &[KEY_FAULTS]),
    mutant("encryption.copies-have-the-old-key", &[OTHER_KEYS]),
    mutant("encryption.nonces-repeat", &[NEW_BYTES]),
    mutant("encryption.each-opening-begins-with-the-same-nonce", &[NONCES]),
    mutant("encryption.units-may-be-moved", &[MOVED_UNITS]),
    mutant("encryption.units-are-of-any-file", &[MOVED_UNITS]),
    mutant("encryption.lengths-are-not-authenticated", &[CHANGED_UNITS]),
    mutant("encryption.lost-bytes-look-like-holes", &[CHANGED_UNITS]),
    mutant("encryption.each-handle-knows-another-end", &[AS_PLAIN]),
    mutant("encryption.files-without-heads-are-one", &[NO_HEADS]),
    mutant("encryption.a-hole-has-what-was-written-last", &[ENCRYPTED_HOLE]),
    mutant("encryption.what-was-cut-off-comes-back", &[AS_PLAIN]),
    mutant("encryption.what-another-process-writes-is-damage", &[TORN_BESIDE]),
    mutant("encryption.what-another-thread-writes-is-damage", &[TORN_WITHIN]),
    mutant("encryption.a-key-file-before-it-is-durable", &[KEY_CUTS]),
    mutant("encryption.a-replaced-key-is-not-durable", &[KEY_CUTS]),
    mutant("encryption.one-record-of-the-key-is-read", &[KEY_RECORDS]),
    mutant("encryption.a-key-file-is-written-over", &[KEY_FILE]),
    mutant("encryption.files-are-linked-whatever-their-key", &[LINKED_KEYS]),
    mutant("encryption.copies-have-data-keys-of-their-own", &[OTHER_KEYS]),
    mutant("encryption.savepoints-have-the-old-key", &[SAVEPOINT_KEYS]),
    mutant("merge.neighbours-change-places", &[FOLDED]),
    mutant("merge.folds-across-what-others-go-on-below", &[CUTS]),
    mutant("merge.folds-up-to-what-others-go-on-below", &[CUTS]),
    mutant("merge.a-place-to-go-on-is-not-noted", &[MERGED_MODEL]),
    mutant("merge.what-cannot-be-merged-loses-its-value", &[UNMERGED]),
    mutant("merge.the-first-that-an-operand-stands-for-counts-again", &[MERGED_MODEL]),
    mutant("merge.readers-pass-over-what-comes-next", &[MERGED_MODEL]),
    mutant("merge.newer-operands-hide-values-from-a-flush", &[MERGED_MODEL]),
    mutant("merge.operands-hide-values-on-a-full-device", &[MERGED_MODEL]),
    mutant("merge.a-full-device-folds", &[MERGE_RECLAIMS]),
    mutant("merge.absorbs-what-a-range-removed", &[MERGED_MODEL]),
    mutant("merge.absorbs-whatever-its-length", &[MERGE_COSTS]),
    mutant("merge.large-values-are-written-on-each-level", &[MERGE_LARGE]),
    mutant("merge.a-folded-blob-counts-as-used", &[MERGED_MODEL]),
    mutant("merge.a-conversion-forgets-the-operator", &[MERGED_ENGINES]),
    mutant("merge.any-operator-is-taken", &[MERGE_CHECKS]),
    mutant("merge.an-operator-given-meanwhile-is-replaced", &[TWO_OPERATORS]),
    mutant("merge.a-transaction-keeps-its-last-operand", &[MERGED_ENGINES]),
    mutant("savepoints.pages-are-not-kept", &[EACH_SAVEPOINT]),
    mutant("savepoints.pages-are-kept-once-for-all", &[EACH_SAVEPOINT]),
    mutant("savepoints.the-newest-copy-is-read", &[EACH_SAVEPOINT]),
    mutant("savepoints.a-copy-before-it-is-durable", &[SAVEPOINT_CRASHES]),
    mutant("savepoints.a-savepoint-before-it-is-durable", &[SAVEPOINT_CRASHES]),
    mutant("savepoints.names-are-not-durable", &[SAVEPOINT_CRASHES]),
    mutant("savepoints.a-doubtful-name-stays", &[SAVEPOINT_FAILURES]),
    mutant("savepoints.names-that-are-read-are-durable", &[SAVEPOINT_FAILURES]),
    mutant("savepoints.a-name-that-was-read-is-only-synced", &[SAVEPOINT_FAILURES]),
    mutant("savepoints.a-deletion-is-not-durable", &[SAVEPOINT_CRASHES]),
    mutant("savepoints.a-doubtful-deletion-stays", &[SAVEPOINT_FAILURES]),
    mutant("savepoints.a-loss-is-not-durable", &[SAVEPOINT_FAILURES]),
    mutant("savepoints.a-doubtful-loss-stays", &[SAVEPOINT_FAILURES]),
    mutant("savepoints.a-deletion-that-is-found-is-durable", &[SAVEPOINT_DEATHS]),
    mutant("savepoints.an-open-one-is-deleted", &[SAVEPOINT_READ]),
    mutant("savepoints.free-pages-are-cut-off", &[EACH_SAVEPOINT]),
    mutant("savepoints.going-back-forgets-what-is-later", &[EACH_SAVEPOINT]),
    mutant("savepoints.going-back-is-not-durable", &[GOING_BACK_FAULTS]),
    mutant("savepoints.a-doubtful-way-back-stays", &[GOING_BACK_FAULTS]),
    mutant("savepoints.files-that-they-need-go-when-opened", &[EACH_SAVEPOINT]),
    mutant("filters.what-goes-uncovers-what-is-older", &[FILTERED]),
    mutant("filters.older-versions-are-asked-about", &[FILTER_ASKED]),
    mutant("filters.what-the-newest-snapshot-sees-is-asked-about", &[FILTER_ASKED]),
    mutant("filters.a-snapshot-opened-meanwhile-loses-what-it-sees", &[FILTER_MEANWHILE]),
    mutant("filters.a-snapshot-of-the-very-commit-loses-it", &[FILTER_MEANWHILE]),
    mutant("filters.a-blob-that-goes-counts-as-used", &[FILTER_BLOBS]),
    mutant("filters.what-lies-below-operands-is-asked-about", &[FILTER_BLOBS]),
    mutant("filters.a-result-that-was-not-used-is-made-again-at-once", &[FILTER_PAUSES]),
    mutant("filters.deadlines-come-a-moment-early", &[FILTER_EXPIRED]),
    mutant("filters.a-change-ends-the-deadline", &[FILTER_STORED]),
    mutant("multimaps.values-run-into-the-next-key", &[MULTIMAP_MODEL]),
    mutant("multimaps.a-range-has-the-key-that-it-excludes", &[MULTIMAP_MODEL]),
    mutant("multimaps.a-range-lacks-its-last-key", &[MULTIMAP_MODEL]),
    mutant("multimaps.pairs-may-be-too-long", &[MULTIMAP_LENGTH]),
    mutant("multimaps.bytes-are-written-among-other-types", &[MULTIMAP_TYPES]),
    mutant("expiring.a-sweep-takes-what-has-another-deadline", &[SWEEP_DEADLINES]),
    mutant("expiring.a-sweep-trusts-its-first-look", &[SWEEP_LOOKS]),
    mutant("expiring.deadlines-come-a-moment-early", &[SWEEP_STEPS]),
    mutant("expiring.rows-outlive-their-entries", &[SWEEP_STEPS]),
    mutant("expiring.what-was-swept-counts-in-a-cache", &[SWEPT_CACHE]),
    mutant("expiring.what-was-put-again-counts-no-more-in-a-cache", &[PUT_AGAIN]),
    mutant("changes.a-commit-has-the-number-of-another", &[FEED]),
];

/// Faults that tests plant by themselves, and the tests, which pass if the fault is noticed.
pub(crate) const MISTAKES_OF_TESTS: &[(&str, Test)] = &[
    (
        "R9.inputs-go-before-their-commit-is-durable",
        LSM_TREE.test("crashes::inputs_that_are_removed_too_early_are_noticed"),
    ),
    (
        "simulator.a-flush-or-fence-of-a-toy",
        SIMULATOR.test("mapped::a_missing_flush_or_fence_of_a_toy_is_noticed"),
    ),
];

/// Tests that have the simulator leave out calls one by one: flushes, fences, syncs.
pub(crate) const SITES: &[Test] = &[
    SIMULATOR.test("heap_crashes::left_out::a_missing_sync_is_noticed"),
    SIMULATOR.test("heap_crashes::buffers::a_missing_sync_beside_held_buffers_is_noticed"),
    SIMULATOR.test("heap_crashes::left_out::a_missing_flush_or_fence_of_memory_is_noticed"),
    LSM_TREE.test("crashes::a_sync_of_a_file_or_a_directory_that_is_left_out_is_noticed"),
];

/// The packages of all tests.
pub(crate) fn packages() -> BTreeSet<&'static str> {
    let of_mistakes = MISTAKES_OF_TESTS.iter().map(|(_, test)| test);
    let tests = PLANTED.iter().flat_map(|mutant| mutant.tests).chain(SITES).chain(of_mistakes);
    tests.map(|test| test.suite.package).collect()
}
