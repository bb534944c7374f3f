//! Shared test support: a mock heap, models and shapes of keys.

use std::sync::Arc;

use adamant_heap::{Heap, Options};
use adamant_medium::storage::Directory;
use adamant_trees::OrderedMap;

use self::mock::Mock;

pub(crate) mod mock;
pub(crate) mod model;
pub(crate) mod shapes;

/// Opens a heap with room for anything that a test puts there.
pub(crate) fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 4 << 30;
    Heap::open(Arc::clone(directory), options).unwrap().0
}

/// A tree of `pairs` pairs with these keys, of which one in a hundred has a value in a block of its
/// own.
pub(crate) fn built<T: OrderedMap>(pairs: u64, key: impl Fn(u64) -> Vec<u8>) -> (Mock, T) {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    for number in 0..pairs {
        let value = vec![1; if number % 100 == 0 { 5000 } else { 20 }];
        tree.insert(&mut heap, &key(number), &value).unwrap();
    }
    heap.commit();
    (heap, tree)
}

/// Makes each function over a tree a test for each tree.
macro_rules! for_each_tree {
    ($($(#[$attribute:meta])* $test:ident)+) => {
        $crate::common::for_each_tree!(bplus Bplus: $($(#[$attribute])* $test)+);
        $crate::common::for_each_tree!(btree Btree: $($(#[$attribute])* $test)+);
        $crate::common::for_each_tree!(critbit Critbit: $($(#[$attribute])* $test)+);
        $crate::common::for_each_tree!(redblack Redblack: $($(#[$attribute])* $test)+);
    };
    ($module:ident $tree:ident: $($(#[$attribute:meta])* $test:ident)+) => {
        mod $module {
            $(
                #[test]
                $(#[$attribute])*
                fn $test() {
                    super::$test::<adamant_trees::$tree>();
                }
            )+
        }
    };
}

pub(crate) use for_each_tree;
