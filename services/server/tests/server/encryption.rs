//! A server of an encrypted store.

use std::process::Command;

use adamant::{EncryptionKey, Error, Options, Store};

use crate::support::connections::{Client, Value};
use crate::support::program::Program;

#[test]
fn the_store_is_encrypted_by_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path().join("store"), folder.path().join("key"));
    let key = EncryptionKey::random().unwrap();
    std::fs::write(&file, key.to_text().as_bytes()).unwrap();
    let command = format!("cat '{}'", file.display());
    let options = [["--key-file", file.to_str().unwrap()], ["--key-command", &command]];
    for (number, options) in options.iter().enumerate() {
        let program = Program::start(&path, options);
        let mut client = Client::connect(program.address);
        assert_eq!(client.say(&format!("SET key{number} 1")), Value::ok());
        assert_eq!(client.say("DBSIZE"), Value::Integer(number as i64 + 1));
    }
    assert!(matches!(Store::open(&path), Err(Error::KeyNeeded { .. })));
    let store = Store::open_with(&path, Options::new().encryption_key(key)).unwrap();
    assert_eq!(store.expiring("db0").unwrap().get("key1").unwrap(), Some("1".into()));
    drop(store);

    std::fs::write(&file, "secret").unwrap();
    let refusals: [(&[&str], &str); 4] = [
        (&[], "no key"),
        (&options[0], "64 hexadecimal digits"),
        (&["--key-command", "echo sealed >&2; exit 3"], "exit status: 3: sealed"),
        (&["--cluster", "1", "--key-file", "key"], "cannot be used with"),
    ];
    for (options, expected) in refusals {
        let program = env!("CARGO_BIN_EXE_adamant-server");
        let run = Command::new(program).arg(&path).args(options).output().unwrap();
        let words = String::from_utf8(run.stderr).unwrap();
        assert!(!run.status.success() && words.contains(expected), "{words}");
        assert!(!words.contains("secret"), "{words}");
    }
}
