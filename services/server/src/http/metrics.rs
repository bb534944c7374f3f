//! The metrics for Prometheus.

use std::sync::atomic::Ordering;

use adamant::{CommitStats, Durability, HeapStats, LsmStats, Result};

use super::exposition::Exposition;
use super::heap_map::{HeapMap, Look};
use crate::commit::standing::Standing;
use crate::serving::figures;
use crate::serving::shared::Shared;

/// All figures.
///
/// # Errors
/// The store is closed, or its catalogue damaged.
pub(crate) fn text(shared: &Shared, heap_map: &HeapMap) -> Result<String> {
    let store = shared.world.databases.store();
    let (stats, look) = (store.stats()?, heap_map.look(&store)?);
    let mut text = Exposition::default();
    server(&mut text, shared);
    if let Some(member) = &shared.member {
        cluster(&mut text, &member.standing());
    }
    commits(&mut text, &stats.commits);
    databases(&mut text, shared);
    let snapshots = stats.snapshots;
    text.gauge("adamant_snapshots", "Snapshots that are open.", snapshots.open);
    let oldest = snapshots.oldest.as_secs_f64();
    text.gauge("adamant_snapshot_oldest_seconds", "Age of the oldest open snapshot.", oldest);
    let help = "Bytes of old values that are kept for snapshots.";
    text.gauge("adamant_snapshot_bytes", help, snapshots.bytes);
    let help = "Snapshots that were ended because what is kept for them took too many bytes.";
    text.counter("adamant_snapshots_expired_total", help, snapshots.expired);
    heap(&mut text, &stats.heap, &look);
    journal(&mut text, &stats.heap);
    lsm(&mut text, &figures::lsm(&store)?);
    Ok(text.finish())
}

fn server(text: &mut Exposition, shared: &Shared) {
    let is_sync = shared.world.durability() == Durability::Sync;
    text.family("adamant_info", "gauge", "Always 1: what runs here.");
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("durability", if is_sync { "sync" } else { "buffered" }),
    ];
    text.sample("adamant_info", &labels, 1);
    let is_writable = u8::from(shared.trouble().is_none());
    text.gauge("adamant_writable", "1 while the store takes writes, else 0.", is_writable);
    let seconds = shared.started.elapsed().as_secs_f64();
    text.gauge("adamant_uptime_seconds", "Since the server was started.", seconds);
    let clients = &shared.clients;
    text.gauge("adamant_clients", "Clients that are connected.", clients.len());
    let clients_max = shared.settings.lock().clients_max;
    text.gauge("adamant_clients_max", "Clients that may be connected at once.", clients_max);
    text.counter("adamant_connections_total", "Clients that were let in.", clients.entered());
    let refused = clients.refused.load(Ordering::Relaxed);
    let help = "Connections that were refused because there were too many.";
    text.counter("adamant_connections_refused_total", help, refused);
    let unshaken = clients.unshaken.load(Ordering::Relaxed);
    let help = "Connections that ended before they were encrypted.";
    text.counter("adamant_handshakes_failed_total", help, unshaken);
    let commands = shared.commands.load(Ordering::Relaxed);
    text.counter("adamant_commands_total", "Commands of all clients.", commands);
    let help = "Bytes of requests that are held for clients, beyond what each may.";
    text.gauge("adamant_held_request_bytes", help, shared.held.bytes());
    let help = "Pieces of work that wait for the turn to commit.";
    text.gauge("adamant_waiting_units", help, shared.queue.len());
}

fn cluster(text: &mut Exposition, standing: &Standing) {
    let leads = u8::from(standing.leads());
    text.gauge("adamant_cluster_leads", "1 if this node leads, as far as it knows, else 0.", leads);
    let help = "1 if this node knows of one that leads, else 0.";
    text.gauge("adamant_cluster_has_leader", help, u8::from(standing.leader.is_some()));
    text.gauge("adamant_cluster_term", "The term that this node is in.", standing.term);
    let entries = [
        ("last", "Number of the last entry of the log.", standing.last_entry),
        ("applied", "Number of the last entry that is applied.", standing.applied),
        ("snapshot", "Number of the last entry in the newest snapshot.", standing.snapshot),
        ("purged", "Number of the last entry that the log has forgotten.", standing.purged),
    ];
    for (name, help, entry) in entries {
        let name = format!("adamant_cluster_{name}_entry");
        text.family(&name, "gauge", help);
        if let Some(entry) = entry {
            text.sample(&name, &[], entry);
        }
    }
    text.family("adamant_cluster_members", "gauge", "Members of the cluster.");
    for role in ["voter", "learner"] {
        let count = standing.members.iter().filter(|peer| peer.role() == role).count();
        text.sample("adamant_cluster_members", &[("role", role)], count);
    }
}

fn commits(text: &mut Exposition, commits: &CommitStats) {
    text.counter("adamant_commits_total", "Commits that succeeded.", commits.commits);
    let help = "Transactions that failed because another one had changed what they read.";
    text.counter("adamant_conflicts_total", help, commits.conflicts);
    text.counter("adamant_snapshots_total", "Snapshots that were opened.", commits.snapshots);
    let (name, help) = (
        "adamant_commit_seconds",
        "How long commits took: each that waited for the device, one in 16 of the others.",
    );
    text.family(name, "histogram", help);
    text.histogram(name, ("waits", "device"), &commits.synced);
    text.histogram(name, ("waits", "system"), &commits.unsynced);
}

fn databases(text: &mut Exposition, shared: &Shared) {
    let databases = figures::databases(shared);
    text.family("adamant_keys", "gauge", "Keys of each database that has some.");
    for database in &databases {
        let number = database.number.to_string();
        text.sample("adamant_keys", &[("database", &number)], database.keys);
    }
    text.family("adamant_keys_with_deadline", "gauge", "Those of them that end.");
    for database in &databases {
        let number = database.number.to_string();
        text.sample("adamant_keys_with_deadline", &[("database", &number)], database.expires);
    }
}

fn heap(text: &mut Exposition, heap: &HeapStats, look: &Look) {
    let figures = [
        ("pool_bytes", "Bytes of the pool file's pages.", heap.pool_bytes),
        ("used_bytes", "Bytes up to the last page that is used.", heap.used_bytes),
        ("allocated_bytes", "Bytes of blocks.", look.occupancy.allocated_bytes()),
        ("unused_run_bytes", "Bytes between blocks.", look.occupancy.unused_run_bytes()),
        ("free_bytes", "Bytes of free pages.", look.free_bytes()),
        ("quarantined_blocks", "Freed blocks that somebody may still read.", heap.quarantined),
        ("pins", "Moments that are kept for readers.", heap.pins),
        ("dirty_bytes", "Bytes of memory that differ from the file's.", heap.memory.dirty_bytes),
    ];
    for (name, help, value) in figures {
        text.gauge(&format!("adamant_heap_{name}"), help, value);
    }
    let help =
        "How far free pages are from being one stretch: 0 if they are, towards 1 if scattered.";
    text.gauge("adamant_heap_fragmentation_ratio", help, look.fragmentation);
    let help = "Commits that waited for memory to be given back.";
    text.counter("adamant_heap_memory_waits_total", help, heap.memory.waits);
}

fn journal(text: &mut Exposition, heap: &HeapStats) {
    let journal = &heap.journal;
    let gauges = [
        (
            "used_bytes",
            "Bytes of the log that are not in the pool file yet.",
            journal.log_used_bytes,
        ),
        ("allocated_bytes", "Bytes of all log files.", journal.log_allocated_bytes),
    ];
    for (name, help, value) in gauges {
        text.gauge(&format!("adamant_log_{name}"), help, value);
    }
    let counters = [
        ("log_appended_bytes", "Bytes that were appended to the log.", journal.log_appended_bytes),
        ("log_records", "Records that were appended to the log.", journal.records),
        ("log_syncs", "Flushes of log files to the device.", journal.syncs),
        ("checkpoints", "Number of the newest checkpoint.", journal.checkpoints),
        (
            "pool_written_bytes",
            "Bytes of pages that checkpoints wrote to the pool file.",
            journal.pool_written_bytes,
        ),
        ("fences", "Fences of commits, where memory is the medium.", journal.fences),
    ];
    for (name, help, value) in counters {
        text.counter(&format!("adamant_{name}_total"), help, value);
    }
}

/// A figure of a log-structured keyspace: name, kind, help, value.
type LsmFigure = (&'static str, &'static str, &'static str, fn(&LsmStats) -> f64);

const LSM_FIGURES: [LsmFigure; 9] = [
    ("memtable_bytes", "gauge", "Bytes in memory that are in no table yet.", |stats| {
        stats.memtables.iter().map(|memtable| memtable.bytes).sum::<u64>() as f64
    }),
    ("blob_bytes", "gauge", "Bytes of files of large values.", |stats| stats.blobs.bytes as f64),
    ("blob_stale_bytes", "gauge", "Bytes of values that nothing points to.", |stats| {
        stats.blobs.stale_bytes as f64
    }),
    ("debt", "gauge", "What is written and not merged yet; writers wait from 1 on.", |stats| {
        stats.debt
    }),
    ("damaged_tables", "gauge", "Tables that a merge could not read.", |stats| {
        stats.damaged_tables.len() as f64
    }),
    ("flushes_total", "counter", "Memtables that became tables.", |stats| stats.flushes as f64),
    ("flushed_bytes_total", "counter", "Bytes of these.", |stats| stats.flushed_bytes as f64),
    ("compactions_total", "counter", "Merges of tables.", |stats| stats.compactions as f64),
    ("compacted_bytes_total", "counter", "Bytes of what these made.", |stats| {
        stats.compacted_bytes as f64
    }),
];

fn lsm(text: &mut Exposition, keyspaces: &[(String, LsmStats)]) {
    if keyspaces.is_empty() {
        return;
    }
    for (name, kind, help, value) in LSM_FIGURES {
        let name = format!("adamant_lsm_{name}");
        text.family(&name, kind, help);
        for (keyspace, stats) in keyspaces {
            text.sample(&name, &[("keyspace", keyspace)], value(stats));
        }
    }
    for (name, help) in
        [("tables", "Tables of a level."), ("bytes", "Bytes of the tables of a level.")]
    {
        let full = format!("adamant_lsm_level_{name}");
        text.family(&full, "gauge", help);
        for (keyspace, stats) in keyspaces {
            for (number, level) in stats.levels.iter().enumerate() {
                let number = number.to_string();
                let value = if name == "tables" { level.tables } else { level.bytes };
                text.sample(&full, &[("keyspace", keyspace), ("level", &number)], value);
            }
        }
    }
}
