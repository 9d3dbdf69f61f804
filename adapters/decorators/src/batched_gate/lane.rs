//! The attempts on one voucher: who waits, who is in a call, who has his answer.
//!
//! Everything here happens under a lock and is short; nothing here wakes, calls or waits.

use std::collections::VecDeque;
use std::mem;
use std::task::Waker;
use std::time::Duration;

use seckill_application::Fault;
use seckill_application::ports::Admitted;
use seckill_domain::Attempt;

use super::PORT;
use super::call::Call;
use super::same_fault::SameFault;

/// One voucher's attempts. Whenever somebody waits, as many calls as allowed are under way.
#[derive(Default)]
pub(super) struct Lane {
    calls: usize,
    /// The seats of those who wait to be sent, in the order in which they came.
    queue: VecDeque<usize>,
    seats: Vec<Seat>,
    vacant: Vec<usize>,
}

/// What a caller has with the lane. He owns the seat until he has his answer or goes away.
enum Seat {
    Vacant,
    Queued {
        attempt: Attempt,
        since: Duration,
        waker: Waker,
    },
    /// In a call that somebody else drives, or is about to give him.
    InCall {
        waker: Waker,
        /// Whether he has looked since the call was made. Then he may have used up the wake that
        /// the call has for him.
        looked: bool,
    },
    /// He has to drive this call.
    Handed(Call),
    Driving,
    Answered(Result<Admitted, Fault>),
    /// He went away; whoever comes upon the seat vacates it.
    Abandoned,
}

/// How an attempt enters.
pub(super) enum Entered {
    /// Nothing is under way: it makes a call of its own.
    Alone,
    /// It waits in this seat.
    Queued(usize),
    /// Too many wait.
    Full,
}

/// What a caller finds in his seat.
pub(super) enum Looked {
    Wait,
    Drive(Call),
    /// The seat is not his any more.
    Answer(Result<Admitted, Fault>),
}

/// Attempts to send together, never none.
pub(super) struct Batch {
    pub(super) attempts: Vec<Attempt>,
    /// Their seats, in the same order.
    pub(super) members: Vec<usize>,
    /// Wakes the first of them.
    pub(super) waker: Waker,
}

impl Batch {
    /// The seat of the caller who drives the call unless he goes away.
    pub(super) fn leader(&self) -> usize {
        self.members.first().copied().unwrap_or_default()
    }
}

impl Lane {
    pub(super) fn is_idle(&self) -> bool {
        self.calls == 0 && self.vacant.len() == self.seats.len()
    }

    /// Takes the right to make a call, if one is free.
    pub(super) fn take_turn(&mut self, calls_max: usize) -> bool {
        let free = self.calls < calls_max;
        if free {
            self.calls += 1;
        }
        free
    }

    pub(super) fn queue(
        &mut self,
        attempt: &Attempt,
        since: Duration,
        waker: &Waker,
        queue_max: usize,
    ) -> Entered {
        if self.queue.len() >= queue_max {
            return Entered::Full;
        }
        let queued = Seat::Queued {
            attempt: attempt.clone(),
            since,
            waker: waker.clone(),
        };
        let seat = if let Some(seat) = self.vacant.pop() {
            self.seats[seat] = queued;
            seat
        } else {
            self.seats.push(queued);
            self.seats.len() - 1
        };
        self.queue.push_back(seat);
        Entered::Queued(seat)
    }

    /// Answers those at the head of the queue who have waited too long.
    pub(super) fn turn_away(&mut self, now: Duration, patience: Duration, wakers: &mut Vec<Waker>) {
        while let Some(&seat) = self.queue.front() {
            match mem::replace(&mut self.seats[seat], Seat::Abandoned) {
                Seat::Queued { since, waker, .. } if now.saturating_sub(since) > patience => {
                    let late = Fault::unavailable(PORT, "waited too long to be sent");
                    self.seats[seat] = Seat::Answered(Err(late));
                    wakers.push(waker);
                }
                Seat::Abandoned => self.vacate(seat),
                in_time => {
                    self.seats[seat] = in_time;
                    return;
                }
            }
            self.queue.pop_front();
        }
    }

    /// A call has ended. Whether that leaves nobody waiting: then its turn is given back.
    pub(super) fn ends_idle(&mut self) -> bool {
        let idle = self.queue.is_empty();
        // A branch, and not `-= usize::from(idle)`: rustc 1.95 takes nothing off when that is
        // inlined, and every later buyer of the voucher waits for a call that has long ended.
        if idle {
            self.calls -= 1;
        }
        idle
    }

    /// Takes the next attempts out of the queue, under the turn of the call that has ended; gives
    /// the turn back if there are none.
    pub(super) fn next_batch(&mut self, batch_max: usize) -> Option<Batch> {
        let size = self.queue.len().min(batch_max);
        let mut attempts = Vec::with_capacity(size);
        let mut members = Vec::with_capacity(size);
        let mut leader = None;
        while attempts.len() < batch_max
            && let Some(seat) = self.queue.pop_front()
        {
            match mem::replace(&mut self.seats[seat], Seat::Abandoned) {
                Seat::Queued { attempt, waker, .. } => {
                    attempts.push(attempt);
                    members.push(seat);
                    leader.get_or_insert_with(|| waker.clone());
                    let looked = false;
                    self.seats[seat] = Seat::InCall { waker, looked };
                }
                _ => self.vacate(seat),
            }
        }
        let Some(waker) = leader else {
            self.calls -= 1;
            return None;
        };
        Some(Batch {
            attempts,
            members,
            waker,
        })
    }

    /// Gives a call to the first of its callers who is still there; returns his waker if he has to
    /// be told. The call comes back if nobody is there; its seats are vacant then.
    pub(super) fn hand_over(
        &mut self,
        call: Call,
        polled_for: Option<usize>,
    ) -> Result<Option<Waker>, Call> {
        let there = |seat: &usize| matches!(self.seats[*seat], Seat::InCall { .. });
        if let Some(seat) = call.members().iter().copied().find(there)
            && let Seat::InCall { waker, looked } =
                mem::replace(&mut self.seats[seat], Seat::Driving)
        {
            self.seats[seat] = Seat::Handed(call);
            let knows = polled_for == Some(seat) && !looked;
            return Ok((!knows).then_some(waker));
        }
        for &seat in call.members() {
            self.vacate(seat);
        }
        Err(call)
    }

    /// Gives everybody in a call his answer.
    pub(super) fn settle(
        &mut self,
        members: &[usize],
        reply: Result<Admitted, Fault>,
        wakers: &mut Vec<Waker>,
    ) {
        let mut answers = Answers::of(reply, members.len());
        for &seat in members {
            let answer = answers.next();
            match mem::replace(&mut self.seats[seat], Seat::Abandoned) {
                Seat::InCall { waker, .. } => {
                    self.seats[seat] = Seat::Answered(answer);
                    wakers.push(waker);
                }
                Seat::Driving => self.seats[seat] = Seat::Answered(answer),
                _ => self.vacate(seat),
            }
        }
    }

    /// A caller looks at his seat.
    pub(super) fn look(&mut self, seat: usize, context: &Waker) -> Looked {
        match &mut self.seats[seat] {
            Seat::Queued { waker, .. } => {
                waker.clone_from(context);
                return Looked::Wait;
            }
            Seat::InCall { waker, looked } => {
                waker.clone_from(context);
                *looked = true;
                return Looked::Wait;
            }
            _ => {}
        }
        match mem::replace(&mut self.seats[seat], Seat::Driving) {
            Seat::Handed(call) => Looked::Drive(call),
            Seat::Answered(reply) => {
                self.vacate(seat);
                Looked::Answer(reply)
            }
            other => {
                self.seats[seat] = other;
                Looked::Wait
            }
        }
    }

    /// A caller goes away. Returns the call that he was to drive and has not begun to.
    pub(super) fn abandon(&mut self, seat: usize) -> Option<Call> {
        match mem::replace(&mut self.seats[seat], Seat::Abandoned) {
            Seat::Handed(call) => Some(call),
            Seat::Answered(_) => {
                self.vacate(seat);
                None
            }
            _ => None,
        }
    }

    fn vacate(&mut self, seat: usize) {
        self.seats[seat] = Seat::Vacant;
        self.vacant.push(seat);
    }
}

/// One reply, cut into an answer for each attempt.
enum Answers {
    Decided(
        std::vec::IntoIter<seckill_domain::Admission>,
        seckill_domain::Pulse,
    ),
    Same(Admitted),
    Failed(SameFault),
}

impl Answers {
    fn of(reply: Result<Admitted, Fault>, attempts: usize) -> Self {
        match reply {
            Ok(Admitted::Decided { admissions, pulse }) if admissions.len() == attempts => {
                Self::Decided(admissions.into_iter(), pulse)
            }
            Ok(Admitted::Decided { .. }) => {
                let lost = Fault::broken(PORT, "the gate did not decide about every attempt");
                Self::Failed(SameFault::new(lost))
            }
            Ok(same) => Self::Same(same),
            Err(fault) => Self::Failed(SameFault::new(fault)),
        }
    }

    fn next(&mut self) -> Result<Admitted, Fault> {
        match self {
            Self::Decided(admissions, pulse) => Ok(Admitted::Decided {
                admissions: admissions.next().into_iter().collect(),
                pulse: *pulse,
            }),
            Self::Same(reply) => Ok(reply.clone()),
            Self::Failed(fault) => Err(fault.again()),
        }
    }
}
