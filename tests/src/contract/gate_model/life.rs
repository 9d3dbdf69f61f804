//! A random life, put to an adapter and to the rule.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seckill_application::ports::{FollowReply, Opened};
use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, Claim, Decision, Epoch, GateChange, GateUpdate,
    GateVersion, SaleStatus, SaleTerms, Seat, Ticket, Timestamp,
};

use super::rule::Rule;
use crate::contract::HotHarness;
use crate::contract::loading::Load;
use crate::contract::opening::{Opening, VOUCHER};
use crate::contract::stall::{Stall, drop_of, release_of};
use crate::contract::stream_log::StreamLog;

/// How a life is lived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    seed: u64,
    units: u32,
    limit: u32,
    waitlist: u32,
    rebuilt: bool,
    /// What happens in it is not known beforehand.
    by_chance: bool,
}

/// The two sides, and what they were asked so far.
struct Sides<'a> {
    harness: &'a dyn HotHarness,
    random: StdRng,
    stall: Stall,
    rule: Rule,
    epoch: Epoch,
    /// How many decisions of this epoch were compared.
    compared: usize,
    attempts: Vec<Attempt>,
    /// Orders that had units at some time.
    served: Vec<Attempt>,
    adjustments: u64,
    /// Places that were offered.
    offered: u64,
    /// How often the sale was loaded again.
    loads: u64,
    life: Life,
    /// Kinds of answers and of decisions that were seen, so that a pass means something happened.
    answers: HashSet<Discriminant<Admission>>,
    kinds: HashSet<Discriminant<Decision>>,
}

impl Life {
    pub(super) fn of(seed: u64) -> Self {
        Self {
            seed,
            units: 1,
            limit: 1,
            waitlist: 0,
            rebuilt: false,
            by_chance: false,
        }
    }

    /// A life of which the seed decides everything.
    pub(super) fn by_chance(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        Self {
            seed,
            units: random.random_range(1..=12),
            limit: random.random_range(1..=3),
            waitlist: random.random_range(0..=8),
            rebuilt: random.random_ratio(1, 2),
            by_chance: true,
        }
    }

    pub(super) fn units(self, units: u32) -> Self {
        Self { units, ..self }
    }

    pub(super) fn limit(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    pub(super) fn waitlist(self, waitlist: u32) -> Self {
        Self { waitlist, ..self }
    }

    /// With new lives of the partition in between.
    pub(super) fn rebuilt(self) -> Self {
        let rebuilt = true;
        Self { rebuilt, ..self }
    }

    /// Lives it, comparing after each step.
    pub(super) async fn live(self, harness: &dyn HotHarness, steps: usize) {
        let opening = Opening::of(self.units)
            .limit(self.limit)
            .waitlist(self.waitlist);
        let stall = opening.open(harness).await;
        let mut open = opening_of(&stall);
        open.free = self.units;
        let mut sides = Sides {
            harness,
            random: StdRng::seed_from_u64(self.seed),
            rule: Rule::opened(VOUCHER, &open),
            epoch: stall.epoch,
            stall,
            compared: 0,
            attempts: Vec::new(),
            served: Vec::new(),
            adjustments: 0,
            offered: 0,
            loads: 0,
            life: self,
            answers: HashSet::new(),
            kinds: HashSet::new(),
        };
        for step in 0..steps {
            let asked = sides.step().await;
            sides
                .compare(&format!("step {step} of {self:?}: {asked}"))
                .await;
        }
        let (answers, kinds) = (sides.answers.len(), sides.kinds.len());
        let (least_answers, least_kinds) = match self.waitlist {
            _ if self.by_chance => (2, 1),
            0 => (7, 3),
            _ => (9, 6),
        };
        assert!(answers >= least_answers, "only {answers} kinds of answers");
        assert!(kinds >= least_kinds, "only {kinds} kinds of decisions");
    }
}

fn opening_of(stall: &Stall) -> seckill_application::ports::OpenSale {
    seckill_application::ports::OpenSale {
        terms: stall.terms,
        free: stall.terms.total_units,
        version: GateVersion::default(),
        applied: seckill_domain::Sequence::default(),
    }
}

impl Sides<'_> {
    /// Puts one random question to both sides; returns it for the failure's message.
    async fn step(&mut self) -> String {
        match self.random.random_range(0..100) {
            0..50 => self.admit().await,
            50..65 => self.release().await,
            65..72 => self.leave().await,
            72..78 => self.change_terms().await,
            78..82 => self.add_units().await,
            82..85 => self.other_update().await,
            85..86 => self.drop_places().await,
            86..91 => self.withdraw().await,
            91..94 => self.offer().await,
            94..96 => self.lose().await,
            96..98 => self.load_again().await,
            _ if self.life.rebuilt => self.rebuild().await,
            _ => self.admit().await,
        }
    }

    fn buyer(&mut self) -> u64 {
        self.random.random_range(1..12)
    }

    fn one_in(&mut self, odds: u32) -> bool {
        self.random.random_ratio(1, odds)
    }

    fn random_attempt(&mut self) -> Attempt {
        if !self.attempts.is_empty() && self.one_in(6) {
            let which = self.random.random_range(0..self.attempts.len());
            return self.attempts[which].clone();
        }
        let buyer = self.buyer();
        let quantity = self.random.random_range(1..=self.life.limit + 1);
        let attempt = if self.one_in(3) {
            let key = format!("key-{}", self.random.random_range(0..4));
            self.stall.keyed(buyer, quantity, &key)
        } else {
            self.stall.attempt(buyer, quantity)
        };
        self.attempts.push(attempt.clone());
        attempt
    }

    async fn admit(&mut self) -> String {
        let batch = self.random.random_range(1..=5);
        let attempts: Vec<Attempt> = (0..batch).map(|_| self.random_attempt()).collect();
        let now = self.now().await;
        let expected = self.rule.admit(&attempts, now);
        let admissions = self.stall.admit_with_tickets(&attempts).await;
        let asked = format!("admit {attempts:?}");
        assert_eq!(admissions, expected, "{asked}");
        self.answers.extend(admissions.iter().map(discriminant));
        asked
    }

    async fn now(&self) -> Timestamp {
        self.harness.gate_time().await
    }

    async fn follow(&mut self, version: GateVersion, changes: Vec<GateChange>) -> String {
        let update = GateUpdate {
            voucher: VOUCHER,
            version,
            changes,
        };
        let now = self.now().await;
        let expected = self.rule.follow(&update, now);
        let reply = self.stall.hot.gate.follow(&update).await.unwrap();
        let asked = format!("follow {update:?}");
        match (&reply, &expected) {
            (FollowReply::Applied { .. }, FollowReply::Applied { .. }) => {}
            _ => assert_eq!(reply, expected, "{asked}"),
        }
        self.rule.serve(now);
        self.stall.settle().await;
        asked
    }

    async fn follow_next(&mut self, changes: Vec<GateChange>) -> String {
        let next = self.rule.sale.pulse().version.next();
        self.follow(next, changes).await
    }

    async fn release(&mut self) -> String {
        let mut changes = Vec::new();
        while !self.served.is_empty() && changes.len() < 3 {
            let which = self.random.random_range(0..self.served.len());
            changes.push(release_of(&self.served[which]));
            if self.one_in(2) {
                break;
            }
        }
        self.follow_next(changes).await
    }

    async fn drop_places(&mut self) -> String {
        let mut changes = Vec::new();
        if !self.attempts.is_empty() {
            let which = self.random.random_range(0..self.attempts.len());
            changes.extend(self.attempts[which..].iter().take(3).map(drop_of));
        }
        self.follow_next(changes).await
    }

    async fn leave(&mut self) -> String {
        let buyer = BuyerId::new(self.buyer());
        let now = self.now().await;
        let expected = self.rule.leave(buyer, now);
        let reply = self.stall.leave(buyer.get()).await;
        assert_eq!(reply, expected, "leave {buyer}");
        self.rule.serve(now);
        self.stall.settle().await;
        format!("leave {buyer}")
    }

    async fn change_terms(&mut self) -> String {
        let status = match self.random.random_range(0..10) {
            0..3 => SaleStatus::Paused,
            3..5 => SaleStatus::Closed,
            _ => SaleStatus::Published,
        };
        let waitlist_capacity = match self.life.waitlist {
            0 => 0,
            capacity => self.random.random_range(0..=capacity),
        };
        let terms = SaleTerms {
            status,
            waitlist_capacity,
            ..self.stall.terms
        };
        self.follow_next(vec![GateChange::SetTerms(terms)]).await
    }

    async fn add_units(&mut self) -> String {
        let units = self.random.random_range(1..4);
        self.follow_next(vec![GateChange::AddUnits { units }]).await
    }

    /// An update that is not the next one.
    async fn other_update(&mut self) -> String {
        let version = self.rule.sale.pulse().version.get();
        let other = match self.random.random_range(0..4) {
            0 => version + 2,
            1 => version + 3,
            2 => version.saturating_sub(1),
            _ => version,
        };
        let changes = vec![GateChange::AddUnits { units: 1 }];
        self.follow(GateVersion::new(other), changes).await
    }

    async fn withdraw(&mut self) -> String {
        if self.adjustments == 0 || !self.one_in(3) {
            self.adjustments += 1;
        }
        let adjustment = AdjustmentId::new(self.adjustments);
        let units = self.random.random_range(1..4);
        let expected = self.rule.withdraw(units, adjustment);
        let gate = &self.stall.hot.gate;
        let reply = gate.withdraw(VOUCHER, units, adjustment).await.unwrap();
        let asked = format!("withdraw {units} by {adjustment}");
        assert_eq!(reply, expected, "{asked}");
        let now = self.now().await;
        self.rule.serve(now);
        self.stall.settle().await;
        asked
    }

    async fn offer(&mut self) -> String {
        let attempts = [self.random_attempt(), self.random_attempt()];
        let claims: Vec<Claim> = attempts.iter().map(|it| self.stall.claim(it)).collect();
        let attempt = self.random_attempt();
        // A turn of an earlier life, that no other has.
        self.offered += 1;
        let seats = [Seat {
            ticket: Ticket::new(self.offered),
            order: attempt.order,
            buyer: attempt.buyer,
            quantity: attempt.quantity,
            key: attempt.key,
        }];
        self.rule.offer(&claims, &seats);
        let loader = &self.stall.hot.loader;
        loader.offer(VOUCHER, &claims, &seats).await.unwrap();
        let now = self.now().await;
        self.rule.serve(now);
        self.stall.settle().await;
        format!("offer {claims:?} and {seats:?}")
    }

    /// What a process answered is given up, whatever became of it.
    async fn lose(&mut self) -> String {
        let claim = {
            let attempt = self.random_attempt();
            self.stall.claim(&attempt)
        };
        let claims = [claim];
        self.rule.lose(&claims);
        let loader = &self.stall.hot.loader;
        loader.lose(VOUCHER, &claims).await.unwrap();
        format!("lose {claims:?}")
    }

    /// The sale leaves the gate, and is loaded again in the same life of the partition.
    async fn load_again(&mut self) -> String {
        let (open, chunk) = self.rule.snapshot();
        let hot = &self.stall.hot;
        hot.loader.unload(VOUCHER).await.unwrap();
        self.assert_away().await;
        self.loads += 1;
        let token = format!("load-{}", self.loads);
        let (load, sequence) = Load::begun(hot, VOUCHER, &token).await;
        assert_eq!(sequence, open.applied);
        self.assert_away().await;
        load.loaded(&chunk, 0).await;
        assert_eq!(load.open(&open).await, Opened::Opened);
        self.rule.load_again();
        format!("load again {open:?} {chunk:?}")
    }

    async fn assert_away(&self) {
        let facts = self.stall.hot.gate.facts(&[VOUCHER]).await.unwrap();
        assert_eq!(facts, [None]);
    }

    /// The partition begins a new life, and the sale is loaded from what the ledger would have.
    async fn rebuild(&mut self) -> String {
        let (open, chunk) = self.rule.snapshot();
        let hot = &self.stall.hot;
        self.epoch = self.epoch.next();
        let loader = &hot.loader;
        loader
            .begin_epoch(self.stall.partition, self.epoch, open.applied)
            .await
            .unwrap();
        let token = format!("life-{}", self.epoch);
        let (load, _) = Load::begun(hot, VOUCHER, &token).await;
        load.loaded(&chunk, 0).await;
        assert_eq!(load.open(&open).await, Opened::Opened);
        self.rule.reload();
        self.compared = 0;
        format!("rebuild {open:?} {chunk:?}")
    }

    /// Both sides are in the same state, and wrote the same down.
    async fn compare(&mut self, asked: &str) {
        let facts = self.stall.facts().await;
        assert_eq!(facts.pulse, self.rule.sale.pulse(), "{asked}");
        assert_eq!(facts.terms, *self.rule.sale.terms(), "{asked}");
        let buyer = self.buyer();
        let place = self.stall.place(buyer).await;
        assert_eq!(
            place,
            self.rule.place(BuyerId::new(buyer)),
            "{buyer} after {asked}"
        );
        let log = StreamLog::read(&self.stall.hot, self.stall.partition, self.epoch).await;
        let written: Vec<(_, &Decision)> = log.numbered().skip(self.compared).collect();
        let expected = std::mem::take(&mut self.rule.decisions);
        let decisions: Vec<&Decision> = written.iter().map(|(_, decision)| *decision).collect();
        assert_eq!(decisions, expected.iter().collect::<Vec<_>>(), "{asked}");
        if let Some((number, _)) = written.last() {
            assert_eq!(*number, self.rule.sequence, "{asked}");
        }
        self.compared += expected.len();
        self.kinds.extend(expected.iter().map(discriminant));
        for decision in expected {
            if let Decision::Granted(claim) | Decision::Promoted(claim) = decision {
                self.served.push(Attempt {
                    order: claim.order,
                    buyer: claim.buyer,
                    quantity: claim.quantity,
                    key: claim.key,
                });
            }
        }
    }
}
