//! What the hot store has forgotten of what it had decided, and until when: that much explains what
//! else would break a promise, and nothing more.

use std::collections::BTreeMap;
use std::time::Duration;

use seckill_domain::{Decision, OrderId, PartitionId, VoucherId};

/// Which decision about an order was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// That it was granted, or has a place.
    Claim,
    /// That it was given units in its turn.
    Promotion,
    /// That it left its place.
    End,
}

impl Lost {
    fn of(decision: &Decision) -> Self {
        match decision {
            Decision::Promoted(_) => Self::Promotion,
            Decision::Left { .. } => Self::End,
            _ => Self::Claim,
        }
    }
}

/// From when until when; to the end of time, if nothing ended it.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: Duration,
    until: Duration,
}

impl Span {
    fn from(from: Duration) -> Self {
        let until = Duration::MAX;
        Self { from, until }
    }

    fn has(&self, when: Duration) -> bool {
        self.from <= when && when <= self.until
    }

    fn end(&mut self, when: Duration) {
        self.until = self.until.min(when);
    }
}

/// The book of losses.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    orders: BTreeMap<OrderId, Vec<(Lost, Span)>>,
    /// Places that the ledger has, and the hot store has forgotten.
    places: BTreeMap<OrderId, Vec<(VoucherId, Span)>>,
    partitions: BTreeMap<PartitionId, Vec<Span>>,
}

impl Losses {
    /// A partition has lost something, or may have.
    pub(crate) fn of_partition(&mut self, partition: PartitionId, when: Duration) {
        let spans = self.partitions.entry(partition).or_default();
        spans.push(Span::from(when));
    }

    /// A decision is gone.
    pub(crate) fn of_decision(&mut self, decision: &Decision, when: Duration) {
        if let Some(claim) = decision.claim() {
            let losses = self.orders.entry(claim.order).or_default();
            losses.push((Lost::of(decision), Span::from(when)));
        }
    }

    /// A place that the ledger has is gone from the hot store.
    pub(crate) fn of_place(&mut self, voucher: VoucherId, order: OrderId, when: Duration) {
        let losses = self.places.entry(order).or_default();
        losses.push((voucher, Span::from(when)));
    }

    /// A sale was loaded from the ledger: whoever waits has his place again.
    pub(crate) fn loaded(&mut self, voucher: VoucherId, when: Duration) {
        let places = self.places.values_mut().flatten();
        for (_, span) in places.filter(|(of, _)| *of == voucher) {
            span.end(when);
        }
    }

    /// The ledger has settled a decision: what it says of its order is known again, and so is all that
    /// comes before it. That somebody waits does not say that he was served since.
    pub(crate) fn settled(&mut self, decision: &Decision, when: Duration) {
        let Some(claim) = decision.claim() else {
            return;
        };
        let is_place = matches!(decision, Decision::Joined { .. });
        for (lost, span) in self.orders.get_mut(&claim.order).into_iter().flatten() {
            if !is_place || *lost == Lost::Claim {
                span.end(when);
            }
        }
    }

    /// All is at rest.
    pub(crate) fn rests(&mut self, when: Duration) {
        let partitions = self.partitions.values_mut().flatten();
        partitions.for_each(|span| span.end(when));
    }

    /// Whether a decision about the order was ever lost; of one kind, or of any.
    pub(crate) fn has(&self, order: OrderId, kind: Option<Lost>) -> bool {
        let mut losses = self.orders.get(&order).into_iter().flatten();
        losses.any(|(lost, _)| kind.is_none_or(|kind| kind == *lost))
    }

    /// Whether a decision about the order, or its place, was lost at that moment.
    pub(crate) fn has_order_at(&self, order: OrderId, when: Duration) -> bool {
        let mut losses = self.orders.get(&order).into_iter().flatten();
        let mut places = self.places.get(&order).into_iter().flatten();
        losses.any(|(_, span)| span.has(when)) || places.any(|(_, span)| span.has(when))
    }

    /// Whether a partition had lost something by then, and was not at rest since.
    pub(crate) fn has_partition_at(&self, partition: PartitionId, when: Duration) -> bool {
        let mut spans = self.partitions.get(&partition).into_iter().flatten();
        spans.any(|span| span.has(when))
    }
}
