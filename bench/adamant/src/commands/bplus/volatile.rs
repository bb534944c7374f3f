//! The gets of a volatile `BTreeMap`.

use std::collections::BTreeMap;

use crate::commands::bplus::ground::GETS;
use crate::commands::bplus::records::Records;
use crate::commands::bplus::settings::Settings;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::thread_seconds;
use crate::harness::report::{Report, Unit};

/// The engine name of the rows.
pub(super) const NAME: &str = "btreemap";

/// Adds the rows of a round: fill and get.
pub(super) fn measure(settings: &Settings, records: &Records, report: &mut Report) -> Result<()> {
    let pairs = settings.pairs;
    let mut add = |row: &str, seconds: f64| {
        let rate = pairs as f64 / seconds / 1e3;
        let row = format!("{row}.{}", records.name());
        report.add(&row, NAME, Unit::ThousandPerSecond, pairs, rate);
    };
    let start = thread_seconds();
    let mut map = BTreeMap::new();
    for index in 0..pairs {
        map.insert(records.key(index).to_vec(), records.value(index, 0).to_vec());
    }
    add("fill", thread_seconds() - start);
    let visits = records.visits(pairs, GETS);
    let mut found = Vec::with_capacity(records.value_bytes());
    let start = thread_seconds();
    for &index in &visits {
        let value: Option<&Vec<u8>> = map.get(&records.key(index.into())[..]);
        found.clear();
        found.extend_from_slice(value.ok_or("a pair is missing")?);
        ensure(found.len() == records.value_bytes(), || "a value is wrong".into())?;
    }
    add("get", thread_seconds() - start);
    Ok(())
}
