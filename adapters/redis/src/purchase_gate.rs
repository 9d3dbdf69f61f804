//! Admission control.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;
use redis::{Cmd, RedisWrite};
use seckill_application::Fault;
use seckill_application::ports::{
    ATTEMPTS_MAX, Admitted, Claimant, EntryId, FollowReply, GateOrder, GateTally, HoldersPage,
    LeaveReply, Place, PlaceReply, PurchaseGate, SaleFacts, WaitersPage, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Attempt, BuyerId, Claim, Decision, GateChange, GateUpdate, GateVersion,
    LeftReason, OrderId, PartitionId, PlaceAtFirst, Sequence, Ticket, Timestamp, VoucherId,
};

use crate::fault::at_most;
use crate::gate_answers::{admitted, facts, not_loaded, place_at_first, status_word};
use crate::holdings;
use crate::keys::KeyName;
use crate::reply::Reply;
use crate::scripts::{
    self, GATE_ADMIT, GATE_FACTS, GATE_FIND, GATE_FOLLOW, GATE_LEAVE, GATE_PLACE, GATE_PROMOTE,
    GATE_RETIRE, GATE_STANDING, GATE_TALLY, GATE_WITHDRAW,
};
use crate::store::{Args, Lane, Store, Target, words};
use crate::wire;

/// Most promotions of one call, and most buyers taken off the waitlist.
const PROMOTIONS_MAX: usize = 128;
const FACTS_MAX: usize = 100;
/// Most decisions that a tally counts through.
const TALLY_DECISIONS_MAX: usize = 20_000;

/// How long what a probe wrote stays.
const PROBE_KEPT_S: u32 = 60;

/// The gate in Redis.
pub(crate) struct RedisGate(pub(crate) Arc<Store>);

impl RedisGate {
    async fn on_voucher(
        &self,
        port: &'static str,
        script: &scripts::Script,
        voucher: VoucherId,
        args: Args<'_>,
    ) -> Result<Reply, Fault> {
        let target = self.0.target(voucher);
        let told = |command: &mut Cmd| {
            command.write_arg_fmt(voucher);
            args(command);
        };
        self.0.run(port, Lane::Gate, script, target, &told).await
    }

    /// An order, if it was decided lately in this partition.
    async fn find_in(
        &self,
        partition: PartitionId,
        order: OrderId,
    ) -> Result<Option<Found>, Fault> {
        let reply = self
            .look_for("purchase_gate.find_order", partition, order)
            .await?;
        if reply.kind() != "FOUND" {
            return Ok(None);
        }
        // Nobody asks for the ticket here.
        let ticket = Some(Ticket::new(0));
        let Ok(decision) = wire::decode_line(reply.text(4)?, ticket) else {
            // An entry that cannot be read: the ledger has parked it, with what it names.
            return Ok(None);
        };
        let found = (|| {
            Some(Found {
                claim: decision.claim()?.clone(),
                left: match &decision {
                    Decision::Left { reason, .. } => Some(*reason),
                    _ => None,
                },
                first: place_at_first(reply.text(1).ok()?)?,
                entry: wire::decode_entry_id(reply.text(2).ok()?)?,
                applied: reply.text(3).ok()? == "applied",
            })
        })();
        found.map(Some).ok_or_else(|| reply.senseless())
    }

    async fn look_for(
        &self,
        port: &'static str,
        partition: PartitionId,
        order: OrderId,
    ) -> Result<Reply, Fault> {
        let target = Target {
            partition,
            ..self.0.target(VoucherId::new(0))
        };
        let args = |command: &mut Cmd| words(command, &[&order]);
        self.0
            .run(port, Lane::Gate, &GATE_FIND, target, &args)
            .await
    }

    async fn standing(&self, found: Found) -> Result<GateOrder, Fault> {
        const STANDING: &str = "purchase_gate.find_order";
        let Claim { order, buyer, .. } = found.claim;
        let target = self.0.target(found.claim.voucher);
        let args = |command: &mut Cmd| words(command, &[&buyer, &order]);
        let reply = (self.0)
            .run(STANDING, Lane::Gate, &GATE_STANDING, target, &args)
            .await?;
        let position = match reply.kind() {
            "WAITS" => Some(reply.parsed(1)?),
            _ => None,
        };
        Ok(GateOrder {
            claim: Claim {
                key: None,
                ..found.claim
            },
            first: found.first,
            decided_at: found.entry.written_at(),
            holds_units: reply.kind() == "HOLDS",
            position,
            left: found.left,
            applied: found.applied,
        })
    }
}

/// An order in the index of decided orders.
struct Found {
    claim: Claim,
    left: Option<LeftReason>,
    first: PlaceAtFirst,
    entry: EntryId,
    applied: bool,
}

#[async_trait]
impl PurchaseGate for RedisGate {
    async fn admit(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        const ADMIT: &str = "purchase_gate.admit";
        at_most(ADMIT, attempts.len(), ATTEMPTS_MAX)?;
        let args = |command: &mut Cmd| {
            command.write_arg_fmt(self.0.backlog_limit);
            for attempt in attempts {
                let key = wire::key_word(attempt.key.as_ref());
                let Attempt {
                    order,
                    buyer,
                    quantity,
                    ..
                } = attempt;
                words(command, &[order, buyer, quantity, &key]);
            }
        };
        let reply = self.on_voucher(ADMIT, &GATE_ADMIT, voucher, &args).await?;
        admitted(&reply, attempts)
    }

    async fn follow(&self, update: &GateUpdate) -> Result<FollowReply, Fault> {
        const FOLLOW: &str = "purchase_gate.follow";
        let args = |command: &mut Cmd| {
            words(command, &[&update.version, &PROMOTIONS_MAX]);
            for change in &update.changes {
                command.write_arg(change_words(change).as_bytes());
            }
        };
        let reply = self
            .on_voucher(FOLLOW, &GATE_FOLLOW, update.voucher, &args)
            .await?;
        if let Some(why) = not_loaded(&reply)? {
            return Ok(FollowReply::NotLoaded(why));
        }
        match reply.kind() {
            "APPLIED" => Ok(FollowReply::Applied {
                more: reply.text(1)? == "more",
            }),
            "ALREADY_APPLIED" => Ok(FollowReply::AlreadyApplied),
            "GAP" => Ok(FollowReply::Gap {
                at: GateVersion::new(reply.parsed(1)?),
            }),
            _ => Err(reply.senseless()),
        }
    }

    async fn promote(&self, voucher: VoucherId) -> Result<bool, Fault> {
        let args = |command: &mut Cmd| words(command, &[&PROMOTIONS_MAX]);
        let reply = self
            .on_voucher("purchase_gate.promote", &GATE_PROMOTE, voucher, &args)
            .await?;
        Ok(reply.kind() == "DONE" && reply.text(1)? == "more")
    }

    async fn leave(&self, voucher: VoucherId, buyer: BuyerId) -> Result<LeaveReply, Fault> {
        let args = |command: &mut Cmd| words(command, &[&buyer]);
        let reply = self
            .on_voucher("purchase_gate.leave", &GATE_LEAVE, voucher, &args)
            .await?;
        if let Some(why) = not_loaded(&reply)? {
            return Ok(LeaveReply::NotLoaded(why));
        }
        match reply.kind() {
            "LEFT" => Ok(LeaveReply::Left(reply.parsed(1)?)),
            "ALREADY_PROMOTED" => Ok(LeaveReply::AlreadyPromoted(reply.parsed(1)?)),
            "NOT_WAITING" => Ok(LeaveReply::NotWaiting),
            _ => Err(reply.senseless()),
        }
    }

    async fn withdraw(
        &self,
        voucher: VoucherId,
        units: u32,
        adjustment: AdjustmentId,
    ) -> Result<WithdrawReply, Fault> {
        let args = |command: &mut Cmd| words(command, &[&units, &adjustment]);
        let reply = self
            .on_voucher("purchase_gate.withdraw", &GATE_WITHDRAW, voucher, &args)
            .await?;
        if let Some(why) = not_loaded(&reply)? {
            return Ok(WithdrawReply::NotLoaded(why));
        }
        match reply.kind() {
            "WITHDRAWN" => Ok(WithdrawReply::Withdrawn),
            "NOT_ENOUGH" => Ok(WithdrawReply::NotEnough {
                free: reply.parsed(1)?,
            }),
            _ => Err(reply.senseless()),
        }
    }

    async fn place(&self, voucher: VoucherId, buyer: BuyerId) -> Result<PlaceReply, Fault> {
        let args = |command: &mut Cmd| words(command, &[&buyer]);
        let reply = self
            .on_voucher("purchase_gate.place", &GATE_PLACE, voucher, &args)
            .await?;
        if let Some(why) = not_loaded(&reply)? {
            return Ok(PlaceReply::NotLoaded(why));
        }
        match reply.kind() {
            "WAITING" => Ok(PlaceReply::At(Place::Waiting {
                order: reply.parsed(1)?,
                position: reply.parsed(2)?,
                length: reply.parsed(3)?,
            })),
            "PROMOTED" => Ok(PlaceReply::At(Place::Promoted {
                order: reply.parsed(1)?,
                length: reply.parsed(2)?,
            })),
            "NONE" => Ok(PlaceReply::Nowhere),
            _ => Err(reply.senseless()),
        }
    }

    async fn find_order(&self, order: OrderId) -> Result<Option<GateOrder>, Fault> {
        let looks = self.0.partitions.all().map(|it| self.find_in(it, order));
        let found = try_join_all(looks).await?.into_iter().flatten().next();
        match found {
            Some(found) => self.standing(found).await.map(Some),
            None => Ok(None),
        }
    }

    async fn has_decided(&self, order: OrderId) -> Result<bool, Fault> {
        const HAS_DECIDED: &str = "purchase_gate.has_decided";
        let partitions = self.0.partitions.all();
        let looks = partitions.map(|it| self.look_for(HAS_DECIDED, it, order));
        let replies = try_join_all(looks).await?;
        let known = |reply: &Reply| matches!(reply.kind(), "FOUND" | "GONE");
        Ok(replies.iter().any(known))
    }

    async fn facts(&self, vouchers: &[VoucherId]) -> Result<Vec<Option<SaleFacts>>, Fault> {
        const FACTS: &str = "purchase_gate.facts";
        at_most(FACTS, vouchers.len(), FACTS_MAX)?;
        // Sent one behind the other on one connection: one round trip for all.
        let reads = vouchers.iter().map(|voucher| async move {
            let reply = self
                .on_voucher(FACTS, &GATE_FACTS, *voucher, &|_| {})
                .await?;
            facts(&reply)
        });
        try_join_all(reads).await
    }

    async fn tally(&self, voucher: VoucherId, after: EntryId) -> Result<Option<GateTally>, Fault> {
        const TALLY: &str = "purchase_gate.tally";
        let args = |command: &mut Cmd| words(command, &[&after, &TALLY_DECISIONS_MAX]);
        let reply = self.on_voucher(TALLY, &GATE_TALLY, voucher, &args).await?;
        match reply.kind() {
            "TALLY" => Ok(Some(GateTally {
                epoch: seckill_domain::Epoch::new(reply.parsed(1)?),
                sequence: Sequence::new(reply.parsed(2)?),
                free: reply.parsed(3)?,
                version: GateVersion::new(reply.parsed(4)?),
                units_after: reply.parsed(5)?,
            })),
            "TOO_MANY" => Err(Fault::unavailable(TALLY, "too many decisions to count")),
            _ => Ok(None),
        }
    }

    async fn claimants(
        &self,
        voucher: VoucherId,
        buyers: &[BuyerId],
    ) -> Result<Option<Vec<Claimant>>, Fault> {
        holdings::of_buyers(&self.0, voucher, buyers).await
    }

    async fn holders(&self, voucher: VoucherId, cursor: u64) -> Result<Option<HoldersPage>, Fault> {
        holdings::holders(&self.0, voucher, cursor).await
    }

    async fn waiters(&self, voucher: VoucherId, cursor: u64) -> Result<Option<WaitersPage>, Fault> {
        holdings::waiters(&self.0, voucher, cursor).await
    }

    async fn retire(&self, voucher: VoucherId) -> Result<bool, Fault> {
        let reply = self
            .on_voucher("purchase_gate.retire", &GATE_RETIRE, voucher, &|_| {})
            .await?;
        Ok(reply.kind() == "RETIRED")
    }

    async fn ping(&self) -> Result<(), Fault> {
        // A server that is full, cannot save, or is somebody's replica still answers questions.
        let mut probe = redis::cmd("SET");
        let key = self.0.plain_address().key(KeyName::Probe).to_string();
        probe.arg(key).arg("").arg("EX").arg(PROBE_KEPT_S);
        self.0.ask("purchase_gate.ping", Lane::Gate, &probe).await?;
        Ok(())
    }
}

fn change_words(change: &GateChange) -> String {
    match change {
        GateChange::Release {
            order,
            buyer,
            quantity,
        } => format!("release {order} {buyer} {quantity}"),
        GateChange::DropPlace { order, buyer } => format!("drop {order} {buyer}"),
        GateChange::RestoreHolder(claim) => format!("restore {}", claim_words(claim)),
        GateChange::AppendAgain(claim) => format!("append {}", claim_words(claim)),
        GateChange::AddUnits { units } => format!("add {units}"),
        GateChange::SetTerms(terms) => format!(
            "terms {} {} {} {} {}",
            status_word(terms.status),
            Timestamp::as_millis(terms.opens_at),
            Timestamp::as_millis(terms.closes_at),
            terms.per_buyer_limit,
            terms.waitlist_capacity
        ),
    }
}

fn claim_words(claim: &Claim) -> String {
    let Claim {
        order,
        buyer,
        quantity,
        key,
        ..
    } = claim;
    format!(
        "{order} {buyer} {quantity} {}",
        wire::key_word(key.as_ref())
    )
}
