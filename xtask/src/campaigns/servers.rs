//! `cargo xtask peers server`, `cargo xtask peers cluster`: server benchmarks against Redis and
//! etcd, with their own load programs.
//!
//! Purpose: `adamant-server` against redis-server, one process each, by redis-benchmark; three
//! nodes of a cluster against three of etcd, by redis-benchmark and `etcdctl check perf`. The
//! servers take turns, round by round; the output is medians, and Adamant's ratio.
//! Invariants: everything listens on loopback, on ports that were free, in a temporary folder; the
//! folder and the processes are removed in any case.
//! Thread safety: none needed.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::campaigns::numbers::numbers;
use crate::source::workspace::Workspace;
use crate::testing::services;

/// Default number of rounds: the median of fewer says little.
const ROUNDS: u64 = 3;
/// Maximum time for a server to answer.
const START_WAIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
/// Pause between servers, so that dirty pages of one do not slow the next one down.
const REST: Duration = Duration::from_secs(2);

/// A process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Requests a second, and milliseconds within which 99 % were answered, or all if only that is
/// reported.
#[derive(Clone, Copy, Debug)]
struct Pace {
    rate: f64,
    millis: f64,
}

/// The figures of each round, by server.
type Figures = BTreeMap<&'static str, Vec<Pace>>;

/// A load of redis-benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    value_bytes: usize,
    pipeline: usize,
    requests: usize,
    keys: usize,
}

const LOADS: [Load; 4] = [
    Load { value_bytes: 100, pipeline: 1, requests: 100_000, keys: 100_000 },
    Load { value_bytes: 100, pipeline: 16, requests: 400_000, keys: 100_000 },
    Load { value_bytes: 65_536, pipeline: 1, requests: 10_000, keys: 2_000 },
    Load { value_bytes: 65_536, pipeline: 16, requests: 10_000, keys: 2_000 },
];

/// `adamant-server` against redis-server: `--rounds N`. True unless something is missing.
pub(crate) fn server(options: &[&str]) -> Result<bool, String> {
    let [rounds] = numbers(["--rounds"], [ROUNDS], options)?;
    let workspace = Workspace::load()?;
    let program = services::server(&workspace, "release")?;
    let mut found: BTreeMap<(&str, Load, &str), Figures> = BTreeMap::new();
    for round in 0..rounds {
        for durability in ["sync", "buffered"] {
            for name in in_turn(["adamant", "redis"], round) {
                eprintln!("round {}: {name}, {durability}", round + 1);
                let folder = folder(&workspace)?;
                let port = free_port()?;
                let _server = match name {
                    "adamant" => start(adamant(&program, folder.path(), port, durability))?,
                    _ => start(redis(folder.path(), port, durability))?,
                };
                wait_for(port)?;
                for load in LOADS {
                    for (what, figures) in benchmark(port, load)? {
                        let row = found.entry((durability, load, what)).or_default();
                        row.entry(name).or_default().push(figures);
                    }
                }
            }
            thread::sleep(REST);
        }
    }
    println!("| durability | what | adamant k/s | redis k/s | ratio | p99 ms | redis |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    for ((durability, load, what), figures) in &found {
        let Load { value_bytes, pipeline, .. } = load;
        let what = format!("{durability} | {what}, {value_bytes} B, -P {pipeline}");
        print_row(&what, figures, ["adamant", "redis"]);
    }
    Ok(true)
}

/// Bytes of keys and values in `etcdctl check perf`.
const CLUSTER_KEY_BYTES: usize = 256;
const CLUSTER_VALUE_BYTES: usize = 1024;
/// Its load `l`: 500 clients, for a minute, up to 8,000 a second; `xl`: 1,000 and 15,000.
const CLUSTER_LOADS: [(&str, usize); 2] = [("l", 500), ("xl", 1000)];
const CLUSTER_REQUESTS: usize = 200_000;

/// Three nodes against three of etcd: `--rounds N`. True unless something is missing.
pub(crate) fn cluster(options: &[&str]) -> Result<bool, String> {
    let [rounds] = numbers(["--rounds"], [ROUNDS], options)?;
    let workspace = Workspace::load()?;
    let program = services::server(&workspace, "release")?;
    let mut found: BTreeMap<usize, Figures> = BTreeMap::new();
    for round in 0..rounds {
        for name in in_turn(["adamant", "etcd"], round) {
            eprintln!("round {}: {name}", round + 1);
            let folder = folder(&workspace)?;
            let ports = free_ports::<6>()?;
            let _nodes = match name {
                "adamant" => adamant_nodes(&program, folder.path(), ports)?,
                _ => etcd_nodes(folder.path(), ports)?,
            };
            for (load, clients) in CLUSTER_LOADS {
                let figures = match name {
                    "adamant" => benchmark_puts(ports[0], clients)?,
                    _ => check_perf(&ports[..3], load)?,
                };
                found.entry(clients).or_default().entry(name).or_default().push(figures);
            }
        }
        thread::sleep(REST);
    }
    println!("| clients | adamant k/s | etcd k/s | ratio | p99 ms | etcd: longest, ms |");
    println!("|---|--:|--:|--:|--:|--:|");
    for (clients, figures) in &found {
        print_row(&clients.to_string(), figures, ["adamant", "etcd"]);
    }
    Ok(true)
}

fn in_turn(mut names: [&'static str; 2], round: u64) -> [&'static str; 2] {
    if !round.is_multiple_of(2) {
        names.reverse();
    }
    names
}

fn print_row(what: &str, figures: &Figures, names: [&str; 2]) {
    let [ours, theirs] = names.map(|name| {
        let rounds = figures.get(name).map_or(&[][..], Vec::as_slice);
        let median = |of: fn(&Pace) -> f64| {
            let mut all: Vec<f64> = rounds.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
        };
        (median(|one| one.rate) / 1000.0, median(|one| one.millis))
    });
    let ratio = ours.0 / theirs.0;
    println!(
        "| {what} | {:.1} | {:.1} | {ratio:.2} | {:.1} | {:.1} |",
        ours.0, theirs.0, ours.1, theirs.1
    );
}

fn folder(workspace: &Workspace) -> Result<tempfile::TempDir, String> {
    // Not in /tmp, which may be memory.
    let folder = tempfile::Builder::new().prefix("peers-").tempdir_in(&workspace.target);
    folder.map_err(|error| format!("no folder for stores: {error}"))
}

fn free_ports<const N: usize>() -> Result<[u16; N], String> {
    // All are held at once, so that none is given twice.
    let held = [(); N].map(|()| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; N];
    for (port, held) in ports.iter_mut().zip(held) {
        let address = held.and_then(|held| held.local_addr());
        *port = address.map_err(|error| format!("no port is free: {error}"))?.port();
    }
    Ok(ports)
}

fn free_port() -> Result<u16, String> {
    free_ports().map(|[port]| port)
}

fn adamant(program: &Path, folder: &Path, port: u16, durability: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(folder.join("store"));
    command.args(["--port", &port.to_string(), "--durability", durability]);
    command
}

fn redis(folder: &Path, port: u16, durability: &str) -> Command {
    let syncs = if durability == "sync" { "always" } else { "everysec" };
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--dir"]).arg(folder);
    command.args(["--appendonly", "yes", "--appendfsync", syncs, "--save", ""]);
    command
}

fn adamant_nodes(program: &Path, folder: &Path, ports: [u16; 6]) -> Result<Vec<Running>, String> {
    let mut nodes = Vec::new();
    for (index, port) in ports[..3].iter().enumerate() {
        let number = (index + 1).to_string();
        let listen = format!("127.0.0.1:{}", ports[3 + index]);
        let first = format!("127.0.0.1:{}", ports[3]);
        let mut command = Command::new(program);
        command.arg(folder.join(format!("node-{number}")));
        command.args(["--port", &port.to_string(), "--cluster", &number]);
        command.args(["--cluster-listen", &listen]);
        match index {
            0 => command.arg("--cluster-init"),
            _ => command.args(["--cluster-join", &first]),
        };
        nodes.push(start(command)?);
        wait_for(*port)?;
    }
    // All are voters when the last one that joined has caught up.
    thread::sleep(REST);
    Ok(nodes)
}

fn etcd_nodes(folder: &Path, ports: [u16; 6]) -> Result<Vec<Running>, String> {
    let peer = |index: usize| format!("http://127.0.0.1:{}", ports[3 + index]);
    let all: Vec<String> = (0..3).map(|index| format!("node{index}={}", peer(index))).collect();
    let mut nodes = Vec::new();
    for (index, port) in ports[..3].iter().enumerate() {
        let client = format!("http://127.0.0.1:{port}");
        let mut command = Command::new("etcd");
        command.args(["--name", &format!("node{index}"), "--data-dir"]);
        command.arg(folder.join(format!("node-{index}")));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer(index)]);
        command.args(["--initial-advertise-peer-urls", &peer(index)]);
        command.args(["--initial-cluster", &all.join(",")]);
        nodes.push(start(command)?);
    }
    let deadline = Instant::now() + START_WAIT;
    while !etcdctl(&ports[..3]).args(["endpoint", "health"]).status().is_ok_and(|it| it.success()) {
        if Instant::now() > deadline {
            return Err("etcd: expected three nodes to be well within 30 s".into());
        }
        thread::sleep(PAUSE);
    }
    Ok(nodes)
}

fn etcdctl(ports: &[u16]) -> Command {
    let endpoints: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").args(["--endpoints", &endpoints.join(",")]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn start(mut command: Command) -> Result<Running, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.map(Running).map_err(|error| format!("{name}: {error}; it is to be installed"))
}

fn wait_for(port: u16) -> Result<(), String> {
    let deadline = Instant::now() + START_WAIT;
    while Instant::now() < deadline {
        let answer = Command::new("redis-cli").args(["-p", &port.to_string(), "ping"]).output();
        let answer = answer.map_err(|error| format!("redis-cli: {error}; it is in redis-tools"))?;
        if answer.stdout.starts_with(b"PONG") {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(format!("expected a server on port {port} to answer within 30 s"))
}

/// Runs redis-benchmark; returns the results of each command.
fn redis_benchmark(arguments: &[&str]) -> Result<Vec<(String, Pace)>, String> {
    let output = Command::new("redis-benchmark").arg("--csv").args(arguments).output();
    let output = output.map_err(|error| format!("redis-benchmark: {error}; see redis-tools"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut found = Vec::new();
    // The header line comes first, if there is one.
    for line in said.lines() {
        let fields: Vec<&str> = line.split("\",\"").map(|field| field.trim_matches('"')).collect();
        // Name, rate, then latencies: mean, least, median, 95th, 99th, longest.
        if let [name, rate, _, _, _, _, p99, _] = fields[..]
            && let (Ok(rate), Ok(millis)) = (rate.parse(), p99.parse())
        {
            found.push((name.to_owned(), Pace { rate, millis }));
        }
    }
    if found.is_empty() {
        return Err(format!("redis-benchmark: expected figures, found {said:?}"));
    }
    Ok(found)
}

fn benchmark(port: u16, load: Load) -> Result<Vec<(&'static str, Pace)>, String> {
    let Load { value_bytes, pipeline, requests, keys } = load;
    let numbers = [port.into(), pipeline, value_bytes, requests, keys].map(|it| it.to_string());
    let [port, pipeline, value_bytes, requests, keys] = numbers.each_ref().map(String::as_str);
    let arguments = ["-p", port, "-t", "set,get", "-c", "50", "-P", pipeline];
    let sizes = ["-d", value_bytes, "-n", requests, "-r", keys];
    let found = redis_benchmark(&[&arguments[..], &sizes].concat())?;
    let named = found.into_iter().filter_map(|(name, figures)| match &name[..] {
        "SET" => Some(("SET", figures)),
        "GET" => Some(("GET", figures)),
        _ => None,
    });
    Ok(named.collect())
}

fn benchmark_puts(port: u16, clients: usize) -> Result<Pace, String> {
    let number = "__rand_int__";
    let key = format!("{}{number}", "k".repeat(CLUSTER_KEY_BYTES - number.len()));
    let value = "v".repeat(CLUSTER_VALUE_BYTES);
    let numbers = [port.into(), clients, CLUSTER_REQUESTS].map(|it| it.to_string());
    let [port, clients, requests] = numbers.each_ref().map(String::as_str);
    let options = ["-p", port, "-c", clients, "-n", requests, "-r", "1000000"];
    let found = redis_benchmark(&[&options[..], &["SET", &key, &value]].concat())?;
    Ok(found[0].1)
}

/// Rate and longest request of `etcdctl check perf`, in milliseconds.
fn check_perf(ports: &[u16], load: &str) -> Result<Pace, String> {
    let mut command = etcdctl(ports);
    command.args(["check", "perf", "--load", load]).stdout(Stdio::piped());
    let output = command.output().map_err(|error| format!("etcdctl: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // "PASS: Throughput is 7900 writes/s", "FAIL: Throughput too low: 3000 writes/s"; "Slowest
    // request took 0.2s".
    let number_behind = |start: &str| -> Option<f64> {
        let behind = said.split_once(start)?.1;
        let digits = behind.trim_start_matches(|it: char| !it.is_ascii_digit());
        let end = digits.find(|it: char| !it.is_ascii_digit() && it != '.');
        digits[..end.unwrap_or(digits.len())].parse().ok()
    };
    let (rate, longest) = (number_behind("Throughput"), number_behind("Slowest request"));
    match (rate, longest) {
        (Some(rate), Some(seconds)) => Ok(Pace { rate, millis: seconds * 1000.0 }),
        _ => Err(format!("etcdctl check perf: expected its figures, found {said:?}")),
    }
}
