//! Processes that take a store over from one another, on the file system: the writer is killed with
//! SIGKILL at any moment, or not at all, and another one goes on. No commit that returned is lost.
//!
//! A child opens the store, says so, and commits batches, each with the number behind the last one
//! that it finds; it prints a number when its commit has returned. The parent starts the next
//! child, and kills the one before: sometimes first, sometimes when the other one is already open,
//! so that two of them write at once until the elder finds itself fenced. Then the store has
//! exactly the commits 1 to n, where n is at least the last number that was printed, in both
//! keyspaces.
//!
//! Twelve children by default; `ADAMANT_FAILOVER_ROUNDS` changes that.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use adamant_remote::{Error, Options, Store};
use fastrand::Rng;

const URL: &str = "ADAMANT_FAILOVER_URL";
const ROUNDS: &str = "ADAMANT_FAILOVER_ROUNDS";
/// How long a child may take to open the store or commit on a busy machine.
const LONG: Duration = Duration::from_secs(300);

/// The child: commits until it is killed or fenced.
#[test]
#[ignore = "the process that another test starts and kills"]
fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let options = Options::new().flush_ms(2).poll_ms(100).memtable_bytes_max(64 << 10);
    let store = match Store::open_with(&url, options) {
        // The next one was opened meanwhile.
        Err(error) if error.is_fenced() => return println!("fenced"),
        outcome => outcome.unwrap(),
    };
    let work = || -> Result<(), Error> {
        let (log, last) = (store.keyspace("log")?, store.keyspace("last")?);
        let mut number = last.get("number")?.map_or(0, |value| number_of(&value));
        println!("opened {number}");
        loop {
            number += 1;
            let mut batch = store.batch();
            batch.put(&log, key_of(number), vec![number as u8; 100])?;
            batch.put(&last, "number", number.to_le_bytes())?;
            batch.commit()?;
            println!("committed {number}");
        }
    };
    match work() {
        Err(error) if error.is_fenced() => println!("fenced"),
        outcome => outcome.unwrap(),
    }
}

fn key_of(number: u64) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

fn number_of(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// What a child says.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Opened,
    Committed(u64),
    Fenced,
}

struct Writer {
    child: Child,
    said: Receiver<Said>,
    committed: u64,
    is_fenced: bool,
}

impl Writer {
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(URL, url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, said) = channel();
        let stdout = child.stdout.take().unwrap();
        thread::spawn(move || {
            // A line that was cut off by a kill has no end, and counts only if it is whole.
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                let words: Vec<&str> = line.split(' ').collect();
                let told = match words[..] {
                    // libtest may have begun the line.
                    [.., "opened", _] => Said::Opened,
                    ["committed", number] => Said::Committed(number.parse().unwrap()),
                    [.., "fenced"] => Said::Fenced,
                    _ => continue,
                };
                if sender.send(told).is_err() {
                    break;
                }
            }
        });
        Self { child, said, committed: 0, is_fenced: false }
    }

    /// Waits until it says something.
    fn listen(&mut self) -> Option<Said> {
        let said = self.said.recv_timeout(LONG);
        match &said {
            Ok(Said::Committed(number)) => self.committed = *number,
            Ok(Said::Fenced) => self.is_fenced = true,
            _ => {}
        }
        said.ok()
    }

    fn wait_for_commits(&mut self, count: u32) {
        for _ in 0..count {
            while !matches!(self.listen().expect("the child should go on"), Said::Committed(_)) {}
        }
    }

    /// Kills it, and listens to what it had said.
    fn kill(mut self) -> (u64, bool) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while self.listen().is_some() {}
        (self.committed, self.is_fenced)
    }
}

#[test]
fn another_process_takes_over_and_nothing_is_lost() {
    let rounds = std::env::var(ROUNDS).map_or(12, |rounds| rounds.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let url = format!("slatedb+file://{}", directory.path().display());
    let seed = 5;
    let mut random = Rng::with_seed(seed);
    let (mut returned, mut fenced) = (0, 0);
    let mut elder: Option<Writer> = None;
    for round in 0..rounds {
        if random.bool()
            && let Some(elder) = elder.take()
        {
            // It is gone before the next one comes.
            returned = elder.kill().0.max(returned);
        }
        let mut writer = Writer::start(&url);
        if random.u8(..4) == 0 {
            // Killed while it opens the store, or soon after.
            thread::sleep(Duration::from_millis(random.u64(..300)));
            returned = writer.kill().0.max(returned);
        } else {
            writer.wait_for_commits(random.u32(1..40));
            if let Some(mut elder) = elder.take() {
                // Two were open at once. The elder is fenced by its next commit, if that was not
                // before.
                while !elder.is_fenced && elder.listen().is_some() {}
                assert!(elder.is_fenced, "seed {seed}, round {round}: the elder goes on");
                fenced += 1;
                returned = elder.kill().0.max(returned);
            }
            elder = Some(writer);
        }
        if random.u8(..3) == 0 {
            // This process is one of them, too.
            let store = Store::open(&url).unwrap();
            let number = verify(&store, &format!("seed {seed}, round {round}"));
            assert!(
                number >= returned,
                "seed {seed}, round {round}: {returned} returned, {number} there"
            );
            store.close().unwrap();
        }
    }
    if let Some(elder) = elder {
        returned = elder.kill().0.max(returned);
    }
    let store = Store::open(&url).unwrap();
    let number = verify(&store, &format!("seed {seed}, at the end"));
    assert!(number >= returned, "seed {seed}: {returned} returned, {number} are there");
    println!("{rounds} writers, {fenced} fenced by the next one, {number} commits, none lost");
    store.close().unwrap();
}

/// Exactly the commits 1 to n, in both keyspaces.
fn verify(store: &Store, context: &str) -> u64 {
    let (log, last) = (store.keyspace("log").unwrap(), store.keyspace("last").unwrap());
    let number = last.get("number").unwrap().map_or(0, |value| number_of(&value));
    let mut count = 0;
    for entry in log.iter() {
        let (key, value) = entry.unwrap();
        count += 1;
        assert_eq!(key[..], key_of(count), "{context}");
        assert!(value.iter().all(|byte| *byte == count as u8), "{context}");
    }
    assert_eq!(count, number, "{context}");
    number
}
