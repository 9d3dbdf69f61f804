//! Looks over the shoulder of every process: counts what happens, and keeps what only a god can
//! know.

mod news;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seckill_application::ports::{
    AdmissionBatch, Admitted, Applied, BatchItem, Clock as _, EntryId, EpochBegun, Opened, Report,
    StreamReply, Verdict,
};
use seckill_domain::{
    Admission, Attempt, Decision, Epoch, EventId, EventKind, Order, OrderId, PartitionId, VoucherId,
};

use crate::coverage::Seen;
use crate::executor::Group;
use crate::judge::{Rule, Violation};
use crate::link::{Nature, Way};
use crate::losses::{Losses, Lost};
use crate::note;
use crate::stores::Stores;

/// What has been seen.
pub struct Watch {
    nature: Nature,
    stores: Arc<Stores>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    delivered: HashSet<(PartitionId, Epoch, EntryId)>,
    writers: BTreeMap<PartitionId, Group>,
    losses: Losses,
    /// When a gate was first seen to decide an order.
    decided: BTreeMap<OrderId, Duration>,
    /// Orders that were decided under a key.
    keyed: BTreeSet<OrderId>,
    /// Vouchers whose used keys were lost.
    without_keys: BTreeSet<VoucherId>,
    /// How often all has been at rest.
    rests: u64,
    epochs: BTreeMap<PartitionId, u32>,
    /// A decision that the ledger refused.
    refused: Option<String>,
    /// What reconciliation mended.
    mended: Option<String>,
    /// Something new that a sale decided while it was shut.
    sold_shut: Option<String>,
    /// Orders whose messages were spoilt.
    spoilt: BTreeMap<OrderId, VoucherId>,
    /// Events that somebody was told of.
    told: BTreeSet<EventId>,
    /// The last of them that says what a sale does.
    steered: BTreeMap<VoucherId, (EventId, EventKind)>,
}

impl Watch {
    /// Has seen nothing.
    pub fn new(nature: Nature, stores: Arc<Stores>) -> Self {
        Self {
            nature,
            stores,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many decisions the ledger has refused so far.
    pub fn refusals(&self) -> u64 {
        self.nature.coverage.times(Seen::Rejection)
    }

    /// All is at rest. (Before it is for the first time, two processes that start together may both
    /// begin a partition.) What was lost until now explains nothing that happens from now on.
    pub fn is_at_rest(&self) {
        let mut state = self.state();
        state.rests += 1;
        state.epochs.clear();
        state.refused = None;
        state.mended = None;
        state.losses.rests(self.nature.clock.monotonic());
    }

    /// What happens only after a loss has not happened.
    pub fn unprovoked(&self) -> Result<(), Violation> {
        let state = self.state();
        if let Some(how) = &state.refused {
            return Err(Violation {
                rule: Rule::HealthyGate,
                how: how.clone(),
            });
        }
        if let Some(how) = &state.mended {
            return Err(Violation {
                rule: Rule::NoFalseRepair,
                how: how.clone(),
            });
        }
        if let Some((partition, epochs)) = state.epochs.iter().find(|_| state.rests > 0) {
            return Err(Violation {
                rule: Rule::NoFalseAlarm,
                how: format!("partition {partition} has begun {epochs} more lives"),
            });
        }
        Ok(())
    }

    /// Whether a decision about the order was ever lost with hot data.
    pub fn is_at_risk(&self, order: OrderId) -> bool {
        let lost = self.state().losses.has(order, None);
        lost || self.is_lost_unread(order)
    }

    /// Whether that decision about the order was ever lost with hot data.
    pub fn has_lost_of(&self, order: OrderId, what: Lost) -> bool {
        self.state().losses.has(order, Some(what))
    }

    /// Whether the hot store did not know of the order at that moment.
    pub fn was_lost_at(&self, order: OrderId, when: Duration) -> bool {
        self.state().losses.has_order_at(order, when)
    }

    /// Whether a gate that had lost something decided the order, before it was itself forgotten.
    pub fn was_decided_blindly(&self, voucher: VoucherId, order: OrderId) -> bool {
        let partition = self.stores.partitions.of(voucher);
        let decided = self.decided(order);
        let losses = &self.state().losses;
        losses.has(order, None)
            && decided.is_some_and(|when| losses.has_partition_at(partition, when))
    }

    /// Whether the order was decided under a key that it lost with hot data: another one may have
    /// it since.
    pub fn has_lost_key_of(&self, order: &Order) -> bool {
        let state = self.state();
        let lost = state.losses.has(order.id, None) || state.without_keys.contains(&order.voucher);
        state.keyed.contains(&order.id) && lost
    }

    /// The keys that were used for a voucher are gone.
    pub fn lost_keys(&self, voucher: VoucherId) {
        self.state().without_keys.insert(voucher);
    }

    /// When a gate was first seen to grant the order or to give it a place.
    pub fn decided(&self, order: OrderId) -> Option<Duration> {
        self.state().decided.get(&order).copied()
    }

    /// Who writes orders: one of each partition.
    pub fn writers(&self) -> Vec<Group> {
        self.state().writers.values().copied().collect()
    }

    /// What stands in a stream and is not in the ledger.
    pub(crate) fn unapplied(&self, partition: PartitionId) -> Vec<Decision> {
        self.stores.unapplied(partition)
    }

    /// What stands in the streams and is not in the ledger.
    pub fn on_their_way(&self) -> Vec<(PartitionId, Vec<Decision>)> {
        let partitions = self.stores.partitions.all();
        partitions
            .map(|it| (it, self.stores.unapplied(it)))
            .collect()
    }

    /// Hot data was lost. Of what was on its way before, whatever no longer is is at risk.
    pub fn has_lost(&self, before: Vec<(PartitionId, Vec<Decision>)>) {
        for (partition, before) in before {
            let lost = self.gone(partition, before);
            self.nature.coverage.add(Seen::DecisionsLost, lost as u64);
            let when = self.nature.clock.monotonic();
            self.state().losses.of_partition(partition, when);
        }
    }

    /// A hot store that went back has forgotten the place of an order that waits in the ledger.
    pub(crate) fn forgot_place(&self, order: &Order) {
        let when = self.nature.clock.monotonic();
        let losses = &mut self.state().losses;
        losses.of_place(order.voucher, order.id, when);
    }

    pub(crate) fn opened(&self, voucher: VoucherId, reply: Opened) {
        if reply == Opened::Opened {
            let when = self.nature.clock.monotonic();
            self.state().losses.loaded(voucher, when);
        }
    }

    /// Puts at risk whom decisions are about that are no longer on their way. Returns how many.
    fn gone(&self, partition: PartitionId, before: Vec<Decision>) -> usize {
        let after = self.stores.unapplied(partition);
        let gone = before.into_iter().filter(|it| !after.contains(it));
        let gone: Vec<Decision> = gone.collect();
        let when = self.nature.clock.monotonic();
        let mut state = self.state();
        for decision in &gone {
            state.losses.of_decision(decision, when);
        }
        gone.len()
    }

    /// How often all has been at rest.
    pub(crate) fn rests(&self) -> u64 {
        self.state().rests
    }

    /// A reconciliation is over that began when all had been at rest so often. Before all was at
    /// rest since, it may have seen what was lost before.
    pub(crate) fn reconciled(&self, report: &Report, rests: u64) {
        let coverage = &self.nature.coverage;
        for found in &report.vouchers {
            let repaired = || found.differences.iter().filter(|it| it.repaired);
            coverage.add(Seen::Repair, repaired().count() as u64);
            coverage.add(Seen::Drift, u64::from(found.free_drift != 0));
            note!(self.nature.trace, "  reconciled {found:?}");
            let mut state = self.state();
            let mended = found.free_drift != 0 || repaired().next().is_some();
            if mended && rests > 0 && state.rests == rests {
                state.mended = Some(format!("{found:?}"));
                self.nature.touched.store(true, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn admitted(
        &self,
        voucher: VoucherId,
        attempts: &[Attempt],
        reply: &Admitted,
        way: Way,
    ) {
        let Admitted::Decided { admissions, .. } = reply else {
            return;
        };
        for (attempt, admission) in attempts.iter().zip(admissions) {
            note!(
                self.nature.trace,
                "  v{voucher} b{} {} {admission:?}",
                attempt.buyer,
                attempt.order
            );
            if let Admission::Granted { order } | Admission::Waitlisted { order, .. } = admission {
                let when = self.nature.clock.monotonic();
                if self.decided(*order).is_none() {
                    self.first_decided(voucher, admission);
                }
                let mut state = self.state();
                state.decided.entry(*order).or_insert(when);
                if attempt.key.is_some() {
                    state.keyed.insert(*order);
                }
            }
            if way == Way::AnswerLost && matches!(admission, Admission::Granted { .. }) {
                self.nature.coverage.saw(Seen::GrantAnswerLost);
            }
        }
    }

    /// A new life leaves behind what stands in the stream of the one before: only where the hot
    /// store had lost something is that a loss.
    pub(crate) fn left_behind(&self, partition: PartitionId, before: Vec<Decision>) {
        let when = self.nature.clock.monotonic();
        let lossy = self.state().losses.has_partition_at(partition, when);
        if lossy {
            self.gone(partition, before);
        }
    }

    pub(crate) fn epoch_begun(&self, partition: PartitionId, epoch: Epoch, reply: EpochBegun) {
        if reply == EpochBegun::Begun {
            note!(
                self.nature.trace,
                "  partition {partition} begins epoch {epoch}"
            );
            let mut state = self.state();
            *state.epochs.entry(partition).or_default() += 1;
            if state.rests > 0 {
                self.nature.coverage.saw(Seen::NewEpoch);
            }
        }
    }

    pub(crate) fn delivered(&self, partition: PartitionId, epoch: Epoch, reply: &StreamReply) {
        let StreamReply::Entries(entries) = reply else {
            return;
        };
        let mut state = self.state();
        for entry in entries {
            if !state.delivered.insert((partition, epoch, entry.id)) {
                self.nature.coverage.saw(Seen::Redelivery);
            }
        }
    }

    pub(crate) fn taken_over(&self, partition: PartitionId, by: Group) {
        let before = self.state().writers.insert(partition, by);
        if before.is_some_and(|before| before != by) {
            note!(
                self.nature.trace,
                "  partition {partition} is taken over by p{}",
                by.0
            );
            self.nature.coverage.saw(Seen::TakeOver);
        }
    }

    pub(crate) fn applied(&self, batch: &AdmissionBatch, reply: &Applied, way: Way) {
        let coverage = &self.nature.coverage;
        let Applied::Committed { verdicts, .. } = reply else {
            coverage.saw(Seen::StaleBatch);
            return;
        };
        if way == Way::AnswerLost {
            coverage.saw(Seen::BatchAnswerLost);
        }
        for (item, verdict) in batch.items.iter().zip(verdicts) {
            note!(self.nature.trace, "  {verdict:?} {item:?}");
            if let BatchItem::Decision { decision, .. } = item {
                let when = self.nature.clock.monotonic();
                self.state().losses.settled(decision, when);
            }
            match verdict {
                Verdict::Confirmed if is_promotion(item) => coverage.saw(Seen::Promotion),
                Verdict::Confirmed => {}
                Verdict::AlreadyThere => coverage.saw(Seen::Duplicate),
                Verdict::Rejected(_) => {
                    coverage.saw(Seen::Rejection);
                    self.state().refused = Some(format!("{verdict:?} {item:?}"));
                }
                Verdict::Parked(_) => {
                    coverage.saw(Seen::Parked);
                    let unreadable = matches!(item, BatchItem::Unreadable { .. });
                    coverage.add(Seen::Unreadable, u64::from(unreadable));
                }
            }
        }
    }

    pub(crate) fn committed(&self, way: Way) {
        if way == Way::AnswerLost {
            self.nature.coverage.saw(Seen::CommitAnswerLost);
        }
    }
}

fn is_promotion(item: &BatchItem) -> bool {
    let decision = match item {
        BatchItem::Decision { decision, .. } => decision,
        BatchItem::Unreadable { .. } => return false,
    };
    matches!(decision, Decision::Promoted(_))
}
