//! Glob patterns of KEYS and SCAN: `*`, `?`, `[a-c]`, `[^a]`, and `\` before a literal character.
//!
//! Invariants: matching takes at most O(pattern * text) steps, whatever the pattern.

/// A pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern<'p> {
    bytes: &'p [u8],
}

impl<'p> Pattern<'p> {
    /// Every text is a pattern.
    pub(crate) fn new(bytes: &'p [u8]) -> Self {
        Self { bytes }
    }

    /// The prefix of all matching texts.
    pub(crate) fn prefix(&self) -> &'p [u8] {
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let end = self.bytes.iter().position(special).unwrap_or(self.bytes.len());
        &self.bytes[..end]
    }

    /// Whether it matches all of a text.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let (mut pattern, mut at) = (0, 0);
        // The position after the last star, and the text that it has not consumed yet: only the
        // last star ever needs to take more, so no choice is tried twice.
        let mut star: Option<(usize, usize)> = None;
        loop {
            match self.bytes.get(pattern) {
                Some(b'*') => {
                    pattern += 1;
                    star = Some((pattern, at));
                    continue;
                }
                Some(_) if at < text.len() => {
                    let (is_match, width) = one(&self.bytes[pattern..], text[at]);
                    if is_match {
                        pattern += width;
                        at += 1;
                        continue;
                    }
                }
                None if at == text.len() => return true,
                _ => {}
            }
            match star {
                Some((behind, from)) if from < text.len() => {
                    star = Some((behind, from + 1));
                    (pattern, at) = (behind, from + 1);
                }
                _ => return false,
            }
        }
    }
}

/// Whether the first element of a pattern, which is no star, matches a byte; and the element's
/// width.
fn one(pattern: &[u8], byte: u8) -> (bool, usize) {
    match pattern {
        [b'?', ..] => (true, 1),
        [b'\\', sign, ..] => (*sign == byte, 2),
        [b'[', rest @ ..] => class(rest, byte),
        [sign, ..] => (*sign == byte, 1),
        [] => (false, 0),
    }
}

/// The same after an opening bracket. A class that is not closed ends with the pattern.
fn class(rest: &[u8], byte: u8) -> (bool, usize) {
    let is_negated = rest.first() == Some(&b'^');
    let mut at = usize::from(is_negated);
    let mut is_match = false;
    loop {
        match rest[at.min(rest.len())..] {
            [b'\\', sign, ..] => {
                is_match |= sign == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [] => break,
            [low, b'-', high, ..] => {
                is_match |= (low.min(high)..=low.max(high)).contains(&byte);
                at += 3;
            }
            [sign, ..] => {
                is_match |= sign == byte;
                at += 1;
            }
        }
    }
    (is_match != is_negated, at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern.as_bytes()).matches(text.as_bytes())
    }

    /// A literal reading of the rules, regardless of time.
    fn slowly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|taken| slowly(rest, &text[taken..])),
            _ => text.first().is_some_and(|&byte| {
                let (is_match, width) = one(pattern, byte);
                is_match && slowly(&pattern[width..], &text[1..])
            }),
        }
    }

    #[test]
    fn examples_of_the_redis_manual() {
        for text in ["hello", "hallo", "hxllo"] {
            assert!(matches("h?llo", text) && matches("h*llo", text) && matches("*", text));
        }
        assert!(matches("h*llo", "heeeello") && matches("h*llo", "hllo"));
        assert!(matches("h[ae]llo", "hallo") && !matches("h[ae]llo", "hillo"));
        assert!(matches("h[^e]llo", "hallo") && !matches("h[^e]llo", "hello"));
        assert!(matches("h[a-b]llo", "hbllo") && !matches("h[a-b]llo", "hcllo"));
        assert!(matches(r"h\*llo", "h*llo") && !matches(r"h\*llo", "hello"));
        assert!(matches(r"[\]]", "]") && matches("a[bc", "ab") && !matches("", "a"));
        assert_eq!(Pattern::new(b"user:1?*").prefix(), b"user:1");
    }

    #[test]
    fn as_the_rules_read() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut text_of = |signs: &[u8], length: usize| -> Vec<u8> {
            (0..random.usize(..length)).map(|_| signs[random.usize(..signs.len())]).collect()
        };
        for _ in 0..20_000 {
            let (pattern, text) = (text_of(br"ab*?[]^-\", 8), text_of(b"ab-]", 8));
            let expected = slowly(&pattern, &text);
            assert_eq!(Pattern::new(&pattern).matches(&text), expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn many_stars_take_no_long_time() {
        let (pattern, text) = ("a*".repeat(200) + "b", "a".repeat(2000));
        assert!(!matches(&pattern, &text));
    }
}
