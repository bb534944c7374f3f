//! The parent: rounds of child processes.
//!
//! Purpose: engines take turns, in an order that is reversed from round to round, so that a slow
//! minute of the machine is nobody's alone.
//! Invariants: every line says its round and the engine that the child ran; a peer that fails is
//! recorded and the run goes on, while a failure of the judged engine ends it.

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use adamant_bench::harness::error::Result;
use serde_json::{Value, json};

use crate::peer::Kind;
use crate::run::calls;
use crate::run::child::CHILD_COMMAND;
use crate::run::datasets::{BULK, CALLS, MAIN, MEMORY, WATCH, YCSB};
use crate::run::machine::{self, Ticks};
use crate::run::roster;
use crate::run::settings::Settings;
use crate::run::trace;

/// Measures everything; `arguments` are those that `settings` were read from, and `tell` is called
/// with what comes next. Returns the lines, the first of which describes the run.
///
/// # Errors
/// Those of the file system and of the judged engine.
pub fn run(
    settings: &Settings,
    arguments: &[String],
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Value>> {
    let start = Instant::now();
    let can_trace = calls::can_trace();
    let mut lines = Vec::new();
    for round in 0..settings.rounds {
        let mut parts = vec![MAIN];
        if round < settings.dataset_rounds {
            parts.extend([BULK, YCSB]);
            parts.extend(&settings.datasets);
        }
        // Counts hardly differ between rounds, and a median of rounds would hide a stall.
        if round == 0 {
            parts.push(WATCH);
            parts.push(MEMORY);
            parts.extend(can_trace.then_some(CALLS));
        }
        parts.retain(|part| settings.parts.is_empty() || settings.parts.iter().any(|p| p == part));
        for part in parts {
            let mut engines = settings.engines.clone();
            if round % 2 == 1 {
                engines.reverse();
            }
            for engine in engines.into_iter().filter(|engine| takes_part(engine, part)) {
                tell(&format!("round {}: {part}: {engine}", round + 1));
                lines.extend(child(settings, arguments, round, part, engine)?);
            }
        }
    }
    let peers: Vec<Value> = settings.engines.iter().filter_map(|name| describe(name)).collect();
    let header = json!({
        "run": settings.form,
        "seconds": start.elapsed().as_secs_f64(),
        "entries": settings.entries,
        "dataset_entries": settings.dataset_entries,
        "rounds": settings.rounds,
        "dataset_rounds": settings.dataset_rounds,
        "seed": settings.seed,
        "log_bytes_max": settings.log_bytes_max,
        "row_seconds": settings.row_time.as_secs_f64(),
        "can_trace": can_trace,
        "machine": machine::describe(&settings.path)?,
        "peers": peers,
    });
    lines.insert(0, header);
    Ok(lines)
}

/// Whether a part says anything of an engine: what keeps nothing is measured for the harness's
/// cost only.
fn takes_part(engine: &str, part: &str) -> bool {
    let Some(entry) = roster::find(engine) else { return false };
    let is_reference = entry.facts.kind == Kind::Reference;
    match part {
        MAIN => true,
        BULK => entry.has_transactions,
        YCSB => !is_reference && entry.facts.buffered.is_some(),
        MEMORY => engine != "null",
        _ => !is_reference,
    }
}

/// Name, version and settings of an engine.
fn describe(name: &str) -> Option<Value> {
    use adamant_bench::harness::engine::Durability::{Buffered, Deferred, Sync};
    let facts = &roster::find(name)?.facts;
    let modes: Vec<Value> = [Sync, Buffered, Deferred]
        .into_iter()
        .filter_map(|durability| {
            let survives = facts.survives(durability)?;
            Some(json!({"mode": durability.name(), "survives": survives.name(),
                        "how": survives.how()}))
        })
        .collect();
    Some(json!({"engine": name, "version": facts.version(), "kind": facts.kind.name(),
                "settings": facts.settings, "modes": modes}))
}

/// Runs a child and returns its lines, and one about how busy the machine was.
fn child(
    settings: &Settings,
    arguments: &[String],
    round: u32,
    part: &str,
    engine: &str,
) -> Result<Vec<Value>> {
    let directory = tempfile::Builder::new().prefix("adamant-peers-").tempdir_in(&settings.path)?;
    let (load, before) = (machine::load_average()?, Ticks::now()?);
    let start = Instant::now();
    let trace = directory.path().join("trace");
    let mut words = if part == CALLS { calls::tracer(&trace) } else { Vec::new() };
    words.push(env::current_exe()?.into());
    let output = Command::new(&words[0])
        .args(&words[1..])
        .args([CHILD_COMMAND, engine, &round.to_string(), part])
        .arg(directory.path())
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    let (others, stolen) = Ticks::now()?.others_since(&before);
    let mut lines = vec![json!({
        "busy": part, "seconds": seconds, "load": load,
        "others_percent": others, "stolen_percent": stolen,
    })];
    if output.status.success() {
        for line in String::from_utf8(output.stdout)?.lines() {
            lines.push(serde_json::from_str(line)?);
        }
        if part == CALLS {
            for mut line in trace::count(&String::from_utf8_lossy(&fs::read(&trace)?))? {
                line["engine"] = engine.into();
                lines.push(line);
            }
        }
    } else if engine == roster::JUDGED {
        return Err(format!("{engine} failed in {part} ({}): see above", output.status).into());
    } else {
        lines.push(json!({"failed": part, "engine": engine, "how": output.status.to_string()}));
    }
    for line in &mut lines {
        line["round"] = round.into();
        line["with"] = engine.into();
    }
    Ok(lines)
}
