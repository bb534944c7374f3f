//! Commands about the connection and the server: the session runs them, without access to entries.

use std::time::SystemTime;

use bytes::Bytes;

use crate::commands::Verb;
use crate::protocol::number::integer;
use crate::protocol::reply::{Replies, Version};
use crate::serving::session::Session;
use crate::state::call::{NO_DATABASE, NO_INTEGER, is_word, unknown_sub};

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const WRONG_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

impl Session {
    /// Runs a command and answers it; returns whether the connection is to end.
    pub(crate) fn local(&mut self, verb: Verb, arguments: &[Bytes], reply: &mut Replies) -> bool {
        match verb {
            Verb::Ping => match arguments {
                [_] => reply.simple("PONG"),
                [_, text] => reply.bulk(text),
                _ => reply.error("ERR wrong number of arguments for 'ping' command"),
            },
            Verb::Echo => reply.bulk(&arguments[1]),
            Verb::Select => self.select(&arguments[1], reply),
            Verb::Auth => self.auth(&arguments[1..], reply),
            Verb::Hello => self.hello(&arguments[1..], reply),
            Verb::Unwatch => {
                self.unwatch();
                reply.ok();
            }
            Verb::Time => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let now = now.unwrap_or_default();
                reply.array(2);
                reply.bulk(now.as_secs().to_string());
                reply.bulk(now.subsec_micros().to_string());
            }
            Verb::Client => self.client_command(arguments, reply),
            Verb::Command => crate::serving::describe::command(arguments, reply),
            Verb::Config => crate::serving::config::config(&self.shared, arguments, reply),
            Verb::Info => reply.text(&crate::serving::info::text(&self.shared, &arguments[1..])),
            Verb::ReadOnly | Verb::ReadWrite if !self.shared.world.is_replicated => {
                reply.error("ERR This instance has cluster support disabled");
            }
            Verb::ReadOnly | Verb::ReadWrite => {
                self.is_stale = verb == Verb::ReadOnly;
                reply.ok();
            }
            // These depend on the session's state, and are never queued.
            Verb::Cluster
            | Verb::Discard
            | Verb::Exec
            | Verb::Multi
            | Verb::Quit
            | Verb::Reset
            | Verb::Shutdown
            | Verb::Watch => reply.error("ERR Command not allowed inside a transaction"),
        }
        false
    }

    fn select(&mut self, number: &[u8], reply: &mut Replies) {
        match integer(number).map(usize::try_from) {
            None => reply.error(NO_INTEGER),
            Some(Ok(number)) if number < self.shared.world.databases.len() => {
                self.choose(number);
                reply.ok();
            }
            Some(_) => reply.error(NO_DATABASE),
        }
    }

    fn auth(&mut self, words: &[Bytes], reply: &mut Replies) {
        let (user, password) = match words {
            [password] => (None, password),
            [user, password] => (Some(user), password),
            _ => return reply.error(crate::state::call::SYNTAX),
        };
        if user.is_none() && self.shared.settings.lock().password.is_none() {
            return reply.error(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            );
        }
        let user = user.map_or(&b"default"[..], |user| user);
        if self.shared.settings.lock().admits(user, password) {
            self.is_known = true;
            reply.ok();
        } else {
            reply.error(WRONG_PASSWORD);
        }
    }

    fn hello(&mut self, words: &[Bytes], reply: &mut Replies) {
        let mut version = self.version;
        let mut rest = words;
        if let [number, others @ ..] = words {
            version = match integer(number) {
                Some(2) => Version::Two,
                Some(3) => Version::Three,
                Some(_) => return reply.error("NOPROTO unsupported protocol version"),
                None => {
                    return reply.error("ERR Protocol version is not an integer or out of range");
                }
            };
            rest = others;
        }
        let (mut is_known, mut name) = (self.is_known, None);
        while let [word, others @ ..] = rest {
            rest = match others {
                [user, password, others @ ..] if is_word(word, "AUTH") => {
                    if !self.shared.settings.lock().admits(user, password) {
                        return reply.error(WRONG_PASSWORD);
                    }
                    is_known = true;
                    others
                }
                [given, others @ ..] if is_word(word, "SETNAME") => {
                    if !is_plain(given) {
                        return reply.error(WRONG_NAME);
                    }
                    name = Some(Bytes::copy_from_slice(given));
                    others
                }
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return reply.error(&format!("ERR Syntax error in HELLO option '{word}'"));
                }
            };
        }
        if !is_known {
            return reply.error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client \
                 and select the RESP protocol version at the same time",
            );
        }
        self.is_known = true;
        if let Some(name) = name {
            self.client.names.lock().name = name;
        }
        self.set_version(version);
        reply.version = version;
        let member = self.shared.member.as_ref();
        let leads = member.is_none_or(|member| member.standing().leads());
        greet(self.client.id, leads, reply);
    }

    fn client_command(&mut self, arguments: &[Bytes], reply: &mut Replies) {
        let words = &arguments[1..];
        let sub = words[0].to_ascii_uppercase();
        match (&*sub, &words[1..]) {
            (b"ID", []) => reply.integer(i64::try_from(self.client.id).unwrap_or(i64::MAX)),
            (b"GETNAME", []) => {
                let name = self.client.names.lock().name.clone();
                reply.bulk_or_null((!name.is_empty()).then_some(name));
            }
            (b"SETNAME", [name]) if !is_plain(name) => reply.error(WRONG_NAME),
            (b"SETNAME", [name]) => {
                self.client.names.lock().name = Bytes::copy_from_slice(name);
                reply.ok();
            }
            (b"SETINFO", [what, value]) => self.set_info(what, value, reply),
            (b"INFO", []) => reply.text(&self.client.line()),
            (b"LIST", filter) => self.list(filter, reply),
            (b"KILL", filter) if !filter.is_empty() => self.kill(filter, reply),
            (b"NO-EVICT" | b"NO-TOUCH", [switch]) if is_switch(switch) => reply.ok(),
            (b"REPLY", [mode]) => self.set_silence(mode, reply),
            (known, _) if SUBCOMMANDS.contains(&known) => reply.error(&format!(
                "ERR wrong number of arguments for 'client|{}' command",
                String::from_utf8_lossy(&sub).to_ascii_lowercase()
            )),
            _ => reply.error(&unknown_sub("CLIENT", &words[0])),
        }
    }

    fn set_info(&mut self, what: &[u8], value: &Bytes, reply: &mut Replies) {
        let mut names = self.client.names.lock();
        let value = Bytes::copy_from_slice(value);
        if !is_plain(&value) {
            let what = String::from_utf8_lossy(what).to_ascii_lowercase();
            return reply.error(&format!(
                "ERR {what} cannot contain spaces, newlines or special characters."
            ));
        }
        if is_word(what, "LIB-NAME") {
            names.library = value;
        } else if is_word(what, "LIB-VER") {
            names.version = value;
        } else {
            let what = String::from_utf8_lossy(what);
            return reply.error(&format!("ERR Unrecognized option '{what}'"));
        }
        reply.ok();
    }

    fn list(&self, filter: &[Bytes], reply: &mut Replies) {
        let all = self.shared.clients.all();
        let chosen: Vec<_> = match filter {
            [] => all,
            [word, kind] if is_word(word, "TYPE") => match kind.to_ascii_lowercase().as_slice() {
                b"normal" => all,
                b"master" | b"replica" | b"slave" | b"pubsub" => Vec::new(),
                _ => {
                    let kind = String::from_utf8_lossy(kind);
                    return reply.error(&format!("ERR Unknown client type '{kind}'"));
                }
            },
            [word, ids @ ..] if is_word(word, "ID") && !ids.is_empty() => {
                let ids: Option<Vec<i64>> = ids.iter().map(|id| integer(id)).collect();
                let Some(ids) = ids else { return reply.error("ERR Invalid client ID") };
                let is_one = |id: u64| i64::try_from(id).is_ok_and(|id| ids.contains(&id));
                all.into_iter().filter(|client| is_one(client.id)).collect()
            }
            _ => return reply.error(crate::state::call::SYNTAX),
        };
        reply.text(&chosen.iter().map(|client| client.line()).collect::<String>());
    }

    /// An address alone, the old form, or pairs of filters; the client itself is killed last.
    fn kill(&self, filter: &[Bytes], reply: &mut Replies) {
        let all = self.shared.clients.all();
        if let [address] = filter {
            let found = all.iter().find(|client| client.address.to_string().as_bytes() == address);
            return match found {
                Some(client) => {
                    client.kill();
                    reply.ok();
                }
                None => reply.error("ERR No such client"),
            };
        }
        let (mut chosen, mut skips_me) = (all, true);
        for pair in filter.chunks(2) {
            let [what, value] = pair else { return reply.error(crate::state::call::SYNTAX) };
            match what.to_ascii_uppercase().as_slice() {
                b"ID" => {
                    let id = integer(value).and_then(|id| u64::try_from(id).ok());
                    let Some(id) = id.filter(|&id| id > 0) else {
                        return reply.error("ERR client-id should be greater than 0");
                    };
                    chosen.retain(|client| client.id == id);
                }
                b"ADDR" => chosen.retain(|it| it.address.to_string().as_bytes() == value),
                b"LADDR" => chosen.retain(|it| it.local.to_string().as_bytes() == value),
                b"TYPE" if is_word(value, "normal") => {}
                b"TYPE" => chosen.clear(),
                b"USER" if value == "default" => {}
                b"USER" => {
                    let user = String::from_utf8_lossy(value);
                    return reply.error(&format!("ERR No such user '{user}'"));
                }
                b"SKIPME" if is_word(value, "yes") => skips_me = true,
                b"SKIPME" if is_word(value, "no") => skips_me = false,
                _ => return reply.error(crate::state::call::SYNTAX),
            }
        }
        chosen.retain(|client| !skips_me || client.id != self.client.id);
        chosen.iter().for_each(|client| client.kill());
        reply.count(chosen.len());
    }

    fn set_silence(&mut self, mode: &[u8], reply: &mut Replies) {
        use crate::serving::session::Silence;
        match mode.to_ascii_uppercase().as_slice() {
            b"ON" => {
                self.silence = Silence::None;
                reply.ok();
            }
            b"OFF" => self.silence = Silence::All,
            // Without a reply to itself.
            b"SKIP" if self.silence != Silence::All => self.silence = Silence::Next,
            b"SKIP" => {}
            _ => reply.error(crate::state::call::SYNTAX),
        }
    }
}

const SUBCOMMANDS: [&[u8]; 10] = [
    b"ID",
    b"GETNAME",
    b"SETNAME",
    b"SETINFO",
    b"INFO",
    b"LIST",
    b"KILL",
    b"NO-EVICT",
    b"NO-TOUCH",
    b"REPLY",
];

/// The answer to HELLO; the role is the one of INFO, in this command's word.
fn greet(id: u64, leads: bool, reply: &mut Replies) {
    reply.map(7);
    reply.bulk("server");
    reply.bulk("redis");
    reply.bulk("version");
    reply.bulk(crate::serving::info::REDIS_VERSION);
    reply.bulk("proto");
    reply.integer(if reply.version == Version::Three { 3 } else { 2 });
    reply.bulk("id");
    reply.integer(i64::try_from(id).unwrap_or(i64::MAX));
    reply.bulk("mode");
    reply.bulk("standalone");
    reply.bulk("role");
    reply.bulk(if leads { "master" } else { "replica" });
    reply.bulk("modules");
    reply.array(0);
}

/// Whether a name can be shown in a list.
fn is_plain(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn is_switch(word: &[u8]) -> bool {
    is_word(word, "ON") || is_word(word, "OFF")
}
