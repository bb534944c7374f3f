//! Framing of messages on a connection: a length of 4 bytes, little-endian, and a value in
//! postcard's format.
//!
//! Invariants: memory grows with what has arrived, never with what a length promises; a length
//! beyond the maximum of a message ends the connection.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// Maximum bytes of a message: some entries of the log, or the replies to a unit.
pub(super) const FRAME_BYTES_MAX: usize = 64 << 20;
const LENGTH_BYTES: usize = 4;
/// Room that is allocated for a message before it has arrived.
const FORESEEN_BYTES: usize = 64 << 10;

/// A message with its length; an error if it is too long.
pub(super) fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let frame = postcard::to_extend(message, vec![0; LENGTH_BYTES]).map_err(io::Error::other)?;
    let bytes = frame.len() - LENGTH_BYTES;
    let length = u32::try_from(bytes).ok().filter(|_| bytes <= FRAME_BYTES_MAX);
    let Some(length) = length else {
        let words = format!("a message to a node has {bytes} bytes, {FRAME_BYTES_MAX} at most");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    };
    let mut frame = frame;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// A connection from which messages are read.
#[derive(Debug)]
pub(super) struct Frames<S> {
    stream: BufReader<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Frames<S> {
    pub(super) fn over(stream: S) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// The stream, if no unrequested bytes were read from it.
    pub(super) fn idle(&self) -> Option<&S> {
        self.stream.buffer().is_empty().then(|| self.stream.get_ref())
    }

    /// Sends a frame that [`encode`] has made.
    pub(super) async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(frame).await?;
        self.stream.get_mut().flush().await
    }

    /// The next message; `None` at the end of the connection.
    pub(super) async fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut length = [0; LENGTH_BYTES];
        match self.stream.read_exact(&mut length).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        };
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_BYTES_MAX {
            let words = format!("a message of {length} bytes, {FRAME_BYTES_MAX} at most");
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        let mut message = Vec::with_capacity(length.min(FORESEEN_BYTES));
        (&mut self.stream).take(length as u64).read_to_end(&mut message).await?;
        if message.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let decoded = postcard::from_bytes(&message);
        decoded.map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_come_as_they_were_sent_and_damage_is_an_error() {
        let (one, other) = tokio::io::duplex(1 << 20);
        let (mut one, mut other) = (Frames::over(one), Frames::over(other));
        for text in ["", "one", &"long".repeat(50_000)] {
            one.send(&encode(&text).unwrap()).await.unwrap();
            assert_eq!(other.receive::<String>().await.unwrap().as_deref(), Some(text));
        }
        assert!(other.idle().is_some());
        // An impossible length takes no memory.
        one.send(&u32::MAX.to_le_bytes()).await.unwrap();
        let error = other.receive::<String>().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        // A truncated message, and an invalid one.
        let (mut one, other) = tokio::io::duplex(1 << 20);
        let mut other = Frames::over(other);
        one.write_all(&[1, 0, 0, 0, 0xff]).await.unwrap();
        assert!(other.receive::<String>().await.is_err());
        one.write_all(&[9, 0, 0, 0, 8, b'a']).await.unwrap();
        drop(one);
        let error = other.receive::<String>().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(other.receive::<String>().await.unwrap(), None);
        assert!(encode(&vec![0_u8; FRAME_BYTES_MAX]).is_err());
    }
}
