//! Read indexes: linearizable reads wait for the number of an entry.
//!
//! Invariants: the index for a read was requested after the read had arrived: everything
//! acknowledged before is in the entries up to it.

use tokio::sync::{mpsc, oneshot};

/// The answer to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It must wait until this entry is applied.
    Index(u64),
    /// The index could not be found out.
    Nothing,
}

/// A waiting read.
type Look = oneshot::Sender<Told>;

/// The sending end, where reads wait.
#[derive(Debug)]
pub(super) struct Reads(mpsc::UnboundedSender<Look>);

/// The receiving end, from which they are answered.
#[derive(Debug)]
pub(super) struct Looks(mpsc::UnboundedReceiver<Look>);

/// Both ends. Bounded by clients, each of which has one read at a time.
pub(super) fn channel() -> (Reads, Looks) {
    let (to, from) = mpsc::unbounded_channel();
    (Reads(to), Looks(from))
}

impl Reads {
    /// The entry that a read must wait for.
    pub(super) async fn index(&self) -> Told {
        let (told, waits) = oneshot::channel();
        if self.0.send(told).is_err() {
            return Told::Nothing;
        }
        waits.await.unwrap_or(Told::Nothing)
    }
}

impl Looks {
    /// Answers all waiting reads at once, then those that came meanwhile, until the sending ends
    /// are gone.
    pub(super) async fn serve<F: Future<Output = Told>>(mut self, ask: impl Fn() -> F) {
        while let Some(first) = self.0.recv().await {
            let mut looks = vec![first];
            while let Ok(look) = self.0.try_recv() {
                looks.push(look);
            }
            let told = ask().await;
            for look in looks {
                let _ = look.send(told);
            }
        }
    }
}
