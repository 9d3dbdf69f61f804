//! I2 and I3 by row constraints alone.

use seckill_application::ports::Verdict;
use seckill_domain::{OrderStatus, RejectReason, Stage};

use crate::fixture::{Fixture, run};

const LIMIT: Verdict = Verdict::Rejected(RejectReason::LimitReached);
const NO_STOCK: Verdict = Verdict::Rejected(RejectReason::NoStock);

#[tokio::test]
async fn a_second_unit_for_a_buyer_at_his_limit_is_rejected_and_readable() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let verdicts = fixture
        .apply(vec![
            fixture.granted(2, 2, 1),
            fixture.granted(3, 1, 1),
            fixture.granted(4, 4, 1),
        ])
        .await;
    assert_eq!(verdicts, [Verdict::Confirmed, LIMIT, Verdict::Confirmed]);
    let order = fixture.order(3).await.unwrap();
    let reason = RejectReason::LimitReached;
    assert_eq!(order.stage, Stage::Rejected { reason });
    assert_eq!(order.expires_at, None);
    assert_eq!(fixture.voucher().await.stock_units, 7);
    assert_eq!(fixture.ledger.meters().counts().batches_reexamined, 1);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn quantities_count_against_a_limit_above_one() {
    let mut fixture = Fixture::new(100, 5).await;
    let verdicts = fixture
        .apply(vec![
            fixture.granted(1, 1, 2),
            fixture.granted(2, 1, 3),
            fixture.granted(3, 2, 5),
        ])
        .await;
    assert_eq!(verdicts, [Verdict::Confirmed; 3]);
    assert_eq!(fixture.held_by(1).await, 5);
    let verdicts = fixture
        .apply(vec![
            fixture.granted(4, 3, 4),
            fixture.granted(5, 3, 2),
            fixture.granted(6, 3, 1),
            fixture.granted(7, 1, 1),
        ])
        .await;
    assert_eq!(
        verdicts,
        [Verdict::Confirmed, LIMIT, Verdict::Confirmed, LIMIT],
        "4 + 2 is one too many, 4 + 1 is not"
    );
    assert_eq!(fixture.held_by(3).await, 5);
    assert_eq!(fixture.voucher().await.stock_units, 85);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn units_that_came_back_do_not_count() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    fixture.cancel(1).await;
    assert_eq!(fixture.held_by(1).await, 0);
    let verdicts = fixture.apply(vec![fixture.granted(2, 1, 1)]).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);
    assert_eq!(fixture.voucher().await.stock_units, 9);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_gate_that_promises_too_much_is_refused_the_surplus() {
    let mut fixture = Fixture::new(10, 1).await;
    let decisions = (1..=25).map(|n| fixture.granted(n, n, 1)).collect();
    let verdicts = fixture.apply(decisions).await;
    assert_eq!(verdicts[..10], [Verdict::Confirmed; 10]);
    assert_eq!(verdicts[10..], [NO_STOCK; 15]);
    assert_eq!(fixture.voucher().await.stock_units, 0);
    let reason = RejectReason::NoStock;
    assert_eq!(
        fixture.order(25).await.unwrap().stage,
        Stage::Rejected { reason }
    );
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_smaller_order_may_still_fit_where_a_larger_one_does_not() {
    let mut fixture = Fixture::new(3, 3).await;
    let verdicts = fixture
        .apply(vec![
            fixture.granted(1, 1, 2),
            fixture.granted(2, 2, 3),
            fixture.granted(3, 3, 1),
        ])
        .await;
    assert_eq!(verdicts, [Verdict::Confirmed, NO_STOCK, Verdict::Confirmed]);
    fixture.assert_sound().await;
}

/// Negative control: without the check of the schema the second unit goes through, so it is the
/// check that refuses it, not a query before it.
#[tokio::test]
async fn without_the_check_on_holdings_the_limit_is_passed() {
    let mut fixture = Fixture::new(10, 1).await;
    let mut meddler = fixture.database.connect().await;
    run(
        &mut meddler,
        "ALTER TABLE holdings DROP CONSTRAINT holdings_within_limit",
    )
    .await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let verdicts = fixture.apply(vec![fixture.granted(2, 1, 1)]).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);
    assert_eq!(fixture.held_by(1).await, 2);
}

/// Negative control: the same purchase under two order ids.
#[tokio::test]
async fn without_the_unique_key_a_purchase_is_made_twice() {
    for guarded in [true, false] {
        let mut fixture = Fixture::new(10, 5).await;
        if !guarded {
            let mut meddler = fixture.database.connect().await;
            run(
                &mut meddler,
                "ALTER TABLE orders DROP KEY orders_once_per_key",
            )
            .await;
        }
        let with_key = |order| {
            let key = Some("once".parse().unwrap());
            seckill_domain::Decision::Granted(seckill_domain::Claim {
                key,
                ..fixture.claim(order, 1, 1)
            })
        };
        let (first, second) = (with_key(1), with_key(2));
        assert_eq!(fixture.apply(vec![first]).await, [Verdict::Confirmed]);
        let verdicts = fixture.apply(vec![second]).await;
        if guarded {
            assert_eq!(verdicts, [LIMIT]);
            let order = fixture.order(2).await.unwrap();
            assert_eq!(order.status(), OrderStatus::Rejected);
            assert_eq!(order.key, None, "the key stays with its first use");
            assert_eq!(fixture.voucher().await.stock_units, 9);
            fixture.assert_sound().await;
        } else {
            assert_eq!(verdicts, [Verdict::Confirmed]);
            assert_eq!(fixture.voucher().await.stock_units, 8);
        }
    }
}

#[tokio::test]
async fn stock_and_holdings_cannot_leave_their_range_by_hand() {
    let mut fixture = Fixture::new(2, 2).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let mut meddler = fixture.database.connect().await;
    for sql in [
        "UPDATE voucher_stock SET stock_units = stock_units - 2",
        "UPDATE voucher_stock SET stock_units = stock_units + 2",
        "UPDATE holdings SET units = units - 2",
        "UPDATE holdings SET units = units + 2",
        "UPDATE orders SET status = 'paid'",
        "UPDATE orders SET status = 'rejected'",
        "UPDATE orders SET status = 'on the way'",
        "UPDATE orders SET voucher_id = 12345",
        "INSERT INTO stock_adjustments (voucher_id, delta, reason, state, created_at, updated_at) \
           VALUES (12345, 1, '', 'pending', NOW(), NOW())",
        "INSERT INTO voucher_stock VALUES (12345, 1, 1, 0)",
        "INSERT INTO gate_updates VALUES (12345, 1, 0, '', NOW())",
    ] {
        let refused = sqlx::query(sql).execute(&mut meddler).await;
        assert!(refused.is_err(), "{sql}");
    }
    fixture.assert_sound().await;
}
