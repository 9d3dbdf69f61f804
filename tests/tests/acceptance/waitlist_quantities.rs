//! The waitlist when people want several units: free units accumulate for the head.

use seckill_domain::{BuyerId, OrderId, OrderStatus};
use seckill_tests::harness::{Offer, Purchase, Shop, Site, audit, buyer, buyers};

use crate::on_every_stack;

on_every_stack!(
    units_accumulate_for_the_head,
    nobody_small_slips_past_the_head,
    a_head_that_can_never_be_served_makes_way,
    a_key_keeps_its_place,
);

async fn status(shop: &Shop, order: OrderId, who: BuyerId) -> OrderStatus {
    shop.order(order, who).await.order_status()
}

async fn units_accumulate_for_the_head(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(3).limit(3).waitlist(5)).await;
    let holders = buyers(3);
    let mut held = Vec::new();
    for who in &holders {
        held.push(shop.buy_settled(voucher, *who).await);
    }
    let (me, small) = (buyer(), buyer());
    let mine = shop
        .buy_some(voucher, me, 3, None)
        .await
        .expect_waitlisted()
        .0;
    let theirs = shop.buy(voucher, small).await.expect_waitlisted().0;
    for (turn, (who, order)) in holders.iter().zip(&held).enumerate() {
        assert_eq!(status(&shop, mine, me).await, OrderStatus::Waiting);
        shop.cancel(*order, *who).await.assert_status(200);
        let tally = shop.balanced(voucher).await.tally;
        let expected = if turn == 2 {
            0
        } else {
            i64::try_from(turn).unwrap() + 1
        };
        assert_eq!(tally.free, expected, "nobody else may have them");
    }
    let reply = shop
        .order_past(mine, me, &[OrderStatus::Waiting, OrderStatus::Queued])
        .await;
    assert_eq!(
        (reply.word("status"), reply.number("quantity")),
        ("pending_payment", 3)
    );
    assert_eq!(status(&shop, theirs, small).await, OrderStatus::Waiting);
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds().assert_none_rejected();
}

async fn nobody_small_slips_past_the_head(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(2).limit(2).waitlist(5)).await;
    let holder = buyer();
    shop.buy_settled(voucher, holder).await;
    // One is free, and not enough.
    let me = buyer();
    let answer = shop.buy_some(voucher, me, 2, None).await;
    let (mine, position) = answer.expect_waitlisted();
    assert_eq!(position, 1);
    let (_, position) = shop.buy(voucher, buyer()).await.expect_waitlisted();
    assert_eq!(position, 2, "one is free, for the head");
    // A holder below his limit may wait for more, too.
    let (_, position) = shop.buy(voucher, holder).await.expect_waitlisted();
    assert_eq!(position, 3);
    shop.leave(voucher, me).await.assert_status(204);
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!(tally.free, 0, "leaving serves the next: {tally:?}");
    let left = shop.order_past(mine, me, &[OrderStatus::Waiting]).await;
    assert_eq!(left.word("status"), "withdrawn");
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

async fn a_head_that_can_never_be_served_makes_way(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(4).limit(4).waitlist(5)).await;
    let holder = buyer();
    let three = shop
        .buy_some(voucher, holder, 3, None)
        .await
        .expect_granted();
    shop.settled(three, holder).await;
    let (me, next) = (buyer(), buyer());
    let mine = shop
        .buy_some(voucher, me, 4, None)
        .await
        .expect_waitlisted()
        .0;
    let theirs = shop
        .buy_some(voucher, next, 3, None)
        .await
        .expect_waitlisted()
        .0;
    shop.adjust(voucher, -1).await.assert_status(200);
    let reply = shop
        .order_past(mine, me, &[OrderStatus::Waiting, OrderStatus::Queued])
        .await;
    assert_eq!(reply.word("status"), "rejected");
    assert_eq!(reply.word("reason"), "not_enough_units");
    shop.cancel(three, holder).await.assert_status(200);
    let reply = shop
        .order_past(theirs, next, &[OrderStatus::Waiting, OrderStatus::Queued])
        .await;
    assert_eq!(reply.word("status"), "pending_payment");
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

async fn a_key_keeps_its_place(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).limit(2).waitlist(5)).await;
    let holder = buyer();
    let held = shop.buy_settled(voucher, holder).await;
    let me = buyer();
    let (mine, _) = shop
        .buy_some(voucher, me, 1, Some("once"))
        .await
        .expect_waitlisted();
    let again = shop.buy_some(voucher, me, 1, Some("once")).await;
    let (order, position) = again.expect_waitlisted();
    assert_eq!((order, position), (mine, 1));
    assert_eq!(
        shop.buy_some(voucher, me, 2, Some("once")).await.code(),
        "idempotency_key_reused"
    );
    shop.cancel(held, holder).await.assert_status(200);
    shop.order_past(mine, me, &[OrderStatus::Waiting, OrderStatus::Queued])
        .await;
    let later = shop.buy_some(voucher, me, 1, Some("once")).await;
    assert!(
        matches!(later, Purchase::Waitlisted { order, .. } if order == mine),
        "{later:?}"
    );
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}
