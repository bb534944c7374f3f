//! Messages over simulated connections: a length of 4 bytes, least first, and a value in postcard's
//! format.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use turmoil::net::TcpStream;

use crate::link::{Answer, Ask, Carrier};
use crate::record::{Action, Outcome};

/// Where all nodes listen.
pub(crate) const PORT: u16 = 7000;

/// For a node to be connected to: one that is down says nothing.
const CONNECT_WAIT: Duration = Duration::from_millis(300);

/// What a node is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    Raft(Ask),
    /// Up to which entry has a look to wait?
    ReadIndex,
    Act(Action),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Raft(Box<Answer>),
    ReadIndex(Option<u64>),
    Acted(Outcome),
}

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum CallError {
    /// Nothing was asked.
    Unreached(io::Error),
    /// Something was asked, and maybe done.
    Lost(io::Error),
}

/// Connections to nodes, each used by one call at a time. A call that is given up ends its own.
#[derive(Clone, Default)]
pub(crate) struct Wire {
    idle: Arc<Mutex<BTreeMap<u64, Vec<TcpStream>>>>,
}

pub(crate) fn host_of(node: u64) -> String {
    format!("node-{node}")
}

pub(crate) async fn send<T: Serialize>(stream: &mut TcpStream, message: &T) -> io::Result<()> {
    let message = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_le_bytes()[..], &message].concat()).await
}

pub(crate) async fn receive<T: DeserializeOwned>(stream: &mut TcpStream) -> io::Result<T> {
    let length = stream.read_u32_le().await?;
    let mut message = vec![0; length as usize];
    stream.read_exact(&mut message).await?;
    postcard::from_bytes(&message).map_err(io::Error::other)
}

impl Wire {
    pub(crate) async fn call(&self, node: u64, message: &Message) -> Result<Reply, CallError> {
        let idle = self.idle.lock().get_mut(&node).and_then(Vec::pop);
        let mut stream = match idle {
            Some(stream) => stream,
            None => {
                let connected = timeout(CONNECT_WAIT, TcpStream::connect((host_of(node), PORT)));
                let connected = connected.await.unwrap_or_else(|error| Err(error.into()));
                connected.map_err(CallError::Unreached)?
            }
        };
        let replied = match send(&mut stream, message).await {
            Ok(()) => receive(&mut stream).await,
            Err(error) => Err(error),
        };
        // The others of one that has ended have, too.
        let mut idle = self.idle.lock();
        match replied {
            Ok(_) => idle.entry(node).or_default().push(stream),
            Err(_) => drop(idle.remove(&node)),
        }
        replied.map_err(CallError::Lost)
    }
}

impl Carrier for Wire {
    async fn ask(&self, target: u64, ask: Ask) -> io::Result<Answer> {
        match self.call(target, &Message::Raft(ask)).await {
            Ok(Reply::Raft(answer)) => Ok(*answer),
            Ok(other) => Err(io::Error::other(format!("another reply: {other:?}"))),
            Err(CallError::Unreached(error) | CallError::Lost(error)) => Err(error),
        }
    }
}
