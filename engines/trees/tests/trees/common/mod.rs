//! What the tests share.

pub(crate) mod mock;
pub(crate) mod model;
pub(crate) mod shapes;

/// Makes of each function over a tree a test for each tree.
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
