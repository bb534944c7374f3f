//! A small run of `maps` measures every structure on every journal, and leaves nothing.

use std::path::Path;

use adamant_bench::heap::Journal;
use adamant_bench::maps::{Settings, run};

/// Where Linux keeps files in memory: what the undo journal can work on everywhere.
const MEMORY: &str = "/dev/shm";

#[test]
fn a_small_run_measures_all() {
    for journal in Journal::ALL {
        let directory = match journal {
            Journal::Undo if !Path::new(MEMORY).is_dir() => continue,
            Journal::Undo => tempfile::tempdir_in(MEMORY).unwrap(),
            Journal::Redo => tempfile::tempdir().unwrap(),
        };
        let mut settings = Settings::quick();
        settings.pairs = 2_000;
        settings.journals = vec![*journal];
        settings.path = Some(directory.path().to_owned());
        let table = run(&settings, &mut |_| {}).unwrap();
        assert_eq!(table.rows().count(), 7 * 2 * 3);
        assert_eq!(table.json_lines().lines().count(), 7 * 2 * 3);
        for ((_, structure, value, batch), cell) in table.rows() {
            assert!(cell.insert > 0.0 && cell.remove > 0.0 && cell.get > 0.0, "{structure}");
            let costs = match journal {
                Journal::Undo => cell.insert_fences,
                Journal::Redo => cell.insert_log,
            };
            assert!(costs > 0.0, "{structure} {value} {batch}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
