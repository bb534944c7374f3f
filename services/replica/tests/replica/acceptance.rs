//! openraft's own tests of what stores its logs and state machines.

use adamant_replica::{LogStore, StateMachine, Types};
use openraft::StorageError;
use openraft::testing::{StoreBuilder, Suite};
use tempfile::TempDir;

use crate::support::open;

struct Builder;

impl StoreBuilder<Types, LogStore, StateMachine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let node = open(&folder.path().join("node"), 1);
        Ok((folder, node.log_store(), node.state_machine()))
    }
}

#[test]
fn openraft_finds_nothing_wrong() {
    Suite::test_all(Builder).unwrap();
}
