//! A random life, put to both ledgers.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seckill_application::ports::Verdict;
use seckill_domain::{
    AdjustmentId, BuyerId, Claim, Decision, IdempotencyKey, LeftReason, Stage, Ticket, VoucherId,
};

use super::Reference;
use super::side::{Side, WITHDRAWN, Wish};
use crate::contract::LedgerHarness;
use crate::contract::stall::new_order;

/// How a life is lived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    seed: u64,
    units: u32,
    limit: u32,
    keys: u32,
    /// What happens in it is not known beforehand.
    by_chance: bool,
}

/// Both ledgers, and what they were asked so far.
struct Sides<'a> {
    random: StdRng,
    real: Side<'a>,
    rule: Side<'a>,
    claims: Vec<Claim>,
    ticket: u64,
    life: Life,
    /// Kinds of verdicts that were seen, so that a pass means something happened.
    verdicts: HashSet<Discriminant<Verdict>>,
}

const BUYERS: u64 = 6;

impl Life {
    pub(super) fn of(seed: u64) -> Self {
        Self {
            seed,
            units: 12,
            limit: 1,
            keys: 0,
            by_chance: false,
        }
    }

    /// A life of which the seed decides everything.
    pub(super) fn by_chance(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        Self {
            seed,
            units: random.random_range(1..=25),
            limit: random.random_range(1..=4),
            keys: random.random_range(0..=3),
            by_chance: true,
        }
    }

    pub(super) fn units(self, units: u32) -> Self {
        Self { units, ..self }
    }

    pub(super) fn limit(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    /// How many keys each buyer uses.
    pub(super) fn keys(self, keys: u32) -> Self {
        Self { keys, ..self }
    }

    /// Lives it, comparing after each step.
    pub(super) async fn live(self, harness: &dyn LedgerHarness, steps: usize) {
        let reference = Reference::new(harness.partitions());
        let mut sides = Sides {
            random: StdRng::seed_from_u64(self.seed),
            real: Side::new(harness, self.units, self.limit).await,
            rule: Side::new(&reference, self.units, self.limit).await,
            claims: Vec::new(),
            ticket: 0,
            life: self,
            verdicts: HashSet::new(),
        };
        for step in 0..steps {
            let asked = sides.step().await;
            let asked = format!("step {step} of {self:?}: {asked}");
            sides.compare(&asked).await;
        }
        let seen = sides.verdicts.len();
        let least = if self.by_chance { 2 } else { 4 };
        assert!(seen >= least, "only {seen} kinds of verdicts were seen");
    }
}

impl Sides<'_> {
    /// Puts one random question to both sides; returns it for the failure's message.
    async fn step(&mut self) -> String {
        match self.random.random_range(0..100) {
            0..55 => self.apply().await,
            55..80 => self.turn().await,
            80..86 => self.adjust(3).await,
            86..92 => self.adjust(-i32::try_from(WITHDRAWN).expect("small")).await,
            92..97 => self.settle().await,
            _ => {
                let again = (self.real.apply_again().await, self.rule.apply_again().await);
                assert_eq!(again.0, again.1);
                assert!(matches!(again.0, None | Some((true, true))), "{again:?}");
                "the last batch again".to_owned()
            }
        }
    }

    async fn apply(&mut self) -> String {
        let count = self.random.random_range(1..=8);
        let wishes: Vec<Wish> = (0..count).map(|_| self.wish()).collect();
        let real = self.real.apply(&wishes).await;
        let rule = self.rule.apply(&wishes).await;
        assert_eq!(real, rule, "{wishes:#?}");
        self.verdicts.extend(real.iter().map(discriminant));
        format!("{wishes:?}: {real:?}")
    }

    fn wish(&mut self) -> Wish {
        let kind = self.random.random_range(0..100);
        let claim = match kind {
            // Mostly new orders join or are granted; the rest is about any order.
            0..50 => self.new_claim(),
            _ => self.known_claim(),
        };
        Wish::Of(match kind {
            0..30 | 50..55 => Decision::Granted(claim),
            30..46 | 55..60 => {
                self.ticket += 1;
                let ticket = Ticket::new(self.ticket);
                Decision::Joined { claim, ticket }
            }
            46..48 | 60..74 => Decision::Promoted(claim),
            48..49 | 74..84 => Decision::Left {
                claim,
                reason: self.reason(),
            },
            49..50 | 84..90 => Decision::Lost(claim),
            90..92 => Decision::Withdrawn {
                voucher: VoucherId::new(0),
                units: 1,
                adjustment: AdjustmentId::new(0),
            },
            _ => return self.withdrawal().unwrap_or(Wish::Of(Decision::Lost(claim))),
        })
    }

    /// One of the adjustments is settled by the gate; sometimes of another size than it says.
    fn withdrawal(&mut self) -> Option<Wish> {
        let known = self.rule.withdrawals();
        (known > 0).then(|| Wish::Withdrawn {
            place: self.random.random_range(0..known),
            off: u32::from(self.random.random_range(0..8) == 0),
        })
    }

    fn reason(&mut self) -> LeftReason {
        match self.random.random_range(0..4) {
            0 => LeftReason::Withdrawn,
            1 => LeftReason::ClosedOut,
            2 => LeftReason::NotEnoughUnits,
            _ => LeftReason::LimitReached,
        }
    }

    fn new_claim(&mut self) -> Claim {
        let key = self.random.random_range(0..=self.life.keys);
        let most = self.life.limit + u32::from(self.random.random_range(0..10) == 0);
        let claim = Claim {
            order: new_order(),
            voucher: VoucherId::new(0),
            buyer: BuyerId::new(self.random.random_range(1..=BUYERS)),
            quantity: self.random.random_range(1..=most),
            key: (key > 0).then(|| key_of(key)),
        };
        self.claims.push(claim.clone());
        claim
    }

    /// An order that was heard of before; seldom not quite as it was.
    fn known_claim(&mut self) -> Claim {
        if self.claims.is_empty() {
            return self.new_claim();
        }
        let recent = self.claims.len().saturating_sub(12);
        let at = self.random.random_range(recent..self.claims.len());
        let mut claim = self.claims[at].clone();
        if self.random.random_range(0..40) == 0 {
            claim.quantity += 1;
        }
        claim
    }

    /// A live order is paid, cancelled, expired or refunded.
    async fn turn(&mut self) -> String {
        let mut live = Vec::new();
        for claim in &self.claims {
            match self.rule.order(claim.order).await {
                Some(trace) if matches!(trace.6, Stage::PendingPayment | Stage::Paid { .. }) => {
                    let held = Claim {
                        buyer: trace.0,
                        quantity: trace.1,
                        ..claim.clone()
                    };
                    live.push((held, trace.6));
                }
                _ => {}
            }
        }
        if live.is_empty() {
            return "nobody has an order".to_owned();
        }
        let (claim, was) = live.swap_remove(self.random.random_range(0..live.len()));
        let payment = format!("pay-{}", claim.order).parse().expect("a payment");
        let stage = match (was, self.random.random_range(0..3)) {
            (Stage::Paid { payment }, _) => Stage::Refunded { payment },
            (_, 0) => Stage::Paid { payment },
            (_, 1) => Stage::Cancelled,
            _ => Stage::Expired,
        };
        let real = self.real.turn(&claim, stage.clone()).await;
        let rule = self.rule.turn(&claim, stage.clone()).await;
        assert_eq!(real, rule, "version after {stage:?} of {claim:?}");
        format!("{stage:?} of {claim:?}")
    }

    async fn adjust(&mut self, delta: i32) -> String {
        let real = self.real.adjust(delta).await;
        let rule = self.rule.adjust(delta).await;
        assert_eq!(real, rule, "version after {delta}");
        format!("{delta} units")
    }

    async fn settle(&mut self) -> String {
        let replay = self.random.random_range(0..2) == 0;
        let real = self.real.settle(replay).await;
        let rule = self.rule.settle(replay).await;
        let asked = format!("settle a parked message, replay {replay}");
        assert_eq!(real, rule, "{asked}");
        asked
    }

    async fn compare(&mut self, asked: &str) {
        let (real, rule) = (&self.real, &self.rule);
        assert_eq!(real.sums().await, rule.sums().await, "{asked}");
        assert_eq!(real.contents().await, rule.contents().await, "{asked}");
        let recent = self.claims.len().saturating_sub(16);
        for claim in &self.claims[recent..] {
            let order = claim.order;
            let told = (real.order(order).await, rule.order(order).await);
            assert_eq!(told.0, told.1, "order {order}; {asked}");
            let place = (real.position(order).await, rule.position(order).await);
            assert_eq!(place.0, place.1, "place of {order}; {asked}");
        }
        let buyer = BuyerId::new(self.random.random_range(1..=BUYERS));
        let key = key_of(1);
        let had = (
            real.orders_on(buyer, &key).await,
            rule.orders_on(buyer, &key).await,
        );
        assert_eq!(had.0, had.1, "orders of {buyer}; {asked}");
    }
}

fn key_of(number: u32) -> IdempotencyKey {
    format!("key-{number}").parse().expect("a key")
}
