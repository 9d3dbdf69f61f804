//! Admission control.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    ATTEMPTS_MAX, Admitted, Claimant, EntryId, FollowReply, GateOrder, GateTally, HoldersPage,
    LeaveReply, NotLoaded, Place, PlaceReply, PurchaseGate, SaleFacts, WaitersPage, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, Claim, Decision, Followed, GateUpdate, Leave,
    OrderId, Sale, Ticket, Timestamp, VoucherId,
};

use super::partition::{DecidedOrder, Journal, Partition, told};
use super::store::Shared;
use super::{HotGuard, HotPathOptions, claimants};
use crate::chaos::at_most;

/// Most promotions of one call, and most buyers taken off the waitlist.
const PROMOTIONS_MAX: usize = 128;
const FACTS_MAX: usize = 100;
const BUYERS_MAX: usize = 1_000;
/// Most decisions that a tally counts through.
const TALLY_DECISIONS_MAX: usize = 20_000;

#[async_trait]
impl PurchaseGate for Shared {
    async fn admit(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        const ADMIT: &str = "purchase_gate.admit";
        at_most(ADMIT, attempts.len(), ATTEMPTS_MAX)?;
        self.at(ADMIT, voucher, |partition, now| {
            partition.admit(voucher, attempts, now, &self.options)
        })
    }

    async fn follow(&self, update: &GateUpdate) -> Result<FollowReply, Fault> {
        let voucher = update.voucher;
        self.at("purchase_gate.follow", voucher, |partition, now| {
            let (sale, mut journal) = match partition.open(voucher, now) {
                Ok(open) => open,
                Err(why) => return FollowReply::NotLoaded(why),
            };
            match sale.follow(update) {
                Followed::AlreadyApplied => FollowReply::AlreadyApplied,
                Followed::Gap { at } => FollowReply::Gap { at },
                Followed::Applied => {
                    journal.wrote();
                    journal.append(now, sale.to_append(update));
                    if self.options.lacks == Some(HotGuard::PromotionInStep) {
                        let more = !sale.waitlist().is_empty();
                        return FollowReply::Applied { more };
                    }
                    let more = serve(sale, &mut journal, now);
                    FollowReply::Applied { more }
                }
            }
        })
    }

    async fn promote(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.at("purchase_gate.promote", voucher, |partition, now| {
            let Ok((sale, mut journal)) = partition.open(voucher, now) else {
                return false;
            };
            journal.append(now, sale.drain_waitlist(now, PROMOTIONS_MAX));
            serve(sale, &mut journal, now)
        })
    }

    async fn leave(&self, voucher: VoucherId, buyer: BuyerId) -> Result<LeaveReply, Fault> {
        self.at("purchase_gate.leave", voucher, |partition, now| {
            let (sale, mut journal) = match partition.open(voucher, now) {
                Ok(open) => open,
                Err(why) => return LeaveReply::NotLoaded(why),
            };
            match sale.leave(buyer) {
                Leave::NotWaiting => LeaveReply::NotWaiting,
                Leave::AlreadyPromoted { order } => LeaveReply::AlreadyPromoted(order),
                Leave::Left(decision) => {
                    let order = decision.claim().map(|claim| claim.order);
                    journal.append(now, vec![decision]);
                    order.map_or(LeaveReply::NotWaiting, LeaveReply::Left)
                }
            }
        })
    }

    async fn withdraw(
        &self,
        voucher: VoucherId,
        units: u32,
        adjustment: AdjustmentId,
    ) -> Result<WithdrawReply, Fault> {
        self.at("purchase_gate.withdraw", voucher, |partition, now| {
            let (sale, mut journal) = match partition.open(voucher, now) {
                Ok(open) => open,
                Err(why) => return WithdrawReply::NotLoaded(why),
            };
            if journal.decided.adjustments.contains_key(&adjustment) {
                return WithdrawReply::Withdrawn;
            }
            match sale.withdraw(units, adjustment) {
                Err(free) => WithdrawReply::NotEnough { free },
                Ok(decision) => {
                    journal.append(now, vec![decision]);
                    WithdrawReply::Withdrawn
                }
            }
        })
    }

    async fn place(&self, voucher: VoucherId, buyer: BuyerId) -> Result<PlaceReply, Fault> {
        self.at(
            "purchase_gate.place",
            voucher,
            |partition, now| match partition.open(voucher, now) {
                Ok((sale, _)) => place_of(sale, buyer).map_or(PlaceReply::Nowhere, PlaceReply::At),
                Err(why) => PlaceReply::NotLoaded(why),
            },
        )
    }

    async fn find_order(&self, order: OrderId) -> Result<Option<GateOrder>, Fault> {
        let call = self.chaos.enter("purchase_gate.find_order")?;
        let store = self.store();
        let found = store.partitions.iter().find_map(|it| it.find_order(order));
        drop(store);
        call.answer(found)
    }

    async fn has_decided(&self, order: OrderId) -> Result<bool, Fault> {
        let call = self.chaos.enter("purchase_gate.has_decided")?;
        let store = self.store();
        let known = store.partitions.iter().any(|it| it.has_decided(order));
        drop(store);
        call.answer(known)
    }

    async fn facts(&self, vouchers: &[VoucherId]) -> Result<Vec<Option<SaleFacts>>, Fault> {
        const FACTS: &str = "purchase_gate.facts";
        at_most(FACTS, vouchers.len(), FACTS_MAX)?;
        let call = self.chaos.enter(FACTS)?;
        let mut facts = Vec::with_capacity(vouchers.len());
        for voucher in vouchers {
            let partition = self.options.partitions.of(*voucher);
            facts.push(self.change(FACTS, partition, |partition, now| {
                let (sale, _) = partition.open(*voucher, now).ok()?;
                Some(SaleFacts {
                    terms: *sale.terms(),
                    pulse: sale.pulse(),
                })
            })?);
        }
        call.answer(facts)
    }

    async fn tally(&self, voucher: VoucherId, after: EntryId) -> Result<Option<GateTally>, Fault> {
        const TALLY: &str = "purchase_gate.tally";
        let tally = self.at(TALLY, voucher, |partition, now| {
            partition.tally(voucher, after, now)
        })?;
        tally.map_err(|count| Fault::unavailable(TALLY, format!("{count} decisions are too many")))
    }

    async fn claimants(
        &self,
        voucher: VoucherId,
        buyers: &[BuyerId],
    ) -> Result<Option<Vec<Claimant>>, Fault> {
        const CLAIMANTS: &str = "purchase_gate.claimants";
        at_most(CLAIMANTS, buyers.len(), BUYERS_MAX)?;
        self.at(CLAIMANTS, voucher, |partition, now| {
            let (sale, _) = partition.open(voucher, now).ok()?;
            let found = buyers.iter().map(|buyer| claimants::of(sale, *buyer));
            Some(found.collect())
        })
    }

    async fn holders(&self, voucher: VoucherId, cursor: u64) -> Result<Option<HoldersPage>, Fault> {
        self.at("purchase_gate.holders", voucher, |partition, now| {
            let (sale, _) = partition.open(voucher, now).ok()?;
            Some(claimants::holders(voucher, sale, cursor))
        })
    }

    async fn waiters(&self, voucher: VoucherId, cursor: u64) -> Result<Option<WaitersPage>, Fault> {
        self.at("purchase_gate.waiters", voucher, |partition, now| {
            let (sale, _) = partition.open(voucher, now).ok()?;
            Some(claimants::waiters(sale, cursor))
        })
    }

    async fn retire(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.at("purchase_gate.retire", voucher, |partition, now| {
            partition.retire(voucher, now)
        })
    }

    async fn ping(&self) -> Result<(), Fault> {
        self.chaos.enter("purchase_gate.ping")?.answer(())
    }
}

impl Shared {
    fn at<T>(
        &self,
        name: &'static str,
        voucher: VoucherId,
        act: impl FnOnce(&mut Partition, Timestamp) -> T,
    ) -> Result<T, Fault> {
        self.step(name, self.options.partitions.of(voucher), act)
    }
}

impl Partition {
    /// An open sale, and where its decisions go.
    fn open(
        &mut self,
        voucher: VoucherId,
        now: Timestamp,
    ) -> Result<(&mut Sale, Journal<'_>), NotLoaded> {
        self.live().ok_or(NotLoaded::Partition)?.open(voucher, now)
    }

    fn admit(
        &mut self,
        voucher: VoucherId,
        attempts: &[Attempt],
        now: Timestamp,
        options: &HotPathOptions,
    ) -> Admitted {
        let (sale, mut journal) = match self.open(voucher, now) {
            Ok(open) => open,
            Err(why) => return Admitted::NotLoaded(why),
        };
        if journal.backlog() >= options.backlog_limit {
            return Admitted::BacklogFull;
        }
        let mut decisions = Vec::new();
        let mut next = journal.meta.sequence.next();
        let mut admissions = Vec::with_capacity(attempts.len());
        for attempt in attempts {
            if let Some(settled) = settled(sale, &journal, &decisions, attempt) {
                admissions.push(settled);
                continue;
            }
            let turn = Ticket::drawn_at(journal.meta.epoch, next);
            let (admission, decision) = match sale.admit(attempt, now, turn) {
                (Admission::Waitlisted { .. }, Some(joined))
                    if options.lacks == Some(HotGuard::PromotionInStep) =>
                {
                    jump(sale, attempt, turn, joined)
                }
                answered => answered,
            };
            admissions.push(admission);
            if let Some(decision) = decision {
                decisions.push(decision);
                next = next.next();
            }
        }
        let pulse = sale.pulse();
        journal.append(now, decisions);
        Admitted::Decided { admissions, pulse }
    }

    fn has_decided(&self, order: OrderId) -> bool {
        let decided = self.decided.as_ref();
        decided.is_some_and(|it| it.orders.contains_key(&order))
    }

    fn find_order(&self, order: OrderId) -> Option<GateOrder> {
        let known = self.decided.as_ref()?.orders.get(&order)?;
        let DecidedOrder {
            voucher,
            buyer,
            quantity,
            first,
            decided_at,
            left,
            sequence,
            ..
        } = *known;
        let sale = self.slots.get(&voucher).and_then(|slot| slot.sale.as_ref());
        let waits = |sale: &Sale| {
            let seat = sale.waitlist().seat(buyer)?;
            (seat.order == order).then(|| sale.waitlist().position(buyer))?
        };
        Some(GateOrder {
            claim: Claim {
                order,
                voucher,
                buyer,
                quantity,
                key: None,
            },
            first,
            decided_at,
            holds_units: sale.is_some_and(|sale| sale.holds(buyer, order)),
            position: sale.and_then(waits),
            left,
            applied: self.meta.is_some_and(|meta| sequence <= meta.applied),
        })
    }

    /// The balance of an open voucher, or how many decisions are too many to count through.
    fn tally(
        &mut self,
        voucher: VoucherId,
        after: EntryId,
        now: Timestamp,
    ) -> Result<Option<GateTally>, usize> {
        let Ok((sale, journal)) = self.open(voucher, now) else {
            return Ok(None);
        };
        let mut counted = 0;
        let mut units_after = 0;
        for entry in journal.stream.readable_after(after) {
            counted += entry.decisions.len();
            let ours = entry.decisions.iter().filter(|it| it.voucher() == voucher);
            units_after += ours.map(|it| u64::from(it.units_taken())).sum::<u64>();
        }
        if counted > TALLY_DECISIONS_MAX {
            return Err(counted);
        }
        let pulse = sale.pulse();
        Ok(Some(GateTally {
            epoch: journal.meta.epoch,
            sequence: journal.meta.sequence,
            free: pulse.free,
            version: pulse.version,
            units_after,
        }))
    }

    fn retire(&mut self, voucher: VoucherId, now: Timestamp) -> bool {
        match self.open(voucher, now) {
            Err(NotLoaded::Retired) => return true,
            Ok((sale, _)) if sale.terms().is_over(now) && sale.waitlist().is_empty() => {}
            _ => return false,
        }
        if let Some(slot) = self.slots.get_mut(&voucher) {
            slot.shut();
            slot.sale = None;
            slot.retired = true;
            self.writes += 1;
        }
        true
    }
}

/// The answer to an attempt whose order id was decided before, lately or earlier in this batch.
fn settled(
    sale: &Sale,
    journal: &Journal<'_>,
    batch: &[Decision],
    attempt: &Attempt,
) -> Option<Admission> {
    let known = journal.decided.orders.get(&attempt.order);
    let first = known.map(|known| known.first).or_else(|| {
        let of_order = |it: &&Decision| it.claim().is_some_and(|it| it.order == attempt.order);
        batch.iter().find(of_order).map(told)
    })?;
    Some(sale.settled(attempt, first))
}

/// What becomes of somebody who has just joined where units lie about that nobody serves the
/// waitlist with.
fn jump(
    sale: &mut Sale,
    attempt: &Attempt,
    turn: Ticket,
    joined: Decision,
) -> (Admission, Option<Decision>) {
    let order = attempt.order;
    if let Some(claim) = joined.claim().cloned()
        && claim.quantity <= sale.pulse().free
        && matches!(sale.leave(attempt.buyer), Leave::Left(_))
        && sale.retake(&claim)
    {
        return (Admission::Granted { order }, Some(Decision::Granted(claim)));
    }
    let position = sale.waitlist().position(attempt.buyer).unwrap_or(0);
    let waitlisted = Admission::Waitlisted {
        order,
        position,
        ticket: turn,
    };
    (waitlisted, Some(joined))
}

/// Serves the waitlist. `true` if there may be more to do: another round, or a drain.
fn serve(sale: &mut Sale, journal: &mut Journal<'_>, now: Timestamp) -> bool {
    let promoted = sale.promote(now, PROMOTIONS_MAX);
    let more = promoted.len() == PROMOTIONS_MAX || sale.terms().is_over(now);
    journal.append(now, promoted);
    more && !sale.waitlist().is_empty()
}

fn place_of(sale: &Sale, buyer: BuyerId) -> Option<Place> {
    let waitlist = sale.waitlist();
    let length = waitlist.len();
    if let Some(seat) = waitlist.seat(buyer) {
        return Some(Place::Waiting {
            order: seat.order,
            position: waitlist.position(buyer)?,
            length,
        });
    }
    let promoted = sale.held_by(buyer).iter().find(|held| held.promoted)?;
    Some(Place::Promoted {
        order: promoted.order,
        length,
    })
}
