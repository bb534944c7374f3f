//! Hostile tables: reading ends, with entries or an error. The short form of the fuzz target.

#[path = "../hostile/mod.rs"]
mod program;

#[test]
fn tables_with_changed_bytes_and_right_checksums() {
    let whole = [0, 1, 2, 4, 8, 15].map(|shape| program::run(&[shape]));
    assert!(whole.iter().all(|&ways| ways == whole[0]) && whole[0] > 100, "{whole:?}");
    let mut harmed = 0;
    for seed in 0..3000 {
        let mut random = fastrand::Rng::with_seed(seed);
        println!("seed {seed}");
        let changes = random.usize(1..6);
        let mut bytes = vec![0; 1 + 4 * changes];
        random.fill(&mut bytes);
        // Lengths, counts and offsets are near the ends of blocks, and small numbers are more
        // effective.
        for change in bytes[1..].as_chunks_mut::<4>().0 {
            if random.bool() {
                change[1..3].copy_from_slice(&random.u16(0..40).to_le_bytes());
            }
            if random.bool() {
                change[3] = [0, 1, 2, 3, 127, 128, 254, 255][random.usize(0..8)];
            }
        }
        harmed += u32::from(program::run(&bytes) < whole[0]);
    }
    assert!(harmed > 1000, "only {harmed} did any harm");
}
