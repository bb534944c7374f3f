//! Random programs of operations agree with vectors: the short form of the fuzz target.

#[path = "../operations/mod.rs"]
mod program;

#[test]
fn random_programs_agree_with_vectors() {
    let programs = if cfg!(miri) { 15 } else { 3_000 };
    for seed in 0..programs {
        let mut random = fastrand::Rng::with_seed(seed);
        println!("seed {seed}");
        let mut bytes = vec![0; random.usize(..if cfg!(miri) { 120 } else { 600 })];
        random.fill(&mut bytes);
        program::run(&bytes);
    }
}
