//! Damaged increments: each damage is told with the file that it is in, and no value is wrong.

use std::fs;

use adamant::{Error, Store};

use crate::backup_since::support::{Models, Work, options, read, show};

/// What a reader of a damaged increment finds: all that the models say, or an error.
fn try_all(path: &std::path::Path, models: &Models) -> Result<(), Error> {
    let store = Store::open_with(path, options().read_only(true))?;
    for (name, model) in ["bplus", "lsm"].into_iter().zip(models) {
        let keyspace = store.open_keyspace(name)?;
        for (key, value) in model {
            assert_eq!(keyspace.get(key)?.as_deref(), Some(&value[..]), "{name}: a wrong value");
        }
    }
    let report = store.check()?;
    match report.findings.first() {
        Some(finding) => {
            Err(Error::NotWhole { path: path.into(), findings: 1, first: finding.to_string() })
        }
        None => Ok(()),
    }
}

/// A bit of each byte of header and index, and of each block, and lengths cut anywhere.
#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn every_damaged_byte_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut work = Work::new(&path("store"), 31);
    (0..40).for_each(|_| work.step());
    work.store().backup(path("full")).unwrap();
    (0..3).for_each(|_| work.step());
    work.store().backup_since(path("full"), path("one")).unwrap();
    (0..3).for_each(|_| work.step());
    let made = work.store().backup_since(path("one"), path("two")).unwrap();
    let models = work.models.clone();
    try_all(&path("two"), &models).unwrap();
    let mut random = fastrand::Rng::with_seed(31);
    for name in ["one", "two"] {
        let file = path(name).join("increment");
        let whole = fs::read(&file).unwrap();
        let slots = u64::from_le_bytes(*whole[84..].first_chunk().unwrap());
        let index = 4096 * (slots as usize + 1);
        assert!(index < whole.len() && slots >= made.blocks.min(1));
        let mut places: Vec<usize> = (0..200).chain([1000, 4095]).collect();
        let rest = whole.len() - index;
        places.extend((0..rest).step_by((rest / 300).max(1)).map(|at| index + at));
        places.extend((1..=slots as usize).map(|slot| slot * 4096 + random.usize(..4096)));
        let mut untold = 0;
        for at in places {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << random.u32(..8);
            fs::write(&file, &damaged).unwrap();
            match try_all(&path("two"), &models) {
                Ok(()) => {
                    // A block that the newer increment has otherwise.
                    assert!(name == "one" && (4096..index).contains(&at), "byte {at} of {name}");
                    untold += 1;
                }
                Err(Error::WrongLink { path, .. }) => assert_eq!(path, file.parent().unwrap()),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(file.to_str().unwrap()), "byte {at}: {text}");
                    assert!(error.is_damaged() || error.is_unsupported(), "byte {at}: {error:?}");
                }
            }
        }
        for _ in 0..60 {
            let len = random.usize(..whole.len());
            fs::write(&file, &whole[..len]).unwrap();
            let error = try_all(&path("two"), &models).unwrap_err();
            assert!(error.is_damaged(), "cut to {len}: {error:?}");
        }
        let longer = [&whole[..], b"x"].concat();
        fs::write(&file, &longer).unwrap();
        assert!(try_all(&path("two"), &models).unwrap_err().is_damaged());
        fs::write(&file, &whole).unwrap();
        println!("{name}: {slots} slots, {untold} blocks that nothing reads");
    }
    try_all(&path("two"), &models).unwrap();
}

/// Pages of the full backup: told with its pool, unless an increment has them otherwise.
#[test]
fn a_damaged_full_backup_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut work = Work::new(&path("store"), 33);
    (0..40).for_each(|_| work.step());
    work.store().backup(path("full")).unwrap();
    (0..3).for_each(|_| work.step());
    work.store().backup_since(path("full"), path("one")).unwrap();
    let pool = path("full").join("pool");
    let whole = fs::read(&pool).unwrap();
    let mut random = fastrand::Rng::with_seed(33);
    let mut told = 0;
    let pages = whole.len() / 4096;
    let (mut refused, any) = (0, (0..pages).step_by(pages / 200));
    for page in any.chain([1, 2, 3, 17, 18]) {
        let mut damaged = whole.clone();
        damaged[page * 4096 + random.usize(..64)] ^= 1 << random.u32(..8);
        fs::write(&pool, &damaged).unwrap();
        match try_all(&path("one"), &work.models) {
            Ok(()) => {}
            Err(Error::WrongLink { path: found, .. }) => assert_eq!(found, path("full")),
            Err(error) => {
                told += 1;
                let text = error.to_string();
                assert!(text.contains(pool.to_str().unwrap()), "page {page}: {text}");
                assert!(error.is_damaged(), "page {page}: {error:?}");
                // It is found when the next one is made, unless that is only compared with zeros.
                if let Err(error) = work.store().backup_since(path("one"), path("two")) {
                    refused += 1;
                    assert!(error.to_string().contains(pool.to_str().unwrap()), "{error}");
                    assert!(!path("two").exists() && !path("two.backing-up").exists());
                } else {
                    fs::write(&pool, &whole).unwrap();
                    try_all(&path("two"), &work.models).unwrap();
                    fs::remove_dir_all(path("two")).unwrap();
                }
            }
        }
    }
    assert!(told > 20 && refused > 20, "{told} {refused}");
}

/// Files of LSM trees that a link lost, or that were cut.
#[test]
fn a_lost_table_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut work = Work::new(&path("store"), 32);
    (0..60).for_each(|_| work.step());
    work.store().backup(path("full")).unwrap();
    (0..60).for_each(|_| work.step());
    let made = work.store().backup_since(path("full"), path("one")).unwrap();
    assert!(made.files > 0);
    let mut told = 0;
    for link in ["full", "one"] {
        let folders = ["tables", "blobs"].map(|name| path(link).join(name));
        for folder in folders.into_iter().filter(|folder| folder.exists()) {
            for entry in fs::read_dir(folder).unwrap() {
                let file = entry.unwrap().path();
                let whole = fs::read(&file).unwrap();
                fs::remove_file(&file).unwrap();
                let lost = try_all(&path("one"), &work.models);
                fs::write(&file, &whole[..whole.len() - 1]).unwrap();
                let cut = try_all(&path("one"), &work.models);
                assert_eq!(lost.is_err(), cut.is_err());
                if let (Err(lost), Err(cut)) = (lost, cut) {
                    told += 1;
                    let name = file.file_name().unwrap().to_str().unwrap();
                    assert!(lost.to_string().contains(name), "{name}: {lost}");
                    assert!(cut.to_string().contains(name), "{name}: {cut}");
                }
                fs::write(&file, whole).unwrap();
            }
        }
    }
    assert!(told > 1, "{told}");
    show(&read(&path("one")), &work.models);
}
