//! A random life of an admission stream.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use rand::RngExt as _;
use seckill_application::ports::{Backlog, Delivery, Entry, EntryId, HotPath, StreamReply};
use seckill_domain::{Attempt, Epoch, OrderId, Sequence};
use seckill_memory::Piece;

use super::{LONG, STEPS, Sides};
use crate::contract::Harm;
use crate::contract::opening::{FIRST_EPOCH, Opening};
use crate::contract::stall::Stall;

const CONSUMERS: [&str; 3] = ["a", "b", "c"];
/// Few, so that after some grants there are places.
const UNITS: u32 = 60;
const PLACES: u32 = 10_000;

/// Where an entry stands: 0 is before all of them, 1 is the first, whatever its id.
type Place = usize;

#[derive(Debug)]
enum Question {
    /// One entry, of as many decisions.
    Decide(Vec<Attempt>),
    /// One entry that cannot be read.
    Spoil,
    LoseGroup,
    Read {
        after: Place,
        max: usize,
    },
    Give {
        consumer: &'static str,
        max: usize,
    },
    TakeOver {
        consumer: &'static str,
    },
    Pending {
        consumer: &'static str,
        after: Place,
        max: usize,
    },
    Acknowledge {
        entries: Vec<Place>,
        applied: Sequence,
    },
    Trim {
        up_to: Place,
        keep: Duration,
    },
}

#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Missing,
    Count(usize),
    /// Entries, as far as they can be read.
    Entries(Vec<(Place, Option<Entry>)>),
}

/// One of the two stores, with what differs between them: where entries stand.
struct Side {
    stall: Stall,
    processes: [HotPath; 2],
    ids: Vec<EntryId>,
}

impl Side {
    async fn new(processes: [HotPath; 2], sides: &Sides<'_>) -> Self {
        let opening = Opening::of(UNITS).waitlist(PLACES);
        let (partitions, now) = (sides.harness.partitions(), sides.harness.gate_time().await);
        Self {
            stall: opening.open_at(&processes[0], partitions, now).await,
            processes,
            ids: Vec::new(),
        }
    }

    fn id(&self, place: Place) -> EntryId {
        place
            .checked_sub(1)
            .map_or(EntryId::START, |at| self.ids[at])
    }

    fn entries(&self, reply: StreamReply) -> Answer {
        let StreamReply::Entries(read) = reply else {
            return Answer::Missing;
        };
        let place = |id| self.ids.iter().position(|it| *it == id).expect("known") + 1;
        let entries = read.into_iter().map(|it| (place(it.id), it.body.ok()));
        Answer::Entries(entries.collect())
    }

    /// What came of a question.
    async fn ask(&self, process: usize, epoch: Epoch, question: &Question) -> Answer {
        let (stream, partition) = (&self.processes[process].stream, self.stall.partition);
        match question {
            Question::Decide(attempts) => {
                self.stall.admit_all(attempts).await;
                Answer::Done
            }
            Question::Spoil | Question::LoseGroup => Answer::Done,
            Question::Read { after, max } => {
                let read = stream.read_after(partition, epoch, self.id(*after), *max);
                self.entries(read.await.unwrap())
            }
            Question::Give { consumer, max } => {
                let read = stream.read_new(partition, epoch, consumer, *max, Duration::ZERO);
                self.entries(read.await.unwrap())
            }
            Question::TakeOver { consumer } => {
                let taken = stream.take_over(partition, epoch, consumer);
                Answer::Count(taken.await.unwrap())
            }
            Question::Pending {
                consumer,
                after,
                max,
            } => {
                let after = self.id(*after);
                let read = stream.read_pending(partition, epoch, consumer, after, *max);
                self.entries(StreamReply::Entries(read.await.unwrap()))
            }
            Question::Acknowledge { entries, applied } => {
                let ids: Vec<EntryId> = entries.iter().map(|place| self.id(*place)).collect();
                stream.ack(partition, epoch, &ids, *applied).await.unwrap();
                Answer::Done
            }
            Question::Trim { up_to, keep } => {
                let trimmed = stream.trim(partition, epoch, self.id(*up_to), *keep);
                Answer::Count(trimmed.await.unwrap())
            }
        }
    }

    /// Learns where new entries stand, and returns them.
    async fn learn(&mut self) -> Vec<Delivery> {
        let (stall, last) = (&self.stall, self.id(self.ids.len()));
        let stream = &stall.hot.stream;
        let read = stream.read_after(stall.partition, stall.epoch, last, 512);
        let StreamReply::Entries(new) = read.await.unwrap() else {
            panic!("there is no stream");
        };
        self.ids.extend(new.iter().map(|it| it.id));
        new
    }

    async fn backlog(&self) -> Backlog {
        let stream = &self.stall.hot.stream;
        stream.backlog(self.stall.partition).await.unwrap()
    }

    async fn has_decided(&self, order: OrderId) -> bool {
        self.stall.hot.gate.has_decided(order).await.unwrap()
    }
}

/// What questions are about, and what came of them.
#[derive(Default)]
struct Story {
    buyers: u64,
    orders: Vec<OrderId>,
    decisions: u64,
    /// Entries that were given to somebody, lately last.
    given: Vec<Place>,
    /// So that a pass means something happened.
    seen: BTreeMap<&'static str, usize>,
}

impl Story {
    fn count(&mut self, what: &'static str, times: usize) {
        *self.seen.entry(what).or_default() += times;
    }

    fn attempts(&mut self, sides: &mut Sides<'_>, stall: &Stall) -> Vec<Attempt> {
        let count = sides.random.random_range(1..=3);
        let attempts: Vec<Attempt> = (0..count)
            .map(|_| {
                self.buyers += 1;
                stall.attempt(self.buyers, 1)
            })
            .collect();
        self.orders.extend(attempts.iter().map(|it| it.order));
        self.decisions += attempts.len() as u64;
        attempts
    }

    /// Some that were given lately, or long ago, or to nobody yet.
    fn some(&self, sides: &mut Sides<'_>, entries: usize) -> Vec<Place> {
        let count = sides.random.random_range(0..=5).min(entries);
        let mut some = HashSet::new();
        for _ in 0..count {
            let recent = self.given.len().saturating_sub(8)..self.given.len();
            some.insert(if recent.is_empty() || sides.random.random_ratio(1, 10) {
                sides.random.random_range(1..=entries)
            } else {
                self.given[sides.random.random_range(recent)]
            });
        }
        let mut some: Vec<Place> = some.into_iter().collect();
        some.sort_unstable();
        some
    }

    fn question(&mut self, sides: &mut Sides<'_>, stall: &Stall, entries: usize) -> Question {
        let consumer = CONSUMERS[sides.random.random_range(0..CONSUMERS.len())];
        let place = sides.random.random_range(0..=entries);
        let max = sides.random.random_range(1..=6);
        match sides.random.random_range(0..100) {
            0..25 => Question::Decide(self.attempts(sides, stall)),
            25..29 => Question::Spoil,
            29..32 => Question::LoseGroup,
            32..40 => Question::Read { after: place, max },
            40..62 => Question::Give { consumer, max },
            62..67 => Question::TakeOver { consumer },
            67..72 => Question::Pending {
                consumer,
                after: place.min(sides.random.random_range(0..=entries)),
                max,
            },
            72..88 => Question::Acknowledge {
                entries: self.some(sides, entries),
                applied: Sequence::new(sides.random.random_range(0..=self.decisions)),
            },
            _ => Question::Trim {
                up_to: place,
                keep: if sides.random.random_ratio(1, 6) {
                    LONG
                } else {
                    Duration::ZERO
                },
            },
        }
    }

    fn note(&mut self, question: &Question, answer: &Answer, before: Backlog, after: Backlog) {
        let fell = usize::try_from(before.pending.saturating_sub(after.pending)).expect("few");
        match (question, answer) {
            (_, Answer::Missing) => self.count("asked for another life", 1),
            (Question::Give { .. }, Answer::Entries(given)) => {
                let places = given.iter().map(|(place, _)| *place);
                let again = places.clone().filter(|it| self.given.contains(it)).count();
                let spoilt = given.iter().filter(|(_, body)| body.is_none()).count();
                self.count("given", given.len());
                self.count("given again", again);
                self.count("given though unreadable", spoilt);
                self.count("nothing to give", usize::from(given.is_empty()));
                self.given.extend(places);
            }
            (Question::TakeOver { .. }, Answer::Count(taken)) => self.count("taken over", *taken),
            (Question::Pending { .. }, Answer::Entries(pending)) => {
                self.count("read while pending", pending.len());
            }
            (Question::Acknowledge { entries, .. }, _) => {
                self.count("acknowledged", fell);
                self.count("acknowledged in vain", entries.len().saturating_sub(fell));
            }
            (Question::Trim { .. }, Answer::Count(trimmed)) => {
                self.count("trimmed", *trimmed);
                self.count("nothing to trim", usize::from(*trimmed == 0));
            }
            _ => {}
        }
    }
}

/// Lives it, comparing each answer; at least `least` of twelve kinds of outcomes are seen.
pub(super) async fn live(mut sides: Sides<'_>, least: usize) {
    let mut real = Side::new(sides.real.clone(), &sides).await;
    let mut model = Side::new(sides.model.clone(), &sides).await;
    let partition = real.stall.partition;
    let mut story = Story::default();
    for step in 0..STEPS {
        let before = model.backlog().await;
        let question = story.question(&mut sides, &real.stall, model.ids.len());
        match question {
            Question::Spoil => {
                let fields = vec![("hello".to_owned(), "world".to_owned())];
                sides
                    .harness
                    .harm(Harm::PlantEntry { partition, fields })
                    .await;
                assert!(sides.store.plant_entry(partition, "hello").is_some());
            }
            // Nobody makes a group before somebody asks for new entries.
            Question::LoseGroup if sides.store.delete(Piece::Group(partition)) => {
                sides.harness.harm(Harm::LoseGroup(partition)).await;
            }
            _ => {}
        }
        let process = sides.random.random_range(0..2);
        // Now and then by somebody who is of another life.
        let others = u64::from(sides.random.random_ratio(1, 25));
        let epoch = Epoch::new(FIRST_EPOCH.get() + others);
        let answers = (
            real.ask(process, epoch, &question).await,
            model.ask(process, epoch, &question).await,
        );
        let asked = format!("step {step} of seed {}: {question:?}", sides.seed);
        assert_eq!(answers.0, answers.1, "{asked}");
        let new = (real.learn().await, model.learn().await);
        let bodies =
            |new: Vec<Delivery>| -> Vec<_> { new.into_iter().map(|it| it.body.ok()).collect() };
        assert_eq!(bodies(new.0), bodies(new.1), "{asked}");
        let after = model.backlog().await;
        assert_eq!(real.backlog().await, after, "{asked}");
        if !story.orders.is_empty() {
            let order = story.orders[sides.random.random_range(0..story.orders.len())];
            let decided = model.has_decided(order).await;
            assert_eq!(real.has_decided(order).await, decided, "{order}; {asked}");
            story.count("forgotten", usize::from(!decided));
        }
        story.note(&question, &answers.1, before, after);
    }
    let kinds = story.seen.values().filter(|times| **times > 0).count();
    assert!(kinds >= least, "{:?}", story.seen);
}
