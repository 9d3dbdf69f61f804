//! Who gets a unit when everybody wants one at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use seckill_tests::harness::{
    Ledger, Offer, Process, Purchase, Shop, Site, audit, buyer, buyers, crowd,
};

use crate::{on_every_stack, on_own_stores};
use seckill_domain::{BuyerId, OrderStatus, VoucherId};

on_every_stack!(
    a_crowd_gets_exactly_what_there_is,
    twenty_clicks_are_one_order,
    a_crowd_of_clickers_gets_one_each,
);
on_own_stores!(a_killed_process_takes_no_unit_with_it);

/// 1,000 buyers for 100 units, at once, over 64 connections.
async fn a_crowd_gets_exactly_what_there_is(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(100)).await;
    let answers = crowd(buyers(1_000), 64, |buyer| shop.buy(voucher, buyer)).await;

    let granted: Vec<_> = answers.iter().filter_map(Purchase::granted).collect();
    assert_eq!(granted.len(), 100);
    assert_eq!(granted.iter().collect::<BTreeSet<_>>().len(), 100);
    let sold_out = answers.iter().filter(|answer| answer.code() == "sold_out");
    assert_eq!(sold_out.count(), 900);

    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    let verdict = verdict.assert_holds().assert_none_rejected();
    assert_eq!(verdict.live_orders(voucher), 100);
    for order in verdict.facts.orders.values() {
        assert_eq!(order.status, OrderStatus::PendingPayment);
    }
    let tally = verdict.facts.vouchers[&voucher].tally;
    assert_eq!((tally.total, tally.free), (100, 0));
    assert_eq!(tally.awaiting_payment, 100);
}

/// One buyer, 20 clicks in parallel, 10 units (the classic mistake: stock before repeat).
///
/// Stands for: stock is asked before repeat: clicks eat the stock, or a holder queues for what he
/// has (hole 3, B1, 2.1).
async fn twenty_clicks_are_one_order(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(10)).await;
    let clicker = buyer();
    let answers = crowd(vec![clicker; 20], 20, |buyer| shop.buy(voucher, buyer)).await;
    let ids: BTreeSet<_> = answers.iter().map(Purchase::order).collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
    assert!(!ids.contains(&None), "{answers:?}");
    let new = answers.iter().filter_map(Purchase::granted);
    assert_eq!(new.count(), 1, "{answers:?}");
    assert_eq!(shop.balanced(voucher).await.tally.free, 9);
}

/// 40 buyers who click 5 times each, all mixed, for 20 units.
async fn a_crowd_of_clickers_gets_one_each(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(20)).await;
    let people = buyers(40);
    let clicks: Vec<BuyerId> = (0..5).flat_map(|_| people.clone()).collect();
    let answers = crowd(clicks, 64, |buyer| shop.buy(voucher, buyer)).await;
    assert_eq!(answers.iter().filter_map(Purchase::granted).count(), 20);
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    let verdict = verdict.assert_holds().assert_none_rejected();
    assert_eq!(verdict.live_orders(voucher), 20);
}

/// Units after which one of two processes is killed. Together with the 64 calls under way it is
/// less than there are, so some are left to sell.
const KILLED_AFTER: usize = 20;

async fn a_killed_process_takes_no_unit_with_it(site: Site) {
    let (one, other) = (site.start().await, site.start().await);
    let voucher = one.shop().sell(&Offer::of(100)).await;
    let ledger = site.ledger().await;
    let shop = one.shop();
    let both = [shop.clone(), other.shop().writing(shop.history())];

    let watch = Watch::begin(ledger.clone(), voucher);
    let granted = AtomicUsize::new(0);
    let people: Vec<(usize, BuyerId)> = buyers(1_000).into_iter().enumerate().collect();
    crowd(people, 64, async |(turn, buyer)| {
        let answer = insist(&both, turn, voucher, buyer).await;
        if answer.granted().is_some() && granted.fetch_add(1, Ordering::Relaxed) + 1 == KILLED_AFTER
        {
            Process::kill(&other);
        }
    })
    .await;
    assert!(granted.into_inner() > KILLED_AFTER, "sold after the kill");

    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    let verdict = verdict.assert_holds().assert_none_rejected();
    assert_eq!(verdict.live_orders(voucher), 100);
    assert!(watch.end().await <= 100, "more live orders than units");
}

/// Asks one process, then the other one, until there is an answer, as people do.
async fn insist(both: &[Shop; 2], turn: usize, voucher: VoucherId, buyer: BuyerId) -> Purchase {
    for tried in 0.. {
        match both[(turn + tried) % 2]
            .try_buy(voucher, buyer, 1, None)
            .await
        {
            Ok(answer) if answer.code() != "unavailable" => return answer,
            _ if tried < 200 => tokio::time::sleep(Duration::from_millis(20)).await,
            other => panic!("no answer in the end: {other:?}"),
        }
    }
    unreachable!("the loop ends by itself")
}

/// Counts live orders in the ledger again and again.
struct Watch {
    stop: Arc<AtomicBool>,
    most: tokio::task::JoinHandle<usize>,
}

impl Watch {
    fn begin(ledger: Ledger, voucher: VoucherId) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let most = tokio::spawn(async move {
            let mut most = 0;
            while !stopping.load(Ordering::Relaxed) {
                let orders = ledger.orders(voucher).await;
                most = most.max(orders.values().filter(|order| order.is_live()).count());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            most
        });
        Self { stop, most }
    }

    async fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.most.await.expect("the watch does not panic")
    }
}
