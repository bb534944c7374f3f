//! Numeric command line options.

/// The numbers of the options, or their defaults.
///
/// # Errors
/// In words: an option of another name, or without a number.
pub(crate) fn numbers<const N: usize>(
    names: [&str; N],
    mut numbers: [u64; N],
    options: &[&str],
) -> Result<[u64; N], String> {
    for option in options.chunks(2) {
        let at = names.iter().position(|name| option.first() == Some(name));
        let (Some(at), &[name, value]) = (at, option) else {
            return Err(format!("expected {} N, found {option:?}", names.join(" N or ")));
        };
        let number = value.parse();
        numbers[at] = number.map_err(|_| format!("{name} takes a number, found {value:?}"))?;
    }
    Ok(numbers)
}
