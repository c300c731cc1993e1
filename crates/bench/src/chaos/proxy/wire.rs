//! Just enough of PostgreSQL's protocol: where messages end, and which text a statement has.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

/// A whole message; the first byte is its letter, except in the very first one.
pub(super) type Message = Vec<u8>;

/// Reads messages from one side.
pub(super) struct Messages<R> {
    from: R,
    has_letters: bool,
}

impl<R: Read> Messages<R> {
    /// Of a client, whose first message has no letter.
    pub(super) fn of_client(from: R) -> Messages<R> {
        Messages { from, has_letters: false }
    }

    pub(super) fn of_server(from: R) -> Messages<R> {
        Messages { from, has_letters: true }
    }

    /// The next one; none after the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Message>> {
        let head = usize::from(self.has_letters) + 4;
        let mut message = vec![0; head];
        match self.from.read_exact(&mut message) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let length = &message[head - 4..];
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let whole = head - 4 + length;
        if whole < head {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message that is shorter than its head"));
        }
        message.resize(whole, 0);
        self.from.read_exact(&mut message[head..])?;
        self.has_letters = true;
        Ok(Some(message))
    }
}

/// The statements that a client has prepared, and those of its current request.
#[derive(Default)]
pub(super) struct Requests {
    prepared: HashMap<String, Arc<str>>,
    texts: Vec<Arc<str>>,
}

/// The meaning of a message for the proxy.
pub(super) enum Meaning {
    /// The request goes on.
    More,
    /// The request is complete: these statements are executed, and one `ReadyForQuery` will end the answer.
    Whole(Vec<Arc<str>>),
    /// Any other message, carried at once.
    Other,
}

impl Requests {
    pub(super) fn read(&mut self, message: &[u8]) -> Meaning {
        match message.first() {
            Some(b'P') => {
                let mut texts = message[5..].split(|byte| *byte == 0);
                let (name, text) = (text(texts.next()), text(texts.next()));
                self.prepared.insert(name, text.into());
                Meaning::More
            }
            Some(b'B') => {
                let name = text(message[5..].split(|byte| *byte == 0).nth(1));
                self.texts.extend(self.prepared.get(&name).cloned());
                Meaning::More
            }
            Some(b'Q') => {
                self.texts.push(text(message[5..].split(|byte| *byte == 0).next()).into());
                Meaning::Whole(std::mem::take(&mut self.texts))
            }
            Some(b'S') => Meaning::Whole(std::mem::take(&mut self.texts)),
            Some(b'E' | b'D' | b'C') => Meaning::More,
            _ => Meaning::Other,
        }
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(letter: u8, body: &[u8]) -> Message {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[letter], &length[..], body].concat()
    }

    #[test]
    fn messages_are_split_and_statements_known_by_name() {
        let startup = [&12_u32.to_be_bytes()[..], &[0, 3, 0, 0], b"user"].concat();
        let sent = [
            startup.clone(),
            message(b'P', b"s1\0select 1\0\0\0"),
            message(b'S', b""),
            message(b'B', b"\0s1\0rest"),
            message(b'E', b"\0\0\0\0\0"),
            message(b'S', b""),
            message(b'Q', b"commit\0"),
        ];
        let bytes = sent.concat();
        let mut messages = Messages::of_client(bytes.as_slice());
        assert_eq!(messages.next().unwrap(), Some(startup));
        let mut requests = Requests::default();
        let mut whole = Vec::new();
        while let Some(message) = messages.next().unwrap() {
            if let Meaning::Whole(texts) = requests.read(&message) {
                whole.push(texts.join(";"));
            }
        }
        assert_eq!(whole, ["", "select 1", "commit"]);
    }
}
