//! Places on the waitlist that the gate has otherwise than the ledger, planted from outside: a round
//! finds each, and the sale is loaded again before anybody is passed over.

use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    Call, Gate, Ledger, Offer, Process, Shop, Site, audit, buyer, eventually,
};

use crate::on_own_stores;
use crate::reports::{Difference, first_round, round, round_about};

on_own_stores!(
    a_waiter_whom_the_gate_forgot_keeps_his_turn,
    waiters_who_changed_places_change_back,
    a_waiter_whom_the_ledger_has_never_heard_of_is_told_to_it,
    a_waiter_who_has_left_for_the_ledger_leaves_the_gate,
    whoever_waits_for_nothing_is_sent_away,
    two_who_wait_for_one_order_are_one,
);

/// A sale of one unit that somebody has, and three who wait for it.
struct Queue {
    _process: Process,
    shop: Shop,
    gate: Gate,
    ledger: Ledger,
    voucher: VoucherId,
    holder: (BuyerId, OrderId),
    waiting: [(BuyerId, OrderId); 3],
}

impl Queue {
    async fn of(site: &Site) -> Self {
        let process = site.start().await;
        let shop = process.shop();
        first_round(&shop).await;
        let voucher = shop.sell(&Offer::of(1).waitlist(9)).await;
        let who = buyer();
        let holder = (who, shop.buy_settled(voucher, who).await);
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let who = buyer();
            let (order, _) = shop.buy(voucher, who).await.expect_waitlisted();
            waiting.push((who, order));
        }
        let queue = Self {
            _process: process,
            gate: site.gate().await,
            ledger: site.ledger().await,
            shop,
            voucher,
            holder,
            waiting: waiting.try_into().expect("three"),
        };
        queue.heard_of(&queue.waiting).await;
        queue
    }

    /// Waits until the ledger has these orders.
    async fn heard_of(&self, waiting: &[(BuyerId, OrderId)]) {
        for (who, order) in waiting {
            eventually("the ledger has it", Duration::from_secs(10), async || {
                let path = "/v1/orders?limit=100";
                let reply = self.shop.ask(Call::get(path).by(*who)).await;
                let listed = reply.text.contains(&order.to_string());
                listed.then_some(()).ok_or(reply.text)
            })
            .await;
        }
    }

    /// Waits until the ledger has it that this order waits no longer; the buyer is told earlier, by the
    /// gate.
    async fn has_left(&self, order: OrderId) {
        eventually("he has left", Duration::from_secs(10), async || {
            let status = self.ledger.orders(self.voucher).await[&order].status;
            let is_left = status == OrderStatus::Withdrawn;
            is_left.then_some(()).ok_or(format!("{status:?}"))
        })
        .await;
    }

    /// A dry run reports and leaves it; the round after it mends; the one after that finds nothing.
    async fn assert_mends(&self, expected: &[(OrderId, &str)]) {
        for dry_run in [true, false] {
            let report = round(&self.shop, dry_run).await;
            let mut found = report.of(self.voucher).differences.clone();
            found.sort_by_key(|difference| difference.order);
            let of = |(order, kind): &(OrderId, &str)| Difference {
                order: *order,
                kind: (*kind).to_owned(),
                repaired: !dry_run,
            };
            let mut expected: Vec<Difference> = expected.iter().map(of).collect();
            expected.sort_by_key(|difference| difference.order);
            assert_eq!(found, expected);
            let repairs = if dry_run { 0 } else { expected.len() as u64 };
            assert_eq!(report.repair_count, repairs);
            assert_eq!(report.of(self.voucher).free_drift, 0);
        }
        let after = round_about(&self.shop, self.voucher).await;
        after.of(self.voucher).assert_sound();
        assert_eq!(after.repair_count, 0);
    }

    /// A round sees that the places contradict each other, and has the sale loaded again.
    async fn assert_reloads(&self) {
        round(&self.shop, false).await;
        let after = round_about(&self.shop, self.voucher).await;
        after.of(self.voucher).assert_sound();
        self.assert_length(3).await;
    }

    async fn assert_length(&self, waiting: i64) {
        let seen = self.shop.voucher(self.voucher).await;
        assert_eq!(seen.number("waitlist_length"), waiting);
    }

    /// Each gives the unit up and the next in line gets it, in this order.
    async fn assert_served(&self, line: &[(BuyerId, OrderId)]) {
        let mut has = self.holder;
        for next in line {
            let (who, order) = has;
            self.shop.cancel(order, who).await.assert_status(200);
            let (who, order) = *next;
            let waiting = OrderStatus::Waiting;
            let seen = self.shop.order_past(order, who, &[waiting]).await;
            assert!(seen.order_status().is_live(), "{}", seen.text);
            has = *next;
        }
        self.shop.balanced(self.voucher).await;
        let vouchers = [self.voucher];
        let history = self.shop.history();
        let verdict = audit(&self.shop, history, &vouchers, Some(&self.ledger)).await;
        verdict.assert_holds().assert_none_rejected();
    }
}

async fn a_waiter_whom_the_gate_forgot_keeps_his_turn(site: Site) {
    let queue = Queue::of(&site).await;
    let (who, order) = queue.waiting[0];
    assert!(queue.gate.drop_waiter(queue.voucher, who).await);
    queue.assert_length(2).await;
    queue.assert_mends(&[(order, "waiter_gone")]).await;
    queue.assert_length(3).await;
    let (again, position) = queue.shop.buy(queue.voucher, who).await.expect_waitlisted();
    assert_eq!((again, position), (order, 1));
    queue.assert_served(&queue.waiting).await;
}

async fn waiters_who_changed_places_change_back(site: Site) {
    let queue = Queue::of(&site).await;
    let [(one, first), (other, second), _] = queue.waiting;
    assert!(queue.gate.swap_waiters(queue.voucher, [one, other]).await);
    let (_, position) = queue
        .shop
        .buy(queue.voucher, other)
        .await
        .expect_waitlisted();
    assert_eq!(position, 1, "he has passed him");
    let differ = [(first, "place_differs"), (second, "place_differs")];
    queue.assert_mends(&differ).await;
    queue.assert_served(&queue.waiting).await;
}

/// As if the message by which he joined were lost: he is served in his turn, which is the last.
async fn a_waiter_whom_the_ledger_has_never_heard_of_is_told_to_it(site: Site) {
    let queue = Queue::of(&site).await;
    let (who, order) = (buyer(), OrderId::new(4_711));
    let turn = 1 << 50;
    assert!(
        queue
            .gate
            .plant_waiter(queue.voucher, turn, who, order)
            .await
    );
    queue.assert_mends(&[(order, "waiter_unknown")]).await;
    queue.heard_of(&[(who, order)]).await;
    queue.assert_length(4).await;
    let line = [&queue.waiting[..], &[(who, order)]].concat();
    queue.assert_served(&line).await;
}

async fn a_waiter_who_has_left_for_the_ledger_leaves_the_gate(site: Site) {
    let queue = Queue::of(&site).await;
    let (who, order) = queue.waiting[0];
    queue
        .shop
        .leave(queue.voucher, who)
        .await
        .assert_status(204);
    queue.has_left(order).await;
    assert!(queue.gate.plant_waiter(queue.voucher, 16, who, order).await);
    queue.assert_length(3).await;
    queue.assert_mends(&[(order, "waiter_unknown")]).await;
    queue.assert_length(2).await;
    queue.assert_served(&queue.waiting[1..]).await;
}

/// The count is right, and nobody asks about him.
async fn whoever_waits_for_nothing_is_sent_away(site: Site) {
    let queue = Queue::of(&site).await;
    let (ghost, nobody) = (buyer(), buyer());
    assert!(queue.gate.plant_ghost(queue.voucher, ghost, nobody).await);
    queue.assert_length(4).await;
    queue.assert_reloads().await;
    queue.assert_served(&queue.waiting).await;
}

/// He has the turn of the first in line, and with it what that one waits for.
async fn two_who_wait_for_one_order_are_one(site: Site) {
    let queue = Queue::of(&site).await;
    let (first, _) = queue.waiting[0];
    assert!(queue.gate.plant_ghost(queue.voucher, buyer(), first).await);
    queue.assert_reloads().await;
    queue.assert_served(&queue.waiting).await;
}
