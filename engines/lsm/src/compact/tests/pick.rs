//! Picker tests: jobs and the levels that result from them, on an executor that merges numbers
//! instead of files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adamant_slice::Slice;

use crate::compact::pick::{Job, Pace, Parked, Picker, pick, pick_all, targets};
use crate::compression::Compression;
use crate::level_compression::{LEVELS, LevelCompression};
use crate::memtable::Memtable;
use crate::options::Options;
use crate::table::{BlobReference, TableMeta};
use crate::version::context::TreeContext;
use crate::version::manifest::BlobInfo;
use crate::version::tree_version::{Blob, ListedBlob, TableFile, TreeVersion};

/// Bytes that an entry counts for.
const ENTRY_BYTES: u64 = 10;
/// Entries of a table.
const TABLE_ENTRIES: usize = 20;

/// A version of a key.
#[derive(Clone, Copy, Debug)]
struct Version {
    key: u32,
    sequence: u64,
    is_absence: bool,
    /// The blob file that it points into.
    blob: Option<u64>,
}

/// Encodes a number in byte order.
fn key(number: u32) -> Slice {
    Slice::new(&number.swap_bytes().to_le_bytes())
}

struct Tree {
    context: Arc<TreeContext>,
    tree_version: TreeVersion,
    picker: Picker,
    parked: Parked,
    /// By table number.
    tables: BTreeMap<u64, Vec<Version>>,
    next: u64,
    sequence: u64,
    /// The oldest sequence number that is read.
    pinned: u64,
    options: Options,
    jobs: u32,
}

impl Tree {
    fn new(options: Options) -> Self {
        let tree_version = TreeVersion {
            active: Arc::new(Memtable::empty(0)),
            frozen: Vec::new(),
            levels: Default::default(),
            blobs: Default::default(),
            ranged: Default::default(),
            table_entries: 0,
            sequence_max: 0,
            manifest: 0,
            used: Arc::default(),
            operator: Default::default(),
        };
        let (context, picker) = (TreeContext::in_memory(options.clone()), Picker::default());
        let parked = Parked::default();
        let (next, sequence, pinned, jobs) = (1, 0, u64::MAX, 0);
        let tables = Default::default();
        Self {
            context,
            tree_version,
            picker,
            parked,
            tables,
            next,
            sequence,
            pinned,
            options,
            jobs,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Adds a table of ordered versions to a level.
    fn add(&mut self, level: usize, versions: Vec<Version>) {
        let (Some(first), Some(last)) = (versions.first(), versions.last()) else { return };
        let number = self.number();
        let mut meta = TableMeta {
            number,
            file_bytes: versions.len() as u64 * ENTRY_BYTES,
            entries: versions.len() as u64,
            tombstones: versions.iter().filter(|version| version.is_absence).count() as u64,
            key_min: key(first.key),
            key_max: key(last.key),
            sequence_min: versions.iter().map(|version| version.sequence).min().unwrap_or(0),
            sequence_max: versions.iter().map(|version| version.sequence).max().unwrap_or(0),
            ..TableMeta::default()
        };
        let blobs: BTreeSet<u64> = versions.iter().filter_map(|version| version.blob).collect();
        for file in blobs {
            let entries = versions.iter().filter(|version| version.blob == Some(file)).count();
            let (entries, stored_bytes) = (entries as u64, entries as u64);
            meta.blob_references.push(BlobReference { file, entries, stored_bytes });
        }
        self.tree_version.levels[level].push(TableFile::new(
            (&self.context, &Arc::default()),
            meta,
            0,
        ));
        self.tables.insert(number, versions);
    }

    /// Adds a blob file for the chosen versions that have none.
    fn separate(&mut self, versions: &mut [Version], is_blob: impl Fn(&Version) -> bool) {
        let file = self.number();
        let mut values = 0;
        for version in versions.iter_mut().filter(|version| is_blob(version)) {
            version.blob = Some(file);
            values += 1;
        }
        if values > 0 {
            let info = BlobInfo { file, values, stored_bytes: values, ..BlobInfo::default() };
            let blob = Blob::new((&self.context, &Arc::default()), file, 0);
            self.tree_version.blobs.insert(file, ListedBlob { blob, info });
        }
    }

    fn flush(&mut self, random: &mut fastrand::Rng, keys: u32) {
        self.sequence += 1;
        let absences = random.u8(0..3) == 0;
        let (start, sequence) = (random.u32(0..keys), self.sequence);
        let chosen: BTreeSet<u32> = (0..random.u32(1..40))
            .map(|at| if absences { (start + at) % keys } else { random.u32(0..keys) })
            .collect();
        let mut versions: Vec<Version> = chosen
            .into_iter()
            .map(|key| Version { key, sequence, is_absence: absences, blob: None })
            .collect();
        self.separate(&mut versions, |version| !version.is_absence && version.key % 3 == 0);
        self.add(0, versions);
        self.tree_version.finish();
        self.verify();
    }

    /// Verifies the invariants of the levels.
    fn verify(&self) {
        let mut newest = BTreeMap::<u32, u64>::new();
        for (level, files) in self.tree_version.levels.iter().enumerate() {
            for pair in files.windows(2).filter(|_| level > 0) {
                assert!(pair[0].ends_below(pair[1].bounds().0), "level {level} overlaps");
            }
            let mut of_level = BTreeMap::<u32, (u64, u64)>::new();
            for version in files.iter().flat_map(|file| &self.tables[&file.meta.number]) {
                let (low, high) = of_level.entry(version.key).or_insert((u64::MAX, 0));
                (*low, *high) = ((*low).min(version.sequence), (*high).max(version.sequence));
            }
            for (key, (low, high)) in of_level {
                let above = newest.insert(key, low);
                assert!(above.is_none_or(|above| high < above), "{key} of level {level} is newer");
            }
        }
    }

    /// Verifies that a job may be run.
    fn verify_job(&self, job: &Job) {
        let is_input = |file: &&Arc<TableFile>| {
            job.inputs.iter().any(|input| input.meta.number == file.meta.number)
        };
        let low = job.inputs.iter().map(|file| file.meta.key_min.clone()).min().expect("inputs");
        let high = job.inputs.iter().map(|file| file.meta.key_max.clone()).max().expect("inputs");
        let others = |level: usize| {
            let files = self.tree_version.levels[level].iter().filter(|file| !is_input(file));
            let (low, high) = (&low, &high);
            files.filter(move |f| f.meta.key_min <= *high && f.meta.key_max >= *low).count()
        };
        assert_eq!(others(job.target), 0, "the target has more between the inputs");
        let source =
            (0..LEVELS).find(|&l| self.tree_version.levels[l].iter().any(|f| is_input(&f)));
        let source = source.expect("inputs are listed");
        let is_parked = !self.parked.tables.is_empty();
        assert!(source > 0 || others(0) == 0 || is_parked, "all of level 0, or none");
        assert!((source + 1..job.target).all(|level| others(level) == 0), "nothing is jumped over");
        assert!(!job.is_bottom || (job.target + 1..LEVELS).all(|level| others(level) == 0));
        assert!(!job.is_move || job.inputs.len() == 1 && source != job.target, "a move moves");
    }

    fn run(&mut self, job: &Job) {
        let read = job.inputs.iter().map(|file| file.meta.number);
        assert!(job.is_move || !read.clone().any(|file| self.parked.tables.contains(&file)));
        self.verify_job(job);
        self.jobs += 1;
        let inputs: BTreeSet<u64> = job.inputs.iter().map(|file| file.meta.number).collect();
        for files in &mut self.tree_version.levels {
            files.retain(|file| !inputs.contains(&file.meta.number));
        }
        let mut versions: Vec<Version> =
            inputs.iter().filter_map(|number| self.tables.remove(number)).flatten().collect();
        versions.sort_by_key(|version| (version.key, std::cmp::Reverse(version.sequence)));
        if job.is_move {
            self.add(job.target, versions);
            self.tree_version.finish();
            return self.verify();
        }
        let (mut kept, mut shadowed) = (Vec::new(), None);
        for version in versions {
            let is_old = version.sequence <= self.pinned;
            let is_seen = shadowed != Some(version.key);
            if is_old {
                shadowed = Some(version.key);
            }
            if is_seen && !(version.is_absence && is_old && job.is_bottom) {
                kept.push(version);
            } else {
                self.note_stale(version.blob);
            }
        }
        let is_moved =
            |version: &Version| version.blob.is_some_and(|blob| job.moved_blobs.contains(&blob));
        for version in kept.iter().filter(|version| is_moved(version)) {
            self.note_stale(version.blob);
        }
        self.separate(&mut kept, is_moved);
        self.tree_version.blobs.retain(|_, listed| listed.info.stale_values < listed.info.values);
        while !kept.is_empty() {
            let mut end = TABLE_ENTRIES.min(kept.len());
            while end < kept.len() && kept[end].key == kept[end - 1].key {
                end += 1;
            }
            let rest = kept.split_off(end);
            self.add(job.target, std::mem::replace(&mut kept, rest));
        }
        self.tree_version.finish();
        self.verify();
    }

    fn note_stale(&mut self, blob: Option<u64>) {
        if let Some(listed) = blob.and_then(|blob| self.tree_version.blobs.get_mut(&blob)) {
            listed.info.stale_values += 1;
            listed.info.stale_bytes += 1;
        }
    }

    /// Runs all jobs that are needed.
    fn settle(&mut self, of: &str) {
        for _ in 0..1_000 {
            let of = (&self.options, Pace::Busy);
            let picked = pick(&self.tree_version, of, &mut self.picker, &self.parked);
            let Some(job) = picked else { return };
            self.run(&job);
        }
        panic!("{of}: there is no end of jobs");
    }
}

fn options() -> Options {
    Options {
        level0_tables_max: 3,
        base_bytes_min: 400,
        level_ratio: 3,
        blob_stale_percent_max: 30,
        table_bytes_max: TABLE_ENTRIES as u64 * ENTRY_BYTES,
        ..Options::default()
    }
}

#[test]
fn levels_settle_at_their_sizes_whatever_is_pinned() {
    let mut moved = 0;
    for seed in 0..25 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut tree = Tree::new(options());
        let keys = [60, 600, 5_000][seed as usize % 3];
        for step in 0..120 {
            let of = format!("seed {seed}, step {step}");
            tree.flush(&mut random, keys);
            match random.u8(0..12) {
                0 => tree.pinned = tree.sequence,
                1 => tree.pinned = u64::MAX,
                _ => {}
            }
            if random.u8(0..3) > 0 {
                tree.settle(&of);
                let (base, targets) = targets(&tree.tree_version, &tree.options);
                assert!(tree.tree_version.levels[0].len() < tree.options.level0_tables_max, "{of}");
                for (level, target) in targets.iter().enumerate().take(LEVELS - 1).skip(1) {
                    let bytes = tree.tree_version.level_bytes(level);
                    assert!(bytes == 0 || bytes < *target, "{of}, level {level}: {bytes}");
                    assert!(bytes == 0 || level >= base, "{of}, level {level} is above {base}");
                }
                let is_stale = |listed: &&ListedBlob| {
                    listed.info.stale_bytes * 100 > listed.info.stored_bytes * 30
                };
                assert_eq!(tree.tree_version.blobs.values().filter(is_stale).count(), 0, "{of}");
            }
            if step == 60
                && let Some(job) = pick_all(&tree.tree_version, false)
            {
                tree.run(&job);
                let tables: usize =
                    tree.tree_version.levels[..LEVELS - 1].iter().map(Vec::len).sum();
                assert_eq!(tables, 0, "{of}: all is on the last level");
            }
        }
        moved += tree.jobs;
    }
    assert!(moved > 1_000, "{moved} jobs");
}

#[test]
fn what_is_settled_is_left_alone() {
    let mut random = fastrand::Rng::with_seed(4);
    let mut tree = Tree::new(options());
    for _ in 0..40 {
        tree.flush(&mut random, 300);
        tree.settle("filling");
    }
    let job = pick_all(&tree.tree_version, false).expect("several levels");
    tree.run(&job);
    // That drops values of blob files; what is left in these is moved by a second job.
    if let Some(job) = pick_all(&tree.tree_version, false) {
        tree.run(&job);
    }
    let jobs = tree.jobs;
    tree.settle("settled");
    assert_eq!(tree.jobs, jobs, "one run on the last level needs nothing");
    assert!(pick_all(&tree.tree_version, false).is_none());
}

/// The merge of level 0 rewrites the base, so while there are writers it is not worth a few
/// tombstones.
#[test]
fn tombstones_are_merged_at_once_if_they_are_many_or_the_store_is_idle() {
    let mut tree = Tree::new(options());
    let version = |key, is_absence| Version { key, sequence: 1, is_absence, blob: None };
    for start in (0..100).step_by(TABLE_ENTRIES) {
        let keys = start..start + TABLE_ENTRIES as u32;
        tree.add(LEVELS - 1, keys.map(|key| version(key, false)).collect());
    }
    let picked = |tree: &mut Tree, pace| {
        tree.tree_version.finish();
        let of = (&tree.options, pace);
        pick(&tree.tree_version, of, &mut tree.picker, &tree.parked).map(|job| job.target)
    };
    assert_eq!(picked(&mut tree, Pace::Rest), None);
    let removed = |keys: std::ops::Range<u32>| {
        let removed = keys.map(|key| Version { sequence: 2, ..version(key, true) });
        removed.collect::<Vec<_>>()
    };
    tree.add(0, removed(10..40));
    assert_eq!(picked(&mut tree, Pace::Busy), None, "30 of 130");
    assert_eq!(picked(&mut tree, Pace::Rest), Some(LEVELS - 1));
    tree.add(0, removed(40..50));
    assert_eq!(picked(&mut tree, Pace::Busy), Some(LEVELS - 1), "40 of 140");
}

/// Tables that cannot be read stay in place, on whatever level. Merges around them keep the order
/// of versions, and merging goes on.
#[test]
fn others_are_merged_around_what_is_parked() {
    let (mut jobs, mut jobs_below) = (0, 0);
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut tree = Tree::new(options());
        let keys = [600, 5_000][seed as usize % 2];
        for _ in 0..60 {
            tree.flush(&mut random, keys);
            tree.settle("before");
        }
        let of_level0 = random.bool();
        if of_level0 {
            tree.flush(&mut random, keys);
        }
        let level = if of_level0 { 0 } else { random.usize(1..LEVELS) };
        let files = &tree.tree_version.levels[level];
        let Some(parked) = random.choice(files).map(|file| file.meta.number) else { continue };
        tree.parked.tables.insert(parked);
        let before = tree.jobs;
        for step in 0..40 {
            tree.flush(&mut random, keys);
            tree.settle(&format!("seed {seed}, {parked} of level {level}, step {step}"));
        }
        let is_there =
            tree.tree_version.levels.iter().flatten().any(|file| file.meta.number == parked);
        assert!(is_there, "seed {seed}: what cannot be read is not let go");
        jobs += tree.jobs - before;
        if level > 1 {
            jobs_below += tree.jobs - before;
            let waiting = tree.tree_version.levels[0].len();
            assert!(waiting < 3 + 1, "seed {seed}: {waiting} tables wait on level 0");
        }
        tree.parked = Parked::default();
        tree.settle("whole again");
        assert!(tree.tree_version.levels[0].len() < tree.options.level0_tables_max);
    }
    assert!(jobs > 300 && jobs_below > 100, "{jobs} jobs, {jobs_below} around levels below");
}

/// Each of many consecutive loads leaves one small table.
#[test]
fn many_small_tables_of_a_level_become_few() {
    for level in [1, LEVELS - 1] {
        let mut tree = Tree::new(options());
        for number in 0..300_u32 {
            let sequence = u64::from(number) + 1;
            tree.add(level, vec![Version { key: number, sequence, is_absence: false, blob: None }]);
            tree.tree_version.finish();
            tree.settle("loading");
            let small =
                tree.tree_version.levels.iter().flatten().filter(|f| f.meta.entries < 5).count();
            assert!(small < 16, "{small} small tables after {number}");
        }
        let tables: usize = tree.tree_version.levels.iter().map(Vec::len).sum();
        assert!(tables < 50, "{tables} tables of 300 entries");
        assert_eq!(tree.tables.values().map(Vec::len).sum::<usize>(), 300);
    }
}

/// Merging level 0 rewrites the base, so larger merges write less. The tables that remain when the
/// store is idle stay for long and slow reads down.
#[test]
fn level_0_is_merged_when_it_is_full_and_at_rest_when_a_third_of_that() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut tree =
        Tree::new(Options { level0_tables_max: 12, base_bytes_min: 1 << 40, ..options() });
    for tables in 1..=12 {
        tree.flush(&mut random, 60);
        let parked = Parked::default();
        let picked = |options: &Options, pace| {
            let job = pick(&tree.tree_version, (options, pace), &mut Picker::default(), &parked);
            job.map_or(0, |job| job.inputs.len())
        };
        assert_eq!(picked(&tree.options, Pace::Busy), if tables < 12 { 0 } else { tables });
        assert_eq!(picked(&tree.options, Pace::Rest), if tables < 4 { 0 } else { tables });
        let half = tree.tree_version.level_bytes(0) / 2;
        let few = Options { base_bytes_min: half, ..tree.options.clone() };
        assert_eq!(picked(&few, Pace::Busy), tables, "twice as large as the base, however few");
    }
}

#[test]
fn a_table_moves_only_to_a_level_of_its_compression() {
    let (lz4, none) = (Compression::Lz4, Compression::None);
    let last = LevelCompression::from(lz4).bottommost(none);
    for (compression, is_move) in [(lz4.into(), true), (last, false), ([none, lz4].into(), false)] {
        let options = Options { level0_tables_max: 1, compression, ..options() };
        let mut tree = Tree::new(options);
        let version = Version { key: 7, sequence: 1, is_absence: false, blob: None };
        tree.add(0, vec![version]);
        tree.tree_version.finish();
        let (options, parked) = (&tree.options, Parked::default());
        let job = pick(&tree.tree_version, (options, Pace::Busy), &mut Picker::default(), &parked);
        let job = job.expect("level 0 is full");
        assert_eq!((job.is_move, job.target), (is_move, LEVELS - 1), "{compression}");
    }
}
