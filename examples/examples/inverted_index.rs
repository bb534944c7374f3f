//! Full-text search by an inverted index: a multimap of words to the documents that hold them.
//!
//! `cargo run -p adamant-examples --example inverted_index`

use std::collections::BTreeSet;

use adamant::{Keyspace, Multimap, Result, Store, Transaction};

const DOCUMENTS: [(u64, &str); 4] = [
    (1, "the old man and the sea"),
    (2, "the sea wolf"),
    (3, "a wolf among the sheep"),
    (4, "old wolf of the north sea"),
];

/// Documents by number, and the numbers by word.
struct Library {
    store: Store,
    documents: Keyspace,
    words: Multimap<String, u64>,
}

impl Library {
    fn open(store: Store) -> Result<Self> {
        let documents = store.keyspace("documents")?;
        let words = store.multimap("words")?.typed()?;
        Ok(Self { store, documents, words })
    }

    /// Writes a document, and its place in the index, in one commit: the index never disagrees with
    /// what it indexes, whatever the document was before.
    fn write(&self, number: u64, text: &str) -> Result<()> {
        self.store.transaction(|tx| {
            self.forget(tx, number)?;
            tx.put(&self.documents, number.to_le_bytes(), text)?;
            let mut words = self.words.within(tx);
            text.split(' ').try_for_each(|word| words.insert(word, &number).map(drop))
        })
    }

    /// Removes a document from the index.
    fn forget(&self, tx: &mut Transaction, number: u64) -> Result<()> {
        let Some(text) = tx.take(&self.documents, number.to_le_bytes())? else { return Ok(()) };
        let mut words = self.words.within(tx);
        String::from_utf8_lossy(&text).split(' ').try_for_each(|word| words.delete(word, &number))
    }

    /// The documents that hold all of these words. The rarest comes first, and each document that
    /// has it is looked up among the others: O(log n) for each.
    fn search(&self, words: &[&str]) -> Result<BTreeSet<u64>> {
        let mut counted = Vec::new();
        for word in words {
            counted.push((self.words.count(*word)?, *word));
        }
        counted.sort_unstable();
        let Some(((_, rarest), others)) = counted.split_first() else {
            return Ok(BTreeSet::new());
        };
        let mut found = BTreeSet::new();
        'documents: for number in self.words.get(*rarest) {
            let number = number?;
            for (_, word) in others {
                if !self.words.contains(*word, &number)? {
                    continue 'documents;
                }
            }
            found.insert(number);
        }
        Ok(found)
    }

    /// Words that begin like this, each once.
    fn complete(&self, start: &str) -> Result<Vec<String>> {
        let words = self.words.keys(start.to_owned()..);
        words
            .take_while(|word| word.as_ref().map_or(true, |word| word.starts_with(start)))
            .collect()
    }
}

fn main() -> Result<()> {
    let library = Library::open(Store::in_memory()?)?;
    for (number, text) in DOCUMENTS {
        library.write(number, text)?;
    }
    assert_eq!(library.search(&["sea", "old"])?, BTreeSet::from([1, 4]));
    assert_eq!(library.search(&["wolf", "sea", "the"])?, BTreeSet::from([2, 4]));
    assert_eq!(library.complete("s")?, ["sea", "sheep"]);

    library.write(4, "old fox of the north")?;
    assert_eq!(library.search(&["wolf", "sea"])?, BTreeSet::from([2]));
    for word in library.words.keys(..).rev().take(3) {
        let word = word?;
        println!("{word}: {} documents", library.words.count(&word)?);
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
