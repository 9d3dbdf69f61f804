//! FLUSHALL in the middle of sales: one that is under way, and one that is sold out and has people
//! waiting. Nobody loses what he was told, and nobody gets what is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    History, Ledger, Offer, Process, Purchase, Shop, Site, audit, buyer, buyers, crowd, eventually,
};
use seckill_tests::matrix::Row;

use crate::on_own_servers;

on_own_servers!(
    a_sale_under_way_is_wiped,
    a_sold_out_sale_with_people_waiting_is_wiped
);

/// Two processes on one history.
struct Street {
    _processes: [Process; 2],
    shops: [Shop; 2],
    history: Arc<History>,
    ledger: Ledger,
}

impl Street {
    async fn of(site: &Site) -> Self {
        let processes = [site.start().await, site.start().await];
        let history = Arc::new(History::default());
        let shops = [0, 1].map(|turn: usize| processes[turn].shop().writing(&history));
        Self {
            _processes: processes,
            shops,
            history,
            ledger: site.ledger().await,
        }
    }

    fn shop(&self, turn: usize) -> &Shop {
        &self.shops[turn % 2]
    }

    /// Everybody buys one unit, here and there in turn.
    async fn buy(&self, voucher: VoucherId, people: Vec<BuyerId>) -> Vec<(BuyerId, Purchase)> {
        let people = people.into_iter().zip(0..).collect();
        crowd(people, 16, async |(who, turn)| {
            (who, insist(self.shop(turn), voucher, who, None).await)
        })
        .await
    }

    async fn sell_to(&self, voucher: VoucherId, count: usize) -> Vec<(BuyerId, OrderId)> {
        let sold = self.buy(voucher, buyers(count)).await;
        let granted = |(who, answer): &(BuyerId, Purchase)| (*who, answer.expect_granted());
        sold.iter().map(granted).collect()
    }

    async fn judged(&self, voucher: VoucherId, live: usize, row: Row) {
        let ledger = Some(&self.ledger);
        let verdict = audit(self.shop(0), &self.history, &[voucher], ledger).await;
        assert_eq!(verdict.live_orders(voucher), live);
        row.held(&verdict);
    }
}

/// What somebody is told in the end who is not put off.
async fn insist(shop: &Shop, voucher: VoucherId, who: BuyerId, key: Option<&str>) -> Purchase {
    let limit = Duration::from_secs(30);
    eventually("the gate answers", limit, async || {
        match shop.try_buy(voucher, who, 1, key).await {
            Ok(answer) if !matches!(answer.code(), "unavailable" | "overloaded") => Ok(answer),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// 60 of 200 are sold, 20 of them not in the ledger yet; some are paid, and one is given up.
async fn a_sale_under_way_is_wiped(site: Site) {
    let mut row = Row::begin();
    let street = Street::of(&site).await;
    let [here, there] = &street.shops;
    let voucher = here.sell(&Offer::of(200)).await;
    let mut sold = street.sell_to(voucher, 37).await;
    for (who, order) in &sold {
        here.settled(*order, *who).await;
    }
    for (who, order) in &sold[..5] {
        here.pay(*order, *who, "p-1").await.assert_status(200);
    }
    let (kept, quitter) = (buyer(), buyer());
    let by_key = here.buy_some(voucher, kept, 1, Some("mine")).await;
    let given_up = there.buy_some(voucher, quitter, 1, Some("mine")).await;
    here.cancel(given_up.expect_granted(), quitter)
        .await
        .assert_status(200);
    let held = street.ledger.hold_writers().await;
    sold.extend(street.sell_to(voucher, 21).await);
    let late = buyer();
    let in_flight = there.buy_some(voucher, late, 1, Some("mine")).await;
    row.struck("FLUSHALL", site.gate().await.in_flight().await);
    site.gate().await.flush_all().await;
    held.release().await;

    // 58 without a key and two with one have their units.
    let again = street
        .buy(voucher, sold.iter().map(|(who, _)| *who).collect())
        .await;
    let mut again: Vec<_> = again
        .iter()
        .map(|(who, answer)| (*who, answer.expect_already_held()))
        .collect();
    again.sort_unstable();
    sold.sort_unstable();
    assert_eq!(again, sold);
    for (who, first) in [(kept, &by_key), (late, &in_flight)] {
        let order = first.expect_granted();
        assert_eq!(
            insist(here, voucher, who, Some("mine"))
                .await
                .expect_granted(),
            order
        );
        assert_eq!(
            insist(there, voucher, who, None)
                .await
                .expect_already_held(),
            order
        );
    }
    let replay = Purchase::Granted {
        order: given_up.expect_granted(),
        status: OrderStatus::Cancelled,
    };
    assert_eq!(insist(there, voucher, quitter, Some("mine")).await, replay);

    let rest = street.buy(voucher, buyers(170)).await;
    let granted = rest.iter().filter(|(_, answer)| answer.granted().is_some());
    assert_eq!(granted.count(), 140);
    let refused = rest
        .iter()
        .filter(|(_, answer)| answer.code() == "sold_out");
    assert_eq!(refused.count(), 30);
    street.judged(voucher, 200, row).await;
}

/// Looks at a place all the time: whoever waits is never told that he does not.
async fn watch(shop: &Shop, voucher: VoucherId, who: BuyerId, over: &AtomicBool) -> usize {
    let mut seen = 0;
    while !over.load(Ordering::Relaxed) {
        let place = shop.place(voucher, who).await;
        match place.status {
            200 => seen += 1,
            _ => {
                place.assert_problem(503, place.code());
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    seen
}

/// 12 are sold; nine wait: three whom the ledger has, three whom it does not have yet, and three
/// who came milliseconds before.
///
/// Stands for: the list is in Redis alone, cannot be left, has no positions, and outlives the sale
/// (2.31).
async fn a_sold_out_sale_with_people_waiting_is_wiped(site: Site) {
    let mut row = Row::begin();
    let street = Street::of(&site).await;
    let [here, there] = &street.shops;
    let voucher = here.sell(&Offer::of(12).waitlist(50)).await;
    let sold = street.sell_to(voucher, 12).await;
    let mut seats = Vec::new();
    let join = async |seats: &mut Vec<(BuyerId, OrderId)>, count| {
        for who in buyers(count) {
            let shop = street.shop(seats.len());
            let answer = insist(shop, voucher, who, Some("mine")).await;
            seats.push((who, answer.expect_waitlisted().0));
        }
    };
    join(&mut seats, 3).await;
    eventually("the ledger has them", Duration::from_secs(10), async || {
        let known = street.ledger.orders(voucher).await;
        let there = seats.iter().all(|(_, order)| known.contains_key(order));
        there.then_some(()).ok_or(format!("{known:?}"))
    })
    .await;
    let held = street.ledger.hold_writers().await;
    join(&mut seats, 3).await;
    let over = AtomicBool::new(false);
    let watched = [(here, seats[0].0), (there, seats[1].0), (here, seats[5].0)];
    let watching = watched.map(|(shop, who)| watch(shop, voucher, who, &over));
    let wiping = async {
        join(&mut seats, 3).await;
        row.struck("FLUSHALL", site.gate().await.in_flight().await);
        site.gate().await.flush_all().await;
        held.release().await;
        everybody_keeps_his_place(&street, voucher, &sold, &seats).await;
        over.store(true, Ordering::Relaxed);
    };
    let (seen, ()) = futures::join!(join_all(watching), wiping);
    assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
    the_list_is_served_in_order(&street, voucher, sold, &seats).await;
    street.judged(voucher, 12, row).await;
}

async fn everybody_keeps_his_place(
    street: &Street,
    voucher: VoucherId,
    sold: &[(BuyerId, OrderId)],
    seats: &[(BuyerId, OrderId)],
) {
    // The last who came are the first who ask.
    for (place, (who, order)) in (1..).zip(seats).collect::<Vec<_>>().into_iter().rev() {
        let key = (place % 2 == 0).then_some("mine");
        let again = insist(street.shop(0), voucher, *who, key).await;
        assert_eq!(again.expect_waitlisted(), (*order, place), "{again:?}");
    }
    let (_, position) = insist(street.shop(1), voucher, buyer(), None)
        .await
        .expect_waitlisted();
    assert_eq!(position, seats.len() as u64 + 1);
    for (who, order) in sold {
        let again = insist(street.shop(1), voucher, *who, None).await;
        assert_eq!(again.expect_already_held(), *order);
    }
}

async fn the_list_is_served_in_order(
    street: &Street,
    voucher: VoucherId,
    sold: Vec<(BuyerId, OrderId)>,
    seats: &[(BuyerId, OrderId)],
) {
    for (turn, ((who, order), (next, theirs))) in sold.into_iter().zip(seats).enumerate() {
        let shop = street.shop(turn);
        eventually("it is given up", Duration::from_secs(20), async || {
            let reply = shop.cancel(order, who).await;
            (reply.status == 200).then_some(()).ok_or(reply.text)
        })
        .await;
        let before = [OrderStatus::Waiting, OrderStatus::Queued];
        let seen = shop.order_past(*theirs, *next, &before).await;
        assert_eq!(
            seen.word("status"),
            "pending_payment",
            "{turn}: {}",
            seen.text
        );
        let replay = insist(shop, voucher, *next, Some("mine")).await;
        assert_eq!(replay.order(), Some(*theirs), "{replay:?}");
        if let Some((after, waiting)) = seats.get(turn + 1) {
            let seen = shop.order(*waiting, *after).await;
            assert_eq!(seen.word("status"), "waiting", "{turn}: {}", seen.text);
        }
    }
}
