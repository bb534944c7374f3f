//! Values that a handle lends for as long as it lives.

use adamant::Slice;

/// Keeps the lent values. A value of up to some KiB is a copy; a longer one is the store's own
/// block, which does not change while it is kept here.
#[derive(Debug, Default)]
pub struct Loans(Vec<Loan>);

#[derive(Debug)]
enum Loan {
    Copied(Box<[u8]>),
    Block(Slice),
}

/// Bytes of a slice that may lie in the slice itself, and so move with it.
const INLINE_BYTES_MAX: usize = 64;

impl Loans {
    /// Keeps a value. The bytes stay where they are until the loans are dropped or ended.
    pub(crate) fn keep(&mut self, value: Slice) -> &[u8] {
        self.0.push(match value.len() > INLINE_BYTES_MAX {
            true => Loan::Block(value),
            false => Loan::Copied(value[..].into()),
        });
        match self.0.last() {
            Some(Loan::Block(value)) => value,
            Some(Loan::Copied(value)) => value,
            None => &[],
        }
    }

    /// Ends all loans.
    pub(crate) fn end(&mut self) {
        self.0 = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_where_it_is() {
        let mut loans = Loans::default();
        let mut places = Vec::new();
        for bytes in 0..200_usize {
            let kept = loans.keep(Slice::from(vec![bytes as u8; bytes]));
            assert_eq!(kept, vec![bytes as u8; bytes]);
            places.push((kept.as_ptr(), bytes));
        }
        // The list has grown, and moved, many times since.
        for (loan, (place, bytes)) in loans.0.iter().zip(places) {
            let kept: &[u8] = match loan {
                Loan::Copied(kept) => kept,
                Loan::Block(kept) => kept,
            };
            assert_eq!((kept.as_ptr(), kept.len()), (place, bytes));
        }
    }
}
