//! Every order in which threads can clone, read and drop a slice. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p adamant-slice --test loom`.

#![cfg(loom)]

use adamant_slice::Slice;
use loom::thread;

fn bytes() -> Vec<u8> {
    (0..40).collect()
}

#[test]
fn the_last_of_two_threads_frees() {
    loom::model(|| {
        let slice = Slice::from(bytes());
        let clone = slice.clone();
        let other = thread::spawn(move || {
            let part = clone.slice(3..30);
            drop(clone);
            assert_eq!(part[0], 3);
        });
        assert_eq!(slice, bytes());
        drop(slice);
        other.join().unwrap();
    });
}

#[test]
fn a_vector_comes_back_only_when_no_other_thread_reads_it() {
    loom::model(|| {
        let slice = Slice::from(vec![7_u8; 4096]);
        let clone = slice.clone();
        let other = thread::spawn(move || assert_eq!(clone[4095], 7));
        let mut vec = slice.into_vec();
        vec.fill(9);
        other.join().unwrap();
    });
}
