//! How the trees of a damaged store store values, which may be compressed.

use std::sync::Arc;

use adamant_trees::Salvaged;

use crate::engine::value_codec::{Found, Shown, ValueCodec, shown_by, value_as_shown};

/// How a tree of the damaged store stores values.
pub(super) enum Stored {
    By(Arc<ValueCodec>),
    /// Nothing says; its values have shown this.
    As(Shown),
}

impl Stored {
    /// The value of a key, or why there is none.
    pub(super) fn value<'a>(
        &self,
        key: &[u8],
        stored: &'a [u8],
    ) -> std::result::Result<Found<'a>, String> {
        match self {
            Self::By(codec) => codec.decode(key, stored).map_err(|error| error.to_string()),
            Self::As(shown) => value_as_shown(stored, *shown)
                .map_err(|why| format!("the value of key {}: {why}", key.escape_ascii())),
        }
    }
}

/// How values are stored, as those that `visit` hands out show: all of a keyspace are stored in the
/// same way. `has_packed`: whether there may be keyspaces with compressed values.
pub(super) fn shown(has_packed: bool, visit: impl FnOnce(&mut dyn FnMut(Salvaged<'_>))) -> Stored {
    let mut shown = Shown::Either;
    visit(&mut |found| {
        let Salvaged::Pair((_, stored)) = found else { return };
        match shown_by(stored) {
            Shown::Either => {}
            // One that is no stored form settles it.
            Shown::Packed if shown == Shown::Plain => {}
            certain => shown = certain,
        }
    });
    match shown {
        Shown::Either if !has_packed => Stored::As(Shown::Plain),
        shown => Stored::As(shown),
    }
}
