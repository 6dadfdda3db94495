//! Server-sent events, as far as Netstead sends them: `id`, `event`, `data`, comments.

/// The most one message may hold; a server that sends more is not ours.
const LARGEST: usize = 4 << 20;

/// One message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: String,
}

/// Cuts a stream of bytes, however it is chopped, into messages.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    /// The last byte was a `\r`, so a `\n` now ends nothing.
    after_return: bool,
    message: Message,
    has_data: bool,
}

impl Parser {
    /// The messages that `bytes` completes, or nothing sensible if one is too large.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Message>, TooLarge> {
        let mut done = Vec::new();
        for &byte in bytes {
            let second_half = std::mem::replace(&mut self.after_return, byte == b'\r') && byte == b'\n';
            match byte {
                b'\n' if second_half => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    done.extend(self.end_of_line(&String::from_utf8_lossy(&line)));
                }
                _ => self.line.push(byte),
            }
            if self.line.len() + self.message.data.len() > LARGEST {
                return Err(TooLarge);
            }
        }
        Ok(done)
    }

    fn end_of_line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return std::mem::take(&mut self.has_data).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.message.id = Some(value.to_owned()),
            "event" => self.message.event = Some(value.to_owned()),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // Comments keep the connection alive; `retry` is ours to decide.
            _ => {}
        }
        None
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        ": hello\n\nid: a:1\nevent: claimed\ndata: {\"x\":1}\n\ndata: one\r\ndata:two\r\n\r\nid: a:2\n\n";

    fn expected() -> Vec<Message> {
        vec![
            Message { id: Some("a:1".into()), event: Some("claimed".into()), data: "{\"x\":1}".into() },
            Message { id: None, event: None, data: "one\ntwo".into() },
        ]
    }

    #[test]
    fn messages_end_at_an_empty_line() {
        assert_eq!(Parser::default().feed(TEXT.as_bytes()), Ok(expected()));
    }

    #[test]
    fn it_does_not_matter_how_the_stream_is_chopped() {
        for size in 1..TEXT.len() {
            let mut parser = Parser::default();
            let messages: Vec<_> =
                TEXT.as_bytes().chunks(size).flat_map(|part| parser.feed(part).unwrap()).collect();
            assert_eq!(messages, expected(), "in pieces of {size}");
        }
    }

    #[test]
    fn a_message_without_end_is_given_up() {
        let mut parser = Parser::default();
        let flood = vec![b'x'; LARGEST + 1];
        assert_eq!(parser.feed(&flood), Err(TooLarge));
    }
}
