//! TCP socket options.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
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
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_PAUSE)
        .with_retries(KEEPALIVE_QUESTIONS);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
