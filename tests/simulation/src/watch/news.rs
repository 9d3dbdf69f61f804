//! What the world is told, what a sale that is shut decides, and what is about to be parked.

use std::sync::atomic::Ordering;

use seckill_application::ports::Clock as _;
use seckill_domain::{Admission, Claim, Event, EventId, EventKind, OrderId, SaleStatus, VoucherId};

use super::Watch;
use crate::judge::{Rule, Violation};
use crate::stores::now;

impl Watch {
    /// Somebody was told of these.
    pub(crate) fn told(&self, events: &[Event]) {
        let mut state = self.state();
        for event in events {
            state.told.insert(event.id);
            let kind = event.what.kind;
            let news = (event.id, kind);
            if steers(kind) {
                let last = state.steered.entry(event.what.voucher).or_insert(news);
                if last.0 < event.id {
                    *last = news;
                }
            }
        }
    }

    /// Whether somebody was told of an event.
    pub fn was_told(&self, event: EventId) -> bool {
        self.state().told.contains(&event)
    }

    /// The last that was told of what a sale does.
    pub fn last_told(&self, voucher: VoucherId) -> Option<EventKind> {
        let state = self.state();
        state.steered.get(&voucher).map(|(_, kind)| *kind)
    }

    /// The message of an order is about to be spoilt.
    pub fn spoils(&self, claim: &Claim) {
        self.state().spoilt.insert(claim.order, claim.voucher);
    }

    /// Whether the message of an order was spoilt, and its partition has lost something since: what
    /// stood in a stream and cannot be read is not missed by its name.
    pub(super) fn is_lost_unread(&self, order: OrderId) -> bool {
        let state = self.state();
        let when = self.nature.clock.monotonic();
        state.spoilt.get(&order).is_some_and(|voucher| {
            let partition = self.stores.partitions.of(*voucher);
            state.losses.has_partition_at(partition, when)
        })
    }

    /// Whether a message that was spoilt is still in its stream. Nobody can count its units before
    /// they are set aside.
    pub fn has_spoilt(&self) -> bool {
        let mut state = self.state();
        state.spoilt.retain(|order, _| !self.stores.has(*order));
        !state.spoilt.is_empty()
    }

    /// A sale that is shut has decided nothing new.
    pub fn sold_while_shut(&self) -> Result<(), Violation> {
        match &self.state().sold_shut {
            None => Ok(()),
            Some(how) => Err(Violation {
                rule: Rule::Shut,
                how: how.clone(),
            }),
        }
    }

    /// A gate was just seen to decide an order for the first time.
    pub(super) fn first_decided(&self, voucher: VoucherId, admission: &Admission) {
        if let Some(status) = self.is_shut(voucher) {
            let how = format!("voucher {voucher} is {status:?}: {admission:?}");
            self.state().sold_shut.get_or_insert(how);
            self.nature.touched.store(true, Ordering::Relaxed);
        }
    }

    /// How a sale is, if that is shut, and its gate knows it: a gate that has followed as far as the
    /// ledger is, and has lost nothing.
    pub fn is_shut(&self, voucher: VoucherId) -> Option<SaleStatus> {
        let ledger = now(self.stores.ledger.ledger.voucher(voucher))?;
        let gate = now(self.stores.hot.gate.facts(&[voucher]));
        let gate = gate.into_iter().flatten().next()?;
        let shut = matches!(ledger.status, SaleStatus::Paused | SaleStatus::Closed);
        let when = self.nature.clock.monotonic();
        let partition = self.stores.partitions.of(voucher);
        let lossy = self.state().losses.has_partition_at(partition, when);
        (shut && gate.pulse.version == ledger.version && !lossy).then_some(ledger.status)
    }
}

fn steers(kind: EventKind) -> bool {
    use EventKind::{VoucherClosed, VoucherPaused, VoucherPublished, VoucherResumed};
    matches!(
        kind,
        VoucherPublished | VoucherPaused | VoucherResumed | VoucherClosed
    )
}
