//! Heads that are no requests.
//!
//! What is not HTTP, and what is too long, the HTTP library answers before the application hears of
//! it, with a status and nothing else. Here such an answer becomes a problem like any other.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::Write;

use crate::app::HttpApp;
use crate::problem::{PROBLEM_JSON, Problem};

/// Puts a problem in the place of the library's own refusals on one connection.
pub(super) struct Refusals {
    app: HttpApp,
    /// What is being written instead, and how much of it was.
    instead: Option<(Vec<u8>, usize)>,
}

impl Refusals {
    pub(super) fn new(app: HttpApp) -> Self {
        Self { app, instead: None }
    }

    /// Writes an answer, or what stands in its place.
    pub(super) fn poll_write<W: Write + Unpin>(
        &mut self,
        io: &mut W,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.instead.is_none() {
            match refused(bytes) {
                Some(head) => self.instead = Some((self.wording(&head), 0)),
                None => return Pin::new(io).poll_write(context, bytes),
            }
        }
        while let Some((instead, written)) = &mut self.instead
            && *written < instead.len()
        {
            let left = &instead[*written..];
            match ready!(Pin::new(&mut *io).poll_write(context, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                some => *written += some,
            }
        }
        self.instead = None;
        Poll::Ready(Ok(bytes.len()))
    }

    /// The refusal of a head that is not complete, after which the connection ends.
    pub(super) fn late(&self) -> Vec<u8> {
        self.wording(&Refused {
            problem: Problem::RequestTimeout,
            date: "",
        })
    }

    fn wording(&self, refused: &Refused<'_>) -> Vec<u8> {
        let id = self.app.next_id();
        let id = id.to_str().unwrap_or_default();
        let problem = &refused.problem;
        let date = match refused.date {
            "" => String::new(),
            date => format!("date: {date}\r\n"),
        };
        let body = serde_json::to_vec(&problem.body("", id)).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {PROBLEM_JSON}\r\ncontent-length: {length}\r\n\
             cache-control: no-store\r\nx-content-type-options: nosniff\r\nx-request-id: {id}\r\n\
             connection: close\r\n{date}\r\n",
            status = problem.status(),
            length = body.len(),
        );
        [head.into_bytes(), body].concat()
    }
}

struct Refused<'a> {
    problem: Problem,
    date: &'a str,
}

/// The library's own refusal: a head of class 4 and nothing else. Every answer of the application
/// has a request id.
fn refused(bytes: &[u8]) -> Option<Refused<'_>> {
    if !bytes.starts_with(b"HTTP/1.1 4") || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = str::from_utf8(bytes).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.get(9..12)?;
    let mut date = "";
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap_or_default();
        match name {
            "x-request-id" => return None,
            "date" => date = value,
            _ => {}
        }
    }
    let problem = match status {
        "414" => Problem::UriTooLong,
        "431" => Problem::HeadTooLarge,
        _ => Problem::MalformedRequest,
    };
    Some(Refused { problem, date })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_of_the_library_is_replaced() {
        let own = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: Thu\r\n\r\n";
        let found = refused(own).unwrap();
        assert_eq!((found.problem, found.date), (Problem::HeadTooLarge, "Thu"));
        for other in [
            &b"HTTP/1.1 404 Not Found\r\nx-request-id: 1\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"{}",
            b"",
        ] {
            assert!(refused(other).is_none());
        }
    }
}
