//! Keys that are tuples, values that are structures: a small library of loans.
//!
//! `cargo run -p adamant-examples --example typed`

use std::cmp::Reverse;

use adamant::typed::Serde;
use adamant::{Error, Result, Store};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Book {
    title: String,
    author: String,
    /// Who has it now.
    lent_to: Option<String>,
}

fn main() -> Result<()> {
    let store = Store::in_memory()?;
    let books = store.keyspace("books")?.typed::<u32, Serde<Book>>()?;
    // By reader, the newest loan first: day and number of the book.
    let loans = store.keyspace("loans")?.typed::<(String, Reverse<u64>, u32), ()>()?;

    for (number, title, author) in [(1, "Solaris", "Lem"), (2, "Emma", "Austen")] {
        let book = Book { title: title.into(), author: author.into(), lent_to: None };
        books.put(&number, &Serde(book))?;
    }

    let lend = |number: u32, reader: &str, day: u64| {
        store.transaction(|tx| {
            let Some(mut book) = books.within(tx).get(&number)? else { return Ok(false) };
            if book.lent_to.is_some() {
                return Ok(false);
            }
            book.lent_to = Some(reader.into());
            books.within(tx).put(&number, &book)?;
            loans.within(tx).put(&(reader, Reverse(day), number), &())?;
            Ok::<_, Error>(true)
        })
    };
    assert!(lend(1, "ada", 19_000)?);
    assert!(lend(2, "ada", 19_007)?);
    assert!(!lend(2, "blaise", 19_008)?, "it is lent");
    assert!(!lend(3, "blaise", 19_008)?, "there is none");

    let mut newest = Vec::new();
    for loan in loans.prefix(&("ada",)) {
        let ((_, Reverse(day), number), ()) = loan?;
        let book = books.get(&number)?.expect("every loan has its book");
        println!("day {day}: {} by {}", book.title, book.author);
        newest.push(number);
    }
    assert_eq!(newest, [2, 1]);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
