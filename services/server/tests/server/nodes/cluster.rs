//! Nodes of a cluster: what clients of any of them see.

use std::collections::BTreeMap;

use adamant_server::{Cluster, ClusterStart, Server};

use crate::nodes::processes::{CALM, Nodes, free_port};
use crate::support::connections::{Client, Value, options, request, until};
use crate::web::status::metrics;

#[test]
fn every_node_answers_as_one_server_would() {
    let mut nodes = Nodes::start(&[&CALM[..], &["--databases", "3"]].concat());
    let leader = nodes.leader();
    let mut clients: Vec<Client> = (0..3).map(|node| nodes.client(node)).collect();
    for (at, client) in (0..).zip(&mut clients) {
        let value = format!("value {at}");
        assert_eq!(client.call(&[b"SET", b"key", value.as_bytes()]), Value::ok());
        assert_eq!(client.say("INCR counter"), Value::Integer(at + 1));
        assert_eq!(client.say("APPEND text ab"), Value::Integer(2 * (at + 1)));
        assert_eq!(client.say("SETRANGE range 3 x"), Value::Integer(4));
        assert_eq!(client.say("MSETNX key 1 other 2"), Value::Integer(0));
    }
    for client in &mut clients {
        assert_eq!(client.say("GET key"), Value::bulk("value 2"));
        assert_eq!(client.say("GET text"), Value::bulk("ababab"));
        assert_eq!(client.say("DBSIZE"), Value::Integer(4));
    }
    // What one has been told another one finds, at once and each time.
    for number in 0..100 {
        let (one, other) = (number % 3, (number + 1) % 3);
        assert_eq!(clients[one].say(&format!("SET n {number}")), Value::ok());
        assert_eq!(clients[other].say("GET n"), Value::bulk(&number.to_string()));
    }
    let follower = (leader + 1) % 3;
    let client = &mut clients[follower];
    // A large value, and a pipeline in one piece.
    let large = vec![7; 3 << 20];
    assert_eq!(client.call(&[b"SET", b"large", &large]), Value::ok());
    assert_eq!(client.say("STRLEN large"), Value::Integer(3 << 20));
    assert_eq!(client.say("DEL large"), Value::Integer(1));
    client.send(
        b"SET p 1\r\nGET p\r\nINCR p\r\nSELECT 1\r\nGET p\r\nSET p 9\r\nSELECT 0\r\nGET p\r\n",
    );
    let replies: Vec<String> = (0..8).map(|_| client.reply().text()).collect();
    assert_eq!(replies, ["OK", "1", "Integer(2)", "OK", "Null", "OK", "OK", "2"]);
    // What is too much at once is said, and nothing of it was done.
    let too_large = request(&[b"SET", b"large", &vec![7; 9 << 20]]);
    client.send(&too_large);
    assert!(client.reply().text().contains("at most in a cluster"));
    assert_eq!(client.say("EXISTS large"), Value::Integer(0));
    assert_eq!(client.say("FLUSHDB"), Value::ok());
    assert_eq!(clients[leader].say("DBSIZE"), Value::Integer(0));
    clients[leader].say("SELECT 1");
    assert_eq!(clients[leader].say("GET p"), Value::bulk("9"));
    assert_eq!(clients[leader].say("SWAPDB 0 1"), Value::ok());
    assert_eq!(clients[leader].say("DBSIZE"), Value::Integer(0));
    assert_eq!(clients[follower].say("GET p"), Value::bulk("9"));
    for (node, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.say("ADAMANT.CHECK"), Value::ok(), "node {node}");
    }
}

#[test]
fn transactions_are_one_wherever_they_come_from() {
    let mut nodes = Nodes::start(&CALM);
    let leader = nodes.leader();
    let mut follower = nodes.client((leader + 1) % 3);
    let mut other = nodes.client((leader + 2) % 3);
    follower.send(b"MULTI\r\nINCR a\r\nGET a\r\nSET b 1\r\nEXEC\r\n");
    let replies: Vec<Value> = (0..5).map(|_| follower.reply()).collect();
    let all = [Value::Integer(1), Value::bulk("1"), Value::ok()];
    assert_eq!(replies[4], Value::Array(all.to_vec()));
    // What was watched was changed by another node's client.
    for (change, is_done) in [("SET a 7", false), ("SET c 7", true), ("DEL a", false)] {
        assert_eq!(follower.say("WATCH a b"), Value::ok());
        assert!(!other.say(change).is_error());
        assert_eq!(follower.say("MULTI"), Value::ok());
        follower.say("INCR b");
        let value = follower.say("EXEC");
        assert_eq!(value != Value::Null, is_done, "{change}: {value:?}");
    }
    assert_eq!(other.say("GET b"), Value::bulk("2"));
    // All in one piece with a write, which goes to the node that leads.
    follower.send(b"SET w 1\r\nWATCH w\r\nSET w 2\r\nMULTI\r\nSET w 3\r\nEXEC\r\nWATCH w\r\nMULTI\r\nSET w 4\r\nEXEC\r\n");
    let replies: Vec<Value> = (0..10).map(|_| follower.reply()).collect();
    assert_eq!(replies[5], Value::Null);
    assert_eq!(replies[9], Value::Array(vec![Value::ok()]));
    assert_eq!(other.say("GET w"), Value::bulk("4"));
}

#[test]
fn entries_end_on_all_nodes() {
    let mut nodes = Nodes::start(&CALM);
    let leader = nodes.leader();
    let mut clients: Vec<Client> = (0..3).map(|node| nodes.client(node)).collect();
    assert_eq!(clients[(leader + 1) % 3].say("SET short 1 PX 300"), Value::ok());
    assert_eq!(clients[(leader + 1) % 3].say("SET long 1 EX 1000"), Value::ok());
    let moments: Vec<Value> =
        clients.iter_mut().map(|client| client.say("PEXPIRETIME long")).collect();
    assert!(moments.windows(2).all(|pair| pair[0] == pair[1]), "{moments:?}");
    nodes.until("it is over", |_| {
        clients.iter_mut().all(|client| client.say("GET short") == Value::Null)
    });
    // It goes by an entry of the log, from the disks of all.
    nodes.until("it is gone", |nodes| {
        (0..3).all(|node| nodes.client(node).say("DBSIZE") == Value::Integer(1))
    });
    assert_eq!(clients[leader].say("PERSIST long"), Value::Integer(1));
    assert_eq!(clients[(leader + 2) % 3].say("TTL long"), Value::Integer(-1));
}

#[test]
fn without_most_nodes_nothing_is_written_and_only_who_asks_for_it_reads() {
    let mut nodes = Nodes::start(&["--cluster-patience-seconds", "3"]);
    assert_eq!(nodes.client(0).say("SET a 1"), Value::ok());
    nodes.agree();
    let leader = nodes.leader();
    nodes.kill(leader);
    nodes.kill((leader + 1) % 3);
    let mut last = nodes.client((leader + 2) % 3);
    for words in ["SET a 2", "GET a", "EXISTS a"] {
        let found = last.say(words).text();
        assert!(found.starts_with("CLUSTERDOWN") || found.starts_with("UNCERTAIN"), "{found}");
    }
    assert_eq!(last.say("READONLY"), Value::ok());
    assert_eq!(last.say("GET a"), Value::bulk("1"));
    assert_eq!(last.say("READWRITE"), Value::ok());
    assert!(last.say("GET a").is_error());
    // With one of them back there are most again.
    nodes.run(leader, &[]);
    nodes.until("it is written", |_| last.say("SET a 3") == Value::ok());
    assert_eq!(nodes.client(leader).say("GET a"), Value::bulk("3"));
}

#[test]
fn strangers_are_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, other) = (folder.path().join("secret"), folder.path().join("other"));
    std::fs::write(&secret, "all nodes know this\n").unwrap();
    std::fs::write(&other, "and not that\n").unwrap();
    let mut nodes = Nodes::none(2, &[&CALM[..], &["--cluster-patience-seconds", "3"]].concat());
    nodes.run(0, &["--cluster-init", "--cluster-secret-file", secret.to_str().unwrap()]);
    let first = nodes.place(0);
    let with = |secret: &std::path::Path| {
        ["--cluster-join", &first, "--cluster-secret-file", secret.to_str().unwrap()]
            .map(str::to_owned)
    };
    let run = |nodes: &mut Nodes, words: [String; 4]| {
        nodes.run(1, &words.iter().map(String::as_str).collect::<Vec<_>>());
    };
    run(&mut nodes, with(&other));
    let words = nodes.client(0).say(&format!("ADAMANT.CLUSTER JOIN 2 {}", nodes.place(1)));
    assert!(words.text().contains("--cluster-secret-file"), "{words:?}");
    assert!(nodes.client(1).say("SET a 1").text().starts_with("CLUSTERDOWN"));
    nodes.kill(1);
    run(&mut nodes, with(&secret));
    nodes.until("it is let in", |nodes| nodes.status(0, "member").matches("voter").count() == 2);
    assert_eq!(nodes.client(1).say("SET a 1"), Value::ok());
    assert_eq!(nodes.client(0).say("GET a"), Value::bulk("1"));
}

/// What a node says of its part, by name.
fn replication(nodes: &Nodes, node: usize) -> BTreeMap<String, String> {
    let text = nodes.client(node).say("INFO replication").text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("# Replication"));
    let pair = |line: &str| line.split_once(':').map(|(name, rest)| (name.into(), rest.into()));
    lines.map(|line| pair(line).unwrap()).collect()
}

#[test]
fn each_node_says_who_leads_and_how_far_it_is() {
    let mut nodes = Nodes::start(&CALM);
    assert_eq!(nodes.client(0).say("SET a 1"), Value::ok());
    nodes.agree();
    let leader = nodes.leader();
    let place = nodes.place(leader);
    nodes.until("all say the same", |nodes| {
        let all: Vec<_> = (0..3).map(|node| replication(nodes, node)).collect();
        let is_same = |name: &str| all.iter().all(|one| one.get(name) == all[0].get(name));
        is_same("leader") && is_same("term") && is_same("applied")
    });
    for node in 0..3 {
        let said = replication(&nodes, node);
        let role = if node == leader { "master" } else { "slave" };
        assert_eq!(said["role"], role, "{said:?}");
        let greeting = nodes.client(node).say("HELLO 2");
        let role = Value::bulk(if node == leader { "master" } else { "replica" });
        assert!(matches!(&greeting, Value::Array(words) if words.contains(&role)), "{greeting:?}");
        assert_eq!(
            said.get("master_link_status").map(String::as_str),
            (node != leader).then_some("up")
        );
        assert_eq!(said["node"], (node + 1).to_string());
        assert_eq!((&said["leader"], &said["leader_place"]), (&(leader + 1).to_string(), &place));
        assert_eq!(said["members"], "3");
        let third = format!("node=3,place={},role=voter", nodes.place(2));
        assert_eq!(said["member2"], third);
        let number = |name: &str| said[name].parse::<u64>().unwrap();
        assert!(number("term") > 0 && number("last_entry") >= number("applied"), "{said:?}");
        // Clients speak of slots to what calls itself a cluster.
        let server = nodes.client(node).say("INFO server").text();
        assert!(server.contains("redis_mode:standalone\r\n"), "{server}");
    }
    // Alone it leads no longer, or never did, and says so.
    let (second, third) = ((leader + 1) % 3, (leader + 2) % 3);
    nodes.kill(leader);
    nodes.kill(second);
    nodes.until("nobody leads", |nodes| {
        let said = replication(nodes, third);
        said["role"] == "slave" && said["master_link_status"] == "down"
    });
}

#[test]
fn figures_of_a_node_for_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::new(7, free_port().local_addr().unwrap());
    cluster.start = ClusterStart::First;
    cluster.snapshot_entries = 20;
    let mut options = options();
    options.cluster = Some(cluster);
    options.http = Some(([127, 0, 0, 1], 0).into());
    let server = Server::start(folder.path().join("node"), options).unwrap();
    let mut client = Client::connect(server.address());
    for number in 0..30 {
        assert_eq!(client.say(&format!("SET k{number} 1")), Value::ok());
    }
    let names = ["leads", "has_leader", "members{role=\"voter\"}"];
    let found = metrics(&server);
    assert!(names.iter().all(|name| found[&format!("adamant_cluster_{name}")] == 1.0), "{found:?}");
    assert_eq!(found["adamant_cluster_members{role=\"learner\"}"], 0.0);
    assert!(found["adamant_cluster_term"] >= 1.0);
    assert!(found["adamant_cluster_last_entry"] >= 30.0);
    assert!(found["adamant_cluster_applied_entry"] >= 30.0);
    until("there is a snapshot", || {
        metrics(&server).get("adamant_cluster_snapshot_entry").is_some_and(|&entry| entry > 0.0)
    });
    // A server that is no node has no such figures.
    let alone = crate::web::status::told(|_| {});
    assert!(!metrics(&alone).keys().any(|name| name.starts_with("adamant_cluster")));
}
