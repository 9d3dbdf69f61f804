//! Patience with slow senders.
//!
//! A connection may be idle for a good while between requests, so that clients can keep it; but
//! once the head of a request has begun to arrive it has to be there soon, or a few slow clients
//! would hold every connection. When the door closes, patience with those ends at once; only who is
//! being answered has time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Sleep, Timer as _, Write};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::refusal::Refusals;

/// What a connection is doing.
#[derive(Debug, Clone)]
pub(super) struct Phase(Arc<AtomicU8>);

/// Nothing is expected.
const IDLE: u8 = 0;
/// The head of a request is expected, or has begun.
const HEAD: u8 = 1;
/// A request is being worked on, its body read, and its answer given.
const BUSY: u8 = 2;

impl Phase {
    /// A new connection: its first request is expected soon.
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU8::new(HEAD)))
    }

    pub(super) fn busy(&self) {
        self.0.store(BUSY, Ordering::Relaxed);
    }

    pub(super) fn idle(&self) {
        self.0.store(IDLE, Ordering::Relaxed);
    }

    fn is(&self, phase: u8) -> bool {
        self.0.load(Ordering::Relaxed) == phase
    }
}

/// A connection that fails when the head of a request takes too long, or is not there when the door
/// closes.
pub(super) struct PatientIo {
    io: TokioIo<TcpStream>,
    phase: Phase,
    header_timeout: Duration,
    /// Runs while a head is incomplete and nothing more has come.
    head: Option<Pin<Box<dyn Sleep>>>,
    /// Something of the head has come.
    begun: bool,
    /// The client leaves an answer unread.
    stuck: bool,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    refusals: Refusals,
}

impl PatientIo {
    pub(super) fn new(
        stream: TcpStream,
        phase: Phase,
        header_timeout: Duration,
        closing: CancellationToken,
        refusals: Refusals,
    ) -> Self {
        Self {
            closing: Box::pin(closing.cancelled_owned()),
            refusals,
            io: TokioIo::new(stream),
            phase,
            header_timeout,
            head: None,
            begun: false,
            stuck: false,
        }
    }

    /// Nothing came. Fails if a head should have been complete by now.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.phase.is(HEAD) {
            self.head = None;
            return Poll::Pending;
        }
        if self.closing.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let timeout = self.header_timeout;
        let head = self
            .head
            .get_or_insert_with(|| TokioTimer::new().sleep(timeout));
        ready!(head.as_mut().poll(context));
        if self.begun && !self.stuck {
            // It is short, and nothing else is on its way: it goes out at once or not at all.
            let late = self.refusals.late();
            let _ = Pin::new(&mut self.io).poll_write(context, &late)?;
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for PatientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if Pin::new(&mut self.io)
            .poll_read(context, buffer)?
            .is_pending()
        {
            return self.poll_patience(context);
        }
        self.begun = true;
        // Whatever comes after an answer begins the next request.
        let begun = self
            .phase
            .0
            .compare_exchange(IDLE, HEAD, Ordering::Relaxed, Ordering::Relaxed);
        if begun.is_ok() {
            self.head = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for PatientIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = if this.phase.is(BUSY) {
            Pin::new(&mut this.io).poll_write(context, bytes)
        } else {
            this.refusals.poll_write(&mut this.io, context, bytes)
        };
        this.stuck = written.is_pending();
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = parts {
            return self.poll_write(context, only);
        }
        let written = Pin::new(&mut self.io).poll_write_vectored(context, parts);
        self.stuck = written.is_pending();
        written
    }
}
