//! Output: data to standard output, messages to standard error.

use std::cell::RefCell;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::failure::{Code, Failure, Result};

/// Standard output, buffered, and the choice between text and JSON.
pub(crate) struct Output {
    json: bool,
    stdout: RefCell<BufWriter<StdoutLock<'static>>>,
}

impl Output {
    /// Takes standard output.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, stdout: RefCell::new(BufWriter::with_capacity(1 << 16, io::stdout().lock())) }
    }

    /// Whether results are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes data as it is.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<()> {
        self.stdout.borrow_mut().write_all(bytes).map_err(|error| Failure::stdout(&error))
    }

    /// Writes a line of data.
    pub(crate) fn line(&self, line: &str) -> Result<()> {
        self.bytes(line.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes a result: the JSON object as data if JSON was requested, otherwise the words as a
    /// message.
    pub(crate) fn result(&self, object: &Value, words: &str) -> Result<()> {
        if self.json {
            return self.line(&object.to_string());
        }
        self.talk(words);
        Ok(())
    }

    /// Prints a message. It is no failure if that cannot be written.
    pub(crate) fn talk(&self, words: &str) {
        let _ = writeln!(io::stderr(), "{words}");
    }

    /// Flushes what was written.
    pub(crate) fn finish(&self) -> Result<()> {
        self.stdout.borrow_mut().flush().map_err(|error| Failure::stdout(&error))
    }

    /// Reports a failure, after what was written before.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        if failure.code != Code::Unheard {
            // A second failure of standard output would add nothing.
            let _ = self.finish();
            if self.json {
                let (code, message) = (failure.code as u8, &failure.message);
                self.talk(&json!({"error": {"code": code, "message": message}}).to_string());
            } else {
                self.talk(&format!("adamant: {}", failure.message));
            }
        }
        ExitCode::from(failure.code as u8)
    }
}

/// Bytes as text of one line, with `\t`, `\n`, `\r`, `\\` and `\xNN` for what would break it or is
/// no UTF-8.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\\' => text.push_str("\\\\"),
                control if control.is_ascii_control() => {
                    text.push_str(&format!("\\x{:02x}", u32::from(control)));
                }
                other => text.push(other),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(escape(b"a\tb\nc\\d\x00\xffe"), "a\\tb\\nc\\\\d\\x00\\xffe");
        assert_eq!(escape("\u{e9}".as_bytes()), "\u{e9}");
    }
}
