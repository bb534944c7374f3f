//! A log whose device takes its time, of the simulation's: messages come and crashes happen while
//! it is at it.

use std::fmt::Debug;
use std::ops::RangeBounds;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use adamant_replica::{LogStore, Types};
use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::{LogId, OptionalSend, RaftLogReader, StorageError, Vote};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::cluster::Cluster;

type Entry = openraft::Entry<Types>;
type Done<T> = Result<T, StorageError<u64>>;

/// The log of a node on a slow device.
pub(crate) struct SlowLog {
    log: LogStore,
    wait_max: u64,
    random: Arc<Mutex<fastrand::Rng>>,
}

impl SlowLog {
    pub(crate) fn new(log: LogStore, cluster: &Rc<Cluster>) -> Self {
        Self { log, wait_max: cluster.disk_wait.get(), random: cluster.random() }
    }

    async fn wait(&self) {
        let millis = self.random.lock().u64(..=self.wait_max);
        sleep(Duration::from_millis(millis)).await;
    }
}

impl RaftLogReader<Types> for SlowLog {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Done<Vec<Entry>> {
        self.log.try_get_log_entries(range).await
    }
}

impl RaftLogStorage<Types> for SlowLog {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Done<LogState<Types>> {
        self.log.get_log_state().await
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.log.get_log_reader().await
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Done<()> {
        self.wait().await;
        self.log.save_vote(vote).await?;
        self.wait().await;
        Ok(())
    }

    async fn read_vote(&mut self) -> Done<Option<Vote<u64>>> {
        self.log.read_vote().await
    }

    async fn save_committed(&mut self, committed: Option<LogId<u64>>) -> Done<()> {
        self.log.save_committed(committed).await
    }

    async fn read_committed(&mut self) -> Done<Option<LogId<u64>>> {
        self.log.read_committed().await
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Done<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.wait().await;
        self.log.append(entries, callback).await?;
        self.wait().await;
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId<u64>) -> Done<()> {
        self.wait().await;
        self.log.truncate(log_id).await?;
        self.wait().await;
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId<u64>) -> Done<()> {
        self.log.purge(log_id).await
    }
}
