//! The address of a node: its network address and the number of its directory.

use std::fmt;
use std::str::FromStr;

/// The network address of a node, and the number of its directory: a node that has lost its data is
/// another node, even if it comes back under its number and at its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    /// `HOST:PORT`.
    pub(super) place: String,
    pub(super) directory_id: u64,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:016x}", self.place, self.directory_id)
    }
}

/// The string is not `HOST:PORT/NUMBER`.
#[derive(Debug)]
pub(super) struct NoAddress(String);

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a node's address as HOST:PORT/NUMBER, found {:?}", self.0)
    }
}

impl std::error::Error for NoAddress {}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let parsed = text.rsplit_once('/').and_then(|(place, number)| {
            let directory_id = u64::from_str_radix(number, 16).ok()?;
            Some(Self { place: place.into(), directory_id })
        });
        parsed.ok_or_else(|| NoAddress(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let address = Address { place: "[::1]:7001".into(), directory_id: 0xfeed };
        assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
        for wrong in ["", "127.0.0.1:7001", "127.0.0.1:7001/", "127.0.0.1:7001/node"] {
            assert!(wrong.parse::<Address>().unwrap_err().to_string().contains("HOST:PORT/NUMBER"));
        }
    }
}
