//! One sale, and what buyers were told about it.

use std::sync::Arc;

use seckill_application::ports::VoucherFilter;
use seckill_application::{Purchase, ReconcileScope};
use seckill_domain::{BuyerId, EventId, EventKind, OrderId, OrderStatus, PaymentId, Voucher};
use seckill_tests::controls::{Branch, Offer, PARTITIONS};
use seckill_tests::harness::{
    self, Asked, Facts, HeldFacts, History, OrderFacts, Told, VoucherFacts, judge,
};

use super::ground::Place;

/// A sale with its history.
pub(super) struct Story {
    place: Arc<Place>,
    voucher: Voucher,
    limit: u32,
    history: History,
}

/// One unit per buyer, and room for ten who wait.
pub(super) const fn offer(units: u32) -> Offer {
    Offer {
        units,
        limit: 1,
        waitlist: 10,
    }
}

pub(super) fn payment(id: &str) -> PaymentId {
    id.parse().expect("a payment id")
}

impl Story {
    pub(super) async fn begin(place: &Arc<Place>, offer: Offer) -> Self {
        let voucher = place.branch().on_sale(offer).await;
        Self::of(place, voucher, offer)
    }

    pub(super) fn of(place: &Arc<Place>, voucher: Voucher, offer: Offer) -> Self {
        Self {
            place: place.clone(),
            voucher,
            limit: offer.limit,
            history: History::default(),
        }
    }

    pub(super) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    pub(super) fn voucher(&self) -> &Voucher {
        &self.voucher
    }

    /// Every order that somebody was told of.
    pub(super) fn orders(&self) -> Vec<OrderId> {
        self.told().into_iter().map(|(order, _)| order).collect()
    }

    fn told(&self) -> Vec<(OrderId, BuyerId)> {
        let told = self.history.events().into_iter();
        let told = told.filter_map(|event| match event.told {
            Told::Purchase(answer) => Some((answer.order()?, event.buyer)),
            _ => None,
        });
        let mut told: Vec<_> = told.collect();
        told.sort_unstable();
        told.dedup();
        told
    }

    /// Somebody presses the button, and is answered.
    pub(super) async fn ask(&self, process: &Branch, buyer: u64, quantity: u32) -> Purchase {
        let begun = self.history.now();
        let answer = process.buy(&self.voucher, buyer, quantity).await;
        let told = match &answer {
            Purchase::Granted { order, .. } => harness::Purchase::Granted {
                order: *order,
                status: OrderStatus::Queued,
            },
            Purchase::Waitlisted {
                order,
                position,
                joined,
                ..
            } => harness::Purchase::Waitlisted {
                order: *order,
                position: u64::from(*position),
                joined: *joined,
            },
            Purchase::AlreadyHeld { orders } => harness::Purchase::AlreadyHeld {
                order: orders[0],
                orders: orders.clone(),
            },
            other => panic!("{buyer}: {other:?}"),
        };
        let asked = Asked::Purchase {
            voucher: self.voucher.id,
            quantity,
            key: None,
        };
        let told = Told::Purchase(told);
        self.history.record(begun, BuyerId::new(buyer), asked, told);
        answer
    }

    /// Somebody was told by the gate that an order is his.
    pub(super) fn was_granted(&self, buyer: u64, order: OrderId) {
        let asked = Asked::Purchase {
            voucher: self.voucher.id,
            quantity: 1,
            key: None,
        };
        let told = Told::Purchase(harness::Purchase::Granted {
            order,
            status: OrderStatus::Queued,
        });
        let now = self.history.now();
        self.history.record(now, BuyerId::new(buyer), asked, told);
    }

    /// Somebody has units, and the ledger knows.
    pub(super) async fn bought(&self, buyer: u64, quantity: u32) -> OrderId {
        let process = self.place.branch();
        match self.ask(&process, buyer, quantity).await {
            Purchase::Granted { order, .. } => {
                process.settle().await;
                order
            }
            other => panic!("{buyer}: {other:?}"),
        }
    }

    /// Somebody waits, and the ledger knows.
    pub(super) async fn waits(&self, buyer: u64, quantity: u32) -> OrderId {
        let process = self.place.branch();
        match self.ask(&process, buyer, quantity).await {
            Purchase::Waitlisted { order, .. } => {
                process.settle().await;
                order
            }
            other => panic!("{buyer}: {other:?}"),
        }
    }

    /// Somebody has paid.
    pub(super) async fn paid(&self, buyer: u64, id: &str) -> OrderId {
        let order = self.bought(buyer, 1).await;
        let process = self.place.branch();
        let id = payment(id);
        let paid = process.pay.run(order, BuyerId::new(buyer), &id).await;
        let paid = paid.unwrap();
        assert!(matches!(paid, seckill_application::PayReply::Paid(_)));
        order
    }

    /// What a buyer reads of an order.
    pub(super) async fn status(&self, process: &Branch, order: OrderId) -> OrderStatus {
        let order = process.stores.ledger.ledger.order(order).await.unwrap();
        order.expect("an order in the ledger").status()
    }

    pub(super) async fn assert_stage(&self, process: &Branch, order: OrderId, is: OrderStatus) {
        assert_eq!(self.status(process, order).await, is, "order {order}");
    }

    pub(super) async fn assert_free(&self, process: &Branch, units: u32) {
        let free = process.free_at_gate(&self.voucher).await;
        assert_eq!(free, Some(units), "free units");
    }

    /// What the gate has of a buyer.
    pub(super) async fn assert_holds(&self, process: &Branch, buyer: u64, order: OrderId) {
        let gate = &process.stores.hot.gate;
        let buyers = [BuyerId::new(buyer)];
        let found = gate.claimants(self.voucher.id, &buyers).await;
        let found = found.unwrap().expect("it is loaded").remove(0);
        let orders: Vec<OrderId> = found.held.iter().map(|held| held.order).collect();
        assert_eq!(orders, [order], "of buyer {buyer}");
    }

    /// I1 and I2, whatever is under way.
    pub(super) async fn assert_conserved(&self, process: &Branch) {
        let balance = process.balance(&self.voucher).await;
        assert!(balance.holds, "{balance:?}");
    }

    /// What is left in stream, pending list and outboxes, or of sales that the gate should have; an
    /// empty text if nothing is.
    pub(super) async fn unquiet(&self, process: &Branch) -> String {
        let ports = &process.stores;
        let partition = PARTITIONS.of(self.voucher.id);
        let backlog = ports.hot.stream.backlog(partition).await.unwrap();
        let updates = ports.ledger.updates.waiting(1).await.unwrap();
        let events = ports.ledger.events.unpublished().await.unwrap();
        let on_sale = ports
            .ledger
            .ledger
            .vouchers(VoucherFilter::OnSale, None, 100);
        let on_sale = on_sale.await.unwrap().items;
        let ids: Vec<_> = on_sale.iter().map(|voucher| voucher.id).collect();
        let facts = ports.hot.gate.facts(&ids).await.unwrap();
        let loaded = facts.iter().all(Option::is_some);
        let nothing = (backlog.decisions, backlog.pending, events) == (0, 0, 0);
        if nothing && updates.is_empty() && loaded {
            return String::new();
        }
        format!("{backlog:?}, updates of {updates:?}, {events} events, all at the gate: {loaded}")
    }

    /// Every promise, at rest: what buyers were told, what the ledger has, and what the gate has.
    pub(super) async fn assert_sound(&self, process: &Branch) {
        let balance = process.balance(&self.voucher).await;
        assert!(balance.holds, "{balance:?}");
        assert_eq!(balance.tally.in_flight, 0, "{balance:?}");
        let facts = self.facts(process).await;
        judge(&self.history.events(), &facts).assert_holds();
        for order in facts.orders.keys() {
            self.assert_heard(process, *order).await;
        }
        let reconcile = process.reconcile("judge", self.place.pauses());
        let scope = ReconcileScope {
            full: true,
            dry_run: true,
        };
        let report = reconcile.run(scope).await.unwrap().expect("nobody else");
        assert_eq!(report.findings(), 0, "{report:?}");
    }

    /// Whoever listens has heard of everything that happened to an order.
    async fn assert_heard(&self, process: &Branch, order: OrderId) {
        let events = &process.stores.ledger.events;
        let events = events.of_order(order, EventId::default(), 100).await;
        let events = events.unwrap();
        assert!(!events.is_empty(), "nothing happened to {order}");
        for event in events {
            assert!(self.place.heard(event.id), "nobody was told of {event:?}");
        }
    }

    async fn facts(&self, process: &Branch) -> Facts {
        let mut facts = Facts {
            purchases_only: true,
            ..Facts::default()
        };
        for (order, buyer) in self.told() {
            if let Some(found) = self.order_facts(process, order, buyer).await {
                facts.orders.insert(order, found);
            }
        }
        let mut held = match self.place.rows() {
            Some(rows) => {
                for (order, stored) in rows.orders(self.voucher.id).await {
                    // What the buyer is shown counts; the ledger adds what he is not shown.
                    let shown = facts.orders.entry(order).or_insert(stored.clone());
                    shown.served_at = stored.served_at;
                }
                rows.held(self.voucher.id).await
            }
            None => self.held_by_ports(process).await,
        };
        // Who tells the provider is not among those who come by.
        held.untold.refunds = 0;
        let balance = process.balance(&self.voucher).await;
        let known = VoucherFacts {
            limit: self.limit,
            tally: balance.tally,
            holds: balance.holds,
            held: Some(held),
            gate: None,
        };
        facts.vouchers.insert(self.voucher.id, known);
        facts
    }

    /// An order as its buyer is shown it.
    async fn order_facts(
        &self,
        process: &Branch,
        order: OrderId,
        buyer: BuyerId,
    ) -> Option<OrderFacts> {
        let view = process.orders.find(order, buyer).await.unwrap()?;
        let events = &process.stores.ledger.events;
        let events = events.of_order(order, EventId::default(), 100).await;
        let events = events.unwrap();
        let served = events
            .iter()
            .find(|event| event.what.kind == EventKind::Promoted);
        let reason = match &view.order.stage {
            seckill_domain::Stage::Rejected { reason } => Some(format!("{reason:?}")),
            _ => None,
        };
        Some(OrderFacts {
            voucher: view.order.voucher,
            buyer: view.order.buyer,
            quantity: view.order.quantity,
            status: view.order.status(),
            reason,
            shown: true,
            ticket: view.order.ticket.map(seckill_domain::Ticket::get),
            served_at: served.map(|event| event.id.get()),
            row: None,
        })
    }

    /// The counters of a ledger without rows; it cannot be asked for a buyer's, only for his orders.
    async fn held_by_ports(&self, process: &Branch) -> HeldFacts {
        let ports = &process.stores.ledger;
        let tally = ports.ledger.tally(self.voucher.id, self.voucher.version);
        let tally = tally.await.unwrap().expect("a voucher");
        let books = &ports.reconciliations;
        let open = books.open_orders(self.voucher.id, OrderId::new(0), 1_000);
        let mut held = HeldFacts {
            total: i64::from(tally.total),
            stock: i64::from(tally.stock),
            parked: i64::from(tally.parked),
            ..HeldFacts::default()
        };
        let open = open.await.unwrap();
        for order in open.iter().filter(|order| order.status.is_live()) {
            let units = held.units.entry(order.claim.buyer).or_default();
            *units += i64::from(order.claim.quantity);
        }
        held
    }

    /// How often the money of a payment went back.
    pub(super) async fn assert_refunds(&self, process: &Branch, payment: &str, times: usize) {
        let refunds = process.stores.ledger.money.refunds(None, 100).await;
        let refunds = refunds.unwrap().items;
        let of_it = refunds
            .iter()
            .filter(|refund| refund.payment.as_str() == payment);
        assert_eq!(of_it.count(), times, "{refunds:?}");
    }

    /// I5 of an order that was given back: its buyer may have it again, and only one.
    pub(super) async fn assert_may_buy_again(&self, process: &Branch, buyer: u64) {
        let answer = self.ask(process, buyer, 1).await;
        assert!(matches!(answer, Purchase::Granted { .. }), "{answer:?}");
        let again = self.ask(process, buyer, 1).await;
        assert!(matches!(again, Purchase::AlreadyHeld { .. }), "{again:?}");
        process.settle().await;
        self.place.publisher(process, "again").run().await.unwrap();
    }
}
