//! Moves money between accounts: one batch over two keyspaces, all of it or nothing.
//!
//! `cargo run -p adamant-examples --example transfer`

use adamant::{Keyspace, Result, Store};

struct Bank {
    store: Store,
    accounts: Keyspace,
    journal: Keyspace,
}

impl Bank {
    fn new(store: Store) -> Result<Self> {
        let accounts = store.keyspace("accounts")?;
        let journal = store.keyspace("journal")?;
        Ok(Self { store, accounts, journal })
    }

    fn balance(&self, name: &str) -> Result<u64> {
        let balance = self.accounts.get_with(name, |bytes| {
            bytes.try_into().map(u64::from_le_bytes).expect("a balance has 8 bytes")
        })?;
        Ok(balance.unwrap_or(0))
    }

    fn pay(&self, payer: &str, payee: &str, amount: u64) -> Result<bool> {
        let Some(left) = self.balance(payer)?.checked_sub(amount) else {
            return Ok(false);
        };
        let gained = self.balance(payee)? + amount;
        let number = self.journal.len()?;
        let mut batch = self.store.batch();
        batch.put(&self.accounts, payer, left.to_le_bytes())?;
        batch.put(&self.accounts, payee, gained.to_le_bytes())?;
        batch.put(&self.journal, format!("{number:08}"), format!("{payer} {payee} {amount}"))?;
        batch.commit()?;
        Ok(true)
    }
}

fn main() -> Result<()> {
    let bank = Bank::new(Store::in_memory()?)?;
    bank.accounts.put("ada", 100_u64.to_le_bytes())?;

    assert!(bank.pay("ada", "blaise", 30)?);
    assert!(bank.pay("blaise", "sophie", 10)?);
    assert!(!bank.pay("sophie", "ada", 11)?, "she has only 10");

    for name in ["ada", "blaise", "sophie"] {
        println!("{name}: {}", bank.balance(name)?);
    }
    assert_eq!(bank.balance("ada")?, 70);
    assert_eq!(bank.balance("blaise")?, 20);
    assert_eq!(bank.balance("sophie")?, 10);
    assert_eq!(bank.journal.last()?, Some(("00000001".into(), "blaise sophie 10".into())));
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
