//! The handshake of two nodes, which proves to each that the other knows the shared secret.
//!
//! Purpose: each node sends 32 random bytes, and a code (HMAC-SHA256 under the secret) of the bytes
//! of both and of the answering node's identity. So neither reveals the secret, and an eavesdropper
//! cannot replay anything. Later messages are neither encrypted nor signed: that is left to the
//! network.
//! Invariants: the calling node knows which node answers, and from which directory.

use std::io;

use ring::hmac::{self, HMAC_SHA256, Key, Tag};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The first bytes of a connection; the last of them is the protocol version.
const MAGIC: [u8; 8] = *b"ADAMCLU\x01";
const NONCE_BYTES: usize = 32;
const IDENTITY_BYTES: usize = 16;
const TAG_BYTES: usize = 32;

/// The secret that all nodes of a cluster share.
#[derive(Clone, Debug)]
pub(super) struct Secret(Key);

/// A node, by its number and that of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) node: u64,
    pub(super) directory_id: u64,
}

impl Secret {
    /// Nodes without a secret all share the same one.
    pub(super) fn new(secret: Option<&str>) -> Self {
        Self(Key::new(HMAC_SHA256, secret.unwrap_or_default().as_bytes()))
    }

    fn tag(&self, who: &str, transcript: &[u8]) -> Tag {
        hmac::sign(&self.0, &[who.as_bytes(), transcript].concat())
    }

    /// In constant time.
    fn check(&self, who: &str, transcript: &[u8], tag: &[u8]) -> io::Result<()> {
        hmac::verify(&self.0, &[who.as_bytes(), transcript].concat(), tag).map_err(|_| {
            let words = "the other node does not know the same secret (--cluster-secret-file)";
            io::Error::new(io::ErrorKind::PermissionDenied, words)
        })
    }
}

impl Identity {
    fn bytes(self) -> [u8; IDENTITY_BYTES] {
        let mut bytes = [0; IDENTITY_BYTES];
        bytes[..8].copy_from_slice(&self.node.to_le_bytes());
        bytes[8..].copy_from_slice(&self.directory_id.to_le_bytes());
        bytes
    }

    fn of(bytes: [u8; IDENTITY_BYTES]) -> Self {
        let [node, directory_id] = [0, 8].map(|start| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[start..start + 8]);
            u64::from_le_bytes(number)
        });
        Self { node, directory_id }
    }
}

fn nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    let filled = SystemRandom::new().fill(&mut nonce);
    filled.map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(nonce)
}

/// The calling side; returns the identity of the node that answers.
pub(super) async fn call<S>(stream: &mut S, secret: &Secret) -> io::Result<Identity>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut transcript = MAGIC.to_vec();
    transcript.extend(nonce()?);
    stream.write_all(&transcript).await?;
    let mut answer = [0; NONCE_BYTES + IDENTITY_BYTES + TAG_BYTES];
    stream.read_exact(&mut answer).await?;
    let (said, tag) = answer.split_at(NONCE_BYTES + IDENTITY_BYTES);
    transcript.extend(said);
    secret.check("answers", &transcript, tag)?;
    stream.write_all(secret.tag("calls", &transcript).as_ref()).await?;
    let mut identity = [0; IDENTITY_BYTES];
    identity.copy_from_slice(&said[NONCE_BYTES..]);
    Ok(Identity::of(identity))
}

/// The answering side.
pub(super) async fn answer<S>(stream: &mut S, secret: &Secret, own: Identity) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut hello = [0; MAGIC.len() + NONCE_BYTES];
    stream.read_exact(&mut hello).await?;
    if !hello.starts_with(&MAGIC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "that is no node of a cluster"));
    }
    let mut transcript = hello.to_vec();
    transcript.extend(nonce()?);
    transcript.extend(own.bytes());
    let tag = secret.tag("answers", &transcript);
    let answer = [&transcript[hello.len()..], tag.as_ref()].concat();
    stream.write_all(&answer).await?;
    let mut tag = [0; TAG_BYTES];
    stream.read_exact(&mut tag).await?;
    secret.check("calls", &transcript, &tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Identity = Identity { node: 7, directory_id: u64::MAX - 1 };

    async fn meet(one: Option<&str>, other: Option<&str>) -> (io::Result<Identity>, bool) {
        let (mut caller, mut called) = tokio::io::duplex(1024);
        let (one, other) = (Secret::new(one), Secret::new(other));
        let calls = async {
            let called = call(&mut caller, &one).await;
            // The side that detects a stranger closes the connection.
            drop(caller);
            called
        };
        let (called, answered) = tokio::join!(calls, answer(&mut called, &other, OWN));
        (called, answered.is_ok())
    }

    #[tokio::test]
    async fn who_knows_the_secret_is_let_in_and_nobody_else() {
        for secret in [None, Some("secret")] {
            let (called, answered) = meet(secret, secret).await;
            assert_eq!(called.unwrap(), OWN);
            assert!(answered);
        }
        for (one, other) in [(None, Some("secret")), (Some("secret"), None), (Some("a"), Some("b"))]
        {
            let (called, answered) = meet(one, other).await;
            assert!(called.unwrap_err().to_string().contains("--cluster-secret-file"));
            assert!(!answered);
        }
    }

    #[tokio::test]
    async fn what_was_overheard_opens_nothing() {
        let secret = Secret::new(Some("secret"));
        // A stranger that sends back what it receives, and what another node has sent before.
        let (mut stranger, mut called) = tokio::io::duplex(1024);
        let strange = async {
            stranger.write_all(&[&MAGIC[..], &[1; NONCE_BYTES]].concat()).await.unwrap();
            let mut answer = [0; NONCE_BYTES + IDENTITY_BYTES + TAG_BYTES];
            stranger.read_exact(&mut answer).await.unwrap();
            stranger.write_all(&answer[NONCE_BYTES + IDENTITY_BYTES..]).await.unwrap();
        };
        let ((), answered) = tokio::join!(strange, answer(&mut called, &secret, OWN));
        assert_eq!(answered.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
