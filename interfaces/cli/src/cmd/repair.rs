//! `adamant repair STORE`: saves what can be read of a damaged store.

use adamant::KeyspaceRepair;
use serde_json::{Value, json};

use crate::args::RepairArgs;
use crate::failure::Result;
use crate::figures::thousands;
use crate::opening::Stores;
use crate::output::Output;
use crate::progress;

/// Repairs a store and says what was lost.
pub(crate) fn run(args: &RepairArgs, stores: &Stores, output: &Output) -> Result<()> {
    let bar = progress::spinner("repairing");
    let report = adamant::repair_with(&args.store, stores.options());
    bar.finish_and_clear();
    let report = report?;
    if !output.is_json() {
        for finding in &report.findings {
            output.line(&finding.to_string())?;
        }
        for keyspace in &report.keyspaces {
            output.line(&line(keyspace))?;
            for loss in &keyspace.losses {
                output.line(&format!("  lost: {loss}"))?;
            }
        }
    }
    let Some(damaged) = &report.damaged_path else {
        return output.result(&json!({"repaired": false}), "nothing is wrong; nothing was done");
    };
    output.result(
        &json!({
            "repaired": true,
            "damaged_store": damaged.display().to_string(),
            "last_sequence": report.last_sequence,
            "lost_pages": report.lost_pages,
            "findings": report.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "keyspaces": report.keyspaces.iter().map(object).collect::<Vec<_>>(),
        }),
        &format!(
            "{} is a new store with what could be saved; the damaged one is {}",
            args.store.display(),
            damaged.display()
        ),
    )
}

fn line(keyspace: &KeyspaceRepair) -> String {
    let expected = keyspace.expected.map_or_else(|| "an unknown number".into(), thousands);
    format!(
        "keyspace {:?}: {} of {expected} entries saved, {} of them from lost leaves",
        keyspace.name,
        thousands(keyspace.saved),
        thousands(keyspace.adopted)
    )
}

fn object(keyspace: &KeyspaceRepair) -> Value {
    json!({
        "name": keyspace.name,
        "expected": keyspace.expected,
        "saved": keyspace.saved,
        "adopted": keyspace.adopted,
        "loss_count": keyspace.loss_count,
        "losses": keyspace.losses,
    })
}
