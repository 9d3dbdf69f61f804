//! A random life of an outbox of events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seckill_application::ports::EventOutbox;
use seckill_domain::{BuyerId, Claim, Decision, Event, EventId, EventKind, OrderId, Voucher};

use super::Reference;
use crate::contract::LedgerHarness;
use crate::contract::desk::Desk;
use crate::contract::happenings::{about, relay, unpublished};
use crate::contract::stall::new_order;

/// Steps of one life.
const STEPS: usize = 200;
const RELAYS: [&str; 3] = ["a", "b", "c"];
/// What lasts so long does not end during a life.
const LONG: Duration = Duration::from_hours(1);
/// What lasts so long is over after twice the time.
const SHORT: Duration = Duration::from_millis(10);

/// Which event it is: 0 is before all of them, 1 is the first, whatever its number.
type Place = usize;

/// An event: which, what happened, and to whom.
type Told = (Place, EventKind, Option<(OrderId, BuyerId)>);

#[derive(Debug)]
enum Question {
    /// New orders, confirmed in one batch.
    Confirm(Vec<OrderId>),
    /// Events of some orders, in one transaction.
    Append {
        orders: Vec<OrderId>,
        commit: bool,
    },
    Claim {
        relay: &'static str,
        max: usize,
        hold: Duration,
    },
    Publish(Vec<Place>),
    Read {
        order: OrderId,
        after: Place,
        max: usize,
    },
    Prune {
        age: Duration,
    },
}

#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Count(usize),
    Events(Vec<Told>),
}

/// One of the two ledgers, with what differs between them: the numbers of vouchers and events.
struct Side<'a> {
    desk: Desk<'a>,
    outboxes: [Arc<dyn EventOutbox>; 2],
    voucher: Voucher,
    ids: Vec<EventId>,
}

impl<'a> Side<'a> {
    async fn new(harness: &'a dyn LedgerHarness) -> Self {
        let desk = Desk::at(harness);
        Self {
            outboxes: [
                harness.ledger().events.clone(),
                harness.another_process().await.events,
            ],
            voucher: desk.voucher(1_000_000, 1).await,
            desk,
            ids: Vec::new(),
        }
    }

    fn id(&self, place: Place) -> EventId {
        let before_all = EventId::default();
        place.checked_sub(1).map_or(before_all, |at| self.ids[at])
    }

    /// Each order is of a buyer of its own.
    fn claim(&self, order: OrderId) -> Claim {
        Claim {
            order,
            voucher: self.voucher.id,
            buyer: BuyerId::new(order.get()),
            quantity: 1,
            key: None,
        }
    }

    fn events(&self, events: &[Event]) -> Answer {
        let place = |id| self.ids.iter().position(|it| *it == id).expect("known") + 1;
        let events = events.iter();
        let told = events.map(|it| (place(it.id), it.what.kind, it.what.order));
        Answer::Events(told.collect())
    }

    /// What came of a question.
    async fn ask(&mut self, process: usize, question: &Question) -> Answer {
        let outbox = self.outboxes[process].clone();
        match question {
            Question::Confirm(orders) => {
                let claims = orders.iter().map(|order| self.claim(*order));
                self.desk
                    .apply(claims.map(Decision::Granted).collect())
                    .await;
                self.learn(orders).await
            }
            Question::Append { orders, commit } => {
                let kind = EventKind::RefundRecorded;
                let claims = orders.iter().map(|order| self.claim(*order));
                let events: Vec<_> = claims.map(|claim| about(&claim, kind)).collect();
                let mut unit = self.desk.begin().await;
                unit.append_events(&events).await.unwrap();
                if *commit {
                    unit.commit().await.unwrap();
                }
                self.learn(orders).await
            }
            Question::Claim {
                relay: name,
                max,
                hold,
            } => {
                let claimed = outbox.claim(&relay(name), *max, *hold).await;
                self.events(&claimed.unwrap())
            }
            Question::Publish(events) => {
                let ids: Vec<EventId> = events.iter().map(|place| self.id(*place)).collect();
                outbox.published(&ids).await.unwrap();
                Answer::Done
            }
            Question::Read { order, after, max } => {
                let read = outbox.of_order(*order, self.id(*after), *max).await;
                self.events(&read.unwrap())
            }
            Question::Prune { age } => Answer::Count(outbox.prune(*age).await.unwrap()),
        }
    }

    /// Learns the numbers of new events, and returns them.
    async fn learn(&mut self, orders: &[OrderId]) -> Answer {
        let (last, mut new) = (self.id(self.ids.len()), Vec::new());
        for order in orders.iter().collect::<BTreeSet<_>>() {
            let events = &self.desk.ports.events;
            new.extend(events.of_order(*order, last, 100).await.unwrap());
        }
        new.sort_unstable_by_key(|event| event.id);
        self.ids.extend(new.iter().map(|event| event.id));
        self.events(&new)
    }
}

/// What questions are about, and what came of them.
struct Story {
    random: StdRng,
    /// Of ten claims, so many end at once.
    short: u32,
    orders: Vec<OrderId>,
    /// Who was given an event last.
    claimed_by: BTreeMap<Place, &'static str>,
    /// So that a pass means something happened.
    seen: BTreeMap<&'static str, usize>,
}

impl Story {
    fn count(&mut self, what: &'static str, times: usize) {
        *self.seen.entry(what).or_default() += times;
    }

    fn any_order(&mut self) -> OrderId {
        self.orders[self.random.random_range(0..self.orders.len())]
    }

    /// Lately claimed ones for the most part, or any.
    fn some(&mut self, events: usize) -> Vec<Place> {
        let lately: Vec<Place> = self.claimed_by.keys().rev().take(12).copied().collect();
        let mut some = BTreeSet::new();
        for _ in 0..self.random.random_range(0..=4) {
            some.insert(if lately.is_empty() || self.random.random_ratio(1, 6) {
                self.random.random_range(1..=events)
            } else {
                lately[self.random.random_range(0..lately.len())]
            });
        }
        some.into_iter().collect()
    }

    fn question(&mut self, events: usize) -> Question {
        let kind = self.random.random_range(0..100);
        if self.orders.is_empty() || kind < 10 {
            let count = self.random.random_range(1..=5);
            let orders: Vec<OrderId> = (0..count).map(|_| new_order()).collect();
            self.orders.extend(&orders);
            return Question::Confirm(orders);
        }
        match kind {
            10..30 => {
                let count = self.random.random_range(1..=4);
                Question::Append {
                    orders: (0..count).map(|_| self.any_order()).collect(),
                    commit: self.random.random_ratio(5, 6),
                }
            }
            30..60 => Question::Claim {
                relay: RELAYS[self.random.random_range(0..RELAYS.len())],
                max: self.random.random_range(1..=12),
                hold: if self.random.random_range(0..10) < self.short {
                    SHORT
                } else {
                    LONG
                },
            },
            60..82 => Question::Publish(self.some(events)),
            82..92 => Question::Read {
                order: self.any_order(),
                after: self.random.random_range(0..=events),
                max: self.random.random_range(1..=3),
            },
            _ => Question::Prune {
                age: if self.random.random_ratio(1, 4) {
                    LONG
                } else {
                    Duration::ZERO
                },
            },
        }
    }

    fn note(&mut self, question: &Question, answer: &Answer, before: u64, after: u64) {
        let fell = usize::try_from(before.saturating_sub(after)).expect("few");
        match (question, answer) {
            (Question::Append { commit: false, .. }, _) => self.count("rolled back", 1),
            (Question::Claim { relay, max, .. }, Answer::Events(claimed)) => {
                let most = usize::try_from(before).map_or(*max, |before| before.min(*max));
                let held = most - claimed.len();
                self.count("held by others", held);
                for (place, _, _) in claimed {
                    let what = match self.claimed_by.insert(*place, relay) {
                        None => "claimed",
                        Some(last) if last == *relay => "claimed again by the same",
                        Some(_) => "claimed again by another",
                    };
                    self.count(what, 1);
                }
            }
            (Question::Publish(events), _) => {
                self.count("published", fell);
                self.count("published in vain", events.len().saturating_sub(fell));
            }
            (Question::Read { .. }, Answer::Events(read)) => self.count("read", read.len()),
            (Question::Prune { .. }, Answer::Count(pruned)) => {
                self.count("pruned", *pruned);
                self.count("nothing to prune", usize::from(*pruned == 0));
            }
            _ => {}
        }
    }
}

/// Lives it, comparing each answer; of ten claims `short` end at once, and at least `least` of ten
/// kinds of outcomes are seen.
pub(super) async fn live(harness: &dyn LedgerHarness, seed: u64, short: u32, least: usize) {
    let reference = Reference::new(harness.partitions());
    let (mut real, mut rule) = (Side::new(harness).await, Side::new(&reference).await);
    let mut story = Story {
        random: StdRng::seed_from_u64(seed),
        short,
        orders: Vec::new(),
        claimed_by: BTreeMap::new(),
        seen: BTreeMap::new(),
    };
    for step in 0..STEPS {
        let before = unpublished(&rule.desk).await;
        let question = story.question(rule.ids.len());
        let process = story.random.random_range(0..2);
        let answer = rule.ask(process, &question).await;
        let asked = format!("step {step} of seed {seed}: {question:?}");
        assert_eq!(real.ask(process, &question).await, answer, "{asked}");
        let after = unpublished(&rule.desk).await;
        assert_eq!(unpublished(&real.desk).await, after, "{asked}");
        if matches!(question, Question::Claim { hold, .. } if hold == SHORT) {
            harness.elapse(2 * SHORT).await;
            reference.elapse(2 * SHORT).await;
        }
        story.note(&question, &answer, before, after);
    }
    let kinds = story.seen.values().filter(|times| **times > 0).count();
    assert!(kinds >= least, "{:?}", story.seen);
}
