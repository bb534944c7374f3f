//! COMMAND: answers from the table of commands.

use bytes::Bytes;

use crate::commands::{ALL, Command, find};
use crate::protocol::reply::Replies;
use crate::state::call::unknown_sub;

/// COMMAND, COMMAND COUNT, LIST, INFO, DOCS.
pub(crate) fn command(arguments: &[Bytes], reply: &mut Replies) {
    let Some(sub) = arguments.get(1) else {
        reply.array(ALL.len());
        return ALL.iter().for_each(|command| tell(command, reply));
    };
    let names = &arguments[2..];
    match (sub.to_ascii_uppercase().as_slice(), names) {
        (b"COUNT", []) => reply.count(ALL.len()),
        (b"LIST", []) => {
            reply.array(ALL.len());
            ALL.iter().for_each(|command| reply.bulk(command.name));
        }
        (b"INFO", []) => {
            reply.array(ALL.len());
            ALL.iter().for_each(|command| tell(command, reply));
        }
        (b"INFO", names) => {
            reply.array(names.len());
            for name in names {
                match find(name) {
                    Some(command) => tell(command, reply),
                    None => reply.null_array(),
                }
            }
        }
        (b"DOCS", []) => {
            reply.map(ALL.len());
            ALL.iter().for_each(|command| document(command, reply));
        }
        (b"DOCS", names) => {
            let found: Vec<_> = names.iter().filter_map(|name| find(name)).collect();
            reply.map(found.len());
            found.iter().for_each(|command| document(command, reply));
        }
        (b"COUNT" | b"LIST", _) => reply.error(&format!(
            "ERR wrong number of arguments for 'command|{}' command",
            String::from_utf8_lossy(sub).to_ascii_lowercase()
        )),
        _ => reply.error(&unknown_sub("COMMAND", sub)),
    }
}

fn tell(command: &Command, reply: &mut Replies) {
    let (first, last, step) = command.keys;
    reply.array(10);
    reply.bulk(command.name);
    reply.integer(command.arity.into());
    let flags = command.flags.names();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    for number in [first, last, step] {
        reply.integer(number.into());
    }
    // Categories, tips, key specifications, subcommands: none are kept.
    reply.set(0);
    reply.array(0);
    reply.array(0);
    reply.array(0);
}

fn document(command: &Command, reply: &mut Replies) {
    reply.bulk(command.name);
    reply.map(3);
    reply.bulk("summary");
    reply.bulk(command.summary);
    reply.bulk("since");
    reply.bulk(command.since);
    reply.bulk("group");
    reply.bulk(command.group.name());
}
