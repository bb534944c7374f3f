//! A small run of `maps` measures every structure, and leaves nothing.

use adamant_bench::commands::maps::{Settings, run};
use adamant_bench::harness::asked::AskedRows;

#[test]
fn a_small_run_measures_all() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::quick();
    settings.pairs = 2_000;
    settings.path = Some(directory.path().to_owned());
    let asked = AskedRows::of("maps").unwrap();
    let (table, report) = run(&settings, &asked, &mut |_| {}).unwrap();
    report.check_complete(&asked).unwrap();
    assert!(report.median("saving.off.bytes", "adamant").unwrap() > 32.0);
    assert!(report.median("container.64.by_twin", "adamant").unwrap() > 0.0);
    let rows = 4 * 2 * 3 + 3 * 3;
    assert_eq!(table.rows().count(), rows);
    assert_eq!(table.json_lines().lines().count(), rows);
    for ((structure, value, batch), cell) in table.rows() {
        assert!(cell.insert > 0.0 && cell.remove > 0.0 && cell.get > 0.0, "{structure}");
        assert!(cell.insert_log > 0.0, "{structure} {value} {batch}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
