//! Opens a store, writes, reads, closes, and finds everything again.
//!
//! `cargo run -p adamant-examples --example hello`

use adamant::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("hello.adamant");

    let store = Store::open(&path)?;
    let greetings = store.keyspace("greetings")?;
    greetings.put("de", "Guten Tag")?;
    greetings.put("en", "Good day")?;
    greetings.put("fr", "Bonjour")?;
    store.close()?;

    let store = Store::open(&path)?;
    let greetings = store.keyspace("greetings")?;
    for entry in greetings.iter() {
        let (language, greeting) = entry?;
        println!("{}: {}", String::from_utf8_lossy(&language), String::from_utf8_lossy(&greeting));
    }
    assert_eq!(greetings.get("fr")?, Some("Bonjour".into()));
    assert_eq!(greetings.get("nl")?, None);
    let letters = greetings.get_with("de", |greeting| greeting.len())?;
    assert_eq!(letters, Some(9));
    assert_eq!(greetings.len()?, 3);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
