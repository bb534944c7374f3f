//! The parent and its children: a process for each library, group and round, in turns.
//!
//! Purpose: libpmemobj and Adamant, on memory and on files, measured within the same seconds, in an
//! order that is reversed from round to round.
//! Invariants: every line says its round; a failure of any child ends the run.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use adamant_bench::commands::heap::{self, Medium, Outcome, group_names};
use adamant_bench::harness::asked::AskedRows;
use adamant_bench::harness::error::{Result, ensure};
use adamant_bench::harness::text;
use serde_json::{Value, json};

use crate::heap::settings::Settings;
use crate::run::machine::{self, Ticks};

/// First argument of a child process that measures Adamant.
pub const CHILD_COMMAND: &str = "heap-child";
/// The engine of the other library's rows.
pub const LIBPMEMOBJ: &str = "libpmemobj";
/// Groups whose figures are counts, or which take long: measured in the first round only.
const ONCE: &[&str] = &["space", "large", "fences"];
/// Groups that only Adamant has, and that only libpmemobj has: a count of fences is part of every
/// row of Adamant's.
const ADAMANT_ONLY: &[&str] = &["large", "post_commit"];
const LIBPMEMOBJ_ONLY: &[&str] = &["fences"];

/// The engine that is judged: Adamant's, on memory.
pub fn judged() -> &'static str {
    Medium::ALL[0].name()
}

/// Adamant's other engines, on files.
pub fn others() -> impl Iterator<Item = &'static str> + Clone {
    Medium::ALL[1..].iter().map(|medium| medium.name())
}

/// All engines, libpmemobj first.
pub fn engines() -> impl Iterator<Item = &'static str> + Clone {
    [LIBPMEMOBJ, judged()].into_iter().chain(others())
}

/// Measures everything; `tell` is called with what comes next. Returns the lines, the first of
/// which describes the run.
///
/// # Errors
/// Those of the file system and of the children.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Vec<Value>> {
    let start = Instant::now();
    let mut engines: Vec<&str> = settings.pmdk.iter().map(|_| LIBPMEMOBJ).collect();
    engines.extend(settings.work.media.iter().map(|medium| medium.name()));
    let mut lines = Vec::new();
    for round in 0..settings.work.rounds {
        for group in group_names().chain(LIBPMEMOBJ_ONLY.iter().copied()) {
            if round > 0 && ONCE.contains(&group) {
                continue;
            }
            let mut turns = engines.clone();
            if round % 2 == 1 {
                turns.reverse();
            }
            for engine in turns.into_iter().filter(|engine| takes_part(engine, group)) {
                tell(&format!("round {}: {group}: {engine}", round + 1));
                lines.extend(child(settings, round, group, engine)?);
            }
        }
    }
    let header = json!({
        "run": settings.form,
        "seconds": start.elapsed().as_secs_f64(),
        "operations": settings.work.operations,
        "inserts": settings.work.inserts,
        "large_operations": settings.work.large_operations,
        "large_pool_mib": settings.large_pool_mib,
        "rounds": settings.work.rounds,
        "libpmemobj": settings.pmdk.as_deref().map(version).transpose()?,
        "adamant": env!("CARGO_PKG_VERSION"),
        "machine": machine::describe(&settings.path)?,
        "memory": machine::describe(&settings.memory)?["disk"],
    });
    lines.insert(0, header);
    Ok(lines)
}

fn takes_part(engine: &str, group: &str) -> bool {
    let others = if engine == LIBPMEMOBJ { ADAMANT_ONLY } else { LIBPMEMOBJ_ONLY };
    !others.contains(&group)
}

/// The version of libpmemobj: that of its package, or else of its interface.
fn version(programs: &Path) -> Result<String> {
    let package = Command::new("pkg-config").args(["--modversion", "libpmemobj"]).output();
    if let Some(output) = package.ok().filter(|output| output.status.success()) {
        return Ok(format!("libpmemobj {}", String::from_utf8(output.stdout)?.trim()));
    }
    let output = Command::new(programs.join("pmdk")).arg("version").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs a child and returns its lines, and one about how busy the machine was.
fn child(settings: &Settings, round: u32, group: &str, engine: &str) -> Result<Vec<Value>> {
    let parent =
        if others().any(|other| other == engine) { &settings.path } else { &settings.memory };
    let directory = tempfile::Builder::new().prefix("adamant-peers-").tempdir_in(parent)?;
    let mut command = match &settings.pmdk {
        Some(programs) if engine == LIBPMEMOBJ => {
            let name = if group == "fences" { "pmdk-counting" } else { "pmdk" };
            let mut command = Command::new(programs.join(name));
            command.arg(group).env("PMEM_IS_PMEM_FORCE", "1");
            command
        }
        _ => {
            let mut command = Command::new(env::current_exe()?);
            command.args([CHILD_COMMAND, engine, group]);
            command
        }
    };
    let work = &settings.work;
    let last = if engine == LIBPMEMOBJ { settings.large_pool_mib } else { work.large_operations };
    let numbers = [work.operations, work.inserts, work.frees_max, last, work.sizes];
    let before = Ticks::now()?;
    let start = Instant::now();
    let output = command
        .arg(directory.path())
        .args(numbers.map(|number| number.to_string()))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    ensure(output.status.success(), || format!("{engine} failed in {group}: see above"))?;
    let (others, stolen) = Ticks::now()?.others_since(&before);
    let mut lines = vec![json!({
        "busy": group, "engine": engine, "seconds": start.elapsed().as_secs_f64(),
        "others_percent": others, "stolen_percent": stolen,
    })];
    for line in String::from_utf8(output.stdout)?.lines() {
        lines.push(serde_json::from_str(line)?);
    }
    for line in &mut lines {
        line["round"] = round.into();
    }
    Ok(lines)
}

/// Does what the arguments of a child process say; `false` when they are not such.
///
/// # Errors
/// Those of the work.
pub fn run_child(arguments: &[String]) -> Result<bool> {
    let [command, medium, group, path, numbers @ ..] = arguments else { return Ok(false) };
    if command != CHILD_COMMAND {
        return Ok(false);
    }
    let medium = Medium::ALL.iter().find(|known| known.name() == medium);
    let medium = medium.ok_or("a child needs a medium")?;
    let [operations, inserts, frees_max, large_operations, sizes] = text::numbers(numbers)?;
    let settings = heap::Settings {
        operations,
        inserts,
        frees_max,
        large_operations,
        sizes,
        rounds: 1,
        media: vec![*medium],
        group: Some(group.clone()),
        path: Some(path.into()),
    };
    let Outcome { report, curves, .. } = heap::run(&settings, &mut |_| {})?;
    // What is asked is judged by the parent.
    print!("{}", report.json_lines(&AskedRows::default()));
    for curve in curves {
        println!("{curve}");
    }
    Ok(true)
}
