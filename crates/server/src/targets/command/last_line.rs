//! [`LastLine`]: the last line that a program printed, if it is not too long.

/// Reads bytes as they come and keeps the last line that has something in it.
#[derive(Debug)]
pub(super) struct LastLine {
    max: usize,
    /// The last whole line with something in it. `None` if it was too long.
    whole: Option<Vec<u8>>,
    /// The line that has not ended.
    begun: Vec<u8>,
}

impl LastLine {
    /// Keeps lines of at most this many bytes.
    pub(super) fn new(max: usize) -> LastLine {
        LastLine { max, whole: None, begun: Vec::new() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        self.extend(lines.next().unwrap_or_default());
        for line in lines {
            self.end();
            self.extend(line);
        }
    }

    /// The line, without white space around it.
    pub(super) fn text(mut self) -> Option<String> {
        self.end();
        String::from_utf8(self.whole?).ok().map(|line| line.trim().to_owned())
    }

    /// One byte more than fits shows that the line is too long.
    fn extend(&mut self, bytes: &[u8]) {
        let room = (self.max + 1).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self) {
        let line = std::mem::take(&mut self.begun);
        if !line.trim_ascii().is_empty() {
            self.whole = (line.len() <= self.max).then_some(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(pieces: &[&str]) -> Option<String> {
        let mut last = LastLine::new(8);
        for piece in pieces {
            last.push(piece.as_bytes());
        }
        last.text()
    }

    #[test]
    fn the_last_line_with_something_in_it_counts() {
        for (pieces, wanted) in [
            (&[][..], None),
            (&["\n\n"], None),
            (&["a"], Some("a")),
            (&["a\nb\n"], Some("b")),
            (&["a\nb", "c\n", "\n  \r\n"], Some("bc")),
            (&["a\r\n", "{\"x\"", ":1}\n"], Some("{\"x\":1}")),
            (&["12345678\n"], Some("12345678")),
            (&["12345678", "9\n"], None),
            (&["1234567890123456789\nshort"], Some("short")),
            (&["short\n1234567890123456789\n\n"], None),
        ] {
            assert_eq!(last(pieces).as_deref(), wanted, "{pieces:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_no_line() {
        let mut last = LastLine::new(8);
        last.push(b"\xff\xfe\n");
        assert_eq!(last.text(), None);
    }
}
