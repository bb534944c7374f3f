//! Calls of other nodes, over pooled connections.
//!
//! Purpose: a call takes an idle connection, or makes one, and returns it to the pool when it is
//! answered. So calls overtake one another, and a heartbeat never waits behind a snapshot. A
//! connection is not reused after an abandoned call.
//! Invariants: a connection leads to the intended node and directory, which knows the secret.
//! Thread safety: any task.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::Address;
use super::frames::{Frames, encode};
use super::handshake::{self, Identity, Secret};
use super::messages::{Answer, Ask};
use crate::protocol::sockets;

/// Maximum time of a connection attempt and its handshake.
const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of units on their way to a node: each has a connection.
const UNITS_MAX: usize = 128;

/// The other nodes.
#[derive(Debug)]
pub(super) struct Peers {
    secret: Secret,
    all: Mutex<HashMap<(u64, Address), Arc<Peer>>>,
}

#[derive(Debug)]
struct Peer {
    node: u64,
    address: Address,
    idle: Mutex<Vec<Frames<TcpStream>>>,
    units: Semaphore,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum CallError {
    /// The request was not sent.
    Unreached(io::Error),
    /// The request was sent, and maybe executed.
    Lost(io::Error),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreached(error) => write!(f, "a node could not be asked: {error}"),
            Self::Lost(error) => write!(f, "a node has not answered: {error}"),
        }
    }
}

impl std::error::Error for CallError {}

impl Peers {
    /// Nodes that share this secret.
    pub(super) fn new(secret: Secret) -> Self {
        Self { secret, all: Mutex::default() }
    }

    /// The secret, which the listener needs, too.
    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Sends a request to a node.
    pub(super) async fn call(
        &self,
        node: u64,
        address: &Address,
        ask: &Ask,
    ) -> Result<Answer, CallError> {
        let frame = encode(ask).map_err(CallError::Unreached)?;
        let peer = {
            let mut all = self.all.lock();
            let peer = all.entry((node, address.clone()));
            Arc::clone(peer.or_insert_with(|| Arc::new(Peer::new(node, address.clone()))))
        };
        let _permit = match ask {
            Ask::Run(_) => peer.units.acquire().await.ok(),
            _ => None,
        };
        let mut connection = match peer.take() {
            Some(connection) => connection,
            None => peer.connect(&self.secret).await.map_err(CallError::Unreached)?,
        };
        let answer = exchange(&mut connection, &frame).await.map_err(CallError::Lost)?;
        peer.idle.lock().push(connection);
        Ok(answer)
    }

    /// Sends a request to the node at `place`.
    pub(super) async fn call_place(&self, place: &str, ask: &Ask) -> io::Result<Answer> {
        let frame = encode(ask)?;
        let (mut connection, _) = connect(place, &self.secret).await?;
        exchange(&mut connection, &frame).await
    }

    /// The identity of the node at `place`.
    pub(super) async fn identify(&self, place: &str) -> io::Result<Identity> {
        Ok(connect(place, &self.secret).await?.1)
    }
}

async fn exchange(connection: &mut Frames<TcpStream>, frame: &[u8]) -> io::Result<Answer> {
    connection.send(frame).await?;
    connection.receive().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

async fn connect(place: &str, secret: &Secret) -> io::Result<(Frames<TcpStream>, Identity)> {
    let connecting = async {
        let mut stream = TcpStream::connect(place).await?;
        sockets::set_up(&stream)?;
        let identity = handshake::call(&mut stream, secret).await?;
        Ok((Frames::over(stream), identity))
    };
    timeout(CONNECT_WAIT, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

impl Peer {
    fn new(node: u64, address: Address) -> Self {
        let (idle, units) = (Mutex::default(), Semaphore::new(UNITS_MAX));
        Self { node, address, idle, units }
    }

    /// An idle connection that has not ended.
    fn take(&self) -> Option<Frames<TcpStream>> {
        loop {
            let connection = self.idle.lock().pop()?;
            let is_open = connection.idle().is_some_and(|stream| {
                let read = stream.try_read(&mut [0]);
                read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            });
            if is_open {
                return Some(connection);
            }
        }
    }

    async fn connect(&self, secret: &Secret) -> io::Result<Frames<TcpStream>> {
        let (connection, found) = connect(&self.address.place, secret).await?;
        let expected = Identity { node: self.node, directory_id: self.address.directory_id };
        if found == expected {
            return Ok(connection);
        }
        Err(io::Error::other(format!(
            "{} is to be node {} with the directory {:016x}, found node {} with {:016x}; one that \
             has lost its directory joins under a new number",
            self.address.place,
            expected.node,
            expected.directory_id,
            found.node,
            found.directory_id
        )))
    }
}
