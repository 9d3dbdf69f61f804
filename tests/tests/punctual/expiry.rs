//! Payment windows end on time, by either of the two who find out, and by both.

use std::time::Duration;

use seckill_domain::OrderStatus;
use seckill_tests::harness::{Offer, Process, Shop, Site, audit, buyers, crowd, sleep_until};
use time::OffsetDateTime;

use crate::PROGRAM;

seckill_tests::stamp!(
    servers, seckill_tests::harness::Site::shared(crate::PROGRAM);
    orders_expire_on_time_by_both,
    orders_expire_on_time_by_the_delay_queue,
    orders_expire_on_time_by_the_sweep,
);

/// An order may look unpaid for so long after its window has ended.
const EXPIRED_WITHIN: Duration = Duration::from_secs(2);
/// Later than that it was not slow, but not there.
const FOUND_WITHIN: Duration = Duration::from_secs(30);

async fn orders_expire_on_time_by_both(site: Site) {
    on_time(&site.with("SECKILL_EXPIRY", "both").start().await).await;
}

async fn orders_expire_on_time_by_the_delay_queue(site: Site) {
    on_time(&site.with("SECKILL_EXPIRY", "queue").start().await).await;
}

async fn orders_expire_on_time_by_the_sweep(site: Site) {
    on_time(&site.with("SECKILL_EXPIRY", "sweep").start().await).await;
}

#[tokio::test]
async fn orders_expire_on_time_in_memory() {
    for finder in ["both", "queue", "sweep"] {
        let site = Site::memory(PROGRAM).with("SECKILL_EXPIRY", finder);
        on_time(&site.start().await).await;
    }
}

/// A machine that does many other things at the same time may need another try.
async fn on_time(process: &Process) {
    let mut most = Vec::new();
    for _ in 0..3 {
        most.push(latest_expiry(&process.shop()).await);
        eprintln!("expired at most {most:?} late");
        if most.last() < Some(&EXPIRED_WITHIN) {
            return;
        }
    }
    panic!("at most {EXPIRED_WITHIN:?} late, not {most:?}");
}

/// Forty orders, two windows: each ends by itself and not before its time, and its unit is free.
/// Returns how late the last one did.
async fn latest_expiry(shop: &Shop) -> Duration {
    let (short, long) = (
        shop.sell(&Offer::of(20).payment_window_s(1)).await,
        shop.sell(&Offer::of(20).payment_window_s(2)).await,
    );
    let people = buyers(40)
        .into_iter()
        .zip([short, long].into_iter().cycle());
    let late = crowd(people.collect(), 40, async |(who, voucher)| {
        let order = shop.buy_settled(voucher, who).await;
        let due = shop.order(order, who).await.expires_at();
        sleep_until(due).await;
        loop {
            let seen = shop.order(order, who).await;
            let late = OffsetDateTime::now_utc() - due;
            if seen.order_status() != OrderStatus::PendingPayment {
                assert_eq!(seen.word("status"), "expired");
                assert_eq!(seen.expires_at(), due, "nothing moves it");
                return Duration::try_from(late).expect("not before its time");
            }
            assert!(late < FOUND_WITHIN, "{late} late: {}", seen.text);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    for voucher in [short, long] {
        let tally = shop.balanced(voucher).await.tally;
        assert_eq!((tally.free, tally.awaiting_payment), (20, 0));
    }
    let verdict = audit(shop, shop.history(), &[short, long], None).await;
    verdict.assert_holds();
    late.into_iter().max().expect("forty")
}
