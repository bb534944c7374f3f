//! Three programs on loopback that are a cluster.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::connections::{Client, Value};
use crate::support::program::Program;

/// For anything to happen: machines may be slow, and busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// Between two looks whether it has.
const PAUSE: Duration = Duration::from_millis(20);

/// Ports that the system gives to nobody who asks for any: connections get theirs from 32768 on,
/// and one of them could have a node's port before the node does.
const PORTS: Range<u16> = 10_000..30_000;

pub(crate) fn free_port() -> TcpListener {
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, fastrand::u16(PORTS))).ok();
    (0..1000).find_map(bind).expect("a free port")
}

/// Options of nodes of which none is to take another one's place before that is really gone: a disk
/// that holds up a sync for seconds takes it from a node that leads otherwise, and what that was at
/// is answered `UNCERTAIN`.
pub(crate) const CALM: [&str; 2] = ["--cluster-heartbeat-ms", "1000"];

/// The nodes of a cluster, each on its own ports.
pub(crate) struct Nodes {
    folder: TempDir,
    ports: Vec<u16>,
    programs: Vec<Option<Program>>,
    options: Vec<String>,
}

impl Nodes {
    /// Three nodes that all have a voice, started with options.
    pub(crate) fn start(options: &[&str]) -> Self {
        let mut nodes = Self::none(3, options);
        nodes.run(0, &["--cluster-init"]);
        for node in 1..3 {
            let first = nodes.place(0);
            nodes.run(node, &["--cluster-join", &first]);
        }
        nodes.until("all have a voice", |nodes| {
            (0..3).all(|node| nodes.status(node, "member").matches("voter").count() == 3)
        });
        nodes
    }

    /// So many nodes that were not started.
    pub(crate) fn none(count: usize, options: &[&str]) -> Self {
        // Held at once, so that they are different ones.
        let held: Vec<_> = (0..count).map(|_| free_port()).collect();
        let ports = held.iter().map(|held| held.local_addr().unwrap().port()).collect();
        Self {
            folder: tempfile::tempdir().unwrap(),
            ports,
            programs: (0..count).map(|_| None).collect(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        }
    }

    pub(crate) fn path(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("node-{}", node + 1))
    }

    /// Where the other nodes reach one.
    pub(crate) fn place(&self, node: usize) -> String {
        format!("127.0.0.1:{}", self.ports[node])
    }

    /// Starts a node.
    pub(crate) fn run(&mut self, node: usize, more: &[&str]) {
        let options = self.all_options(node, more);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.programs[node] = Some(Program::start(&self.path(node), &options));
    }

    pub(crate) fn all_options(&self, node: usize, more: &[&str]) -> Vec<String> {
        let number = (node + 1).to_string();
        let place = self.place(node);
        let own = ["--cluster", &number, "--cluster-listen", &place];
        let options = self.options.iter().map(String::as_str);
        own.into_iter().chain(options).chain(more.iter().copied()).map(str::to_owned).collect()
    }

    /// Ends a node at once, as a fault of its machine would.
    pub(crate) fn kill(&mut self, node: usize) {
        drop(self.programs[node].take());
    }

    /// Ends a node as its operator would.
    pub(crate) fn end(&mut self, node: usize) {
        let mut program = self.programs[node].take().unwrap();
        Client::connect(program.address).send(b"SHUTDOWN\r\n");
        assert!(program.child.wait().unwrap().success());
    }

    pub(crate) fn is_up(&self, node: usize) -> bool {
        self.programs[node].is_some()
    }

    /// Where clients reach a node that is up.
    pub(crate) fn address(&self, node: usize) -> SocketAddr {
        self.programs[node].as_ref().unwrap().address
    }

    pub(crate) fn client(&self, node: usize) -> Client {
        Client::connect(self.address(node))
    }

    /// The lines of a node's status that begin with a word.
    pub(crate) fn status(&self, node: usize, word: &str) -> String {
        let text = self.client(node).say("ADAMANT.CLUSTER STATUS").text();
        let lines = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(':'));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The node that leads, as most of those that are up say.
    pub(crate) fn leader(&mut self) -> usize {
        let mut leader = None;
        self.until("somebody leads", |nodes| {
            let up: Vec<_> = (0..nodes.ports.len()).filter(|&node| nodes.is_up(node)).collect();
            let found = up.iter().filter_map(|&node| nodes.status(node, "leader").parse().ok());
            let found: Vec<usize> = found.collect();
            let named = found.iter().copied().find(|&named| {
                let voices = found.iter().filter(|&&other| other == named).count();
                voices * 2 > up.len() && nodes.is_up(named - 1)
            });
            leader = named.map(|named| named - 1);
            leader.is_some()
        });
        leader.unwrap()
    }

    /// Waits until something is so.
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until all that are up have applied the same entries.
    pub(crate) fn agree(&mut self) {
        self.until("all have the same", |nodes| {
            let up = (0..nodes.ports.len()).filter(|&node| nodes.is_up(node));
            let applied: Vec<String> = up.map(|node| nodes.status(node, "applied")).collect();
            applied.windows(2).all(|pair| pair[0] == pair[1])
        });
    }
}

/// A reply that says that nothing was done, and why.
pub(crate) fn is_undone(value: &Value) -> bool {
    matches!(value, Value::Error(words) if words.starts_with("CLUSTERDOWN") || words.starts_with("TRYAGAIN"))
}
