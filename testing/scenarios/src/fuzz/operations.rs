//! Fuzzed workloads with power cuts: the recovered state is one of the commits that may be the last
//! one, complete, in a store without a fault or a leak; and the store continues.

use adamant::{Durability, Engine};
use adamant_sim::{Choice, Promise, SimDisk};

use crate::crashes::{
    Change, Mix, Move, Plan, Setup, Step, Workload, key, verify_going_on, verify_of,
};

/// Keyspaces that are created and dropped; each has another engine in a store with several.
const NAMES: [&str; 5] = ["first", "second", "..", "/", "log"];
/// Maximum steps of a program, and power cuts, so that it ends soon.
const STEPS_MAX: usize = 32;
const CRASHES_MAX: usize = 3;
/// Bytes of a power cut: when (2), and which unsynced writes survive (2).
const CRASH_BYTES: usize = 4;
/// In the third byte of a power cut: the recovered store is used further, which takes as long
/// again.
const GOES_ON: u8 = 0x80;
/// Bytes of a step: the kind, the object, and three numbers.
const STEP_BYTES: usize = 5;
/// Number of distinct key numbers: so few that the removal of a range is one commit.
const KEYS: u64 = 120;
/// Maximum entries of a batch, or of a load.
const ENTRIES_MAX: u64 = 24;

/// Takes the steps of a program on a disk of its own, with power cuts now and then. A program is
/// the number of a setup, power cuts, and steps. Returns how many states were recovered.
///
/// # Panics
/// If anything is lost, or the recovered state is wrong in another way.
pub fn run(program: &[u8]) -> u32 {
    let Some((&number, rest)) = program.split_first() else { return 0 };
    let Some((crashes, steps)) = rest.split_at_checked(CRASHES_MAX * CRASH_BYTES) else { return 0 };
    let setups = Setup::all();
    let setup = setups[usize::from(number) % setups.len()];
    let mix = Mix { seed: 1, setup, ..Mix::default() };
    let disk = SimDisk::new(mix.seed);
    let mut workload = Workload::create(&disk, mix).unwrap();
    for bytes in steps.as_chunks::<STEP_BYTES>().0.iter().take(STEPS_MAX) {
        let step = step(bytes, setup);
        if !matches!(&step, Step::Commit(plan, _) if !plan.fits(workload.last())) {
            workload.take(&step).unwrap();
        }
    }
    workload.last().verify(workload.store());
    let end = disk.operation_count();
    let mut recovered = 0;
    for &[low, high, how, seed] in crashes.as_chunks::<CRASH_BYTES>().0 {
        let point = end * u64::from(u16::from_le_bytes([low, high])) / u64::from(u16::MAX);
        let crashed = match (how & !GOES_ON) % 5 {
            0 => disk.crash(point, &mut Choice::None),
            1 => disk.crash(point, &mut Choice::All),
            2 => disk.crash(point, &mut Choice::random(seed.into())),
            3 => disk.crash(point, &mut Choice::torn(seed.into())),
            _ => disk.kill(point),
        };
        let is_killed = (how & !GOES_ON) % 5 == 4;
        let promise = if is_killed { Promise::at_death } else { Promise::at_power_cut };
        let promise = promise(&disk, point);
        let (store, found) = verify_of(setup, &crashed, &workload.models, promise);
        if how & GOES_ON != 0 {
            verify_going_on(setup, &crashed, store, &found);
        }
        recovered += 1;
    }
    recovered
}

/// One step; a commit may be about an absent object.
fn step(&[what, place, one, two, three]: &[u8; STEP_BYTES], setup: Setup) -> Step {
    let durability = match what >> 6 {
        0 | 1 => Durability::Sync,
        2 => Durability::Buffered,
        _ => Durability::Deferred,
    };
    let name = NAMES[usize::from(place & 15) % NAMES.len()];
    let other = NAMES[usize::from(place >> 4) % NAMES.len()];
    let key_of = |number: u8| key(u64::from(number) % KEYS);
    let change = |number: u64| {
        let number = number as u8;
        let removes = three & 1 != 0 && number.is_multiple_of(3);
        let value = (!removes).then(|| value(three.wrapping_add(number), number));
        let name = if three & 2 != 0 && number.is_multiple_of(2) { other } else { name };
        Change { name: name.into(), key: key_of(one.wrapping_add(number)), value }
    };
    let operand = |number: u64| {
        let number = number as u8;
        // Several of one key, too.
        let key = key_of(one.wrapping_add(number / 3));
        let value = Some(vec![three.wrapping_add(number); usize::from(three % 16)]);
        Change { name: name.into(), key, value }
    };
    let moved = |number: u64| {
        let number = number as u8;
        let source = (name.into(), key_of(one.wrapping_add(number)));
        let target = (other.into(), key_of(two.wrapping_add(number)));
        Move { is_swap: three & 1 != 0, source, target }
    };
    let count = u64::from(two) % ENTRIES_MAX + 1;
    let plan = match what & 0x1f {
        0..4 => Plan::Create(name, setup.engine_of(name), setup.values_of(name)),
        4..8 => {
            let value = Some(value(two, three));
            Plan::Single(Change { name: name.into(), key: key_of(one), value })
        }
        8 => Plan::Single(Change { name: name.into(), key: key_of(one), value: None }),
        9 => Plan::Merge((0..count).map(operand).collect()),
        10 => Plan::Take { name: name.into(), key: key_of(one) },
        11..15 => Plan::Batch((0..count).map(change).collect()),
        15 | 16 => {
            let entries = (0..count).map(|number| {
                let number = number as u8;
                (key_of(one.wrapping_mul(number)), value(three, number))
            });
            Plan::Load { name: name.into(), entries: entries.collect() }
        }
        17 => Plan::Moves(vec![moved(0)]),
        18 => Plan::Moves((0..count).map(moved).collect()),
        19 => range(name, key_of(one), (three & 1 == 0).then(|| key_of(two))),
        20 => Plan::Clear(name),
        21 => Plan::Drop(name),
        22 if setup.packs && three & 1 == 0 => Plan::Compress(name, one),
        22 => Plan::Convert(name, Engine::ALL[usize::from(one) % Engine::ALL.len()]),
        23 if three & 1 == 0 => Plan::Rename(name, other),
        23 => Plan::Exchange(name, other),
        24 | 25 => return Step::Reopen,
        26 => return Step::Sync,
        27 => return Step::Snapshot,
        28 => return Step::Shrink,
        29 | 30 => return Step::Compact(name),
        _ => return Step::Backup,
    };
    Step::Commit(plan, durability)
}

/// The removal of a range that can hold a key: for one that cannot, nothing is made durable.
fn range(name: &str, start: Vec<u8>, end: Option<Vec<u8>>) -> Plan {
    let (start, end) = match end {
        Some(end) if end < start => (end, Some(start)),
        Some(end) if end == start => (start, None),
        end => (start, end),
    };
    Plan::RemoveRange { name: name.into(), start, end }
}

/// Short ones, and some of a few pages.
fn value(len: u8, byte: u8) -> Vec<u8> {
    let bytes = if len >= 250 { 4_000 * usize::from(len - 249) } else { usize::from(len) };
    vec![byte; bytes]
}
