//! Serializable transactions: read two records, write both.

use adamant::{Error, Transaction};

use crate::commands::transactions::settings::Settings;
use crate::engines::adamant::AdamantEngine;
use crate::harness::data::{Distribution, draw};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::up_to;
use crate::harness::report::{Report, Unit};
use crate::workload::session::Session;

/// Number of records in the rows with many conflicts, of which each transaction takes two.
const FEW_RECORDS: u64 = 16;

/// Rows `exchange.{many,few}.{1t,2t,exclusive.2t}`: transactions that rewrite two records;
/// `conflicts.` of them, in hundredths of the commits. `exchange.plain.1t`: the same two gets and a
/// batch of two.
///
/// # Errors
/// The store's, or contents that are not what was written.
pub(super) fn measure(
    session: &mut Session<'_, AdamantEngine>,
    settings: &Settings,
    report: &mut Report,
) -> Result<()> {
    let version = session.newer_version();
    session.set_versions(session.oldest_version()..=version);
    let store = session.engine().store().clone();
    let keyspace = session.engine().keyspace().clone();
    for (name, records) in [("many", session.entries), ("few", FEW_RECORDS.min(session.entries))] {
        let draws = draw(Distribution::Uniform, records, 1 << 16, session.seed);
        for (kind, threads) in [("", 1), ("", 2), (".exclusive", 2)] {
            let before = store.stats()?.commits;
            let measured = up_to(threads, u64::MAX, settings.row_time, |thread, number| {
                let at = |step| draws[(2 * number as usize + 31 * thread + step) % draws.len()];
                let pair = [at(0), at(1)];
                let exchange = |tx: &mut Transaction| {
                    for index in pair {
                        let key = session.data.key(index);
                        if tx.get(&keyspace, key)?.is_some() {
                            tx.put(&keyspace, key, session.data.value(index, version))?;
                        }
                    }
                    Ok::<(), Error>(())
                };
                if kind.is_empty() {
                    store.transaction(exchange)
                } else {
                    store.exclusive(exchange)
                }?;
                Ok(())
            })?;
            let after = store.stats()?.commits;
            let commits = (after.commits - before.commits).max(1);
            let conflicts = (after.conflicts - before.conflicts) as f64 * 100.0 / commits as f64;
            let row = format!("{name}{kind}.{threads}t");
            session.add_rate(report, &format!("exchange.{row}"), measured);
            session.add(report, &format!("conflicts.{row}"), Unit::Percent, conflicts);
        }
    }
    let draws = draw(Distribution::Uniform, session.entries, 1 << 16, session.seed);
    let measured = up_to(1, u64::MAX, settings.row_time, |_, number| {
        let mut batch = store.batch();
        for step in 0..2 {
            let index = draws[(2 * number as usize + step) % draws.len()];
            let key = session.data.key(index);
            ensure(keyspace.get(key)?.is_some(), || format!("record {index} is not there"))?;
            batch.put(&keyspace, key, session.data.value(index, version))?;
        }
        Ok(batch.commit()?)
    })?;
    session.add_rate(report, "exchange.plain.1t", measured);
    session.verify("transactions", false)
}
