//! The listener for other nodes.
//!
//! Invariants: only nodes that have proved that they know the secret are served. Connections are
//! bounded.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::frames::{Frames, encode};
use super::handshake::{self, Identity};
use super::member::Member;
use super::messages::{Answer, Ask, Ran};
use super::reads::Told;
use crate::protocol::sockets;

/// Maximum number of concurrent connections of other nodes.
const CONNECTIONS_MAX: usize = 4096;
/// Maximum time of the handshake of a new connection.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers other nodes until the server ends.
pub(super) async fn serve(listener: TcpListener, member: Arc<Member>) {
    let mut ending = member.ending.subscribe();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|ends| *ends) => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // A connection beyond the limit is closed.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let member = Arc::clone(&member);
        tokio::spawn(async move {
            // Whatever ends it, the other node sees the end.
            let _ = converse(stream, &member).await;
            drop(place);
        });
    }
}

async fn converse(mut stream: TcpStream, member: &Member) -> std::io::Result<()> {
    sockets::set_up(&stream)?;
    let own = Identity { node: member.id, directory_id: member.address.directory_id };
    let shaking = handshake::answer(&mut stream, member.peers.secret(), own);
    timeout(HANDSHAKE_WAIT, shaking).await??;
    let mut frames = Frames::over(stream);
    while let Some(ask) = frames.receive().await? {
        let answer = member.answer(ask).await;
        let frame = encode(&answer).or_else(|error| {
            let words = format!("ERR it was done, and the reply cannot be sent: {error}");
            encode(&Answer::Refused(words))
        })?;
        frames.send(&frame).await?;
    }
    Ok(())
}

impl Member {
    async fn answer(&self, ask: Ask) -> Answer {
        match ask {
            Ask::Append(request) => Answer::Append(self.raft.append_entries(request).await),
            Ask::Vote(request) => Answer::Vote(self.raft.vote(request).await),
            Ask::Snapshot(request) => Answer::Snapshot(self.raft.install_snapshot(request).await),
            // A node that does not lead forwards nothing: messages could circle.
            Ask::Join { .. } if !self.leads() => match self.leader() {
                Some((_, address)) => Answer::LedFrom(address.place),
                None => Answer::Moved,
            },
            _ if !self.leads() => Answer::Moved,
            Ask::Run(carried) => match carried.into_unit(&self.world) {
                Err(words) => Answer::Refused(words),
                Ok((unit, watched)) => match self.queue.push(unit).await {
                    Ok(unit) if !unit.is_refused => Answer::Ran(Ran::of(unit, &watched)),
                    // The server ends, and has not begun it.
                    Ok(_) | Err(_) => Answer::Moved,
                },
            },
            Ask::ReadIndex => match self.reads.index().await {
                Told::Index(index) => Answer::ReadIndex(index),
                Told::Nothing => Answer::Moved,
            },
            Ask::Join { node, address } => self.join_here(node, &address).await,
            Ask::Leave { node } => self.leave_here(node).await,
        }
    }
}
