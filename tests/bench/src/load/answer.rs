//! Reading answers: as much of HTTP/1.1 as the servers here use.

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) told: Told,
    /// The connection serves no further request.
    pub(super) closes: bool,
    /// Bytes of head and body.
    pub(super) bytes: usize,
}

/// What a purchase became, if the answer is one to a purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Granted,
    Waitlisted,
    Other,
}

/// An answer that this client cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The answer at the start of `bytes`, if it is complete.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Answer>, Unreadable> {
    let Some(head) = end_of_head(bytes) else {
        return Ok(None);
    };
    let mut lines = bytes[..head].split(|byte| *byte == b'\n');
    let status = lines.next().and_then(status).ok_or(Unreadable)?;
    let (mut length, mut closes) = (None, false);
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            length = number(value);
        } else if name.eq_ignore_ascii_case(b"connection") {
            closes = value.eq_ignore_ascii_case(b"close");
        }
    }
    // No server here sends chunks on the routes that are measured.
    let length = length.ok_or(Unreadable)?;
    if bytes.len() < head + length {
        return Ok(None);
    }
    Ok(Some(Answer {
        status,
        told: told(&bytes[head..head + length]),
        closes,
        bytes: head + length,
    }))
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

fn status(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.1 ")?;
    let digits = rest.get(..3)?;
    number(digits).and_then(|status| u16::try_from(status).ok())
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn told(body: &[u8]) -> Told {
    if body.starts_with(br#"{"outcome":"granted""#) {
        Told::Granted
    } else if body.starts_with(br#"{"outcome":"waitlisted""#) {
        Told::Waitlisted
    } else {
        Told::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTED: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\n\
        Content-Length: 23\r\n\r\n{\"outcome\":\"granted\"...HTTP";

    #[test]
    fn an_answer_is_read_once_it_is_complete() {
        let whole = GRANTED.len() - 4;
        for cut in [0, 10, 60, whole - 1] {
            assert_eq!(read(&GRANTED[..cut]), Ok(None), "{cut}");
        }
        let answer = Answer {
            status: 202,
            told: Told::Granted,
            closes: false,
            bytes: whole,
        };
        assert_eq!(read(GRANTED), Ok(Some(answer)));
    }

    #[test]
    fn a_connection_that_ends_says_so() {
        let answer = read(b"HTTP/1.1 503 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        let answer = answer.expect("readable").expect("complete");
        assert_eq!((answer.status, answer.closes), (503, true));
        assert_eq!(answer.told, Told::Other);
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        assert_eq!(read(b"HTTP/2 200\r\n\r\n"), Err(Unreadable));
        assert_eq!(
            read(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
            Err(Unreadable)
        );
    }
}
