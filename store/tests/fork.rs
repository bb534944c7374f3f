//! In the child of a fork every call on a store returns an error, or does no harm; the parent goes
//! on.
//!
//! `check` and `stats` used to end such a child by a signal, since they read the store's memory
//! before they checked for a fork. Closing a store with an lsm keyspace, and dropping its last
//! handle, panicked, since they waited for threads that stayed with the parent. And what a child
//! dropped was unmapped, whatever the child had mapped at these addresses meanwhile.
#![cfg(target_os = "linux")]

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use adamant::expiring::ReservedExpiring;
use adamant::typed::TypedKeyspace;
use adamant::{
    Attempts, Batch, Cache, Durability, Engine, Entries, Error, ExclusiveTransaction, Expiring,
    Iter, Keyspace, KeyspaceOptions, KeyspaceTypes, Multimap, Options, ReservedValue, Slice,
    Snapshot, Store, SyncPoint, Transaction,
};

/// Longer than the values that reads copy.
const LENT_BYTES: usize = 100_000;
/// Seconds after which a child that waits for a lock is ended.
const CHILD_SECONDS_MAX: u32 = 20;

/// Commits that do not wait for a device.
fn quick() -> Options {
    Options::new().durability(Durability::Deferred)
}

/// Handles made before the fork.
struct Before<'s> {
    store: &'s Store,
    keyspace: Keyspace,
    typed: TypedKeyspace<String, u64>,
    types: KeyspaceTypes,
    expiring: Expiring,
    cache: Cache,
    multimap: Multimap,
    snapshot: Snapshot,
    transaction: Transaction,
    iter: Iter,
    entries: Entries,
    point: SyncPoint,
    value: ReservedValue,
    expiring_values: [ReservedExpiring; 2],
    lent: Slice,
}

impl<'s> Before<'s> {
    fn new(store: &'s Store, engine: Engine) -> Self {
        let options = KeyspaceOptions::new().engine(engine);
        let keyspace = store.keyspace_with("entries", options).unwrap();
        for number in 0..2_000_u32 {
            keyspace.put(number.to_le_bytes(), "a value of some bytes").unwrap();
        }
        keyspace.put("large", vec![7; LENT_BYTES]).unwrap();
        let typed = store.keyspace_with("numbers", options).unwrap().typed().unwrap();
        typed.insert("one", &1).unwrap();
        let expiring = store.expiring_with("leases", options).unwrap();
        let soon = expiring.after(std::time::Duration::from_secs(3600));
        expiring.insert("lease", "1", Some(soon)).unwrap();
        let cache = store.cache_with("pages", 1 << 20, options).unwrap();
        cache.put("page", "1", Some(soon)).unwrap();
        let multimap = store.multimap_with("tags", options).unwrap();
        multimap.insert("a", "1").unwrap();
        let mut transaction = store.begin().unwrap();
        transaction.put_reserved(&keyspace, "own", store.reserve(LENT_BYTES).unwrap()).unwrap();
        let (mut iter, mut entries) = (keyspace.iter(), keyspace.iter().entries());
        assert!(iter.next().is_some() && entries.next().is_some());
        Self {
            store,
            snapshot: store.snapshot().unwrap(),
            transaction,
            iter,
            entries,
            point: store.sync_point().unwrap(),
            value: store.reserve(LENT_BYTES).unwrap(),
            expiring_values: [(); 2].map(|()| expiring.reserve(LENT_BYTES).unwrap()),
            lent: keyspace.get("large").unwrap().unwrap(),
            keyspace,
            types: typed.untyped().types().unwrap().unwrap(),
            typed,
            expiring,
            cache,
            multimap,
        }
    }
}

/// The calls that were not refused.
#[derive(Default)]
struct Calls(Vec<String>);

impl Calls {
    fn refused<T>(&mut self, name: &str, call: impl FnOnce() -> adamant::Result<T>) {
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Err(error)) if error.is_misuse() && error.to_string().contains("fork") => {}
            Ok(Err(error)) => self.0.push(format!("{name}: {error}")),
            Ok(Ok(_)) => self.0.push(format!("{name} was done")),
            Err(_) => self.0.push(format!("{name} panicked")),
        }
    }

    fn harmless<T>(&mut self, name: &str, call: impl FnOnce() -> T) {
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            self.0.push(format!("{name} panicked"));
        }
    }
}

fn store_calls(calls: &mut Calls, store: &Store, scratch: &Path) {
    let path = scratch.join("copy");
    calls.refused("keyspace", || store.keyspace("entries"));
    calls.refused("keyspace_with", || store.keyspace_with("new", KeyspaceOptions::new()));
    calls.refused("create_keyspace", || store.create_keyspace("new"));
    calls.refused("create_keyspace_with", || {
        store.create_keyspace_with("new", KeyspaceOptions::new())
    });
    calls.refused("open_keyspace", || store.open_keyspace("entries"));
    calls.refused("open_stored", || store.open_stored("leases"));
    calls.refused("keyspaces", || store.keyspaces());
    calls.refused("drop_keyspace", || store.drop_keyspace("entries"));
    calls.refused("rename_keyspace", || store.rename_keyspace("entries", "others"));
    calls.refused("swap_keyspaces", || store.swap_keyspaces("entries", "numbers"));
    calls.refused("convert_keyspace", || store.convert_keyspace("entries", Engine::Critbit));
    calls.refused("reserve", || store.reserve(10));
    calls.refused("transaction", || store.transaction(|_| Ok::<_, Error>(())));
    calls.refused("transaction_with", || {
        let limits = Attempts::new().attempts_max(2).exclusive_after(Some(1)).time_max(None);
        store.transaction_with(limits, |_| Ok::<_, Error>(()))
    });
    calls.refused("exclusive", || store.exclusive(|_| Ok::<_, Error>(())));
    calls.refused("begin", || store.begin());
    calls.refused("begin_exclusive", || store.begin_exclusive().map(drop));
    calls.refused("try_begin_exclusive", || store.try_begin_exclusive().map(drop));
    calls.refused("begin_exclusive_within", || {
        store.begin_exclusive_within(std::time::Duration::from_millis(1)).map(drop)
    });
    calls.refused("snapshot", || store.snapshot());
    calls.refused("snapshot_durable", || store.snapshot_durable());
    calls.harmless("recovery", || store.recovery().was_closed);
    calls.refused("sync", || store.sync());
    calls.refused("compact", || store.compact());
    calls.refused("sync_point", || store.sync_point());
    calls.refused("check_writable", || store.check_writable());
    #[cfg(feature = "encryption")]
    {
        calls.harmless("is_encrypted", || store.is_encrypted());
        calls.refused("rekey", || store.rekey(&adamant::EncryptionKey::from_bytes(&[1; 32])));
    }
    calls.refused("occupancy", || store.occupancy());
    calls.refused("check_heap", || store.check_heap());
    calls.refused("shrink", || store.shrink());
    calls.harmless("path", || store.path().map(drop));
    calls.refused("stats", || store.stats());
    calls.refused("check", || store.check());
    calls.refused("heap", || store.heap().map(drop));
    calls.refused("backup", || store.backup(&path));
    calls.refused("create_savepoint", || store.create_savepoint("one"));
    calls.refused("savepoints", || store.savepoints());
    calls.refused("open_savepoint", || store.open_savepoint("one"));
    calls.refused("delete_savepoint", || store.delete_savepoint("one"));
    calls.refused("backup_linked", || store.backup_linked(&path));
    calls.refused("backup_into", || {
        store.backup_into(&(std::sync::Arc::new(adamant::OsDirectory::create(&path)?) as _))
    });
    calls.refused("expiring", || store.expiring("leases"));
    calls.refused("expiring_with", || store.expiring_with("leases", KeyspaceOptions::new()));
    calls.refused("cache", || store.cache("pages", 1 << 20));
    calls.refused("open_expiring", || store.open_expiring("leases"));
    calls.refused("drop_expiring", || store.drop_expiring("leases"));
    calls.refused("swap_expiring", || store.swap_expiring("leases", "numbers"));
    calls.refused("multimap", || store.multimap("tags"));
    calls.refused("multimap_with", || store.multimap_with("tags", KeyspaceOptions::new()));
    calls.refused("open_multimap", || store.open_multimap("tags"));
    calls.harmless("batch", || drop(store.batch()));
}

fn keyspace_calls(calls: &mut Calls, keyspace: &Keyspace, value: ReservedValue) {
    let some = [("key", "value")];
    calls.harmless("name", || (keyspace.kind(), keyspace.engine(), keyspace.name().len()));
    calls.harmless("with_durability", || keyspace.with_durability(Durability::Sync));
    calls.refused("get", || keyspace.get("large"));
    calls.refused("get_with", || keyspace.get_with("large", <[u8]>::len));
    calls.refused("get_briefly", || keyspace.get_briefly("large", <[u8]>::len));
    calls.refused("contains", || keyspace.contains("large"));
    calls.refused("len", || keyspace.len());
    calls.refused("is_empty", || keyspace.is_empty());
    calls.refused("first", || keyspace.first());
    calls.refused("last", || keyspace.last());
    calls.refused("iter", || keyspace.iter().next().transpose());
    calls.refused("keys", || keyspace.iter().keys().next_back().transpose());
    calls.refused("entries", || keyspace.range("a"..).entries().next().transpose());
    calls.refused("prefix", || keyspace.prefix("a").next().transpose());
    calls.refused("lend", || keyspace.iter().lend(|_, _| ControlFlow::<()>::Continue(())));
    calls.refused("lend_back", || keyspace.iter().lend_back(|_, _| ControlFlow::Break(())));
    calls.refused("insert", || keyspace.insert("key", "value"));
    calls.refused("put", || keyspace.put("key", "value"));
    calls.refused("merge", || keyspace.merge("key", "value"));
    calls.refused("delete", || keyspace.delete("large"));
    calls.refused("put_reserved", || keyspace.put_reserved("key", value));
    calls.refused("remove", || keyspace.remove("large"));
    calls.refused("take", || keyspace.take("large"));
    calls.refused("settle", || keyspace.settle());
    calls.refused("clear", || keyspace.clear());
    calls.refused("delete_range", || keyspace.delete_range(..));
    calls.refused("pop_first", || keyspace.pop_first());
    calls.refused("pop_last", || keyspace.pop_last());
    calls.refused("retain", || keyspace.retain(.., |_, _| false));
    calls.refused("extract_if", || keyspace.extract_if(.., |_, _| true));
    calls.refused("rename", || keyspace.rename("large", "small"));
    calls.refused("multi_get", || keyspace.multi_get(["large"]));
    calls.refused("move_to", || keyspace.move_to("large", keyspace, "small"));
    calls.refused("swap", || keyspace.swap("large", keyspace, "small"));
    calls.refused("move_range", || keyspace.move_range(.., keyspace));
    calls.refused("load_sorted", || keyspace.load_sorted(some));
    calls.refused("extend", || keyspace.extend(some));
    calls.refused("insert_unique", || keyspace.insert_unique("key", "value"));
    calls.refused("compare_and_swap", || {
        keyspace.compare_and_swap("key", None::<&str>, Some("value"))
    });
    calls.refused("fetch_update", || keyspace.fetch_update("key", |_| Some("value")));
    calls.refused("update_fetch", || keyspace.update_fetch("key", |_| Some("value")));
    calls.refused("lsm", || keyspace.lsm().map(drop));
    calls.refused("compact", || keyspace.compact());
    calls.refused("keyspace stats", || keyspace.stats().map(|stats| stats.bytes()));
    calls.refused("estimate", || keyspace.estimate("a".."b"));
    calls.harmless("durability", || keyspace.durability());
    calls.refused("lsm stats", || keyspace.lsm()?.stats());
    calls.refused("lsm options", || keyspace.lsm()?.options());
    calls.refused("lsm levels", || keyspace.lsm()?.levels());
}

fn snapshot_calls(calls: &mut Calls, snapshot: &Snapshot, keyspace: &Keyspace) {
    calls.refused("snapshot get", || snapshot.get(keyspace, "large"));
    calls.refused("snapshot get_with", || snapshot.get_with(keyspace, "large", <[u8]>::len));
    calls.refused("snapshot contains", || snapshot.contains(keyspace, "large"));
    calls.refused("snapshot len", || snapshot.len(keyspace));
    calls.refused("snapshot is_empty", || snapshot.is_empty(keyspace));
    calls.refused("snapshot first", || snapshot.first(keyspace));
    calls.refused("snapshot last", || snapshot.last(keyspace));
    calls.refused("snapshot iter", || snapshot.iter(keyspace).next().transpose());
    calls.refused("snapshot range", || snapshot.range(keyspace, "a"..).next().transpose());
    calls.refused("snapshot multi_get", || snapshot.multi_get(keyspace, ["large"]));
    calls.refused("snapshot prefix", || snapshot.prefix(keyspace, "a").next().transpose());
    calls.harmless("snapshot clone", || drop(snapshot.clone()));
}

fn transaction_calls(calls: &mut Calls, mut transaction: Transaction, keyspace: &Keyspace) {
    let own = &mut transaction;
    calls.harmless("transaction durability", || own.durability(Durability::Sync));
    calls.harmless("attempt", || own.attempt());
    calls.harmless("set_savepoint", || own.set_savepoint());
    calls.refused("transaction get", || own.get(keyspace, "own"));
    calls.refused("transaction multi_get", || own.multi_get(keyspace, ["own"]));
    calls.refused("shared transaction", || {
        let shared = own.share();
        shared.with(|transaction| transaction.get(keyspace, "own"))
    });
    calls.refused("transaction contains", || own.contains(keyspace, "own"));
    calls.refused("transaction put", || own.put(keyspace, "key", "value"));
    calls.refused("transaction merge", || own.merge(keyspace, "key", "value"));
    calls.refused("transaction delete", || own.delete(keyspace, "own"));
    calls.refused("transaction take", || own.take(keyspace, "own"));
    calls.refused("transaction first", || own.first(keyspace));
    calls.refused("transaction last", || own.last(keyspace));
    calls.refused("transaction pop_first", || own.pop_first(keyspace));
    calls.refused("transaction pop_last", || own.pop_last(keyspace));
    calls.refused("transaction retain", || own.retain(keyspace, .., |_, _| false));
    calls.refused("transaction extract_if", || own.extract_if(keyspace, .., |_, _| true));
    calls.refused("transaction iter", || own.iter(keyspace).keys().next().transpose());
    calls.refused("transaction range", || own.range(keyspace, ..).entries().next().transpose());
    calls.refused("transaction prefix", || own.prefix(keyspace, "a").next().transpose());
    calls.refused("savepoint", || own.savepoint(|inner| inner.get(keyspace, "own")));
    calls.harmless("keep_savepoint", || own.keep_savepoint());
    calls.harmless("undo_savepoint", || own.undo_savepoint());
    calls.harmless("on_heap", || own.on_heap(|_| Ok(())));
    calls.refused("transaction commit", || transaction.commit());
}

fn typed_calls(calls: &mut Calls, before: &Before<'_>) {
    let typed = &before.typed;
    calls.refused("typed", || typed.untyped().typed().map(|_: TypedKeyspace<String, u64>| ()));
    calls.refused("retype", || typed.untyped().retype().map(|_: TypedKeyspace<String, u64>| ()));
    calls.refused("types", || typed.untyped().types());
    calls.refused("declare_types", || typed.untyped().declare_types(&before.types));
    calls.harmless("untyped", || typed.untyped().name().len());
    calls.refused("typed get", || typed.get("one"));
    calls.refused("typed contains", || typed.contains("one"));
    calls.refused("typed put", || typed.put("two", &2));
    calls.refused("typed merge", || typed.merge("two", &2));
    calls.refused("typed delete", || typed.delete("one"));
    calls.refused("typed insert", || typed.insert("two", &2));
    calls.refused("typed remove", || typed.remove("one"));
    calls.refused("typed take", || typed.take("one"));
    calls.refused("typed delete_range", || typed.delete_range(..));
    calls.refused("typed pop_first", || typed.pop_first());
    calls.refused("typed pop_last", || typed.pop_last());
    calls.refused("typed retain", || typed.retain(.., |_, _| false));
    calls.refused("typed extract_if", || typed.extract_if(.., |_, _| true));
    calls.refused("typed first", || typed.first());
    calls.refused("typed last", || typed.last());
    calls.refused("typed len", || typed.len());
    calls.refused("typed is_empty", || typed.is_empty());
    calls.refused("typed iter", || typed.iter().next().transpose());
    calls.refused("typed range", || typed.range(..).next().transpose());
    calls.refused("typed prefix", || typed.prefix("o").keys().next().transpose());
    let at = typed.at(&before.snapshot);
    calls.refused("typed at", || at.get("one"));
    calls.refused("typed at multi_get", || at.multi_get(["one"]));
    calls.refused("typed at iter", || at.iter().next().transpose());
    calls.harmless("typed batch", || {
        let mut batch = before.store.batch();
        typed.rename_in(&mut batch, "one", "two")?;
        typed.move_in(&mut batch, "two", typed, "three")?;
        typed.swap_in(&mut batch, "two", typed, "three")?;
        typed.merge_into(&mut batch, "two", &1)?;
        typed.put_into(&mut batch, "two", &2).and_then(|()| typed.delete_from(&mut batch, "one"))
    });
}

fn expiring_calls(calls: &mut Calls, before: &Before<'_>) {
    let leases = &before.expiring;
    let soon = || Some(leases.after(std::time::Duration::from_secs(1)));
    calls.harmless("now", || (leases.now(), leases.keyspaces().0.name().len()));
    calls.harmless("with_clock", || leases.with_clock(|| 7).with_durability(Default::default()));
    calls.refused("expiring get", || leases.get("lease"));
    calls.refused("get_with_deadline", || leases.get_with_deadline("lease"));
    calls.refused("expiring contains", || leases.contains("lease"));
    calls.refused("expiring iter", || leases.iter().next().transpose());
    calls.refused("expiring range", || leases.range(..).next().transpose());
    calls.refused("expiring prefix", || leases.prefix("l").next().transpose());
    calls.refused("expiring len", || leases.len());
    calls.refused("expiring is_empty", || leases.is_empty());
    calls.refused("next_deadline", || leases.next_deadline());
    calls.refused("expiring put", || leases.put("new", "1", soon()));
    calls.refused("expiring delete", || leases.delete("lease"));
    calls.refused("expiring insert", || leases.insert("new", "1", soon()));
    calls.refused("expiring remove", || leases.remove("lease"));
    calls.refused("expiring take", || leases.take("lease"));
    calls.refused("expiring pop_first", || leases.pop_first());
    calls.refused("expiring pop_last", || leases.pop_last());
    calls.refused("expiring retain", || leases.retain(.., |_, _, _| false));
    calls.refused("expiring extract_if", || leases.extract_if(.., |_, _, _| true));
    calls.refused("expiring clear", || leases.clear());
    calls.refused("expiring settle", || leases.settle());
    calls.refused("set_deadline", || leases.set_deadline("lease", None));
    calls.refused("remove_expired", || leases.remove_expired(10));
    calls.refused("expiring reserve", || leases.reserve(10).map(drop));
    calls.refused("expiring at", || leases.at(&before.snapshot).get("lease"));
    calls.refused("expiring typed", || leases.typed::<String, [u8; 1]>());
    let cache = &before.cache;
    calls.harmless("cache stats", || {
        (cache.stats(), cache.bytes(), cache.after(Default::default()))
    });
    calls.refused("cache get", || cache.get("page"));
    calls.refused("cache get_with_deadline", || cache.get_with_deadline("page"));
    calls.refused("cache contains", || cache.contains("page"));
    calls.refused("cache put", || cache.put("page", "2", None));
    calls.refused("cache remove", || cache.remove("page"));
    calls.refused("cache delete", || cache.delete("page"));
    calls.refused("cache clear", || cache.clear());
    calls.refused("cache remove_expired", || cache.remove_expired(10));
    calls.refused("cache len", || cache.len());
}

fn multimap_calls(calls: &mut Calls, before: &Before<'_>) {
    let tags = &before.multimap;
    calls.harmless("multimap name", || (tags.name().len(), tags.untyped().kind()));
    calls.harmless("multimap pair_of", || tags.pair_of(b"a\0\0b").is_ok());
    calls.harmless("multimap durability", || tags.with_durability(Durability::Sync));
    calls.refused("multimap typed", || tags.typed::<String, String>());
    calls.refused("multimap get", || tags.get("a").next().transpose());
    calls.refused("values_range", || tags.values_range("a", "0"..).next_back().transpose());
    calls.refused("multimap contains", || tags.contains("a", "1"));
    calls.refused("contains_key", || tags.contains_key("a"));
    calls.refused("first_value", || tags.first_value("a"));
    calls.refused("last_value", || tags.last_value("a"));
    calls.refused("count", || tags.count("a"));
    calls.refused("multimap first", || tags.first());
    calls.refused("multimap last", || tags.last());
    calls.refused("multimap len", || tags.len());
    calls.refused("multimap is_empty", || tags.is_empty());
    calls.refused("multimap iter", || tags.iter().next().transpose());
    calls.refused("multimap range", || tags.range("a"..).next().transpose());
    calls.refused("multimap prefix", || tags.prefix("a").next().transpose());
    calls.refused("multimap keys", || tags.keys(..).next().transpose());
    calls.refused("multimap insert", || tags.insert("a", "2"));
    calls.refused("multimap put", || tags.put("a", "2"));
    calls.refused("multimap remove", || tags.remove("a", "1"));
    calls.refused("multimap delete", || tags.delete("a", "1"));
    calls.refused("remove_all", || tags.remove_all("a"));
    calls.refused("multimap clear", || tags.clear());
    calls.refused("multimap load_sorted", || tags.load_sorted([("a", "2")]));
    calls.refused("load_stored", || tags.load_stored([b"a\0\0b"]));
    calls.refused("multimap extend", || tags.extend([("a", "2")]));
    calls.refused("multimap settle", || tags.settle());
    let at = tags.at(&before.snapshot);
    calls.refused("multimap at get", || at.get("a").next().transpose());
    calls.refused("multimap at contains", || at.contains("a", "1"));
    calls.refused("multimap at first_value", || at.first_value("a"));
    calls.refused("multimap at keys", || at.keys(..).next().transpose());
    calls.refused("multimap at len", || at.len());
    calls.harmless("multimap batch", || {
        let mut batch = before.store.batch();
        tags.put_into(&mut batch, "a", "2").and_then(|()| tags.delete_from(&mut batch, "a", "1"))
    });
}

/// Makes all calls in the child; returns those with a wrong outcome.
fn all_calls(mut before: Before<'_>, mut batch: Batch, scratch: &Path) -> Calls {
    let mut calls = Calls::default();
    let keyspace = before.keyspace.clone();
    store_calls(&mut calls, before.store, scratch);
    snapshot_calls(&mut calls, &before.snapshot, &keyspace);
    typed_calls(&mut calls, &before);
    expiring_calls(&mut calls, &before);
    multimap_calls(&mut calls, &before);
    calls.refused("multimap within", || {
        let mut tags = before.multimap.within(&mut before.transaction);
        let kept = tags.insert("a", "2");
        kept.and(tags.get("a").next().transpose())
    });
    calls.refused("multimap within shared", || {
        let shared = before.transaction.share();
        before.multimap.within_shared(&shared).count("a")
    });
    calls.refused("typed within", || before.typed.within(&mut before.transaction).put("two", &2));
    calls.refused("typed within shared", || {
        let shared = before.transaction.share();
        before.typed.within_shared(&shared).multi_get(["one"])
    });
    calls.refused("expiring within", || {
        before.expiring.within(&mut before.transaction).remove("lease")
    });
    calls.refused("expiring put within", || {
        before.expiring.within(&mut before.transaction).put("new", "1", None)
    });
    let [one, other] = before.expiring_values;
    calls.refused("expiring put_reserved within", || {
        before.expiring.within(&mut before.transaction).put_reserved("new", one, None)
    });
    calls.refused("expiring insert_reserved within", || {
        before.expiring.within(&mut before.transaction).insert_reserved("new", other, None)
    });
    calls.refused("expiring delete within", || {
        before.expiring.within(&mut before.transaction).delete("lease")
    });
    calls.harmless("split_stored", || {
        before.expiring.within(&mut before.transaction).split_stored(&"12345678".into()).is_ok()
    });
    // They still have what they fetched before the fork.
    calls.refused("the rest of an iterator", || {
        before.iter.find_map(Result::err).map_or(Ok(()), Err)
    });
    calls.refused("the rest of entries", || {
        before.entries.find_map(Result::err).map_or(Ok(()), Err)
    });
    calls.harmless("a sync point", || before.point.wait().is_err());
    calls.harmless("batch put", || batch.put(&keyspace, "key", "value"));
    calls.harmless("batch merge", || batch.merge(&keyspace, "key", "value"));
    calls.harmless("batch delete", || {
        (batch.delete(&keyspace, "key"), batch.len(), batch.is_empty())
    });
    calls.harmless("batch durability", || batch.durability(Durability::Sync).len());
    calls.refused("batch commit", || batch.commit());
    keyspace_calls(&mut calls, &keyspace, before.value);
    transaction_calls(&mut calls, before.transaction, &keyspace);
    calls.harmless("dropping a lent value", || drop(before.lent));
    calls.harmless("dropping an iterator", || drop((before.iter, before.entries)));
    calls.harmless("dropping a snapshot", || drop(before.snapshot));
    calls
}

/// Runs `work` in a child of a fork, which must find nothing wrong, and waits for it.
fn in_a_child(work: impl FnOnce() -> Calls) {
    // SAFETY: the child runs this test's own code alone, and ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends a child that waits forever; nothing else of this process sets an alarm.
        unsafe { libc::alarm(CHILD_SECONDS_MAX) };
        let wrong = catch_unwind(AssertUnwindSafe(work)).map_or(vec!["a panic".into()], |c| c.0);
        let text = format!("in the child: {}\n", wrong.join("; "));
        if !wrong.is_empty() {
            // SAFETY: writes the bytes of a live text.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        }
        // SAFETY: ends the child at once, which shares nothing that needs an orderly end.
        unsafe { libc::_exit(i32::from(!wrong.is_empty())) };
    }
    let mut status = -1;
    // SAFETY: `child` is our own child, `status` is a live integer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "every call was refused, or did no harm");
}

#[test]
fn every_call_of_a_child_is_refused_or_does_no_harm() {
    for engine in [Engine::Bplus, Engine::Lsm] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_with(folder.path().join("store"), quick()).unwrap();
        let before = Before::new(&store, engine);
        let (keyspace, lent) = (before.keyspace.clone(), before.lent.clone());
        let batch = store.batch();
        in_a_child(|| {
            let mut calls = all_calls(before, batch, folder.path());
            drop((keyspace.clone(), lent.clone()));
            calls.refused("close", || store.clone().close());
            calls
        });
        assert_eq!((keyspace.len().unwrap(), lent[..].len()), (2_001, LENT_BYTES));
        keyspace.insert("after", "1").unwrap();
        assert!(store.check().unwrap().is_clean());
        store.close().unwrap();
        let again = Store::open(folder.path().join("store")).unwrap();
        assert_eq!(again.open_keyspace("entries").unwrap().len().unwrap(), 2_002);
    }
}

/// Dropping the last handles of a store in a child unmaps nothing of the child's own, takes no lock
/// from the parent, and removes no file that the parent has yet to read.
#[test]
fn a_child_drops_everything_and_the_parent_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open_with(&path, quick()).unwrap();
    let keyspace =
        store.keyspace_with("entries", KeyspaceOptions::new().engine(Engine::Lsm)).unwrap();
    for round in 0..3_u8 {
        for number in 0..3_000_u32 {
            keyspace.put(number.to_le_bytes(), [round; 100]).unwrap();
        }
        keyspace.compact().unwrap();
    }
    // A merge in the background would free its tables; the child must not.
    let mut iter = store.snapshot().unwrap().iter(&keyspace);
    assert!(iter.next().is_some());
    keyspace.clear().unwrap();
    store.sync().unwrap();
    let only: ExclusiveTransaction<'_> = store.begin_exclusive().unwrap();
    // SAFETY: the child runs this test's own code alone, and ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends a child that waits forever; nothing else of this process sets an alarm.
        unsafe { libc::alarm(CHILD_SECONDS_MAX) };
        // 64 MiB at any address, most likely where the parent has the store.
        let own = vec![7_u8; 64 << 20];
        let opened =
            Store::open(&path).is_err_and(|error| error.to_string().contains("is held by"));
        drop(only);
        drop((iter, keyspace, store));
        let is_well = opened && own.iter().all(|byte| *byte == 7);
        // SAFETY: ends the child at once, which shares nothing that needs an orderly end.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    let mut status = -1;
    // SAFETY: `child` is our own child, `status` is a live integer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child ended by itself and found all as it was");
    drop(only);
    assert!(Store::open(&path).is_err(), "the lock is the parent's");
    assert_eq!(iter.map(Result::unwrap).count(), 2_999);
    keyspace.put("after", "1").unwrap();
    assert!(store.check().unwrap().is_clean());
}

/// Fails if a new public call is in none of the tests here.
#[test]
fn every_public_call_is_tried() {
    let here = include_str!("fork.rs");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = [
        "store/handle.rs",
        "store/keyspaces.rs",
        "store/upkeep.rs",
        "keyspace/handle.rs",
        "keyspace/read.rs",
        "keyspace/write.rs",
        "keyspace/iterate.rs",
        "keyspace/lend.rs",
        "keyspace/load.rs",
        "keyspace/moves.rs",
        "keyspace/multi_get.rs",
        "keyspace/convert.rs",
        "keyspace/pop.rs",
        "keyspace/lsm.rs",
        "keyspace/estimate.rs",
        "keyspace/stats.rs",
        "keyspace/snapshot.rs",
        "keyspace/atomic.rs",
        "batch/builder.rs",
        "batch/commit.rs",
        "batch/delete_range.rs",
        "batch/retain.rs",
        "transaction/handle.rs",
        "transaction/handle/change.rs",
        "transaction/handle/commit.rs",
        "transaction/handle/pop.rs",
        "transaction/handle/read.rs",
        "transaction/iterate.rs",
        "transaction/remove.rs",
        "transaction/shared.rs",
        "transaction/writes.rs",
        "store/exclusive.rs",
        "store/attempts.rs",
        "store/sync_point.rs",
        "store/objects.rs",
        "care/backup.rs",
        "care/encrypt.rs",
        "care/savepoints.rs",
        "expiring/keyspace.rs",
        "expiring/change.rs",
        "expiring/at.rs",
        "expiring/remove.rs",
        "expiring/within.rs",
        "expiring/reserved.rs",
        "multimap/handle.rs",
        "multimap/read.rs",
        "multimap/write.rs",
        "multimap/at.rs",
        "multimap/within.rs",
        "typed/keyspace.rs",
        "typed/moves.rs",
        "typed/remove.rs",
        "typed/snapshot.rs",
        "typed/transaction.rs",
        "typed/transaction_writes.rs",
    ];
    let mut missing = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(sources.join(file)).unwrap();
        for (at, _) in text.match_indices("\n    pub fn ") {
            let rest = &text[at + "\n    pub fn ".len()..];
            let name = &rest[..rest.find(['(', '<']).unwrap()];
            let is_method = rest[..rest.find('{').unwrap()].contains("self");
            if is_method && !here.contains(&format!(".{name}(")) {
                missing.push(format!("{file}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "not tried in a child: {missing:?}");
}
