//! Single operations: making, reading, cloning, slicing, comparing. Each operation also drops its
//! result.

use std::hint::black_box;

use crate::commands::slice::ground::Ground;
use crate::commands::slice::string::ByteString;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::on_threads;

/// Bytes of a string that all types but the plain ones keep inline.
const INLINE_BYTES: usize = 20;
/// Threads that clone one string.
const THREADS: usize = 2;
/// Repetitions, of which the fastest counts.
const THREAD_BATCHES: u32 = 5;

fn bytes_of(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// All rows of this group.
pub(super) fn measure<S: ByteString>(ground: &mut Ground<'_>) -> Result<()> {
    for len in [8, 20, 24, 64, 1024] {
        let bytes = bytes_of(len);
        ground.repeated(&format!("construct.{len}"), || {
            black_box(&S::copy_of(black_box(&bytes)));
        });
    }
    for len in [8, 64, 1024] {
        reads::<S>(ground, len)?;
    }
    for (name, len) in [("inline", INLINE_BYTES), ("heap", 64)] {
        let string = S::copy_of(&bytes_of(len));
        ground.repeated(&format!("clone.{name}"), || {
            black_box(&black_box(&string).clone());
        });
    }
    let string = S::copy_of(&bytes_of(64));
    for (name, start, end) in [("inline", 10, 26), ("heap", 10, 60)] {
        ground.repeated(&format!("part.{name}"), || {
            let (start, end) = black_box((start, end));
            black_box(&black_box(&string).part(start, end));
        });
    }
    compares::<S>(ground)?;
    threads(ground, &string)
}

/// Reads a string out of memory.
fn reads<S: ByteString>(ground: &mut Ground<'_>, len: usize) -> Result<()> {
    let bytes = bytes_of(len);
    let string = S::read(&mut &bytes[..], len)?;
    ensure(string.bytes() == bytes, || format!("{} read other bytes", S::NAME))?;
    ground.repeated(&format!("from_reader.{len}"), || {
        let mut reader: &[u8] = black_box(&bytes);
        black_box(&S::read(&mut reader, black_box(len)));
    });
    Ok(())
}

fn compares<S: ByteString>(ground: &mut Ground<'_>) -> Result<()> {
    let bytes = bytes_of(64);
    let string = S::copy_of(&bytes);
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] = 255;
        S::copy_of(&bytes)
    };
    let (same, last, first) = (S::copy_of(&bytes), changed(63), changed(0));
    let orders = [string.order(&same), string.order(&last), string.order(&first)];
    ensure(orders.iter().map(|order| *order as i8).eq([0, -1, -1]), || {
        format!("{} compares in another way: {orders:?}", S::NAME)
    })?;
    ground.repeated("eq.64", || {
        black_box(black_box(&string).equals(black_box(&same)));
    });
    for (row, other) in [("cmp.prefix.64", &last), ("cmp.first.64", &first)] {
        ground.repeated(row, || {
            black_box(black_box(&string).order(black_box(other)));
        });
    }
    Ok(())
}

/// Clones and drops one string on two threads at once: nanoseconds for each on its thread.
fn threads<S: ByteString>(ground: &mut Ground<'_>, string: &S) -> Result<()> {
    let each = ground.settings.operations * 4;
    let mut nanoseconds = f64::MAX;
    for _ in 0..THREAD_BATCHES {
        let measured = on_threads(THREADS, |_| {
            for _ in 0..each {
                black_box(&black_box(string).clone());
            }
            Ok(each)
        })?;
        nanoseconds = nanoseconds.min(measured.seconds * 1e9 / each as f64);
    }
    ground.add("clone.2t", each, nanoseconds);
    Ok(())
}
