//! What is in the golden stores of merge operands, and a model that tells the same without a store.
//!
//! Purpose: one list of steps, made in a store by [`fill`] and in maps by [`model`]. Only the text
//! beside the images counts for comparing; the model is a second opinion.
//! Invariants: steps of stores that were written stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant::{Deadline, Engine, Keyspace, KeyspaceOptions, MergeError, MergeOperator};
use adamant::{Result, Store};

/// Keyspaces with a merge operator: name, engine, operator.
pub const KEYSPACES: [(&str, Engine, &str); 5] = [
    ("counters", Engine::Lsm, "add"),
    ("joined", Engine::Lsm, "joined"),
    ("lists", Engine::Lsm, "append"),
    ("tree counters", Engine::Bplus, "add"),
    ("tree joined", Engine::Bplus, "joined"),
];

/// The persistent savepoints, and how many rounds of changes each shows.
pub const SAVEPOINTS: [(&str, u32); 2] = [("a third", 8), ("two thirds", 16)];
/// Rounds of changes.
pub const ROUNDS: u32 = 24;
/// After this round a snapshot looks at the store until all is written.
const SNAPSHOT_AFTER: u32 = 12;
/// Keys of each keyspace.
const KEYS: u32 = 24;
/// The expiring keyspace.
pub const LEASES: &str = "leases";
/// The multimap: of keys to the rounds that changed them.
pub const ROUNDS_OF: &str = "rounds of";

/// Entries of each keyspace of [`KEYSPACES`], by name.
pub type Model = BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>;

/// An operator that no library has: texts, joined by commas.
#[derive(Clone, Copy, Debug)]
pub struct Joined;

impl MergeOperator for Joined {
    fn merge(
        &self,
        _key: &[u8],
        older: &[u8],
        newer: &[u8],
        merged: &mut Vec<u8>,
    ) -> std::result::Result<(), MergeError> {
        merged.extend_from_slice(&[older, b",", newer].concat());
        Ok(())
    }
}

impl Joined {
    /// What options take.
    pub fn shared() -> Arc<dyn MergeOperator> {
        Arc::new(Self)
    }
}

/// One change of a keyspace.
enum Step {
    Merge(Vec<u8>, Vec<u8>),
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number:02}").into_bytes()
}

/// What a keyspace with that operator gets in a round.
fn steps(operator: &str, round: u32) -> Vec<Step> {
    let operand = |number: u32| match operator {
        "add" => (u64::from(round) * 1_000 + u64::from(number)).to_le_bytes().to_vec(),
        _ => format!("{round}.{number}").into_bytes(),
    };
    let mut steps = Vec::new();
    if round.is_multiple_of(6) {
        // A value below the operands of this round, and what was removed before it.
        let number = round / 6;
        steps.push(Step::Put(key(number), operand(100)));
        steps.push(Step::Delete(key(number + 4)));
    }
    if round == 2 && operator != "add" {
        // In a blob file, where there are some.
        steps.push(Step::Put(b"long".to_vec(), vec![b'l'; 700]));
    }
    for step in 0..6 {
        let number = (round * 5 + step * 7) % KEYS;
        steps.push(Step::Merge(key(number), operand(step)));
    }
    if round % 5 == 4 && operator != "add" {
        steps.push(Step::Merge(b"long".to_vec(), operand(9)));
    }
    steps
}

/// The entries after that many rounds.
pub fn model(rounds: u32) -> Model {
    let mut model = Model::new();
    for (name, _, operator) in KEYSPACES {
        let entries = model.entry(name).or_default();
        for step in (0..rounds).flat_map(|round| steps(operator, round)) {
            match step {
                Step::Put(key, value) => drop(entries.insert(key, value)),
                Step::Delete(key) => drop(entries.remove(&key)),
                Step::Merge(key, operand) => {
                    let value = match entries.get(&key) {
                        Some(older) => merged(operator, older, &operand),
                        None => operand,
                    };
                    entries.insert(key, value);
                }
            }
        }
    }
    model
}

/// What an operator makes of a value and an operand, said once more.
///
/// # Panics
/// There is no such operator in [`KEYSPACES`], or a counter has not 8 bytes.
pub fn merged(operator: &str, older: &[u8], newer: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("a counter of 8 bytes"));
    match operator {
        "add" => number(older).wrapping_add(number(newer)).to_le_bytes().to_vec(),
        "append" => [older, newer].concat(),
        "joined" => [older, b",", newer].concat(),
        other => panic!("no operator {other}"),
    }
}

/// Puts into an empty store keyspaces whose operands lie in memtables and in tables, onto values,
/// blobs, tombstones and nothing; the same in trees, which merge at once; two persistent
/// savepoints between; a multimap, and a keyspace whose entries expire.
///
/// # Errors
/// Those of writing to the store.
pub fn fill(store: &Store) -> Result<()> {
    let open = |(name, engine, operator): (&'static str, Engine, &'static str)| {
        let options = KeyspaceOptions::new().engine(engine).merge_operator(operator);
        Ok((store.keyspace_with(name, options)?, operator))
    };
    let keyspaces = KEYSPACES.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    fill_leases(store)?;
    let mut snapshot = None;
    for round in 0..ROUNDS {
        for (keyspace, operator) in &keyspaces {
            fill_round(store, keyspace, operator, round)?;
        }
        let rounds_of = store.multimap(ROUNDS_OF)?.typed::<String, u32>()?;
        for step in 0..6 {
            rounds_of.insert(&format!("key {:02}", (round * 5 + step * 7) % KEYS), &round)?;
        }
        if let Some((name, _)) = SAVEPOINTS.iter().find(|(_, rounds)| *rounds == round + 1) {
            store.create_savepoint(name)?;
        }
        if round == SNAPSHOT_AFTER {
            snapshot = Some(store.snapshot()?);
        }
    }
    drop(snapshot);
    Ok(())
}

fn fill_round(store: &Store, keyspace: &Keyspace, operator: &str, round: u32) -> Result<()> {
    let mut batch = store.batch();
    for step in steps(operator, round) {
        match step {
            Step::Put(key, value) => batch.put(keyspace, key, value)?,
            Step::Delete(key) => batch.delete(keyspace, key)?,
            Step::Merge(key, operand) => batch.merge(keyspace, key, operand)?,
        }
    }
    batch.commit()
}

/// Milliseconds at which lease `number` ends; `None`: never.
pub fn lease_ends(number: u64) -> Option<u64> {
    // Half of them in 1970, half of them in 2100, so that no clock changes what tests find.
    match number % 3 {
        0 => None,
        1 => Some(1_000 + number),
        _ => Some(4_102_444_800_000 + number),
    }
}

/// Leases in the expiring keyspace.
pub const LEASE_COUNT: u64 = 30;

fn fill_leases(store: &Store) -> Result<()> {
    let options = KeyspaceOptions::new().engine(Engine::Lsm);
    let leases = store.expiring_with(LEASES, options)?.with_clock(|| 0);
    for number in 0..LEASE_COUNT {
        let deadline = lease_ends(number).map(Deadline::from_millis);
        leases.put(format!("lease {number:02}"), format!("holder {number}"), deadline)?;
    }
    leases.delete("lease 04")?;
    leases.set_deadline("lease 06", Some(Deadline::from_millis(1_500)))?;
    Ok(())
}
