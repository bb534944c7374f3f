//! The incremental request parser: arrays of bulk strings, or lines of words.
//!
//! Purpose: takes requests off a buffer piece by piece, so that no byte is parsed twice, however
//! slowly it comes. It is our own, and not a codec of whole frames, for its limits: a codec learns
//! the size of a frame when it is there. It also serves large values, which go from the socket to
//! where the store will keep them: their connection reserves room for them, and reads into it.
//! Invariants: memory grows with what has arrived, never with what a header promises; the
//! connection grants or refuses room for a large value.
//! Thread safety: a parser belongs to one connection.

use std::fmt;

use adamant::expiring::ReservedExpiring;
use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;

/// Maximum bytes of a line: of an inline request, or of a header. As in Redis.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Limits of requests before authentication, where a password is needed. As in Redis.
const STRANGER_ARGUMENTS_MAX: i64 = 10;
const STRANGER_BYTES_MAX: i64 = 16 << 10;
/// Room for arguments that is allocated before they have arrived.
const ARGUMENTS_FORESEEN_MAX: usize = 64;

/// Minimum bytes of a value of SET for which reserved room pays off.
pub(crate) const ROOM_BYTES_MIN: usize = 64 << 10;

/// A value in reserved room; empty once a transaction has taken it.
pub(crate) type GivenRoom = Mutex<Option<ReservedExpiring>>;

/// The arguments of a request, the name of the command first.
pub(crate) type Arguments = Vec<Bytes>;

/// The limits of a client's requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Arguments of one request.
    pub(crate) arguments_max: usize,
    /// Bytes of one argument.
    pub(crate) argument_bytes_max: usize,
    /// Whether it has yet to authenticate.
    pub(crate) is_stranger: bool,
}

/// The input is no request: the client is told so, and disconnected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProtocolError(String);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.0)
    }
}

fn wrong<T>(words: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(words.into()))
}

/// The parsed part of a request.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// Arguments that are still to come.
    left: usize,
    arguments: Arguments,
    /// Bytes of those that are there.
    argument_bytes: usize,
    /// Bytes of the argument whose header was read.
    expected: Option<usize>,
    room: Room,
}

/// Whether the current argument has reserved room.
#[derive(Debug, Default)]
enum Room {
    /// No room was requested.
    #[default]
    Unasked,
    /// It was refused.
    None,
    /// This many bytes of it are filled.
    Filling(ReservedExpiring, usize),
    /// It is full.
    Full(ReservedExpiring),
}

impl Parser {
    /// Bytes that it holds of an incomplete request.
    pub(crate) fn held_bytes(&self) -> usize {
        let room = match &self.room {
            Room::Filling(room, _) | Room::Full(room) => room.len(),
            Room::Unasked | Room::None => 0,
        };
        self.argument_bytes + room
    }

    /// Bytes of a value of SET for which room could be reserved; none once there is an answer.
    pub(crate) fn wanted_room(&self) -> Option<usize> {
        let bytes = self.expected.filter(|bytes| *bytes >= ROOM_BYTES_MIN)?;
        let is_value = matches!(&self.arguments[..], [set, _] if is_set(set));
        (is_value && matches!(self.room, Room::Unasked)).then_some(bytes)
    }

    /// Gives the argument reserved room, or not; moves what has arrived of it there.
    pub(crate) fn give_room(&mut self, room: Option<ReservedExpiring>, buffer: &mut BytesMut) {
        self.room = match room {
            None => Room::None,
            Some(mut room) => {
                let bytes = buffer.len().min(room.len());
                room[..bytes].copy_from_slice(&buffer[..bytes]);
                buffer.advance(bytes);
                Room::Filling(room, bytes)
            }
        };
    }

    /// The rest of the argument's reserved room, which must be filled before anything else is read.
    pub(crate) fn unfilled(&mut self) -> Option<&mut [u8]> {
        match &mut self.room {
            Room::Filling(room, filled) if *filled < room.len() => Some(&mut room[*filled..]),
            _ => None,
        }
    }

    /// Notes that `bytes` more bytes were read there.
    pub(crate) fn fill(&mut self, bytes: usize) {
        if let Room::Filling(_, filled) = &mut self.room {
            *filled += bytes;
        }
    }

    /// The value of the last returned request, if it had reserved room: its argument is then empty.
    pub(crate) fn take_room(&mut self) -> Option<ReservedExpiring> {
        match std::mem::take(&mut self.room) {
            Room::Full(room) => Some(room),
            _ => None,
        }
    }

    /// The next complete request, taken off the buffer; empty ones are skipped.
    pub(crate) fn next(
        &mut self,
        buffer: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<Arguments>, ProtocolError> {
        while !buffer.is_empty() {
            if self.left == 0 {
                if buffer[0] != b'*' {
                    let Some(words) = words_of_line(buffer)? else { return Ok(None) };
                    if words.is_empty() {
                        continue;
                    }
                    return Ok(Some(words));
                }
                let Some(count) = count_of_arguments(buffer, limits)? else { return Ok(None) };
                self.left = count;
                self.argument_bytes = 0;
                self.arguments = Vec::with_capacity(count.min(ARGUMENTS_FORESEEN_MAX));
                continue;
            }
            if !self.next_argument(buffer, limits)? {
                return Ok(None);
            }
            if self.left == 0 {
                self.argument_bytes = 0;
                return Ok(Some(std::mem::take(&mut self.arguments)));
            }
        }
        Ok(None)
    }

    /// Takes an argument off; false if it is incomplete.
    fn next_argument(
        &mut self,
        buffer: &mut BytesMut,
        limits: &Limits,
    ) -> Result<bool, ProtocolError> {
        let expected = match self.expected {
            Some(expected) => expected,
            None => match bytes_of_argument(buffer, limits)? {
                Some(expected) => *self.expected.insert(expected),
                None => return Ok(false),
            },
        };
        let in_buffer = match &self.room {
            Room::Filling(room, filled) if *filled < room.len() => return Ok(false),
            Room::Filling(..) => 0,
            _ => expected,
        };
        if buffer.len() < in_buffer + 2 {
            return Ok(false);
        }
        let argument = buffer.split_to(in_buffer).freeze();
        // Redis does not check the two bytes after it either.
        buffer.advance(2);
        self.argument_bytes += argument.len();
        self.arguments.push(argument);
        self.expected = None;
        self.room = match std::mem::take(&mut self.room) {
            Room::Filling(room, _) | Room::Full(room) => Room::Full(room),
            _ => Room::Unasked,
        };
        self.left -= 1;
        Ok(true)
    }
}

fn is_set(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"set")
}

/// Parses the header of a request: the number of arguments. 0: an empty request.
fn count_of_arguments(
    buffer: &mut BytesMut,
    limits: &Limits,
) -> Result<Option<usize>, ProtocolError> {
    let Some(line) = line(buffer, "too big mbulk count string")? else { return Ok(None) };
    let arguments_max = i64::try_from(limits.arguments_max).unwrap_or(i64::MAX);
    match crate::protocol::number::integer(&line[1..]) {
        Some(count) if count > arguments_max => wrong("invalid multibulk length"),
        Some(count) if count > STRANGER_ARGUMENTS_MAX && limits.is_stranger => {
            wrong("unauthenticated multibulk length")
        }
        Some(count) => Ok(Some(usize::try_from(count).unwrap_or(0))),
        None => wrong("invalid multibulk length"),
    }
}

/// Parses the header of an argument: the number of bytes.
fn bytes_of_argument(
    buffer: &mut BytesMut,
    limits: &Limits,
) -> Result<Option<usize>, ProtocolError> {
    let Some(line) = line(buffer, "too big bulk count string")? else { return Ok(None) };
    let Some((b'$', number)) = line.split_first() else {
        let found = line.first().map_or_else(String::new, |&byte| char::from(byte).to_string());
        return wrong(format!("expected '$', got '{}'", found.escape_default()));
    };
    let bytes_max = i64::try_from(limits.argument_bytes_max).unwrap_or(i64::MAX);
    match crate::protocol::number::integer(number) {
        Some(bytes) if bytes < 0 || bytes > bytes_max => wrong("invalid bulk length"),
        Some(bytes) if bytes > STRANGER_BYTES_MAX && limits.is_stranger => {
            wrong("unauthenticated bulk length")
        }
        Some(bytes) => Ok(usize::try_from(bytes).ok()),
        None => wrong("invalid bulk length"),
    }
}

/// Takes a line off the buffer, without its end; `None` if its end has not arrived.
fn line(buffer: &mut BytesMut, too_long: &str) -> Result<Option<Bytes>, ProtocolError> {
    let Some(end) = buffer.iter().take(LINE_BYTES_MAX).position(|&byte| byte == b'\n') else {
        return if buffer.len() >= LINE_BYTES_MAX { wrong(too_long) } else { Ok(None) };
    };
    let mut line = buffer.split_to(end + 1).freeze();
    line.truncate(if line[..end].ends_with(b"\r") { end - 1 } else { end });
    Ok(Some(line))
}

/// Takes the words of a line off the buffer; `None` if its end has not arrived.
fn words_of_line(buffer: &mut BytesMut) -> Result<Option<Arguments>, ProtocolError> {
    let Some(line) = line(buffer, "too big inline request")? else { return Ok(None) };
    let mut words = Vec::new();
    // Redis treats a line as a C string.
    let end = line.iter().position(|&byte| byte == 0).unwrap_or(line.len());
    let mut rest = &line[..end];
    loop {
        // All word separators are removed here, so each round takes something.
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(Some(words));
        }
        let (word, behind) = word(rest)?;
        words.push(Bytes::from(word));
        rest = behind;
    }
}

/// The first word of a text that does not begin with a space, and the rest.
fn word(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), ProtocolError> {
    let mut word = Vec::new();
    let mut quote = None;
    loop {
        rest = match (quote, rest) {
            (None, [] | [b' ' | b'\t' | b'\r' | b'\n', ..]) => return Ok((word, rest)),
            (Some(_), []) => return wrong("unbalanced quotes in request"),
            (None, [sign @ (b'"' | b'\''), behind @ ..]) => {
                quote = Some(*sign);
                behind
            }
            (Some(open), [sign, behind @ ..]) if open == *sign => {
                return match behind {
                    [] => Ok((word, behind)),
                    [next, ..] if next.is_ascii_whitespace() => Ok((word, behind)),
                    _ => wrong("unbalanced quotes in request"),
                };
            }
            (Some(b'"'), [b'\\', b'x', high, low, behind @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                behind
            }
            (Some(b'"'), [b'\\', sign, behind @ ..]) => {
                word.push(match sign {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                behind
            }
            (Some(b'\''), [b'\\', b'\'', behind @ ..]) => {
                word.push(b'\'');
                behind
            }
            (_, [sign, behind @ ..]) => {
                word.push(*sign);
                behind
            }
        };
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 32) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { arguments_max: 1000, argument_bytes_max: 100_000, is_stranger: false };

    fn all(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let (mut parser, mut buffer) = (Parser::default(), BytesMut::from(bytes));
        let mut requests = Vec::new();
        while let Some(request) = parser.next(&mut buffer, &LIMITS)? {
            requests.push(request.iter().map(|argument| argument.to_vec()).collect());
        }
        Ok(requests)
    }

    /// Large values of SET in reserved room, in any pieces; some rooms are refused.
    #[test]
    fn values_with_places_of_their_own() {
        let store = adamant::Store::in_memory().unwrap();
        let all = store.expiring("all").unwrap();
        let seed = 6;
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for number in 0..60_u8 {
            let size = [5, ROOM_BYTES_MIN - 1, ROOM_BYTES_MIN, 90_000][random.usize(..4)];
            let name = *random.choice([b"sEt", b"GET"]).unwrap();
            let mut request = vec![name.to_vec(), b"key".to_vec(), vec![number; size]];
            request.extend(random.bool().then(|| b"NX".to_vec()));
            encode(&request, &mut bytes);
            expected.push(request);
        }
        let (mut parser, mut buffer) = (Parser::default(), BytesMut::new());
        let (mut found, mut rooms, mut rest) = (Vec::new(), 0, &bytes[..]);
        while !rest.is_empty() {
            let size = random.usize(1..=rest.len().min(30_000));
            match parser.unfilled() {
                Some(room) => {
                    let size = size.min(room.len());
                    room[..size].copy_from_slice(&rest[..size]);
                    parser.fill(size);
                    rest = &rest[size..];
                }
                None => {
                    buffer.extend_from_slice(&rest[..size]);
                    rest = &rest[size..];
                }
            }
            loop {
                match parser.next(&mut buffer, &LIMITS).unwrap() {
                    Some(arguments) => {
                        let mut request: Vec<_> = arguments.iter().map(|it| it.to_vec()).collect();
                        if let Some(room) = parser.take_room() {
                            assert!(request[2].is_empty());
                            request[2] = room.to_vec();
                            rooms += 1;
                        }
                        found.push(request);
                    }
                    None => match parser.wanted_room() {
                        Some(size) => {
                            let room = random.bool().then(|| all.reserve(size).unwrap());
                            parser.give_room(room, &mut buffer);
                        }
                        None => break,
                    },
                }
            }
        }
        assert!(found == expected, "seed {seed}");
        assert!(rooms > 5, "seed {seed}");
        assert_eq!(parser.held_bytes(), 0);
    }

    fn error(bytes: &[u8]) -> String {
        all(bytes).unwrap_err().to_string()
    }

    fn encode(request: &[Vec<u8>], bytes: &mut Vec<u8>) {
        bytes.extend(format!("*{}\r\n", request.len()).bytes());
        for argument in request {
            bytes.extend(format!("${}\r\n", argument.len()).bytes());
            bytes.extend(argument.iter().chain(b"\r\n"));
        }
    }

    #[test]
    fn requests_in_any_pieces() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..200 {
            let request: Vec<Vec<u8>> = (0..random.usize(1..5))
                .map(|_| (0..random.usize(..40)).map(|_| random.u8(..)).collect())
                .collect();
            encode(&request, &mut bytes);
            expected.push(request);
        }
        let (mut parser, mut buffer) = (Parser::default(), BytesMut::new());
        let mut found = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(random.usize(1..=rest.len().min(50)));
            buffer.extend_from_slice(piece);
            rest = behind;
            while let Some(request) = parser.next(&mut buffer, &LIMITS).unwrap() {
                found.push(request.iter().map(|argument| argument.to_vec()).collect::<Vec<_>>());
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_of_words() {
        let found = all(b"\r\n  SET key \"a \\x41\\n\\\"\" 'b\\'c\\n'\r\nPING\n*0\r\n").unwrap();
        let set = [&b"SET"[..], b"key", b"a A\n\"", b"b'c\\n"].map(<[u8]>::to_vec).to_vec();
        assert_eq!(found, vec![set, vec![b"PING".to_vec()]]);
        assert_eq!(all(b"PING \0 a\r\n\0\r\n").unwrap(), [[b"PING"]]);
        assert_eq!(error(b"GET \"a\r\n"), "Protocol error: unbalanced quotes in request");
        assert_eq!(error(b"GET \"a\"b\r\n"), "Protocol error: unbalanced quotes in request");
        assert_eq!(error(&[b'a'; 70_000]), "Protocol error: too big inline request");
    }

    #[test]
    fn what_is_no_request() {
        assert_eq!(error(b"*x\r\n"), "Protocol error: invalid multibulk length");
        assert_eq!(error(b"*1001\r\n"), "Protocol error: invalid multibulk length");
        assert_eq!(error(b"*1\r\n+PING\r\n"), "Protocol error: expected '$', got '+'");
        assert_eq!(error(b"*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
        assert_eq!(error(b"*1\r\n$100001\r\n"), "Protocol error: invalid bulk length");
        assert_eq!(error(&[&b"*"[..], &[b'1'; 70_000]].concat()).len(), 42);
        assert_eq!(all(b"*-5\r\n*1\r\n$4\r\nPI").unwrap().len(), 0);
        let stranger = Limits { is_stranger: true, ..LIMITS };
        for (bytes, words) in [
            ("*11\r\n", "Protocol error: unauthenticated multibulk length"),
            ("*1\r\n$16385\r\n", "Protocol error: unauthenticated bulk length"),
        ] {
            let error = Parser::default().next(&mut BytesMut::from(bytes), &stranger).unwrap_err();
            assert_eq!(error.to_string(), words);
        }
    }
}
