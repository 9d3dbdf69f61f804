//! One connection of the generator.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::answer::{self, Answer, Unreadable};

const INPUT_BYTES: usize = 4 * 1_024;

/// A connection: idle, or with one request under way.
pub(super) struct Connection {
    token: u64,
    stream: Option<TcpStream>,
    /// When the request under way was due.
    pub(super) due: Option<Instant>,
    input: Box<[u8]>,
    filled: usize,
    output: Vec<u8>,
    written: usize,
}

/// What came of looking at a connection.
pub(super) enum Seen {
    /// Nothing that is complete.
    Nothing,
    /// The answer to the request under way.
    Answer(Answer),
    /// The connection is gone, and with it the answer if one was due.
    Gone,
}

impl Connection {
    pub(super) fn new(token: u64) -> Self {
        Self {
            token,
            stream: None,
            due: None,
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            filled: 0,
            output: Vec::with_capacity(1_024),
            written: 0,
        }
    }

    /// Connects, if it is not connected.
    pub(super) fn dial(&mut self, epoll: impl rustix::fd::AsFd, to: SocketAddr) -> io::Result<()> {
        if self.stream.is_some() {
            return Ok(());
        }
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        epoll::add(
            epoll,
            &stream,
            EventData::new_u64(self.token),
            EventFlags::IN,
        )?;
        self.stream = Some(stream);
        self.filled = 0;
        Ok(())
    }

    /// Sends a request that was due at `due`; `write` appends its bytes. What the socket does not
    /// take at once is sent by [`Connection::look`].
    pub(super) fn begin(
        &mut self,
        epoll: impl rustix::fd::AsFd,
        due: Instant,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        self.output.clear();
        write(&mut self.output);
        self.written = 0;
        self.due = Some(due);
        self.flush()?;
        if self.written < self.output.len() {
            self.wait_for(epoll, EventFlags::IN | EventFlags::OUT)?;
        }
        Ok(())
    }

    /// Sends and reads what can be.
    pub(super) fn look(&mut self, epoll: impl rustix::fd::AsFd) -> io::Result<Seen> {
        if self.written < self.output.len() {
            match self.flush() {
                Ok(()) if self.written == self.output.len() => {
                    self.wait_for(epoll, EventFlags::IN)?;
                }
                Ok(()) => {}
                Err(_) => return Ok(Seen::Gone),
            }
        }
        let Some(stream) = &mut self.stream else {
            return Ok(Seen::Nothing);
        };
        match stream.read(&mut self.input[self.filled..]) {
            Ok(0) => return Ok(Seen::Gone),
            Ok(more) => self.filled += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Seen::Nothing),
            Err(_) => return Ok(Seen::Gone),
        }
        match answer::read(&self.input[..self.filled]) {
            Ok(None) => Ok(Seen::Nothing),
            Ok(Some(answer)) => {
                self.input.copy_within(answer.bytes..self.filled, 0);
                self.filled -= answer.bytes;
                if answer.closes {
                    self.close();
                }
                Ok(Seen::Answer(answer))
            }
            Err(Unreadable) => {
                let said = String::from_utf8_lossy(&self.input[..self.filled]);
                Err(io::Error::other(format!(
                    "an answer that cannot be read: {said}"
                )))
            }
        }
    }

    /// Closes it; the next request dials again.
    pub(super) fn close(&mut self) {
        // Closing the descriptor takes it out of the epoll.
        self.stream = None;
        self.filled = 0;
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        while self.written < self.output.len() {
            match stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(some) => self.written += some,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait_for(&self, epoll: impl rustix::fd::AsFd, flags: EventFlags) -> io::Result<()> {
        let Some(stream) = &self.stream else {
            return Ok(());
        };
        Ok(epoll::modify(
            epoll,
            stream,
            EventData::new_u64(self.token),
            flags,
        )?)
    }
}
