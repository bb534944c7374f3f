//! Changes of the feed as lines of text and as JSON objects.
//!
//! Invariants: both are functions of the change alone. A value that expires is shown without its
//! deadline, which stands beside it.

use std::ops::Bound;

use adamant::{Change, Slice};
use adamant_cli::record::field;
use serde_json::{Map, Value};

use crate::failure::Result;
use crate::output::escape;

/// Whether a change is one of the keyspace of a name.
pub(super) fn concerns(change: &Change, name: &str) -> bool {
    let other = match change {
        Change::Moved { target, .. }
        | Change::Swapped { target, .. }
        | Change::Exchanged { target, .. } => Some(&target.name),
        Change::Renamed { new_name, .. } => Some(new_name),
        _ => None,
    };
    *change.keyspace().name == *name || other.is_some_and(|other| **other == *name)
}

/// The change as the rest of a line: keyspace, what happened, and what belongs to it.
pub(super) fn text(change: &Change) -> Result<String> {
    let mut columns = vec![escape(change.keyspace().name.as_bytes()), change.name().to_owned()];
    let mut add = |bytes: &[u8]| columns.push(escape(bytes));
    match change {
        Change::Put { keyspace, key, value } => {
            let (value, deadline) = keyspace.split(value)?;
            add(key);
            add(&value);
            if let Some(deadline) = deadline {
                columns.push(format!("until {}", deadline.millis()));
            }
        }
        Change::Removed { key, .. } => add(key),
        Change::Moved { key, target, target_key, .. }
        | Change::Swapped { key, target, target_key, .. } => {
            [key, target.name.as_bytes(), target_key].into_iter().for_each(add);
        }
        Change::RangeRemoved { bounds, .. } => {
            columns.push(bound(&bounds.0, ">=", ">"));
            columns.push(bound(&bounds.1, "<=", "<"));
        }
        Change::Renamed { new_name, .. } => add(new_name.as_bytes()),
        Change::Exchanged { target, .. } => add(target.name.as_bytes()),
        Change::Loaded { first, last, .. } => [first, last].into_iter().for_each(|key| add(key)),
        _ => {}
    }
    Ok(columns.join("\t"))
}

/// A bound of a range, as a comparison; nothing if there is none.
fn bound(bound: &Bound<Slice>, included: &str, excluded: &str) -> String {
    match bound {
        Bound::Included(key) => format!("{included} {}", escape(key)),
        Bound::Excluded(key) => format!("{excluded} {}", escape(key)),
        Bound::Unbounded => String::new(),
    }
}

/// The change as a JSON object.
pub(super) fn object(change: &Change) -> Result<Value> {
    let keyspace = change.keyspace();
    let mut object = Map::new();
    object.insert("change".into(), change.name().into());
    object.insert("keyspace".into(), (*keyspace.name).into());
    object.insert("keyspace_id".into(), keyspace.id.into());
    match change {
        Change::Put { key, value, .. } => {
            let (value, deadline) = keyspace.split(value)?;
            object.extend([field("key", key), field("value", &value)]);
            object.extend(deadline.map(|deadline| ("deadline".into(), deadline.millis().into())));
        }
        Change::Removed { key, .. } => object.extend([field("key", key)]),
        Change::Moved { key, target, target_key, .. }
        | Change::Swapped { key, target, target_key, .. } => {
            object.extend([field("key", key), field("target_key", target_key)]);
            object.insert("target".into(), (*target.name).into());
            object.insert("target_id".into(), target.id.into());
        }
        Change::RangeRemoved { bounds, .. } => {
            for (name, bound) in [("from", &bounds.0), ("to", &bounds.1)] {
                let (key, is_included) = match bound {
                    Bound::Included(key) => (key, true),
                    Bound::Excluded(key) => (key, false),
                    Bound::Unbounded => continue,
                };
                object.extend([field(name, key)]);
                object.insert(format!("{name}_included"), is_included.into());
            }
        }
        Change::Renamed { new_name, .. } => {
            object.insert("new_name".into(), (**new_name).into());
        }
        Change::Exchanged { target, .. } => {
            object.insert("target".into(), (*target.name).into());
            object.insert("target_id".into(), target.id.into());
        }
        Change::Loaded { first, last, .. } => {
            object.extend([field("first", first), field("last", last)]);
        }
        _ => {}
    }
    Ok(Value::Object(object))
}
