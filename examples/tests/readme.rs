//! The program that the README opens with, word for word, and that it runs.

use adamant::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("app.adamant")?;
    let users = store.keyspace("users")?;
    let by_mail = store.keyspace("users by mail")?;

    // One commit over two keyspaces: both changes survive, or neither.
    let mut batch = store.batch();
    batch.put(&users, "7", "Ada Lovelace")?;
    batch.put(&by_mail, "ada@example.org", "7")?;
    batch.commit()?;

    for pair in by_mail.prefix("ada@") {
        let (mail, id) = pair?;
        let name = users.get(&id)?.ok_or("no such user")?;
        println!("{} is {}", String::from_utf8_lossy(&mail), String::from_utf8_lossy(&name));
    }
    store.close()?;
    Ok(())
}

/// Where the program ends in this file.
const BEHIND: &str = "\n/// Where the program ends";

#[test]
fn the_program_of_the_readme_runs() {
    let (_, program) = include_str!("readme.rs").split_once("\n\n").unwrap();
    let (program, _) = program.split_once(BEHIND).unwrap();
    assert!(include_str!("../../README.md").contains(program), "the README has another program");
    // It names its store by a relative path. This is the only test of this process.
    let directory = tempfile::tempdir().unwrap();
    std::env::set_current_dir(&directory).unwrap();
    main().unwrap();
    assert!(directory.path().join("app.adamant/pool").exists());
}
