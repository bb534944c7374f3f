//! Connections of TCP as they are to be.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// After so long without a word the system asks whether the other side is there, as Redis has it by default.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(300);
/// Between two such questions, of which three without an answer end the connection.
const KEEPALIVE_PAUSE: Duration = Duration::from_secs(60);
const KEEPALIVE_QUESTIONS: u32 = 3;

/// Replies are sent at once, and a machine that vanished without a word holds its place for some minutes only.
///
/// # Errors
/// The connection may have ended.
pub(crate) fn set_up(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_PAUSE)?;
    Ok(sockopt::set_tcp_keepcnt(stream, KEEPALIVE_QUESTIONS)?)
}
