//! Looks at all that was acknowledged, as they wait for the number of an entry.
//!
//! Invariants: what a look is told was asked after the look had come: all that was acknowledged before is in the entries up
//! to that number.

use tokio::sync::{mpsc, oneshot};

/// What a look is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is to wait until this entry is applied.
    Index(u64),
    /// Nobody could say.
    Nothing,
}

/// A look that waits.
type Look = oneshot::Sender<Told>;

/// Where looks wait.
#[derive(Debug)]
pub(super) struct Reads(mpsc::UnboundedSender<Look>);

/// From where they are answered.
#[derive(Debug)]
pub(super) struct Looks(mpsc::UnboundedReceiver<Look>);

/// Both ends. Bounded by clients, each of which has one look at a time.
pub(super) fn channel() -> (Reads, Looks) {
    let (to, from) = mpsc::unbounded_channel();
    (Reads(to), Looks(from))
}

impl Reads {
    /// The entry that a look has to wait for.
    pub(super) async fn index(&self) -> Told {
        let (told, waits) = oneshot::channel();
        if self.0.send(told).is_err() {
            return Told::Nothing;
        }
        waits.await.unwrap_or(Told::Nothing)
    }
}

impl Looks {
    /// Answers all looks that wait, those that come meanwhile together afterwards, as long as there can be any.
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
