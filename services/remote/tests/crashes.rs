//! A crash behind every object that is written or removed: what is found is a beginning of the
//! commits, with each that had returned.
//!
//! Objects come whole or not at all, so the states that a crash can leave are those between two of
//! them. They are kept while a store is used, with tables and blocks as small as can be, so that
//! flushes, compactions and dropped keyspaces are among them; then each of them is opened, for
//! reading and for writing.

#[path = "common/watched.rs"]
mod watched;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use adamant_remote::object_store::ObjectStore;
use adamant_remote::object_store::memory::InMemory;
use adamant_remote::{Options, Store};
use fastrand::Rng;

use watched::{Watch, Watched};

/// Objects as they were after a write, how many steps had returned by then, and how many had begun.
struct State {
    objects: InMemory,
    returned: usize,
    begun: usize,
}

/// All states that objects were in.
#[derive(Default)]
struct Recorder {
    states: Mutex<Vec<State>>,
    returned: AtomicUsize,
    begun: AtomicUsize,
}

impl Watch for Recorder {
    fn after(&self, objects: &InMemory) {
        // What had returned before is there; what is there had begun.
        let returned = self.returned.load(Ordering::SeqCst);
        let objects = objects.fork();
        let begun = self.begun.load(Ordering::SeqCst);
        self.states.lock().unwrap().push(State { objects, returned, begun });
    }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Model = BTreeMap<&'static str, Map>;
const NAMES: [&str; 3] = ["first", "second", "third"];

/// A keyspace, a key, and its value or none to remove it.
type Change = (&'static str, Vec<u8>, Option<Vec<u8>>);

/// A step is one commit.
enum Step {
    Create(&'static str),
    Drop(&'static str),
    Batch(Vec<Change>),
}

/// The steps of a seed, and what is there after each of them; before the first one, too.
fn plan(seed: u64, count: usize) -> (Vec<Step>, Vec<Model>) {
    let mut random = Rng::with_seed(seed);
    let (mut steps, mut models) = (Vec::new(), vec![Model::new()]);
    while steps.len() < count {
        let mut model = models.last().unwrap().clone();
        let name = NAMES[random.usize(..NAMES.len())];
        let step = if !model.contains_key(name) {
            model.insert(name, Map::new());
            Step::Create(name)
        } else if random.u8(..12) == 0 {
            model.remove(name);
            Step::Drop(name)
        } else {
            let mut changes = Vec::new();
            for _ in 0..random.usize(1..8) {
                let names: Vec<&'static str> = model.keys().copied().collect();
                let name = names[random.usize(..names.len())];
                let key = format!("key {:02}", random.u8(..40)).into_bytes();
                let value = (random.u8(..4) > 0).then(|| vec![random.u8(..); random.usize(..120)]);
                match &value {
                    Some(value) => model.get_mut(name).unwrap().insert(key.clone(), value.clone()),
                    None => model.get_mut(name).unwrap().remove(&key),
                };
                changes.push((name, key, value));
            }
            Step::Batch(changes)
        };
        steps.push(step);
        models.push(model);
    }
    (steps, models)
}

fn run(store: &Store, step: &Step) {
    match step {
        Step::Create(name) => drop(store.create_keyspace(name).unwrap()),
        Step::Drop(name) => assert!(store.drop_keyspace(name).unwrap()),
        Step::Batch(changes) => {
            let mut batch = store.batch();
            for (name, key, value) in changes {
                let keyspace = store.open_keyspace(name).unwrap();
                match value {
                    Some(value) => batch.put(&keyspace, key, value).unwrap(),
                    None => batch.delete(&keyspace, key).unwrap(),
                }
            }
            batch.commit().unwrap();
        }
    }
}

fn found(store: &Store) -> BTreeMap<String, Map> {
    let names = store.keyspaces().unwrap().into_iter().map(|info| info.name);
    let all = names.map(|name| {
        let keyspace = store.open_keyspace(&name).unwrap();
        let pairs = keyspace.iter().map(|entry| entry.unwrap());
        (name, pairs.map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
    });
    all.collect()
}

fn is_same(found: &BTreeMap<String, Map>, model: &Model) -> bool {
    found.len() == model.len()
        && found
            .iter()
            .zip(model)
            .all(|((name, map), (known, model))| name == known && map == model)
}

fn options() -> Options {
    Options::new().flush_ms(1).memtable_bytes_max(2 << 10)
}

/// Opens a state for writing, and every fourth one for reading before if a commit had returned by
/// then: it is one of the models from the last commit that had returned to the last that had begun.
fn verify(at: usize, state: &State, models: &[Model], context: &str) {
    let State { objects, returned, begun } = state;
    let context = format!("{context}, {returned} returned, {begun} begun");
    let objects: Arc<dyn ObjectStore> = Arc::new(objects.fork());
    let allowed = &models[*returned..=*begun];
    let open = |read_only| {
        Store::open_objects(Arc::clone(&objects), "store", options().read_only(read_only))
            .unwrap_or_else(|error| panic!("{context}: {error}"))
    };
    let compare = |store: &Store| {
        let found = found(store);
        assert!(allowed.iter().any(|model| is_same(&found, model)), "{context}: {found:?}");
    };
    let reader = (*returned > 0 && at.is_multiple_of(4)).then(|| open(true));
    reader.iter().for_each(compare);
    let store = open(false);
    compare(&store);
    // It goes on.
    let keyspace = store.keyspace("first").unwrap();
    keyspace.put("one more", "v").unwrap();
    assert_eq!(keyspace.get("one more").unwrap(), Some("v".into()), "{context}");
}

#[test]
fn each_state_between_two_objects_is_a_beginning_of_the_commits() {
    let mut count = 0;
    for seed in 0..3 {
        let (steps, models) = plan(seed, 90);
        let recorded = Watched::new(Recorder::default());
        let store = Store::open_objects(Arc::new(recorded.clone()), "store", options()).unwrap();
        for (number, step) in (1..).zip(&steps) {
            recorded.watch.begun.store(number, Ordering::SeqCst);
            run(&store, step);
            recorded.watch.returned.store(number, Ordering::SeqCst);
        }
        store.close().unwrap();
        let states = std::mem::take(&mut *recorded.watch.states.lock().unwrap());
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(state) = states.get(at) else { break };
                verify(at, state, &models, &format!("seed {seed}, state {at}"));
            }
        };
        // Opening a store waits for threads and timers of its own.
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
        count += states.len();
    }
    println!("{count} states, each of them a beginning of the commits");
}
