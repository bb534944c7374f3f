//! Units that are half written: whoever reads beside a writer finds one of both versions.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use adamant_medium::encrypted::directory::EncryptedDirectory;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File};
use adamant_sim::{Call, Hooked};

use super::{all_of, encrypted, flip, key};

/// A directory in which the first unit of a file, which is half written, is whole from its reading
/// with that number on; the head is read first. `write` runs before each write of the file.
fn torn_until(
    inner: &MemoryDirectory,
    whole_at: u32,
    write: impl Fn() + Send + Sync + 'static,
) -> Arc<dyn Directory> {
    let (raw, readings) = (inner.open("file").unwrap().unwrap(), AtomicU32::new(0));
    Arc::new(Hooked::new(inner.clone(), move |call, path| {
        match call {
            _ if !path.ends_with("file") => {}
            Call::Read if readings.fetch_add(1, Ordering::Relaxed) == whole_at => tear(&raw),
            Call::Write => write(),
            _ => {}
        }
        Ok(())
    }))
}

/// Has a unit be half written, or whole again.
fn tear(raw: &Arc<dyn File>) {
    flip(raw.as_ref(), 8192 + 100);
}

#[test]
fn what_another_process_is_writing_is_read_again() {
    let cases = [(2, true, true), (15, true, true), (1000, true, false), (2, false, false)];
    for (whole_at, is_beside, is_read) in cases {
        let inner = MemoryDirectory::new();
        let plain: Arc<dyn Directory> = Arc::new(inner.clone());
        encrypted(&plain).create("file").unwrap().write_at(&[7; 300], 0).unwrap();
        tear(&inner.open("file").unwrap().unwrap());
        let open = match is_beside {
            true => EncryptedDirectory::open_beside,
            false => EncryptedDirectory::open,
        };
        let torn = torn_until(&inner, whole_at + 1, || {});
        let file = open(torn, &key(1)).unwrap().unwrap().open("file").unwrap().unwrap();
        let mut read = [0; 300];
        let found = file.read_at(&mut read, 0);
        let of = format!("whole at reading {whole_at}, beside: {is_beside}");
        assert_eq!(found.is_ok(), is_read, "{of}: {found:?}");
        assert!(!is_read || read == [7; 300], "{of}");
    }
}

#[test]
fn what_another_thread_is_writing_is_read_again() {
    let inner = MemoryDirectory::new();
    let plain: Arc<dyn Directory> = Arc::new(inner.clone());
    encrypted(&plain).create("file").unwrap().write_at(&[7; 300], 0).unwrap();
    let (begun, wait_begun) = sync_channel::<()>(1);
    let (read, wait_read) = sync_channel::<()>(1);
    let (raw, wait_read) = (inner.open("file").unwrap().unwrap(), Mutex::new(wait_read));
    let write = move || {
        tear(&raw);
        begun.send(()).unwrap();
        wait_read.lock().unwrap().recv().unwrap();
    };
    // Whoever writes has read the old unit, and who reads finds it torn twice.
    let torn = torn_until(&inner, 4, write);
    let directory = EncryptedDirectory::open(torn, &key(1)).unwrap().unwrap();
    let file = directory.open("file").unwrap().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| file.write_at(&[8; 300], 0));
        wait_begun.recv().unwrap();
        let mut bytes = [0; 300];
        let found = file.read_at(&mut bytes, 0);
        read.send(()).unwrap();
        writer.join().unwrap().unwrap();
        found.unwrap();
        assert_eq!(bytes, [7; 300]);
    });
    assert_eq!(all_of(file.as_ref()), [8; 300]);
}
