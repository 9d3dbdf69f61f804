//! Looks over the shoulder of every process: counts what happens, and keeps what only a god can
//! know.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use seckill_application::ports::{
    AdmissionBatch, Admitted, Applied, BatchItem, EntryId, EpochBegun, StreamReply, Verdict,
};
use seckill_domain::{Admission, Attempt, Decision, Epoch, OrderId, PartitionId, VoucherId};

use crate::coverage::Seen;
use crate::executor::Group;
use crate::judge::{Rule, Violation};
use crate::link::{Nature, Way};
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
    at_risk: BTreeSet<OrderId>,
    begun: bool,
    epochs: BTreeMap<PartitionId, u32>,
    /// A decision that the ledger refused.
    refused: Option<String>,
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

    /// All is at rest for the first time: two processes that start together may both have begun
    /// a partition.
    pub fn has_begun(&self) {
        let mut state = self.state();
        if !state.begun {
            state.begun = true;
            state.epochs.clear();
        }
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
        if let Some((partition, epochs)) = state.epochs.iter().find(|_| state.begun) {
            return Err(Violation {
                rule: Rule::NoFalseAlarm,
                how: format!("partition {partition} has begun {epochs} more lives"),
            });
        }
        Ok(())
    }

    /// Whether a decision about the order was lost with hot data, or may have been.
    pub fn is_at_risk(&self, order: OrderId) -> bool {
        self.state().at_risk.contains(&order)
    }

    /// Who writes orders: one of each partition.
    pub fn writers(&self) -> Vec<Group> {
        self.state().writers.values().copied().collect()
    }

    /// Notes orders about which something may be lost.
    pub fn put_at_risk(&self, orders: impl IntoIterator<Item = OrderId>) {
        self.state().at_risk.extend(orders);
    }

    /// Notes what a partition loses with its stream. Returns how many decisions.
    pub fn stream_is_lost(&self, partition: PartitionId) -> usize {
        let lost = self.stores.unapplied(partition);
        let orders: Vec<OrderId> = lost
            .iter()
            .filter_map(|it| Some(it.claim()?.order))
            .collect();
        self.put_at_risk(orders);
        lost.len()
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
            if way == Way::AnswerLost && matches!(admission, Admission::Granted { .. }) {
                self.nature.coverage.saw(Seen::GrantAnswerLost);
            }
        }
    }

    pub(crate) fn epoch_begins(&self, partition: PartitionId) {
        self.stream_is_lost(partition);
    }

    pub(crate) fn epoch_begun(&self, partition: PartitionId, epoch: Epoch, reply: EpochBegun) {
        if reply == EpochBegun::Begun {
            note!(
                self.nature.trace,
                "  partition {partition} begins epoch {epoch}"
            );
            let mut state = self.state();
            *state.epochs.entry(partition).or_default() += 1;
            if state.begun {
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
            match verdict {
                Verdict::Confirmed if is_promotion(item) => coverage.saw(Seen::Promotion),
                Verdict::Confirmed => {}
                Verdict::AlreadyThere => coverage.saw(Seen::Duplicate),
                Verdict::Rejected(_) => {
                    coverage.saw(Seen::Rejection);
                    self.state().refused = Some(format!("{verdict:?} {item:?}"));
                }
                Verdict::Parked(_) => coverage.saw(Seen::Parked),
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
