//! The scripts against the rule: random commands to the gate in Redis and to `Sale`, which must
//! answer and decide the same.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use seckill_application::ports::{
    FollowReply, Holder, KeyUse, LeaveReply, LoadChunk, Place, PlaceReply, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, Claim, Decision, Followed, GateChange, GateUpdate,
    GateVersion, Held, IdempotencyKey, Leave, OrderId, PlaceAtFirst, Remembered, Sale, SaleStatus,
    SaleTerms, Seat, Sequence, Ticket, Timestamp,
};

use crate::stage::{EPOCH, Stage, VOUCHER, terms};

const BUYERS: u64 = 12;
const PROMOTIONS: usize = 128;

#[derive(Debug, Clone)]
enum Step {
    Admit(Vec<Wish>),
    /// Releases the nth order ever given out, whoever has it.
    Release(prop::sample::Index),
    /// Appends the grant of the nth order ever given out again, restores its holder, or drops its place.
    Repair(Vec<(prop::sample::Index, u8)>),
    AddUnits(u32),
    SetStatus(SaleStatus, u32),
    Stale(u64),
    Leave(u64),
    Withdraw(u32, u64),
    Promote,
    Place(u64),
}

#[derive(Debug, Clone)]
struct Wish {
    buyer: u64,
    quantity: u32,
    key: Option<u8>,
    /// Asks with an order id that was used before.
    repeat: Option<prop::sample::Index>,
}

fn wishes() -> impl Strategy<Value = Wish> {
    let key = prop::option::weighted(0.3, 0..4_u8);
    let repeat = prop::option::weighted(0.15, any::<prop::sample::Index>());
    (1..=BUYERS, 1..=3_u32, key, repeat).prop_map(|(buyer, quantity, key, repeat)| Wish {
        buyer,
        quantity,
        key,
        repeat,
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let status = prop_oneof![
        6 => Just(SaleStatus::Published),
        2 => Just(SaleStatus::Paused),
        1 => Just(SaleStatus::Closed),
    ];
    prop_oneof![
        8 => prop::collection::vec(wishes(), 1..12).prop_map(Step::Admit),
        6 => any::<prop::sample::Index>().prop_map(Step::Release),
        2 => prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 1..4)
            .prop_map(Step::Repair),
        2 => (1..4_u32).prop_map(Step::AddUnits),
        2 => (status, 0..8_u32).prop_map(|(status, capacity)| Step::SetStatus(status, capacity)),
        1 => (0..6_u64).prop_map(Step::Stale),
        3 => (1..=BUYERS).prop_map(Step::Leave),
        2 => (1..5_u32, 1..6_u64).prop_map(|(units, id)| Step::Withdraw(units, id)),
        2 => Just(Step::Promote),
        2 => (1..=BUYERS).prop_map(Step::Place),
    ]
}

/// The rule, with what its caller keeps: the index of decided orders, and the stream.
struct Model {
    sale: Sale,
    told: HashMap<OrderId, PlaceAtFirst>,
    adjusted: Vec<AdjustmentId>,
    decisions: Vec<Decision>,
    sequence: Sequence,
    now: Timestamp,
}

impl Model {
    fn note(&mut self, decisions: impl IntoIterator<Item = Decision>) {
        for decision in decisions {
            if let Some(claim) = decision.claim() {
                let first = match decision {
                    Decision::Granted(_) | Decision::Lost(_) => PlaceAtFirst::Granted,
                    _ => PlaceAtFirst::Waitlisted,
                };
                self.told.entry(claim.order).or_insert(first);
            }
            self.sequence = self.sequence.next();
            self.decisions.push(decision);
        }
    }

    fn admit(&mut self, attempt: &Attempt) -> Admission {
        if let Some(first) = self.told.get(&attempt.order) {
            return self.sale.settled(attempt, *first);
        }
        let turn = Ticket::drawn_at(EPOCH, self.sequence.next());
        let (admission, decision) = self.sale.admit(attempt, self.now, turn);
        self.note(decision);
        admission
    }

    fn promote(&mut self) {
        let promoted = self.sale.promote(self.now, PROMOTIONS);
        self.note(promoted);
    }

    fn follow(&mut self, update: &GateUpdate) -> FollowReply {
        match self.sale.follow(update) {
            Followed::AlreadyApplied => FollowReply::AlreadyApplied,
            Followed::Gap { at } => FollowReply::Gap { at },
            Followed::Applied => {
                let again = self.sale.to_append(update);
                self.note(again);
                self.promote();
                let more = self.sale.terms().is_over(self.now) && !self.sale.waitlist().is_empty();
                FollowReply::Applied { more }
            }
        }
    }

    fn place(&self, buyer: BuyerId) -> Option<Place> {
        let length = self.sale.waitlist().len();
        if let Some(seat) = self.sale.waitlist().seat(buyer) {
            let (order, position) = (seat.order, self.sale.waitlist().position(buyer)?);
            return Some(Place::Waiting {
                order,
                position,
                length,
            });
        }
        let held = self.sale.held_by(buyer).iter().find(|it| it.promoted)?;
        let order = held.order;
        Some(Place::Promoted { order, length })
    }
}

/// A run: both gates, the orders ever asked for, and the version to follow next.
struct Run {
    stage: Stage,
    model: Model,
    attempts: Vec<Attempt>,
}

impl Run {
    async fn step(&mut self, step: &Step) {
        match step {
            Step::Admit(wishes) => self.admit(wishes).await,
            Step::Release(nth) if self.attempts.is_empty() => {
                let _ = nth;
            }
            Step::Release(nth) => {
                let Attempt {
                    order,
                    buyer,
                    quantity,
                    ..
                } = *nth.get(&self.attempts);
                let release = GateChange::Release {
                    order,
                    buyer,
                    quantity,
                };
                self.follow(vec![release]).await;
            }
            Step::Repair(nths) if self.attempts.is_empty() => {
                let _ = nths;
            }
            Step::Repair(nths) => {
                let repair = |(nth, kind): &(prop::sample::Index, u8)| {
                    let claim = Claim::of(VOUCHER, nth.get(&self.attempts));
                    match kind {
                        0 => GateChange::AppendAgain(claim),
                        1 => GateChange::RestoreHolder(claim),
                        _ => GateChange::DropPlace {
                            order: claim.order,
                            buyer: claim.buyer,
                        },
                    }
                };
                self.follow(nths.iter().map(repair).collect()).await;
            }
            Step::AddUnits(units) => {
                self.follow(vec![GateChange::AddUnits { units: *units }])
                    .await;
            }
            Step::SetStatus(status, waitlist_capacity) => {
                let terms = SaleTerms {
                    status: *status,
                    waitlist_capacity: *waitlist_capacity,
                    ..*self.model.sale.terms()
                };
                self.follow(vec![GateChange::SetTerms(terms)]).await;
            }
            Step::Stale(version) => {
                let update = GateUpdate {
                    voucher: VOUCHER,
                    version: GateVersion::new(*version * 100),
                    changes: vec![GateChange::AddUnits { units: 100 }],
                };
                let said = self.stage.hot.gate.follow(&update).await.unwrap();
                assert_eq!(said, self.model.follow(&update));
            }
            Step::Leave(buyer) => self.leave(BuyerId::new(*buyer)).await,
            Step::Withdraw(units, id) => self.withdraw(*units, AdjustmentId::new(*id)).await,
            Step::Promote => {
                let drained = self.model.sale.drain_waitlist(self.model.now, PROMOTIONS);
                self.model.note(drained);
                self.model.promote();
                assert!(!self.stage.hot.gate.promote(VOUCHER).await.unwrap());
            }
            Step::Place(buyer) => {
                let buyer = BuyerId::new(*buyer);
                let said = self.stage.hot.gate.place(VOUCHER, buyer).await.unwrap();
                let place = self.model.place(buyer);
                assert_eq!(said, place.map_or(PlaceReply::Nowhere, PlaceReply::At));
            }
        }
        let facts = self.stage.hot.gate.facts(&[VOUCHER]).await.unwrap()[0].expect("loaded");
        assert_eq!(facts.terms, *self.model.sale.terms());
        assert_eq!(facts.pulse, self.model.sale.pulse());
    }

    async fn admit(&mut self, wishes: &[Wish]) {
        let mut batch = Vec::new();
        for wish in wishes {
            let order = match &wish.repeat {
                Some(nth) if !self.attempts.is_empty() => nth.get(&self.attempts).order,
                _ => OrderId::new(1_000 + self.attempts.len() as u64),
            };
            let attempt = Attempt {
                order,
                buyer: BuyerId::new(wish.buyer),
                quantity: wish.quantity,
                key: wish.key.map(key),
            };
            self.attempts.push(attempt.clone());
            batch.push(attempt);
        }
        let expected: Vec<_> = batch.iter().map(|it| self.model.admit(it)).collect();
        let (said, pulse) = self.stage.batch(&batch).await;
        assert_eq!(said, expected);
        assert_eq!(pulse, self.model.sale.pulse());
    }

    async fn follow(&mut self, changes: Vec<GateChange>) {
        let update = GateUpdate {
            voucher: VOUCHER,
            version: self.model.sale.pulse().version.next(),
            changes,
        };
        let said = self.stage.hot.gate.follow(&update).await.unwrap();
        assert_eq!(said, self.model.follow(&update), "{update:?}");
    }

    async fn leave(&mut self, buyer: BuyerId) {
        let expected = match self.model.sale.leave(buyer) {
            Leave::NotWaiting => LeaveReply::NotWaiting,
            Leave::AlreadyPromoted { order } => LeaveReply::AlreadyPromoted(order),
            Leave::Left(decision) => {
                let order = decision.claim().expect("of an order").order;
                self.model.note([decision]);
                LeaveReply::Left(order)
            }
        };
        let said = self.stage.hot.gate.leave(VOUCHER, buyer).await.unwrap();
        assert_eq!(said, expected);
    }

    async fn withdraw(&mut self, units: u32, adjustment: AdjustmentId) {
        let expected = if self.model.adjusted.contains(&adjustment) {
            WithdrawReply::Withdrawn
        } else {
            match self.model.sale.withdraw(units, adjustment) {
                Err(free) => WithdrawReply::NotEnough { free },
                Ok(decision) => {
                    self.model.adjusted.push(adjustment);
                    self.model.note([decision]);
                    WithdrawReply::Withdrawn
                }
            }
        };
        let said = self
            .stage
            .hot
            .gate
            .withdraw(VOUCHER, units, adjustment)
            .await;
        assert_eq!(said.unwrap(), expected);
    }
}

fn key(n: u8) -> IdempotencyKey {
    ["-", "a:b", "k1", "--"][usize::from(n % 4)]
        .parse()
        .expect("a key")
}

/// A sale in which somebody holds, waits and has used a key already.
fn loaded() -> LoadChunk {
    LoadChunk {
        holders: vec![
            Holder {
                buyer: BuyerId::new(1),
                held: Held {
                    order: OrderId::new(1),
                    quantity: 2,
                    promoted: true,
                },
            },
            Holder {
                buyer: BuyerId::new(2),
                held: Held {
                    order: OrderId::new(2),
                    quantity: 1,
                    promoted: false,
                },
            },
        ],
        seats: vec![Seat {
            ticket: Ticket::new(900_000),
            order: OrderId::new(4),
            buyer: BuyerId::new(4),
            quantity: 3,
            key: Some(key(0)),
        }],
        keys: vec![KeyUse {
            buyer: BuyerId::new(4),
            key: key(0),
            first: Remembered {
                order: OrderId::new(4),
                quantity: 3,
                first: PlaceAtFirst::Waitlisted,
            },
        }],
    }
}

async fn run(steps: &[Step]) {
    let stage = Stage::bare_after(1_000_000).await;
    let terms = SaleTerms {
        per_buyer_limit: 3,
        waitlist_capacity: 6,
        ..terms(8)
    };
    let chunk = loaded();
    stage.load(terms, 5, &chunk).await;
    let mut sale = Sale::new(VOUCHER, terms, 5, GateVersion::new(1));
    for holder in chunk.holders {
        sale.restore_holder(holder.buyer, holder.held);
    }
    for seat in chunk.seats {
        sale.restore_seat(seat);
    }
    for used in chunk.keys {
        sale.restore_key(used.buyer, used.key, used.first);
    }
    let model = Model {
        sale,
        told: HashMap::new(),
        adjusted: Vec::new(),
        decisions: Vec::new(),
        sequence: Sequence::new(1_000_000),
        now: Timestamp::from_millis(1_800_000_000_000),
    };
    let mut run = Run {
        stage,
        model,
        attempts: Vec::new(),
    };
    for step in steps {
        run.step(step).await;
    }
    assert_eq!(run.stage.decisions().await, run.model.decisions);
}

#[tokio::test]
async fn the_scripts_answer_as_the_rule_does() {
    let mut runner = TestRunner::default();
    let programs = prop::collection::vec(steps(), 40..80);
    for _ in 0..40 {
        let program = programs.new_tree(&mut runner).expect("a program").current();
        run(&program).await;
    }
}
