//! The loop of the generator.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags};

use super::connection::{Connection, Seen};
use super::outcome::Outcome;
use super::{Pace, Plan, Requests};
use crate::machine::thread_cpu;

/// How long the loop sleeps at most, so that it notices that its time is over.
const NAP: Duration = Duration::from_millis(50);

/// Runs the plan on this thread, to its end. Requests are taken from `requests` in order; without
/// any left, a closed loop ends early.
pub fn run(plan: &Plan, requests: &Requests) -> io::Result<Outcome> {
    let mut engine = Engine::start(plan, requests)?;
    let cpu = thread_cpu();
    engine.begun = Instant::now();
    engine.last = engine.begun;
    engine.until_done()?;
    let mut outcome = engine.outcome;
    outcome.took = engine.last.saturating_duration_since(engine.begun);
    outcome.cpu = thread_cpu().saturating_sub(cpu);
    Ok(outcome)
}

struct Engine<'a> {
    plan: &'a Plan,
    requests: &'a Requests,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    idle: VecDeque<usize>,
    begun: Instant,
    /// When the last answer came.
    last: Instant,
    /// How many requests there are to send in all.
    total: u64,
    next: u64,
    under_way: usize,
    outcome: Outcome,
}

impl<'a> Engine<'a> {
    fn start(plan: &'a Plan, requests: &'a Requests) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(plan.connections);
        for token in 0..plan.connections {
            let mut connection = Connection::new(token as u64);
            if plan.keep_alive {
                connection.dial(&epoll, plan.target)?;
            }
            connections.push(connection);
        }
        let total = match plan.pace {
            Pace::Closed(_) => requests.count(),
            Pace::Open { .. } => requests.count().min(plan.requests_max(0.0) as u64),
        };
        Ok(Self {
            plan,
            requests,
            epoll,
            idle: (0..connections.len()).collect(),
            connections,
            begun: Instant::now(),
            last: Instant::now(),
            total,
            next: 0,
            under_way: 0,
            outcome: Outcome::new(),
        })
    }

    fn until_done(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(1_024);
        let lasts = match self.plan.pace {
            Pace::Closed(lasts) | Pace::Open { lasts, .. } => lasts,
        };
        let (end, give_up) = (self.begun + lasts, self.begun + lasts + self.plan.patience);
        loop {
            let now = Instant::now();
            self.send_what_is_due(now, end)?;
            let closed = matches!(self.plan.pace, Pace::Closed(_));
            let all_sent = self.next >= self.total || (closed && now >= end);
            if all_sent && self.under_way == 0 {
                return Ok(());
            }
            if now >= give_up {
                self.give_up(now);
                return Ok(());
            }
            let nap = self.nap(now);
            events.clear();
            epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&nap),
            )?;
            let now = Instant::now();
            for event in events.drain(..) {
                let at = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                self.look(at, now, closed && now < end)?;
            }
        }
    }

    /// When the next request is due.
    fn due(&self, number: u64) -> Instant {
        match self.plan.pace {
            Pace::Closed(_) => self.begun,
            Pace::Open { per_s, .. } => self.begun + Duration::from_secs_f64(number as f64 / per_s),
        }
    }

    fn send_what_is_due(&mut self, now: Instant, end: Instant) -> io::Result<()> {
        let closed = matches!(self.plan.pace, Pace::Closed(_));
        if closed && now >= end {
            return Ok(());
        }
        while self.next < self.total {
            let due = if closed { now } else { self.due(self.next) };
            if due > now {
                break;
            }
            let Some(at) = self.idle.pop_front() else {
                break;
            };
            self.send(at, due)?;
        }
        Ok(())
    }

    fn send(&mut self, at: usize, due: Instant) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        let connection = &mut self.connections[at];
        connection.dial(&self.epoll, self.plan.target)?;
        let keep_alive = self.plan.keep_alive;
        let write = |out: &mut Vec<u8>| self.requests.write(number, keep_alive, out);
        let begun = connection.begin(&self.epoll, due, write);
        self.outcome.sent += 1;
        self.under_way += 1;
        if begun.is_err() {
            // The server had closed it meanwhile.
            self.lose(at, Instant::now());
        }
        Ok(())
    }

    fn look(&mut self, at: usize, now: Instant, again: bool) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(at) else {
            return Ok(());
        };
        match connection.look(&self.epoll)? {
            Seen::Nothing => {}
            Seen::Gone => {
                if connection.due.is_some() {
                    self.lose(at, now);
                } else {
                    connection.close();
                }
            }
            Seen::Answer(answer) => {
                let Some(due) = connection.due.take() else {
                    return Err(io::Error::other("an answer that nobody asked for"));
                };
                if !self.plan.keep_alive {
                    connection.close();
                }
                self.outcome
                    .note(answer, now.saturating_duration_since(due));
                self.under_way -= 1;
                self.last = now;
                if again && self.next < self.total {
                    // Latency of a closed loop counts from here.
                    self.send(at, now)?;
                } else {
                    self.idle.push_back(at);
                }
            }
        }
        Ok(())
    }

    fn lose(&mut self, at: usize, now: Instant) {
        let connection = &mut self.connections[at];
        connection.close();
        if let Some(due) = connection.due.take() {
            self.outcome.note_lost(now.saturating_duration_since(due));
            self.under_way -= 1;
            self.last = now;
            self.idle.push_back(at);
        }
    }

    /// What is not answered, or could not even be sent, is lost.
    fn give_up(&mut self, now: Instant) {
        for at in 0..self.connections.len() {
            if self.connections[at].due.is_some() {
                self.lose(at, now);
            }
        }
        if matches!(self.plan.pace, Pace::Open { .. }) {
            for number in self.next..self.total {
                let late = now.saturating_duration_since(self.due(number));
                self.outcome.note_lost(late);
            }
        }
        self.last = now;
    }

    fn nap(&self, now: Instant) -> Timespec {
        let open = matches!(self.plan.pace, Pace::Open { .. });
        let nap = if open && self.next < self.total && !self.idle.is_empty() {
            self.due(self.next).saturating_duration_since(now).min(NAP)
        } else {
            NAP
        };
        Timespec {
            tv_sec: i64::try_from(nap.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(nap.subsec_nanos()),
        }
    }
}
