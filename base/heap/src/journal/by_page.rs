//! The changes of a window in the order of their pages.
//!
//! Purpose: the applier takes 5 changes or so for each put, a quarter of a million in a window, and
//! ordering them was most of what it did. Here each is a number, its page above its place in the
//! window, and numbers are dealt out by 11 bits of the page at a time: a dozen instructions for
//! each pass, of which a heap of up to 16 GiB takes three.
//! Invariants: changes of one page keep their order. Source: LSD radix sort, Knuth, The Art of
//! Computer Programming 3, 5.2.5, algorithm R.
//! Thread safety: none of its own.

/// Low bits of a number: the place in the window.
const PLACE_BITS: u32 = 24;
/// Bits by which numbers are dealt out at a time: 8 KiB of counts stay in the nearest cache.
const DIGIT_BITS: u32 = 11;
const DIGIT_COUNT: usize = 1 << DIGIT_BITS;
/// Passes over all bits of a page number.
const PASSES: usize = (u64::BITS - PLACE_BITS).div_ceil(DIGIT_BITS) as usize;
/// Fewer numbers than this are compared: counting alone would take longer.
const COUNTED_MIN: usize = 1024;

/// The order, with memory that is used again.
#[derive(Debug, Default)]
pub(super) struct ByPage {
    numbers: Vec<u64>,
    spare: Vec<u64>,
}

impl ByPage {
    /// Orders places by their page numbers, which are below 2^40. The places are those of the
    /// iterator's items, at most 2^24.
    pub(super) fn order(
        &mut self,
        pages: impl Iterator<Item = u64>,
    ) -> impl Iterator<Item = usize> {
        let numbers = &mut self.numbers;
        numbers.clear();
        numbers.extend(pages.zip(0u64..).map(|(page, place)| page << PLACE_BITS | place));
        debug_assert!(numbers.len() <= 1 << PLACE_BITS, "a place has {PLACE_BITS} bits");
        if numbers.len() < COUNTED_MIN {
            numbers.sort_unstable();
        } else {
            self.deal();
        }
        self.numbers.iter().map(|number| (number & ((1 << PLACE_BITS) - 1)) as usize)
    }

    /// Pass by pass, from the low bits of the page up; bits that all have in common need none.
    fn deal(&mut self) {
        let mut counts = vec![[0u32; DIGIT_COUNT]; PASSES];
        for number in &self.numbers {
            for (pass, counts) in counts.iter_mut().enumerate() {
                counts[digit(*number, pass)] += 1;
            }
        }
        self.spare.resize(self.numbers.len(), 0);
        for (pass, counts) in counts.iter_mut().enumerate() {
            let first = self.numbers.first().map_or(0, |number| digit(*number, pass));
            if counts[first] as usize == self.numbers.len() {
                continue;
            }
            let mut start = 0;
            for count in counts.iter_mut() {
                start += std::mem::replace(count, start);
            }
            for number in &self.numbers {
                let next = &mut counts[digit(*number, pass)];
                self.spare[*next as usize] = *number;
                *next += 1;
            }
            std::mem::swap(&mut self.numbers, &mut self.spare);
        }
    }
}

#[inline]
fn digit(number: u64, pass: usize) -> usize {
    (number >> (PLACE_BITS + pass as u32 * DIGIT_BITS)) as usize & (DIGIT_COUNT - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_by_page_and_within_a_page_as_they_were() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut by_page = ByPage::default();
        for count in [0, 1, 2, COUNTED_MIN - 1, COUNTED_MIN, 50_000] {
            for bits in [0, 3, 14, 25, 40] {
                // Pages of data, and of descriptors far above them.
                let far = if bits == 14 { 1 << 34 } else { 0 };
                let pages: Vec<u64> = (0..count)
                    .map(|_| (random.u64(..) & ((1 << bits) - 1)) + far * random.u64(..2))
                    .collect();
                let mut expected: Vec<usize> = (0..count).collect();
                expected.sort_by_key(|place| pages[*place]);
                let found: Vec<usize> = by_page.order(pages.iter().copied()).collect();
                assert_eq!(found, expected, "{count} of {bits} bits");
            }
        }
    }
}
