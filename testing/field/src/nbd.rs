//! The disk as a server of the network block device protocol, on a unix socket.
//!
//! Purpose: a virtual machine's disk is under our eyes, write by write and flush by flush. The
//! protocol is described in `doc/proto.md` of the project of that name; what is here is the fixed
//! newstyle handshake with `NBD_OPT_GO`, simple replies, flushes and forced writes.
//! Invariants: requests are served one after the other, so a flush covers what was answered before
//! it. Nothing of a length that the client names is trusted: more than [`REQUEST_BYTES_MAX`] ends
//! the connection. The protocol's integers are big-endian: little-endian ones with their bytes
//! swapped.
//! Thread safety: one connection at a time, served by the caller's thread.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::disk::Disk;

/// Bytes of a request at most: what the protocol lets a client rely on.
const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// Options that a client may ask for before it chooses an export.
const OPTIONS_MAX: usize = 64;
/// How long a client may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The moment at which the disk stops: chosen by who holds it, to the request. Moments chosen by
/// the clock find a cache that is empty, because most of the time nothing is between a write and
/// its flush.
pub(crate) struct Power {
    /// Writes and flushes to come before that.
    left: AtomicU64,
    is_off: AtomicBool,
}

impl Power {
    /// It stays on.
    pub(crate) fn new() -> Self {
        Self { left: AtomicU64::new(u64::MAX), is_off: AtomicBool::new(false) }
    }

    /// It goes off at a write or flush after that many others.
    pub(crate) fn go_after(&self, requests: u64) {
        self.left.store(requests, Ordering::Relaxed);
    }

    /// Whether it has gone off.
    pub(crate) fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    /// Counts a write or flush; whether it still happens.
    fn lasts(&self) -> bool {
        let counted = |left: u64| left.checked_sub(1);
        let lasts = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted).is_ok();
        self.is_off.store(!lasts, Ordering::Relaxed);
        lasts
    }
}

const SERVER_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;

/// The newstyle handshake, without a row of zeros at its end.
const HANDSHAKE_FLAGS: u16 = 1 | 2;
const OPTION_ABORT: u32 = 2;
const OPTION_GO: u32 = 7;
const REPLY_ACKNOWLEDGE: u32 = 1;
const REPLY_INFORMATION: u32 = 3;
const REPLY_UNSUPPORTED: u32 = (1 << 31) | 1;
const INFORMATION_EXPORT: u16 = 0;

/// Flags are meant, flushes and forced writes are understood.
const EXPORT_FLAGS: u16 = 1 | 1 << 2 | 1 << 3;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const COMMAND_FORCED: u16 = 1;
const INVALID: u32 = 22;

/// Serves one client, from its first word to its last, and returns when it has gone, as a client
/// that is killed does. From the moment when the power goes nothing is answered: the write that met
/// it is in the cache, a flush has done nothing.
///
/// # Errors
/// Those of the socket, when nobody comes, or when a client does not keep to the protocol.
pub(crate) fn serve(listener: &UnixListener, disk: &mut Disk, power: &Power) -> io::Result<()> {
    let mut stream = accept(listener)?;
    match converse(&mut stream, disk, power) {
        // Where it was when it was killed.
        Err(error) if is_gone(error.kind()) => Ok(()),
        outcome => outcome,
    }
}

fn is_gone(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::TimedOut, "expected a client of the disk, nobody came"))
}

fn converse(stream: &mut UnixStream, disk: &mut Disk, power: &Power) -> io::Result<()> {
    if shake_hands(stream, disk.bytes())? {
        transmit(stream, disk, power)?;
    }
    Ok(())
}

/// Whether the client has chosen the disk: else it has left.
fn shake_hands(stream: &mut UnixStream, disk_bytes: u64) -> io::Result<bool> {
    let mut hello = Vec::new();
    hello.extend(SERVER_MAGIC.swap_bytes().to_le_bytes());
    hello.extend(OPTION_MAGIC.swap_bytes().to_le_bytes());
    hello.extend(HANDSHAKE_FLAGS.swap_bytes().to_le_bytes());
    stream.write_all(&hello)?;
    read_u32(stream)?;
    for _ in 0..OPTIONS_MAX {
        if read_u64(stream)? != OPTION_MAGIC {
            return Err(broken("an option does not begin with its magic number"));
        }
        let (option, bytes) = (read_u32(stream)?, read_u32(stream)?);
        // Its words do not matter: there is one disk, whatever it is called.
        read_bytes(stream, bytes)?;
        match option {
            OPTION_GO => {
                let mut export = INFORMATION_EXPORT.swap_bytes().to_le_bytes().to_vec();
                export.extend(disk_bytes.swap_bytes().to_le_bytes());
                export.extend(EXPORT_FLAGS.swap_bytes().to_le_bytes());
                answer(stream, option, REPLY_INFORMATION, &export)?;
                answer(stream, option, REPLY_ACKNOWLEDGE, &[])?;
                return Ok(true);
            }
            OPTION_ABORT => {
                answer(stream, option, REPLY_ACKNOWLEDGE, &[])?;
                return Ok(false);
            }
            _ => answer(stream, option, REPLY_UNSUPPORTED, &[])?,
        }
    }
    Err(broken("no export was chosen"))
}

fn answer(stream: &mut UnixStream, option: u32, kind: u32, words: &[u8]) -> io::Result<()> {
    let mut reply = REPLY_MAGIC.swap_bytes().to_le_bytes().to_vec();
    reply.extend(option.swap_bytes().to_le_bytes());
    reply.extend(kind.swap_bytes().to_le_bytes());
    reply.extend((words.len() as u32).swap_bytes().to_le_bytes());
    reply.extend(words);
    stream.write_all(&reply)
}

/// Requests until the client leaves.
fn transmit(stream: &mut UnixStream, disk: &mut Disk, power: &Power) -> io::Result<()> {
    loop {
        if read_u32(stream)? != REQUEST_MAGIC {
            return Err(broken("a request does not begin with its magic number"));
        }
        let (flags, kind) = (read_u16(stream)?, read_u16(stream)?);
        let (cookie, offset) = (read_u64(stream)?, read_u64(stream)?);
        let bytes = read_u32(stream)?;
        let source = if kind == WRITE { read_bytes(stream, bytes)? } else { Vec::new() };
        let mut reply = SIMPLE_REPLY_MAGIC.swap_bytes().to_le_bytes().to_vec();
        let is_there = bytes <= REQUEST_BYTES_MAX && disk.has(offset, u64::from(bytes));
        let is_known = [READ, WRITE, FLUSH].contains(&kind) && is_there;
        reply.extend(if is_known { 0_u32 } else { INVALID }.swap_bytes().to_le_bytes());
        reply.extend(cookie.swap_bytes().to_le_bytes());
        let lasts = kind == READ || kind == DISCONNECT || power.lasts();
        match kind {
            DISCONNECT => return Ok(()),
            READ if is_known => {
                let start = reply.len();
                reply.resize(start + bytes as usize, 0);
                disk.read(offset, &mut reply[start..]);
            }
            WRITE if is_known => {
                disk.write(offset, &source);
                if flags & COMMAND_FORCED != 0 && lasts {
                    disk.force(offset, u64::from(bytes));
                }
            }
            FLUSH if lasts => disk.flush(),
            _ => {}
        }
        if !lasts {
            return ignore(stream);
        }
        stream.write_all(&reply)?;
    }
}

/// Answers nothing any more, until the client has gone. A disk that went away instead would be an
/// error to the machine, which loses its power a moment later: what it said of that error in
/// between would count as its own.
fn ignore(stream: &mut UnixStream) -> io::Result<()> {
    io::copy(stream, &mut io::sink()).map(drop)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the client of the disk: {what}"))
}

fn read_bytes(stream: &mut UnixStream, bytes: u32) -> io::Result<Vec<u8>> {
    if bytes > REQUEST_BYTES_MAX {
        return Err(broken("it sends more than 32 MiB at once"));
    }
    let mut target = vec![0; bytes as usize];
    stream.read_exact(&mut target)?;
    Ok(target)
}

fn read_array<const BYTES: usize>(stream: &mut UnixStream) -> io::Result<[u8; BYTES]> {
    let mut target = [0; BYTES];
    stream.read_exact(&mut target)?;
    Ok(target)
}

fn read_u16(stream: &mut UnixStream) -> io::Result<u16> {
    read_array(stream).map(u16::from_le_bytes).map(u16::swap_bytes)
}

fn read_u32(stream: &mut UnixStream) -> io::Result<u32> {
    read_array(stream).map(u32::from_le_bytes).map(u32::swap_bytes)
}

fn read_u64(stream: &mut UnixStream) -> io::Result<u64> {
    read_array(stream).map(u64::from_le_bytes).map(u64::swap_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush() -> Vec<u8> {
        let mut request = REQUEST_MAGIC.swap_bytes().to_le_bytes().to_vec();
        request.extend(0_u16.to_le_bytes());
        request.extend(FLUSH.swap_bytes().to_le_bytes());
        request.extend([0; 8 + 8 + 4]);
        request
    }

    /// The story: a machine heard that its disk was gone before its own power was, complained, and
    /// that was taken for a loss.
    #[test]
    fn without_power_nothing_is_answered_and_nobody_is_told() {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        let (power, mut disk) = (Power::new(), Disk::new(vec![0; 1 << 20], 1, false));
        std::thread::scope(|scope| {
            let served = scope.spawn(|| transmit(&mut server, &mut disk, &power));
            client.write_all(&flush()).unwrap();
            client.read_exact(&mut [0; 16]).unwrap();
            power.go_after(0);
            client.write_all(&flush()).unwrap();
            client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let silence = client.read(&mut [0]).unwrap_err();
            assert!(matches!(silence.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
            assert!(power.is_off());
            drop(client);
            served.join().unwrap().unwrap();
        });
    }
}
