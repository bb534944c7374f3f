//! TCP socket options.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Idle time before a keepalive probe, the default of Redis.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(300);
/// Pause between probes; three unanswered ones end the connection.
const KEEPALIVE_PAUSE: Duration = Duration::from_secs(60);
const KEEPALIVE_QUESTIONS: u32 = 3;

/// Sets the options: replies are sent at once, and a machine that vanished holds its connection for
/// some minutes only.
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
