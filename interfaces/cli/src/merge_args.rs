//! Arguments of merges: operators by name, and operands.

use std::ffi::OsString;

use adamant::BuiltInOperator;

use crate::target::{Encoding, Target};

#[derive(Debug, clap::Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// The key
    #[arg(allow_negative_numbers = true)]
    pub(crate) key: OsString,

    /// The operand: for add, max_u64, min_u64, max_i64 and min_i64 an integer, as 1 or -5, for
    /// append and or bytes; - reads its bytes from standard input
    #[arg(allow_negative_numbers = true)]
    pub(crate) operand: OsString,

    #[command(flatten)]
    pub(crate) encoding: Encoding,
}

/// The merge operator of the library with that name.
pub(crate) fn operator_named(name: &str) -> Option<BuiltInOperator> {
    BuiltInOperator::ALL.into_iter().find(|operator| operator.name() == name)
}

/// The names of the library's merge operators, as errors list them.
pub(crate) fn operator_names() -> String {
    BuiltInOperator::ALL.map(BuiltInOperator::name).join(", ")
}

/// Reads the name of a merge operator of the library.
pub(crate) fn parse_operator(name: &str) -> Result<BuiltInOperator, String> {
    operator_named(name).ok_or_else(|| {
        format!(
            "expected one of {}, found {name:?}; operators of a program's own are given by that \
             program",
            operator_names()
        )
    })
}
