//! INFO: figures of the server and its store.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant::Durability;
use bytes::Bytes;

use crate::serving::figures;
use crate::serving::shared::Shared;
use crate::state::call::is_word;
use crate::state::clock;

/// The version of Redis whose commands are answered: clients use it to decide which commands are
/// available.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

/// The requested sections; all, if none is.
pub(crate) fn text(shared: &Shared, asked: &[Bytes]) -> String {
    type Section = fn(&Shared, &mut String) -> std::fmt::Result;
    let sections: [(&str, Section); 10] = [
        ("Server", server),
        ("Clients", clients),
        ("Memory", memory),
        ("Persistence", persistence),
        ("Stats", stats),
        ("Replication", replication),
        ("CPU", cpu),
        ("Commandstats", command_stats),
        ("Cluster", cluster),
        ("Keyspace", keyspace),
    ];
    let is_all =
        |word: &Bytes| ["all", "default", "everything"].iter().any(|all| is_word(word, all));
    let mut text = String::new();
    for (name, section) in sections {
        // As in Redis: long sections only if they, or everything, are requested.
        let is_default = name != "Commandstats";
        let wants = |word: &Bytes| {
            is_word(word, name) || is_all(word) && (is_default || !is_word(word, "default"))
        };
        let is_asked = asked.iter().any(wants) || asked.is_empty() && is_default;
        if !is_asked {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {name}\r\n");
        // Writing to a string cannot fail.
        let _ = section(shared, &mut text);
    }
    text
}

fn server(shared: &Shared, text: &mut String) -> std::fmt::Result {
    let seconds = shared.started.elapsed().as_secs();
    write!(text, "redis_version:{REDIS_VERSION}\r\n")?;
    write!(text, "redis_mode:standalone\r\n")?;
    write!(text, "os:{} {}\r\n", std::env::consts::OS, std::env::consts::ARCH)?;
    write!(text, "arch_bits:{}\r\n", usize::BITS)?;
    write!(text, "adamant_version:{}\r\n", env!("CARGO_PKG_VERSION"))?;
    write!(text, "process_id:{}\r\n", std::process::id())?;
    write!(text, "tcp_port:{}\r\n", shared.port)?;
    write!(text, "tls:{}\r\n", u8::from(shared.tls.is_some()))?;
    write!(text, "server_time_usec:{}000\r\n", clock::now())?;
    write!(text, "uptime_in_seconds:{seconds}\r\n")?;
    write!(text, "uptime_in_days:{}\r\n", seconds / 86_400)
}

fn clients(shared: &Shared, text: &mut String) -> std::fmt::Result {
    write!(text, "connected_clients:{}\r\n", shared.clients.len())?;
    write!(text, "maxclients:{}\r\n", shared.settings.lock().clients_max)?;
    write!(text, "held_request_bytes:{}\r\n", shared.held.bytes())
}

fn memory(shared: &Shared, text: &mut String) -> std::fmt::Result {
    if let Ok(stats) = shared.world.databases.store().stats() {
        write!(text, "used_memory:{}\r\n", stats.heap.used_bytes)?;
        write!(text, "used_memory_dataset:{}\r\n", stats.heap.used_bytes)?;
        write!(text, "pool_bytes:{}\r\n", stats.heap.pool_bytes)?;
        write!(text, "snapshot_bytes:{}\r\n", stats.snapshots.bytes)?;
    }
    let bytes_max = shared.world.bound.bytes_max.load(Ordering::Relaxed);
    write!(text, "maxmemory:{bytes_max}\r\nmaxmemory_policy:noeviction\r\n")
}

fn persistence(shared: &Shared, text: &mut String) -> std::fmt::Result {
    let is_sync = shared.world.durability() == Durability::Sync;
    write!(text, "loading:0\r\naof_enabled:1\r\nrdb_bgsave_in_progress:0\r\n")?;
    write!(text, "durability:{}\r\n", if is_sync { "sync" } else { "buffered" })?;
    let trouble = shared.trouble();
    write!(text, "aof_last_write_status:{}\r\n", if trouble.is_none() { "ok" } else { "err" })?;
    if let Some(trouble) = trouble {
        write!(text, "write_trouble:{}\r\n", trouble.words.replace(['\r', '\n'], " "))?;
    }
    if let Ok(stats) = shared.world.databases.store().stats() {
        let micros = |percent| stats.commits.synced.percentile(percent).as_micros();
        write!(text, "commits:{}\r\n", stats.commits.commits)?;
        write!(text, "synced_commits:{}\r\n", stats.commits.synced.count())?;
        write!(text, "synced_commit_usec_p50:{}\r\n", micros(50.0))?;
        write!(text, "synced_commit_usec_p99:{}\r\n", micros(99.0))?;
    }
    Ok(())
}

fn stats(shared: &Shared, text: &mut String) -> std::fmt::Result {
    write!(text, "total_connections_received:{}\r\n", shared.clients.entered())?;
    write!(text, "total_commands_processed:{}\r\n", shared.commands.load(Ordering::Relaxed))?;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    write!(text, "values_in_place:{}\r\n", count(&shared.values_in_place))?;
    write!(text, "bytes_in_place:{}\r\n", count(&shared.bytes_in_place))?;
    write!(text, "rejected_connections:{}\r\n", count(&shared.clients.refused))?;
    write!(text, "failed_handshakes:{}\r\n", count(&shared.clients.unshaken))?;
    let tallies = &shared.world.tallies;
    write!(text, "expired_keys:{}\r\n", count(&tallies.expired))?;
    // Nothing is evicted.
    write!(text, "evicted_keys:0\r\n")?;
    write!(text, "keyspace_hits:{}\r\n", count(&tallies.hits))?;
    write!(text, "keyspace_misses:{}\r\n", count(&tallies.misses))
}

fn replication(shared: &Shared, text: &mut String) -> std::fmt::Result {
    let Some(member) = &shared.member else {
        return write!(text, "role:master\r\nconnected_slaves:0\r\n");
    };
    let standing = member.standing();
    write!(text, "role:{}\r\n", if standing.leads() { "master" } else { "slave" })?;
    // No master_host and no slave0: clients would take the addresses of the nodes' protocol for
    // those of servers.
    if !standing.leads() {
        let link = if standing.leader.is_some() { "up" } else { "down" };
        write!(text, "master_link_status:{link}\r\n")?;
    }
    write!(text, "node:{}\r\nstate:{}\r\n", standing.node, standing.state)?;
    if let Some((leader, place)) = &standing.leader {
        write!(text, "leader:{leader}\r\nleader_place:{place}\r\n")?;
    }
    write!(text, "term:{}\r\n", standing.term)?;
    let entries = [
        ("last_entry", standing.last_entry),
        ("applied", standing.applied),
        ("snapshot", standing.snapshot),
    ];
    for (name, entry) in entries {
        if let Some(entry) = entry {
            write!(text, "{name}:{entry}\r\n")?;
        }
    }
    write!(text, "members:{}\r\n", standing.members.len())?;
    for (number, peer) in standing.members.iter().enumerate() {
        let (node, place, role) = (peer.node, &peer.place, peer.role());
        write!(text, "member{number}:node={node},place={place},role={role}\r\n")?;
    }
    Ok(())
}

fn cpu(_: &Shared, text: &mut String) -> std::fmt::Result {
    // If the system does not provide it, it is left out.
    let Some(times) = figures::processor_seconds() else { return Ok(()) };
    let names =
        ["used_cpu_user", "used_cpu_sys", "used_cpu_user_children", "used_cpu_sys_children"];
    names.iter().zip(times).try_for_each(|(name, time)| write!(text, "{name}:{time:.6}\r\n"))
}

fn command_stats(shared: &Shared, text: &mut String) -> std::fmt::Result {
    shared.world.tallies.lines(text)
}

fn cluster(_: &Shared, text: &mut String) -> std::fmt::Result {
    // Clients look for slots because of this, and nodes of a cluster have none either.
    write!(text, "cluster_enabled:0\r\n")
}

fn keyspace(shared: &Shared, text: &mut String) -> std::fmt::Result {
    for database in figures::databases(shared) {
        let (number, keys, expires) = (database.number, database.keys, database.expires);
        write!(text, "db{number}:keys={keys},expires={expires},avg_ttl=0\r\n")?;
    }
    Ok(())
}
