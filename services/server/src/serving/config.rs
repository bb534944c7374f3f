//! CONFIG: settings under their Redis names.

use std::sync::atomic::Ordering;
use std::time::Duration;

use adamant::Durability;
use bytes::Bytes;

use crate::protocol::number::integer;
use crate::protocol::pattern::Pattern;
use crate::protocol::reply::Replies;
use crate::serving::shared::Shared;
use crate::state::call::unknown_sub;

/// All settings with their current values.
fn all(shared: &Shared) -> Vec<(&'static str, String)> {
    let settings = shared.settings.lock().clone();
    let options = &shared.options;
    let is_sync = shared.world.durability() == Durability::Sync;
    vec![
        ("appendfsync", if is_sync { "always" } else { "everysec" }.into()),
        ("appendonly", "yes".into()),
        ("bind", options.address.ip().to_string()),
        ("databases", options.databases.to_string()),
        ("maxclients", settings.clients_max.to_string()),
        ("maxmemory", shared.world.bound.bytes_max.load(Ordering::Relaxed).to_string()),
        ("maxmemory-policy", "noeviction".into()),
        ("port", shared.port.to_string()),
        ("proto-max-bulk-len", options.argument_bytes_max.to_string()),
        ("requirepass", settings.password.unwrap_or_default()),
        ("save", String::new()),
        ("timeout", settings.idle.map_or(0, |idle| idle.as_secs()).to_string()),
    ]
}

/// CONFIG GET, SET, RESETSTAT.
pub(crate) fn config(shared: &Shared, arguments: &[Bytes], reply: &mut Replies) {
    let sub = &arguments[1];
    match (sub.to_ascii_uppercase().as_slice(), &arguments[2..]) {
        (b"GET", patterns) if !patterns.is_empty() => {
            let patterns: Vec<Vec<u8>> =
                patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
            let is_asked = |name: &str| {
                patterns.iter().any(|pattern| Pattern::new(pattern).matches(name.as_bytes()))
            };
            let found: Vec<_> =
                all(shared).into_iter().filter(|(name, _)| is_asked(name)).collect();
            reply.map(found.len());
            for (name, value) in found {
                reply.bulk(name);
                reply.bulk(value);
            }
        }
        (b"SET", pairs) if !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
            // All of them, or none: so they are verified first.
            let changes: Result<Vec<_>, _> =
                pairs.chunks(2).map(|pair| change(&pair[0], &pair[1], shared)).collect();
            match changes {
                Ok(changes) => {
                    changes.into_iter().for_each(|change| apply(shared, change));
                    reply.ok();
                }
                Err(words) => reply.error(&words),
            }
        }
        (b"RESETSTAT", []) => {
            shared.commands.store(0, Ordering::Relaxed);
            shared.world.tallies.reset();
            reply.ok();
        }
        (b"GET" | b"SET" | b"RESETSTAT", _) => reply.error(&format!(
            "ERR wrong number of arguments for 'config|{}' command",
            String::from_utf8_lossy(sub).to_ascii_lowercase()
        )),
        _ => reply.error(&unknown_sub("CONFIG", sub)),
    }
}

/// A change of a setting.
enum Change {
    Sync(bool),
    ClientsMax(usize),
    Idle(Option<Duration>),
    Password(Option<String>),
    Bytes(u64),
    /// It has this value already.
    Nothing,
}

fn change(name: &[u8], value: &[u8], shared: &Shared) -> Result<Change, String> {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let value = String::from_utf8_lossy(value).into_owned();
    let wrong = |why: &str| {
        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
    };
    let number = || integer(value.as_bytes()).and_then(|number| u64::try_from(number).ok());
    match (name.as_str(), value.as_str()) {
        ("appendfsync", "always") => Ok(Change::Sync(true)),
        ("appendfsync", "everysec") if shared.world.is_replicated => {
            Err(wrong("in a cluster a node promises what its device has"))
        }
        ("appendfsync", "everysec") => Ok(Change::Sync(false)),
        ("maxclients", _) => match number().map(usize::try_from) {
            Some(Ok(clients)) if clients > 0 => Ok(Change::ClientsMax(clients)),
            _ => Err(wrong("argument must be a number of at least 1")),
        },
        ("maxmemory", text) if shared.world.is_replicated && bytes_of(text) != Some(0) => {
            Err(wrong("in a cluster nodes do what they are told, whatever they use"))
        }
        ("maxmemory", text) => match bytes_of(text) {
            Some(bytes) => Ok(Change::Bytes(bytes)),
            None => Err(wrong("argument must be a memory value")),
        },
        ("timeout", _) => match number() {
            Some(0) => Ok(Change::Idle(None)),
            Some(seconds) => Ok(Change::Idle(Some(Duration::from_secs(seconds)))),
            None => Err(wrong("argument must be a number of seconds")),
        },
        ("requirepass", "") if shared.options.open_address().is_some() => {
            Err(wrong("others can reach the server, so it keeps a password"))
        }
        ("requirepass", "") => Ok(Change::Password(None)),
        ("requirepass", password) => Ok(Change::Password(Some(password.into()))),
        _ => match all(shared).into_iter().find(|(known, _)| *known == name) {
            Some((_, now)) if now == value => Ok(Change::Nothing),
            Some(_) => Err(wrong("can't set immutable config, or not to that")),
            None => {
                Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"))
            }
        },
    }
}

/// A number of bytes, plain or in one of the units of Redis: k, kb, m, mb, g, gb, b.
fn bytes_of(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

fn apply(shared: &Shared, change: Change) {
    match change {
        Change::Sync(is_sync) => shared.world.set_sync(is_sync),
        Change::ClientsMax(clients) => shared.settings.lock().clients_max = clients,
        Change::Idle(idle) => shared.settings.lock().idle = idle,
        Change::Password(password) => shared.settings.lock().password = password,
        Change::Bytes(bytes) => {
            let bound = &shared.world.bound;
            // If it cannot be measured now, the next round does it.
            let _ = bound.look(&shared.world.databases.store());
            bound.bytes_max.store(bytes, Ordering::Relaxed);
        }
        Change::Nothing => {}
    }
}
