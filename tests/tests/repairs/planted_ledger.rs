//! Rows of the ledger changed by hand while everything is at rest: they are told of, and what nobody
//! can know is not repaired.

use std::time::Duration;

use seckill_domain::OrderStatus;
use seckill_tests::harness::{Offer, Site, buyer, eventually};

use crate::on_own_stores;
use crate::reports::{first_round, round, round_about};

on_own_stores!(
    stock_that_was_changed_by_hand_is_told_of_and_left,
    an_order_that_was_deleted_is_not_repaired_round_after_round,
    a_comparison_that_cannot_be_made_is_no_difference,
);

async fn stock_that_was_changed_by_hand_is_told_of_and_left(site: Site) {
    const LESS: &str =
        "UPDATE voucher_stock SET stock_units = stock_units - 2 WHERE voucher_id = ?";
    const MORE: &str =
        "UPDATE voucher_stock SET stock_units = stock_units + 2 WHERE voucher_id = ?";
    let process = site.start().await;
    let shop = process.shop();
    first_round(&shop).await;
    let voucher = shop.sell(&Offer::of(10)).await;
    shop.buy_settled(voucher, buyer()).await;
    let ledger = site.ledger().await;
    assert_eq!(ledger.change(LESS, voucher.get()).await, 1);
    for _ in 0..2 {
        let report = round(&shop, false).await;
        let found = report.of(voucher);
        assert_eq!((found.stock_drift, found.holds), (-2, false));
        assert_eq!((found.free_drift, &found.differences[..]), (0, &[][..]));
        assert_eq!((report.repair_count, found.reloads), (0, 0));
    }
    assert!(!shop.balance(voucher).await.holds);
    let ran = site.run(&["reconcile"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("stock is off by -2"), "{ran:?}");
    assert_eq!(ledger.change(MORE, voucher.get()).await, 1);
    round_about(&shop, voucher).await.of(voucher).assert_sound();
    let ran = site.run(&["reconcile"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

async fn an_order_that_was_deleted_is_not_repaired_round_after_round(site: Site) {
    const DELETE: &str = "DELETE FROM orders WHERE id = ?";
    let process = site.start().await;
    let shop = process.shop();
    first_round(&shop).await;
    let voucher = shop.sell(&Offer::of(10)).await;
    let who = buyer();
    let order = shop.buy_settled(voucher, who).await;
    assert_eq!(site.ledger().await.change(DELETE, order.get()).await, 1);
    // Its grant is told to the ledger again, which has a holding of the buyer's left.
    let report = round(&shop, false).await;
    let [gone] = &report.of(voucher).differences[..] else {
        panic!("{report:?}");
    };
    assert_eq!((&gone.kind[..], gone.repaired), ("message_gone", true));
    eventually(
        "there is no more to try",
        Duration::from_secs(30),
        async || {
            let report = round(&shop, false).await;
            let tried = report.differences().count();
            (tried == 0).then_some(()).ok_or(format!("{report:?}"))
        },
    )
    .await;
    for _ in 0..2 {
        let report = round(&shop, false).await;
        let found = report.of(voucher);
        assert!(!found.holds && found.stock_drift < 0, "{found:?}");
        assert_eq!((report.difference_count, report.repair_count), (0, 0));
    }
    let seen = shop.order(order, who).await;
    assert_eq!(seen.order_status(), OrderStatus::Rejected);
    let ran = site.run(&["reconcile"]).await;
    assert_eq!(ran.code, Some(1), "the unit is still missing: {ran:?}");
}

/// Whoever watches the exit code is not told that gate and ledger differ.
async fn a_comparison_that_cannot_be_made_is_no_difference(site: Site) {
    let process = site.start().await;
    first_round(&process.shop()).await;
    let away = ["reconcile", "--ledger", "mysql://root@127.0.0.1:1/nowhere"];
    let ran = site.run(&away).await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("SECKILL_LEDGER"), "{ran:?}");
}
