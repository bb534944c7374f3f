//! The connection task: reads requests, runs units, sends replies.
//!
//! Purpose: the task of one client. It reads only after all replies were taken, so a client that
//! does not take them holds no more than one batch of them, and blocks no other client.
//! Invariants: a client has one unit on its way at a time, so its commands run in order.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::commit::execute;
use crate::commit::unit::{Needs, Unit};
use crate::protocol::request::{Limits, Parser};
use crate::protocol::tls;
use crate::serving::clients::Client;
use crate::serving::session::{Session, Then};
use crate::serving::shared::Shared;
use crate::serving::turn;

/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// Bytes that a client may hold without being counted.
const UNCOUNTED_BYTES: usize = 64 << 10;
/// Steps of a unit, and bytes of their arguments, after which it runs before more requests are
/// parsed.
const UNIT_STEPS_MAX: usize = 1024;
const UNIT_BYTES_MAX: usize = 4 << 20;

/// How long a client that has been answered may take to see that the connection ends.
const GOODBYE: Duration = Duration::from_secs(1);

/// A client's stream, encrypted or not, and its unprocessed input.
struct Connection<S> {
    stream: S,
    session: Session,
    parser: Parser,
    buffer: BytesMut,
    /// Bytes that are counted as held.
    counted: usize,
    ending: watch::Receiver<bool>,
}

/// Serves a client until it or the server ends.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>, client: Arc<Client>) {
    let _leaves = Leaves { shared: Arc::clone(&shared), client: Arc::clone(&client) };
    let Some(config) = &shared.tls else {
        return converse(stream, Arc::clone(&shared), client).await;
    };
    let mut ending = shared.ending.subscribe();
    let shaken = tokio::select! {
        shaken = tls::shake_hands(stream, config, shared.options.handshake_wait) => shaken,
        () = client.killed() => None,
        _ = ending.wait_for(|ends| *ends) => None,
    };
    match shaken {
        // On the heap: a client without encryption should not need memory for it.
        Some(stream) => Box::pin(converse(stream, Arc::clone(&shared), client)).await,
        None => {
            shared.clients.unshaken.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn converse<S>(mut stream: S, shared: Arc<Shared>, client: Arc<Client>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ending = shared.ending.subscribe();
    let mut connection = Connection {
        stream: &mut stream,
        session: Session::new(Arc::clone(&shared), client),
        parser: Parser::default(),
        buffer: BytesMut::new(),
        counted: 0,
        ending,
    };
    // There is no one to report an error to; but a listening client sees a regular end, not a cut.
    let ended = connection.run().await;
    drop(connection);
    match ended {
        // Closed when the store is, because the client that requested the end waits for that.
        Ok(true) => shared.ending.keep(Box::new(stream)),
        Ok(false) => drop(tokio::time::timeout(GOODBYE, stream.shutdown()).await),
        Err(_) => {}
    }
}

/// Removes a client from the registry, however its task ends.
struct Leaves {
    shared: Arc<Shared>,
    client: Arc<Client>,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.shared.clients.leave(self.client.id);
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        // Given back before others may hold as much.
        self.parser = Parser::default();
        self.session.shared.held.change(self.counted, 0, usize::MAX);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Serves until the connection ends; returns whether its client has requested the server's
    /// shutdown.
    async fn run(&mut self) -> io::Result<bool> {
        loop {
            let (unit, then) = self.plan();
            let is_empty = unit.steps.is_empty() && unit.replies.len() == 0;
            let carried_out = self.carry_out(unit).await;
            if then == Then::EndAll {
                self.session.shared.ending.begin(None);
            }
            if !carried_out? || matches!(then, Then::End | Then::EndAll) {
                return Ok(then == Then::EndAll);
            }
            if !self.count() {
                let words = "-ERR the server holds as many bytes of requests as it may \
                             (--held-bytes-max); try again later\r\n";
                self.write(words.as_bytes()).await?;
                return Ok(false);
            }
            if is_empty && !self.read().await? {
                return Ok(false);
            }
        }
    }

    /// The unit that has arrived.
    fn plan(&mut self) -> (Unit, Then) {
        let mut unit = Unit::default();
        let options = &self.session.shared.options;
        let mut limits = Limits {
            arguments_max: options.arguments_max,
            argument_bytes_max: options.argument_bytes_max,
            is_stranger: false,
        };
        while unit.steps.len() < UNIT_STEPS_MAX
            && unit.bytes < UNIT_BYTES_MAX
            && unit.replies.len() < UNIT_BYTES_MAX
        {
            limits.is_stranger = self.session.is_stranger();
            match self.parser.next(&mut self.buffer, &limits) {
                Ok(Some(arguments)) => {
                    let room = self.parser.take_room();
                    match self.session.plan(arguments, room, &mut unit) {
                        Then::More => {}
                        then => return (unit, then),
                    }
                }
                Ok(None) => match self.parser.wanted_room() {
                    Some(bytes) => self.give_room(bytes),
                    None => break,
                },
                Err(error) => {
                    let mut reply = crate::protocol::reply::Replies::new(self.session.version);
                    reply.error(&format!("ERR {error}"));
                    unit.push_ready(reply, false);
                    return (unit, Then::End);
                }
            }
        }
        (unit, Then::More)
    }

    /// Reserves room in the store for a large value, if the client may hold as many bytes.
    fn give_room(&mut self, bytes: usize) {
        let shared = &self.session.shared;
        let counted = self.counted + bytes;
        let mut room = None;
        if shared.held.change(self.counted, counted, shared.options.held_bytes_max) {
            self.counted = counted;
            room = self.session.room(bytes);
        }
        if room.is_some() {
            shared.values_in_place.fetch_add(1, Ordering::Relaxed);
            shared.bytes_in_place.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        self.parser.give_room(room, &mut self.buffer);
    }

    /// Runs a unit and sends its replies; false if the server ends before.
    async fn carry_out(&mut self, mut unit: Unit) -> io::Result<bool> {
        loop {
            if !unit.is_done() {
                let Some(done) = self.perform(unit).await else { return Ok(false) };
                unit = done;
            }
            self.session.done(&unit);
            let replies = unit.replies.take();
            self.write(&replies).await?;
            if unit.is_done() {
                return Ok(true);
            }
        }
    }

    async fn perform(&self, mut unit: Unit) -> Option<Unit> {
        let shared = &self.session.shared;
        if let Some(member) = &shared.member {
            unit = match member.admit(unit).await? {
                ControlFlow::Continue(unit) => unit,
                ControlFlow::Break(unit) => return Some(unit),
            };
        }
        match unit.needs {
            Needs::Turn => {
                let done = shared.queue.push(unit);
                // In a cluster a thread proposes the waiting units.
                if shared.member.is_none() {
                    turn::take_part(shared).await;
                }
                done.await.ok()
            }
            Needs::LongLook => {
                let shared = Arc::clone(shared);
                let looked = tokio::task::spawn_blocking(move || {
                    execute::look(&shared.world, &mut unit);
                    unit
                });
                looked.await.ok()
            }
            Needs::Look | Needs::Nothing => {
                execute::look(&shared.world, &mut unit);
                Some(unit)
            }
        }
    }

    /// Counts the bytes that it holds now; false if they are too many.
    fn count(&mut self) -> bool {
        let holds = self.buffer.capacity() + self.parser.held_bytes() + self.session.held_bytes();
        let counted = holds.saturating_sub(UNCOUNTED_BYTES);
        let shared = &self.session.shared;
        let is_allowed = shared.held.change(self.counted, counted, shared.options.held_bytes_max);
        if is_allowed {
            self.counted = counted;
        }
        is_allowed
    }

    /// Waits for more input; false at the end.
    async fn read(&mut self) -> io::Result<bool> {
        let idle = self.session.shared.settings.lock().idle;
        let client = &self.session.client;
        let (stream, parser, buffer) = (&mut self.stream, &mut self.parser, &mut self.buffer);
        let reading = async {
            let Some(room) = parser.unfilled() else {
                buffer.reserve(READ_BYTES);
                return stream.read_buf(buffer).await;
            };
            let read = stream.read(room).await?;
            parser.fill(read);
            Ok(read)
        };
        tokio::select! {
            read = reading => Ok(read? > 0),
            () = client.killed() => Ok(false),
            _ = self.ending.wait_for(|ends| *ends) => Ok(false),
            () = after(idle) => Ok(false),
        }
    }

    /// Sends replies, as fast as they are taken.
    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let longest = self.session.shared.options.reply_wait;
        let client = &self.session.client;
        while !bytes.is_empty() {
            let written = patiently(client, longest, self.stream.write(bytes)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        // Encrypted bytes may still be buffered here.
        patiently(client, longest, self.stream.flush()).await
    }
}

/// Waits for a client to take bytes, up to a time limit and until it is killed.
async fn patiently<T>(
    client: &Client,
    longest: Duration,
    taking: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::select! {
        // Nearly always it does so at once, and no timer is made.
        biased;
        taken = taking => taken,
        () = client.killed(), if !client.is_killed() => Err(io::ErrorKind::ConnectionAborted.into()),
        () = tokio::time::sleep(longest) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}
