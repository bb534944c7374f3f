//! Nodes that go and come back under load: no acknowledged write is lost, and what clients see
//! could have happened one after the other.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adamant_sim::linearizable::{Kind, Operation, is_linearizable};

use crate::nodes::processes::{Nodes, PATIENCE, is_undone};
use crate::support::connections::{Client, Value, seed};

const CLIENTS: usize = 5;
/// Keys that are set and read, and keys that are counted up.
const KEYS: usize = 6;
/// Writes that are acknowledged between two kills, at least.
const WRITES: u64 = 150;

/// Rounds of a test: few, or as many as are asked for.
fn rounds(few: u64) -> u64 {
    let asked = std::env::var("ADAMANT_CLUSTER_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(few)
}

/// What clients do, and saw.
struct Record {
    began: Instant,
    /// Where nodes are that are up.
    addresses: Mutex<Vec<SocketAddr>>,
    histories: [Mutex<Vec<Operation>>; KEYS],
    acknowledged: AtomicU64,
    next_value: AtomicU64,
    is_over: AtomicBool,
}

impl Record {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            addresses: Mutex::default(),
            histories: Default::default(),
            acknowledged: AtomicU64::new(0),
            next_value: AtomicU64::new(1),
            is_over: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap()
    }

    fn set_addresses(&self, nodes: &Nodes) {
        let up = (0..3).filter(|&node| nodes.is_up(node));
        *self.addresses.lock().unwrap() = up.map(|node| nodes.address(node)).collect();
    }

    /// One operation over a connection, noted; false if the connection is of no use any more.
    fn act(&self, client: &mut Client, random: &mut fastrand::Rng) -> bool {
        let key = random.usize(..KEYS);
        let name = format!("key-{key}");
        let kind = match random.u8(..5) {
            0 | 1 => Kind::Read(None),
            2 => Kind::Add(None),
            _ => {
                let value = self.next_value.fetch_add(1, Ordering::Relaxed);
                // Far apart, so that what was added to it is known by it.
                Kind::Write(i64::try_from(value).unwrap() * 1_000_000)
            }
        };
        let words = match kind {
            Kind::Read(_) => format!("GET {name}"),
            Kind::Add(_) => format!("INCR {name}"),
            Kind::Write(value) => format!("SET {name} {value}"),
        };
        let start = self.now();
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let reply = client.try_call(&words);
        let end = self.now();
        let (kind, end) = match (kind, &reply) {
            (_, Some(undone)) if is_undone(undone) => return true,
            (Kind::Read(_), Some(Value::Null)) => (Kind::Read(None), Some(end)),
            (Kind::Read(_), Some(Value::Bulk(_))) => {
                let value = reply.as_ref().unwrap().text().parse().unwrap();
                (Kind::Read(Some(value)), Some(end))
            }
            (Kind::Add(_), &Some(Value::Integer(value))) => (Kind::Add(Some(value)), Some(end)),
            (Kind::Write(_), Some(Value::Simple(_))) => (kind, Some(end)),
            (_, None) => (kind, None),
            (_, Some(Value::Error(words))) if words.starts_with("UNCERTAIN") => (kind, None),
            (_, Some(other)) => panic!("{kind:?} was answered {other:?}"),
        };
        if end.is_some() && !matches!(kind, Kind::Read(_)) {
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        self.histories[key].lock().unwrap().push(Operation { start, end, kind });
        reply.is_some()
    }

    /// A client that goes to another node when its own has gone.
    fn serve(&self, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        while !self.is_over.load(Ordering::Relaxed) {
            let address = {
                let addresses = self.addresses.lock().unwrap();
                addresses[random.usize(..addresses.len())]
            };
            let Some(mut client) = Client::try_connect(address) else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            for _ in 0..random.usize(10..200) {
                if self.is_over.load(Ordering::Relaxed) || !self.act(&mut client, &mut random) {
                    break;
                }
            }
        }
    }

    fn wait_for_writes(&self, count: u64) {
        let target = self.acknowledged.load(Ordering::Relaxed) + count;
        let start = Instant::now();
        while self.acknowledged.load(Ordering::Relaxed) < target {
            assert!(start.elapsed() < PATIENCE, "nothing is acknowledged");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Reads all keys at last, from any node, and verifies.
    fn verify(&self, nodes: &mut Nodes) {
        for node in 0..3 {
            let mut client = nodes.client(node);
            for (key, history) in self.histories.iter().enumerate() {
                let start = self.now();
                let found = match client.say(&format!("GET key-{key}")) {
                    Value::Null => None,
                    value => Some(value.text().parse().unwrap()),
                };
                let operation = Operation { start, end: Some(self.now()), kind: Kind::Read(found) };
                history.lock().unwrap().push(operation);
            }
        }
        for (key, history) in self.histories.iter().enumerate() {
            let history = history.lock().unwrap();
            let unknown = history.iter().filter(|operation| operation.end.is_none()).count();
            println!("key-{key}: {} operations, {unknown} of unknown outcome", history.len());
            assert!(is_linearizable(&history), "key-{key}: {history:?}");
        }
        for node in 0..3 {
            assert_eq!(nodes.client(node).say("ADAMANT.CHECK"), Value::ok());
        }
    }
}

/// Clients work while something is done to the nodes; in the end all is verified.
fn under_load(nodes: &mut Nodes, seed: u64, work: impl FnOnce(&mut Nodes, &Record)) {
    let record = Record::new();
    record.set_addresses(nodes);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let record = &record;
            scope.spawn(move || record.serve(seed + client as u64));
        }
        // Whatever happens, clients end.
        struct Over<'r>(&'r AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&record.is_over);
        work(nodes, &record);
    });
    record.verify(nodes);
}

#[test]
fn the_leader_is_killed_under_load() {
    let seed = seed(1);
    let mut nodes = Nodes::start(&[]);
    let mut longest = Duration::ZERO;
    under_load(&mut nodes, seed, |nodes, record| {
        for _ in 0..rounds(3) {
            record.wait_for_writes(WRITES);
            let leader = nodes.leader();
            nodes.kill(leader);
            let killed = Instant::now();
            record.set_addresses(nodes);
            // Until somebody has a write acknowledged who asks for one all the time.
            let mut client = nodes.client((leader + 1) % 3);
            let start = Instant::now();
            while client.say("SET probe 1") != Value::ok() {
                assert!(start.elapsed() < PATIENCE, "nobody leads");
            }
            println!("no leader for {:?}", killed.elapsed());
            longest = longest.max(killed.elapsed());
            record.wait_for_writes(WRITES);
            nodes.run(leader, &[]);
            record.set_addresses(nodes);
        }
        record.wait_for_writes(WRITES);
    });
    println!("no leader for {longest:?} at most");
}

#[test]
fn nodes_are_restarted_one_after_the_other_under_load() {
    let seed = seed(2);
    let mut nodes = Nodes::start(&[]);
    under_load(&mut nodes, seed, |nodes, record| {
        for round in 0..rounds(1) {
            for node in 0..3 {
                record.wait_for_writes(WRITES);
                let up = (0..3).filter(|&other| other != node).map(|other| nodes.address(other));
                *record.addresses.lock().unwrap() = up.collect();
                nodes.end(node);
                record.wait_for_writes(WRITES);
                nodes.run(node, &[]);
                record.set_addresses(nodes);
                // The others may go when it has what it missed.
                let mut client = nodes.client(node);
                nodes.until("it is back", |_| {
                    client.say(&format!("SET round {round}")) == Value::ok()
                });
            }
        }
    });
}

#[test]
fn a_node_that_was_away_long_comes_back_by_a_snapshot() {
    let seed = seed(3);
    let mut nodes = Nodes::start(&["--cluster-snapshot-entries", "100"]);
    under_load(&mut nodes, seed, |nodes, record| {
        for _ in 0..rounds(1) {
            record.wait_for_writes(WRITES);
            let away = (nodes.leader() + 1) % 3;
            nodes.kill(away);
            record.set_addresses(nodes);
            let applied: u64 = nodes.status((away + 1) % 3, "applied").parse().unwrap();
            nodes.until("the log it needs is gone", |nodes| {
                (0..3).filter(|&node| node != away).all(|node| {
                    nodes.status(node, "purged").parse().is_ok_and(|purged: u64| purged > applied)
                })
            });
            nodes.run(away, &[]);
            record.set_addresses(nodes);
            nodes.until("it has a snapshot's state", |nodes| {
                let mut client = nodes.client(away);
                client.say("READONLY");
                let applied: u64 = nodes.status(away, "applied").parse().unwrap_or(0);
                let leader = (0..3).find(|&node| nodes.status(node, "state") == "Leader");
                let there = leader.and_then(|node| nodes.status(node, "purged").parse().ok());
                there.is_some_and(|purged: u64| applied > purged)
            });
            record.wait_for_writes(WRITES);
        }
    });
}
