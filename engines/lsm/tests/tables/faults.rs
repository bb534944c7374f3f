//! Tables and blob files on a disk that fails, fills up, or loses power at any moment.

use std::sync::Arc;

use crate::common::*;
use adamant_lsm::{
    BlobOptions, BlobWriter, Error, Result, TableOptions, TableWriter, check_blob_file,
    check_table, file_name,
};
use adamant_medium::storage::Directory;
use adamant_sim::{SimDirectory, SimDisk};

/// Maximum number of states that are tried at a crash point.
const STATES_MAX: u64 = 40;

fn root(disk: &SimDisk) -> Arc<dyn Directory> {
    Arc::new(SimDirectory::root(disk))
}

fn options() -> TableOptions {
    TableOptions { block_bytes: 500, partition_bytes: 200, ..TableOptions::default() }
}

fn write_blobs(directory: &Arc<dyn Directory>, number: u64) -> Result<()> {
    let mut writer = BlobWriter::create(directory, identity(number), BlobOptions::default())?;
    for index in 0..20_u8 {
        writer.add(&[index], &vec![index; 30_000])?;
    }
    writer.finish()?;
    Ok(())
}

/// A table and a blob file, which are durable once `directory` was synced.
fn write_both(directory: &Arc<dyn Directory>, model: &Model) -> Result<()> {
    write(directory, 1, options(), model)?;
    write_blobs(directory, 2)?;
    directory.sync()?;
    Ok(())
}

fn large_model() -> Model {
    let mut model = model(&mut fastrand::Rng::with_seed(41), 2500);
    // Several pieces of a file.
    for (_, value) in model.values_mut().filter(|(_, value)| !value.is_empty()) {
        value.resize(400, b'v');
    }
    model
}

#[test]
fn an_operation_that_fails_leaves_no_file_and_the_number_can_be_used_again() {
    let model = large_model();
    let disk = SimDisk::new(1);
    write_both(&root(&disk), &model).unwrap();
    let operation_count = disk.operation_count();
    assert!(operation_count > 10, "several pieces are written");
    for number in 0..operation_count {
        let disk = SimDisk::new(1);
        let directory = root(&disk);
        disk.fail(number..number + 1);
        let Err(error) = write_both(&directory, &model) else {
            panic!("operation {number} failed and nobody noticed: {:?}", disk.describe(number));
        };
        assert!(matches!(error, Error::Medium(_)), "{error}");
        let names = directory.list().unwrap();
        assert!(names.iter().all(|name| !name.ends_with(".new")), "{number}: {names:?}");
        disk.repair();
        for name in names {
            directory.remove(&name).unwrap();
        }
        write_both(&directory, &model).unwrap();
        check_table(&directory, identity(1)).unwrap();
        check_blob_file(&directory, identity(2)).unwrap();
    }
}

/// After a failed sync the next one may not write what the first lost. A writer that goes on after
/// an error, which only one of many calls returns, must not finish a file that looks durable.
#[test]
fn a_writer_that_goes_on_after_an_error_never_finishes() {
    let write_on = |directory: &Arc<dyn Directory>| {
        let mut writer = BlobWriter::create(directory, identity(1), BlobOptions::default())?;
        for index in 0..12_u8 {
            // Synced in between, and with pieces of both kinds: copied and uncopied.
            let value = vec![index; if index % 2 == 0 { 1 << 20 } else { 100_000 }];
            let _ = writer.add(&[index], &value);
        }
        writer.finish()
    };
    let disk = SimDisk::new(1);
    write_on(&root(&disk)).unwrap();
    let operation_count = disk.operation_count();
    let syncs = (0..operation_count).filter(|&n| disk.describe(n).unwrap().contains("sync"));
    assert!(syncs.count() >= 2, "one in between, and one at the end");
    for number in 0..operation_count {
        let disk = SimDisk::new(1);
        let directory = root(&disk);
        disk.fail(number..number + 1);
        assert!(write_on(&directory).is_err(), "operation {number}: {:?}", disk.describe(number));
        assert!(directory.list().unwrap().is_empty());
    }
}

#[test]
fn a_disk_that_is_full_refuses_and_takes_more_when_there_is_space() {
    let model = large_model();
    let disk = SimDisk::new(1).without_history();
    write_both(&root(&disk), &model).unwrap();
    let space = disk.space_used_bytes();
    for bytes_max in (0..space).step_by(64 << 10) {
        let disk = SimDisk::new(1).without_history();
        let directory = root(&disk);
        disk.set_space_bytes(Some(bytes_max));
        let error = write_both(&directory, &model).unwrap_err();
        assert!(error.is_out_of_space(), "{error}");
        let names = directory.list().unwrap();
        assert!(names.iter().all(|name| !name.ends_with(".new")), "{names:?}");
        // Files that were finished before stay intact.
        if names.contains(&file_name(1)) {
            check_table(&directory, identity(1)).unwrap();
            directory.remove(&file_name(1)).unwrap();
        }
        disk.set_space_bytes(None);
        write_both(&directory, &model).unwrap();
        check_table(&directory, identity(1)).unwrap();
        check_blob_file(&directory, identity(2)).unwrap();
    }
}

#[test]
fn after_a_power_cut_a_file_under_its_own_name_is_whole() {
    let model = large_model();
    let disk = SimDisk::new(1);
    write_both(&root(&disk), &model).unwrap();
    disk.mark(1);
    let mut cursor = disk.cursor();
    let (mut states, mut found) = (0, [0, 0]);
    loop {
        let is_promised = !disk.marks(cursor.point()).is_empty();
        for mut choice in cursor.choices(STATES_MAX, cursor.point()) {
            let directory = root(&cursor.crash(&mut choice));
            let names = directory.list().unwrap();
            let has = [1, 2].map(|number| names.contains(&file_name(number)));
            assert!(!is_promised || has == [true, true], "{names:?}");
            if has[0] {
                check_table(&directory, identity(1)).unwrap();
            }
            if has[1] {
                check_blob_file(&directory, identity(2)).unwrap();
            }
            states += 1;
            found = [found[0] + u32::from(has[0]), found[1] + u32::from(has[1])];
        }
        if !cursor.advance() {
            break;
        }
    }
    assert!(states > 100 && found[0] > 50 && found[1] > 5, "{states} states, {found:?} files");
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing_and_a_finished_file_is_not_written_over() {
    let directory = directory();
    let model = large_model();
    let mut writer = TableWriter::create(&directory, identity(1), options()).unwrap();
    for item in &model {
        writer.add(&entry(item)).unwrap();
    }
    drop(writer);
    assert!(directory.list().unwrap().is_empty());
    // Left by a process that died.
    directory.create("0001.new").unwrap().write_at(b"rest", 0).unwrap();
    write(&directory, 1, options(), &model).unwrap();
    let before = bytes_of(&directory, &file_name(1));
    let error = TableWriter::create(&directory, identity(1), options()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert_eq!(bytes_of(&directory, &file_name(1)), before);
}
