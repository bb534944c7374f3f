//! Keeps an index beside the data and finds by it: prefixes and ranges, in both directions.
//!
//! `cargo run -p adamant-examples --example index`

use adamant::{Result, Slice, Store};

const BOOKS: [(&str, &str, u32); 5] = [
    ("dune", "Herbert", 1965),
    ("emma", "Austen", 1815),
    ("persuasion", "Austen", 1817),
    ("solaris", "Lem", 1961),
    ("ulysses", "Joyce", 1922),
];

fn main() -> Result<()> {
    let store = Store::in_memory()?;
    let books = store.keyspace("books")?;
    let by_author = store.keyspace("books by author")?;
    let by_year = store.keyspace("books by year")?;
    for (title, author, year) in BOOKS {
        // Book and index entries in one commit: an index never disagrees with what it indexes.
        let mut batch = store.batch();
        batch.put(&books, title, format!("{title} by {author}, {year}"))?;
        batch.put(&by_author, format!("{author}/{title}"), title)?;
        batch.put(&by_year, format!("{year}/{title}"), title)?;
        batch.commit()?;
    }

    let titles = |entries: adamant::Iter| -> Result<Vec<Slice>> {
        entries.map(|entry| Ok(entry?.1)).collect()
    };
    let by_austen = titles(by_author.prefix("Austen/"))?;
    assert_eq!(by_austen, ["emma", "persuasion"].map(Slice::from));

    let of_the_20th_century = titles(by_year.range("1901"..="2000/~"))?;
    assert_eq!(of_the_20th_century, ["ulysses", "solaris", "dune"].map(Slice::from));

    for entry in by_year.iter().rev().take(2) {
        let (_, title) = entry?;
        let line = books.get(&title)?.expect("every index entry has its book");
        println!("{}", String::from_utf8_lossy(&line));
    }
    assert_eq!(by_year.last()?.map(|(_, title)| title), Some("dune".into()));
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
