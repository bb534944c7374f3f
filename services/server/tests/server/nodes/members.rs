//! Nodes that join, leave, and have lost what they had.

use std::process::{Command, Stdio};

use crate::nodes::processes::{CALM, Nodes};
use crate::support::connections::Value;

/// What a node says that ends by itself.
fn said(nodes: &Nodes, node: usize, more: &[&str]) -> String {
    let child = Command::new(env!("CARGO_BIN_EXE_adamant-server"))
        .arg(nodes.path(node))
        .args(["--port", "0"])
        .args(nodes.all_options(node, more))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn voters(nodes: &Nodes, node: usize) -> Vec<String> {
    let members = nodes.status(node, "member");
    let voters = members.lines().filter(|line| line.ends_with("voter"));
    voters.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn a_node_joins_and_another_one_leaves() {
    let mut nodes = Nodes::none(3, &CALM);
    nodes.run(0, &["--cluster-init"]);
    assert_eq!(nodes.client(0).say("SET a 1"), Value::ok());
    // One that waits to be joined, and is asked for at a node that is no leader.
    nodes.run(1, &[]);
    let (second, third) = (nodes.place(1), nodes.place(2));
    let mut client = nodes.client(0);
    let words = client.say(&format!("ADAMANT.CLUSTER JOIN 3 {second}"));
    assert!(words.text().contains("is node 2, not 3"), "{words:?}");
    assert!(client.say(&format!("ADAMANT.CLUSTER JOIN 3 {third}")).is_error(), "nobody is there");
    assert_eq!(client.say(&format!("ADAMANT.CLUSTER JOIN 2 {second}")), Value::ok());
    assert_eq!(nodes.client(1).say("GET a"), Value::bulk("1"));
    nodes.run(2, &[]);
    let joined = nodes.client(1).say(&format!("ADAMANT.CLUSTER JOIN 3 {third}"));
    assert_eq!(joined, Value::ok());
    nodes.until("all know", |nodes| (0..3).all(|node| voters(nodes, node) == ["1", "2", "3"]));
    assert_eq!(
        client.say("ADAMANT.CLUSTER JOIN x y"),
        Value::Error("ERR value is not an integer or out of range".into())
    );
    assert!(
        client.say("ADAMANT.CLUSTER FLY").is_error()
            && client.say("ADAMANT.CLUSTER LEAVE").is_error()
    );
    // The leader leaves, asked for at another node; the others go on without it.
    let leader = nodes.leader();
    let other = (leader + 1) % 3;
    let left = nodes.client(other).say(&format!("ADAMANT.CLUSTER LEAVE {}", leader + 1));
    assert_eq!(left, Value::ok());
    nodes.kill(leader);
    let mut client = nodes.client(other);
    nodes.until("the others go on", |_| client.say("SET a 2") == Value::ok());
    assert_eq!(voters(&nodes, other).len(), 2);
    let words = client.say(&format!("ADAMANT.CLUSTER LEAVE {}", leader + 1));
    assert!(words.text().contains("is no member"), "{words:?}");
    assert_eq!(nodes.client((leader + 2) % 3).say("GET a"), Value::bulk("2"));
}

#[test]
fn a_node_that_has_lost_its_disk_is_another_one() {
    let mut nodes = Nodes::start(&CALM);
    assert_eq!(nodes.client(0).say("SET a 1"), Value::ok());
    let lost = (nodes.leader() + 1) % 3;
    let other = (lost + 1) % 3;
    nodes.kill(lost);
    // A part is gone: the node says so, and makes nothing anew.
    let state = nodes.path(lost).join("state-0001");
    std::fs::rename(&state, nodes.path(lost).join("gone")).unwrap();
    let words = said(&nodes, lost, &[]);
    assert!(words.contains("state-0001") && words.contains("new number"), "{words}");
    // All is gone: under its number it is not taken in, nor makes a cluster of its own out of those
    // that are there.
    std::fs::remove_dir_all(nodes.path(lost)).unwrap();
    let place = nodes.place(other);
    let words = said(&nodes, lost, &["--cluster-join", &place]);
    assert!(words.contains("ADAMANT.CLUSTER LEAVE"), "{words}");
    nodes.run(lost, &[]);
    assert_eq!(nodes.client(other).say("SET a 2"), Value::ok());
    assert_eq!(nodes.status(lost, "applied"), "none", "nobody speaks to it");
    nodes.kill(lost);
    // And one that is a member makes no new cluster either.
    nodes.kill(other);
    let words = said(&nodes, other, &["--cluster-init"]);
    assert!(words.contains("--cluster-init"), "{words}");
    nodes.run(other, &[]);
    // Out, and in again, which it may with a directory that nobody knows.
    let left = format!("ADAMANT.CLUSTER LEAVE {}", lost + 1);
    let mut client = nodes.client(other);
    nodes.until("it is out", |nodes| {
        client.say(&left);
        voters(nodes, other).len() == 2
    });
    nodes.run(lost, &["--cluster-join", &place]);
    nodes.until("it is in", |nodes| voters(nodes, lost).len() == 3);
    assert_eq!(nodes.client(lost).say("GET a"), Value::bulk("2"));
}

#[test]
fn a_node_is_served_by_a_server_alone_afterwards() {
    let mut nodes = Nodes::none(1, &[]);
    nodes.run(0, &["--cluster-init"]);
    let mut client = nodes.client(0);
    assert_eq!(client.say("SET a 1"), Value::ok());
    assert_eq!(client.say("SET b 1 EX 1000"), Value::ok());
    client.send(b"SHUTDOWN\r\n");
    // Its process may still be there, but has closed all that it had open.
    assert_eq!(client.try_reply(), None);
    let program = crate::support::program::Program::start(&nodes.path(0).join("state-0001"), &[]);
    let mut client = crate::support::connections::Client::connect(program.address);
    assert_eq!(client.say("GET a"), Value::bulk("1"));
    assert!(matches!(client.say("TTL b"), Value::Integer(seconds) if seconds > 0));
    assert_eq!(
        client.say("READONLY"),
        Value::Error("ERR This instance has cluster support disabled".into())
    );
    assert!(client.say("ADAMANT.CLUSTER STATUS").text().contains("--cluster"));
}
