//! A bank on the bare heap: threads move money between accounts, and the process is killed at any
//! time. Whatever was killed when, no money is lost or made, and no transfer that was reported.
//!
//! The program starts itself as a second process, kills that again and again, and looks at what is
//! there after each kill.
//!
//! `cargo run -p adamant-examples --example bank`

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use adamant_heap::{
    Array, Durability, Heap, Options, OsDirectory, Persistent, Ptr, Trace, Tracer, Transaction,
    TypedRead, TypedWrite, Types,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ACCOUNT_COUNT: u64 = 50;
const FIRST_BALANCE: u64 = 1000;
const THREAD_COUNT: u64 = 4;
/// A process that nobody kills ends after that many transfers of each thread.
const TRANSFER_COUNT_MAX: u64 = 20_000;
/// Names the folder of the bank to the process that is to be killed.
const VARIABLE: &str = "ADAMANT_EXAMPLE_BANK";

/// What the root of the pool holds.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Bank {
    balances: Array<u64>,
    transfer_count: u64,
}

impl Persistent for Bank {
    const NAME: &'static str = "example.bank";
    const VERSION: u32 = 1;
}

impl Trace for Bank {
    fn trace(&self, tracer: &mut Tracer) {
        self.balances.trace(tracer);
    }
}

fn open(path: &Path) -> Result<(Heap, Ptr<Bank>)> {
    std::fs::create_dir_all(path)?;
    let (heap, _) = Heap::open(Arc::new(OsDirectory::open(path)?), Options::default())?;
    let bank = heap.transaction(Durability::Sync, |tx| {
        tx.named_root_or_create("bank", |tx| {
            let balances = tx.create_array_with(ACCOUNT_COUNT, |_| FIRST_BALANCE)?;
            Ok(Bank { balances, transfer_count: 0 })
        })
    })?;
    Ok((heap, bank))
}

/// Moves money, if there is as much. Returns the number of the transfer.
fn transfer(
    tx: &mut Transaction<'_>,
    bank: Ptr<Bank>,
    [payer, payee]: [u64; 2],
    amount: u64,
) -> adamant_heap::Result<u64> {
    let Bank { balances, transfer_count } = *tx.get(bank)?;
    let Some(left) = tx.element(balances, payer)?.checked_sub(amount) else {
        return Ok(transfer_count);
    };
    *tx.element_mut(balances, payer)? = left;
    // Were the process killed here, none of it would have happened.
    *tx.element_mut(balances, payee)? += amount;
    tx.get_mut(bank)?.transfer_count = transfer_count + 1;
    Ok(transfer_count + 1)
}

/// The process that is killed: each thread reports a transfer once it is durable.
fn serve(path: &Path) -> Result<()> {
    let (heap, bank) = open(path)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREAD_COUNT)
            .map(|_| {
                scope.spawn(|| -> adamant_heap::Result<()> {
                    let mut random = fastrand::Rng::new();
                    for _ in 0..TRANSFER_COUNT_MAX {
                        let accounts = [(); 2].map(|()| random.u64(..ACCOUNT_COUNT));
                        let amount = random.u64(..FIRST_BALANCE);
                        let number = heap.transaction(Durability::Sync, |tx| {
                            transfer(tx, bank, accounts, amount)
                        })?;
                        println!("\ntransfer {number}");
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("does not panic"))
    })?;
    Ok(heap.close()?)
}

/// Starts the process, kills it after so many reports and returns the highest number reported.
fn run_and_kill(path: &Path, report_count: usize) -> Result<u64> {
    let mut child = Command::new(std::env::current_exe()?)
        // For the test at the end of this file, which is the same program.
        .args(["runs", "--exact", "--nocapture"])
        .env(VARIABLE, path)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(child.stdout.take().expect("was asked for"));
    let (mut highest, mut seen) = (0, 0);
    for line in output.lines() {
        // Lines that come after the kill were written before it; the last one may be cut off.
        let number = line?.strip_prefix("transfer ").and_then(|number| number.parse().ok());
        let Some(number) = number else { continue };
        highest = highest.max(number);
        seen += 1;
        if seen == report_count {
            child.kill()?;
        }
    }
    child.wait()?;
    Ok(highest)
}

fn main() -> Result<()> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return serve(Path::new(&path));
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bank");
    for round in 0..6 {
        let reported = run_and_kill(&path, [1, 20, 333][round % 3])?;
        let (heap, bank) = open(&path)?;
        {
            let view = heap.view()?;
            let Bank { balances, transfer_count } = *view.get(bank)?;
            let money: u64 = view.array(balances)?.iter().sum();
            println!(
                "killed after transfer {reported}: {transfer_count} are there, {money} in all"
            );
            assert_eq!(money, ACCOUNT_COUNT * FIRST_BALANCE);
            assert!(transfer_count >= reported);
        }
        assert!(heap.leaks(&Types::new().with::<Bank>())?.is_clean());
        heap.close()?;
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
