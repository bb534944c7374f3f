//! Tests of keys that are floating-point numbers or characters: bytes have their order.

use std::cmp::Reverse;

use super::tests::{order_is_kept, order_is_kept_by};
use crate::error::Error;
use crate::store::handle::Store;

/// The order of `total_cmp`, within other types, too.
#[test]
fn bytes_have_the_order_of_floats_and_characters() {
    let mut random = fastrand::Rng::with_seed(9);
    let special = [
        0.0,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        1.0,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        f64::from_bits(f64::NAN.to_bits() | 1),
    ];
    let mut doubles = special.iter().flat_map(|one| [*one, -one]).collect::<Vec<f64>>();
    doubles.extend((0..40).map(|_| f64::from_bits(random.u64(..))));
    order_is_kept_by(&doubles, f64::total_cmp);
    // Nearby numbers, each in its place.
    let near = (0..20).map(|bits| f64::from_bits(1.5_f64.to_bits() + bits));
    order_is_kept_by(&near.flat_map(|one| [one, -one]).collect::<Vec<_>>(), f64::total_cmp);
    let special = [0.0, f32::MIN_POSITIVE, f32::from_bits(1), 1.0, f32::MAX, f32::INFINITY];
    let mut floats = special.iter().flat_map(|one| [*one, -one]).collect::<Vec<f32>>();
    floats.extend([f32::NAN, -f32::NAN]);
    floats.extend((0..40).map(|_| f32::from_bits(random.u32(..))));
    order_is_kept_by(&floats, f32::total_cmp);
    let reversed = doubles.iter().copied().map(Reverse).collect::<Vec<_>>();
    order_is_kept_by(&reversed, |one, other| other.0.total_cmp(&one.0));
    let within = doubles.iter().map(|one| (random.bool(), Some(*one), random.char(..)));
    order_is_kept_by(&within.collect::<Vec<_>>(), |one, other| {
        let (Some(left), Some(right)) = (one.1, other.1) else { panic!("both have a number") };
        one.0.cmp(&other.0).then(left.total_cmp(&right)).then(one.2.cmp(&other.2))
    });
    order_is_kept(&['\0', 'a', '\u{e9}', '\u{d7ff}', '\u{e000}', '\u{10ffff}']);
}

/// The model in memory: a keyspace of floats is a sorted list of them.
#[test]
fn ranges_of_floats_are_those_of_a_sorted_list() -> Result<(), Error> {
    let store = Store::in_memory()?;
    let degrees = store.keyspace("degrees")?.typed::<(char, f64), i32>()?;
    let mut random = fastrand::Rng::with_seed(13);
    let mut model: Vec<(char, f64)> = Vec::new();
    for number in 0..300 {
        let key = (['a', 'b'][random.usize(0..2)], (random.f64() - 0.5) * 1e3);
        degrees.put(&key, &number)?;
        model.push(key);
    }
    model.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    assert_eq!(degrees.iter().keys().collect::<Result<Vec<_>, _>>()?, model);
    let (low, high) = (('a', -250.0), ('b', 0.0));
    let expected: Vec<_> = model.iter().filter(|key| **key >= low && **key < high).collect();
    let found = degrees.range(low..high).keys().collect::<Result<Vec<_>, _>>()?;
    assert!(found.iter().eq(expected) && found.len() > 100, "{}", found.len());
    let colds = degrees.prefix(&('b',)).keys().collect::<Result<Vec<_>, _>>()?;
    assert!(colds.iter().eq(model.iter().filter(|key| key.0 == 'b')));
    Ok(())
}
