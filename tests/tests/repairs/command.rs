//! `seckill reconcile`, as an operator runs it.

use futures::future::join_all;
use seckill_tests::harness::{Offer, Site, buyer};

use crate::on_own_stores;
use crate::reports::{first_round, listed};

on_own_stores!(
    a_dry_run_reports_and_the_next_run_mends,
    closed_sales_are_looked_at_too,
    one_instance_reconciles_at_a_time,
);

async fn a_dry_run_reports_and_the_next_run_mends(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    first_round(&shop).await;
    let gate = site.gate().await;
    let (voucher, who) = (shop.sell(&Offer::of(10)).await, buyer());
    let order = shop.buy_settled(voucher, who).await;
    let ran = site.run(&["reconcile"]).await;
    assert_eq!(ran.code, Some(0), "nothing is wrong: {ran:?}");
    assert!(ran.out.contains("total 10 = free 9"), "{ran:?}");

    assert!(gate.drop_holder(voucher, who).await);
    for _ in 0..2 {
        let ran = site.run(&["reconcile", "--dry-run"]).await;
        assert_eq!(ran.code, Some(1), "found and left: {ran:?}");
        let said = format!("order {order}: HolderGone, not repaired");
        assert!(ran.out.contains(&said), "{ran:?}");
        assert!(ran.out.contains("(dry run)"), "{ran:?}");
    }
    let ran = site.run(&["reconcile"]).await;
    assert_eq!(ran.code, Some(0), "found and mended: {ran:?}");
    let said = format!("order {order}: HolderGone, repaired");
    assert!(ran.out.contains(&said), "{ran:?}");
    let again = shop.buy(voucher, who).await;
    assert_eq!(again.expect_already_held(), order);

    assert!(gate.shift_free(voucher, 2).await);
    let ran = site.run(&["reconcile", "--dry-run"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("off by 2"), "{ran:?}");
    let ran = site.run(&["reconcile"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let balance = shop.balanced(voucher).await;
    assert_eq!(balance.tally.free, 9);
    let reports = listed(&shop).await;
    let dry = reports.iter().filter(|report| report.dry_run).count();
    assert_eq!(dry, 3, "they are kept, too");
}

async fn closed_sales_are_looked_at_too(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    first_round(&shop).await;
    let (voucher, who) = (shop.sell(&Offer::of(10)).await, buyer());
    let order = shop.buy_settled(voucher, who).await;
    shop.steer(voucher, "close").await.assert_status(200);
    assert!(site.gate().await.drop_holder(voucher, who).await);
    let ran = site.run(&["reconcile"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains(": 1 vouchers"), "{ran:?}");
    let said = format!("order {order}: HolderGone, repaired");
    assert!(ran.out.contains(&said), "{ran:?}");
    let ran = site.run(&["reconcile", "--full"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("1 vouchers, 0 findings"), "{ran:?}");
}

/// Of several at once one works, and the others say so; what cannot be compared is refused.
async fn one_instance_reconciles_at_a_time(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    first_round(&shop).await;
    for _ in 0..4 {
        shop.sell(&Offer::of(1)).await;
    }
    let ran = join_all((0..3).map(|_| site.run(&["reconcile"]))).await;
    let (done, refused): (Vec<_>, Vec<_>) = ran.iter().partition(|ran| ran.code == Some(0));
    assert!(!done.is_empty() && !refused.is_empty(), "{ran:?}");
    for ran in refused {
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(
            ran.err.contains("another process is reconciling"),
            "{ran:?}"
        );
    }
    let reports = listed(&shop).await;
    assert_eq!(reports.len(), 1 + done.len());
    let memory = ["--gate", "memory://", "--ledger", "memory://"];
    let ran = site.run(&[&["reconcile"], &memory[..]].concat()).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("SECKILL_GATE"), "{ran:?}");
}
