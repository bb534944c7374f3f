//! A small run of `maps` measures every structure on every journal, and leaves nothing.

use std::path::Path;

use adamant_bench::asked::AskedRows;
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
        let asked = AskedRows::of("maps").unwrap();
        let (table, report) = run(&settings, &asked, &mut |_| {}).unwrap();
        if *journal == Journal::Undo {
            report.check_complete(&asked).unwrap();
        }
        assert!(report.median("saving.off.bytes", journal.name()).unwrap() > 32.0);
        assert!(report.median("container.64.by_twin", journal.name()).unwrap() > 0.0);
        let rows = if *journal == Journal::Undo { 4 * 2 * 3 + 3 * 3 } else { 4 * 2 * 3 };
        assert_eq!(table.rows().count(), rows);
        assert_eq!(table.json_lines().lines().count(), rows);
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
