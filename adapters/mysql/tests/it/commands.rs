//! Units of work.

use std::time::Duration;

use seckill_application::Effect;
use seckill_application::ports::{
    AdjustmentReply, AdjustmentState, NewAdjustment, NewVoucher, Release,
};
use seckill_domain::{
    AdjustmentId, Amendment, GateVersion, OrderId, OrderStatus, SaleStatus, Stage, VoucherId,
};

use crate::fixture::{Fixture, run, terms};

impl Fixture {
    /// Cancels an unpaid order, as the use case does.
    pub(crate) async fn cancel(&self, id: u64) {
        let mut unit = self.ports.ledger.begin().await.unwrap();
        let mut order = unit.lock_order(OrderId::new(id)).await.unwrap().unwrap();
        let now = unit.now().await.unwrap();
        order.cancel(now).unwrap();
        let orders = [order];
        let saved = unit.save_orders(OrderStatus::PendingPayment, &orders).await;
        assert_eq!(saved.unwrap(), 1);
        let release = Release::of(&orders[0]);
        unit.release(self.voucher, &[release]).await.unwrap();
        unit.commit().await.unwrap();
    }

    /// Pays an order, as the use case does. Returns how many rows that changed.
    pub(crate) async fn pay(&self, id: u64, payment: &str) -> usize {
        let mut unit = self.ports.ledger.begin().await.unwrap();
        let mut order = unit.lock_order(OrderId::new(id)).await.unwrap().unwrap();
        let now = unit.now().await.unwrap();
        order.pay(&payment.parse().unwrap(), now).unwrap();
        let saved = unit
            .save_orders(OrderStatus::PendingPayment, &[order])
            .await;
        unit.commit().await.unwrap();
        saved.unwrap()
    }

    /// Writes an adjustment down.
    pub(crate) async fn record(&self, delta: i32) -> AdjustmentId {
        let mut unit = self.ports.ledger.begin().await.unwrap();
        let new = adjustment(self.voucher, delta, None);
        let AdjustmentReply::Recorded(adjustment) = unit.record_adjustment(&new).await.unwrap()
        else {
            panic!("the key is new");
        };
        unit.commit().await.unwrap();
        adjustment.id
    }
}

fn adjustment(voucher: VoucherId, delta: i32, key: Option<&str>) -> NewAdjustment {
    NewAdjustment {
        voucher,
        delta,
        reason: "补货 after the rain".to_owned(),
        key: key.map(|key| key.parse().unwrap()),
    }
}

#[tokio::test]
async fn a_voucher_comes_back_as_it_was_stored() {
    let fixture = Fixture::new(10, 3).await;
    let voucher = fixture.voucher().await;
    assert_eq!(voucher.terms, terms(3));
    assert_eq!((voucher.total_units, voucher.stock_units), (10, 10));
    assert_eq!(voucher.status, SaleStatus::Published);
    assert_eq!(voucher.version, GateVersion::new(1));
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    assert!(
        unit.lock_voucher(VoucherId::new(99))
            .await
            .unwrap()
            .is_none()
    );
    assert!(unit.lock_order(OrderId::new(99)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_draft_may_change_its_units_and_a_published_voucher_may_not() {
    let fixture = Fixture::new(10, 1).await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let new = NewVoucher {
        terms: terms(1),
        total_units: 5,
    };
    let mut voucher = unit.insert_voucher(&new).await.unwrap();
    assert_eq!(voucher.version, GateVersion::new(0));
    let change = Amendment {
        total_units: Some(7),
        description: Some("更多".to_owned()),
        ..Amendment::default()
    };
    voucher.amend(&change).unwrap();
    let version = unit.save_voucher(&voucher, false).await.unwrap();
    assert_eq!(
        version,
        GateVersion::new(0),
        "a draft is nothing for the gate"
    );
    voucher.publish(unit.now().await.unwrap()).unwrap();
    let version = unit.save_voucher(&voucher, true).await.unwrap();
    assert_eq!(version, GateVersion::new(1));
    // A stale copy must not bring units back.
    voucher.stock_units = 1;
    voucher.total_units = 1;
    unit.save_voucher(&voucher, true).await.unwrap();
    unit.commit().await.unwrap();
    let stored = fixture
        .ports
        .ledger
        .voucher(voucher.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((stored.total_units, stored.stock_units), (7, 7));
    assert_eq!(stored.version, GateVersion::new(2));
    assert_eq!(stored.terms.description.as_deref(), Some("更多"));
}

#[tokio::test]
async fn a_dropped_unit_is_rolled_back_and_its_locks_are_gone() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let connects = fixture.ledger.meters().counts().connects;
    for _ in 0..10 {
        let mut unit = fixture.ports.ledger.begin().await.unwrap();
        let mut order = unit.lock_order(OrderId::new(1)).await.unwrap().unwrap();
        order.stage = Stage::Cancelled;
        unit.save_orders(OrderStatus::PendingPayment, &[order])
            .await
            .unwrap();
        drop(unit);
    }
    let order = fixture.order(1).await.unwrap();
    assert_eq!(order.stage, Stage::PendingPayment);
    let counts = fixture.ledger.meters().counts();
    assert_eq!(counts.connections_dropped, 0, "the connections are kept");
    assert!(counts.connects < connects + 10, "one each: {counts:?}");
}

#[tokio::test]
async fn an_order_is_saved_only_from_the_stage_it_was_in() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    assert_eq!(fixture.pay(1, "wx-1").await, 1);
    let order = fixture.order(1).await.unwrap();
    let payment = "wx-1".parse().unwrap();
    assert_eq!(order.stage, Stage::Paid { payment });

    // Somebody who read the order before it was paid.
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let mut stale = order.clone();
    stale.stage = Stage::Cancelled;
    let saved = unit
        .save_orders(OrderStatus::PendingPayment, &[stale.clone()])
        .await;
    assert_eq!(saved.unwrap(), 0, "a payment is not overwritten");
    let saved = unit.save_orders(OrderStatus::Cancelled, &[stale]).await;
    assert_eq!(saved.unwrap(), 0);

    let mut refunded = order;
    refunded.refund().unwrap();
    let saved = unit.save_orders(OrderStatus::Paid, &[refunded]).await;
    assert_eq!(saved.unwrap(), 1);
    unit.commit().await.unwrap();
    let payment = "wx-1".parse().unwrap();
    assert_eq!(
        fixture.order(1).await.unwrap().stage,
        Stage::Refunded { payment }
    );
}

#[tokio::test]
async fn two_cancels_at_once_give_the_unit_back_once() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let voucher = fixture.voucher;
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let ledger = fixture.ports.ledger.clone();
            tokio::spawn(async move {
                let mut unit = ledger.begin().await.unwrap();
                let mut order = unit.lock_order(OrderId::new(1)).await.unwrap().unwrap();
                if order.status() != OrderStatus::PendingPayment {
                    return 0;
                }
                order.stage = Stage::Cancelled;
                let orders = [order];
                let saved = unit.save_orders(OrderStatus::PendingPayment, &orders).await;
                assert_eq!(saved.unwrap(), 1);
                unit.release(voucher, &[Release::of(&orders[0])])
                    .await
                    .unwrap();
                unit.commit().await.unwrap();
                1
            })
        })
        .collect();
    let mut cancelled = 0;
    for task in tasks {
        cancelled += task.await.unwrap();
    }
    assert_eq!(cancelled, 1);
    assert_eq!(fixture.voucher().await.stock_units, 10);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn overdue_orders_come_in_batches_and_each_to_one_sweeper() {
    let mut fixture = Fixture::new(100, 3).await;
    let decisions = (1..=30).map(|n| fixture.granted(n, n % 20, 1)).collect();
    fixture.apply(decisions).await;
    let mut meddler = fixture.database.connect().await;
    run(
        &mut meddler,
        "UPDATE orders SET expires_at = UTC_TIMESTAMP(3) - INTERVAL id SECOND WHERE id <= 25",
    )
    .await;
    let ledger = &fixture.ports.ledger;
    let mut first = ledger.begin().await.unwrap();
    let mut second = ledger.begin().await.unwrap();
    let some = first.lock_overdue_orders(10).await.unwrap();
    let others = second.lock_overdue_orders(100).await.unwrap();
    let ids = |orders: &[seckill_domain::Order]| -> Vec<u64> {
        orders.iter().map(|order| order.id.get()).collect()
    };
    assert_eq!(
        ids(&some),
        (16..=25).rev().collect::<Vec<_>>(),
        "oldest first"
    );
    assert_eq!(ids(&others), (1..=15).rev().collect::<Vec<_>>());
    drop(second);
    let mut due = some;
    for order in &mut due {
        order.expire(first.now().await.unwrap()).unwrap();
    }
    let saved = first.save_orders(OrderStatus::PendingPayment, &due).await;
    assert_eq!(saved.unwrap(), 10);
    let releases: Vec<Release> = due.iter().map(Release::of).collect();
    let version = first.release(fixture.voucher, &releases).await.unwrap();
    assert_eq!(version, GateVersion::new(2), "one version for all");
    first.commit().await.unwrap();
    assert_eq!(fixture.voucher().await.stock_units, 80);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn units_that_a_buyer_does_not_hold_cannot_come_back() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    for (buyer, quantity) in [(1, 2), (2, 1)] {
        let mut unit = fixture.ports.ledger.begin().await.unwrap();
        let release = Release {
            order: OrderId::new(1),
            buyer: seckill_domain::BuyerId::new(buyer),
            quantity,
        };
        let fault = unit.release(fixture.voucher, &[release]).await.unwrap_err();
        assert!(!fault.is_retryable());
        let fault = unit.commit().await.unwrap_err();
        assert_eq!(
            fault.effect(),
            Effect::None,
            "nothing of a failed unit stands"
        );
    }
    assert_eq!(fixture.voucher().await.stock_units, 9);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn an_adjustment_is_written_down_once_per_key() {
    let fixture = Fixture::new(10, 1).await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let mut record = async |delta, key| {
        let new = adjustment(fixture.voucher, delta, key);
        unit.record_adjustment(&new).await.unwrap()
    };
    let first = record(5, Some("k")).await;
    assert_eq!(record(5, Some("k")).await, first);
    assert_eq!(record(6, Some("k")).await, AdjustmentReply::KeyReused);
    assert_ne!(record(5, None).await, first);
    assert_ne!(
        record(5, Some("K")).await,
        first,
        "keys are told apart by case"
    );
    unit.commit().await.unwrap();
}

#[tokio::test]
async fn added_units_are_in_total_stock_and_outbox_once() {
    let fixture = Fixture::new(10, 1).await;
    let id = fixture.record(5).await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let pending = unit.adjustment(id).await.unwrap().unwrap();
    assert_eq!(pending.state, AdjustmentState::Pending);
    let version = unit.add_units(fixture.voucher, id, 5).await.unwrap();
    assert_eq!(version, GateVersion::new(2));
    unit.commit().await.unwrap();
    let voucher = fixture.voucher().await;
    assert_eq!((voucher.total_units, voucher.stock_units), (15, 15));

    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let applied = unit.adjustment(id).await.unwrap().unwrap();
    assert_eq!(applied.state, AdjustmentState::Applied);
    assert!(unit.add_units(fixture.voucher, id, 5).await.is_err());
    assert!(unit.commit().await.is_err());
    assert_eq!(fixture.voucher().await.total_units, 15);

    let id = fixture.record(-3).await;
    for _ in 0..2 {
        let mut unit = fixture.ports.ledger.begin().await.unwrap();
        unit.refuse_adjustment(id).await.unwrap();
        let refused = unit.adjustment(id).await.unwrap().unwrap();
        assert_eq!(refused.state, AdjustmentState::Refused);
        unit.commit().await.unwrap();
    }
}

#[tokio::test]
async fn paying_and_expiring_at_once_is_one_of_the_two() {
    let mut fixture = Fixture::new(100, 1).await;
    let decisions = (1..=40).map(|n| fixture.granted(n, n, 1)).collect();
    fixture.apply(decisions).await;
    let mut meddler = fixture.database.connect().await;
    run(
        &mut meddler,
        "UPDATE orders SET expires_at = UTC_TIMESTAMP(3) + INTERVAL 150000 MICROSECOND",
    )
    .await;
    let voucher = fixture.voucher;
    let payers: Vec<_> = (1..=40)
        .map(|n| {
            let ledger = fixture.ports.ledger.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(100 + n * 3)).await;
                let mut unit = ledger.begin().await.unwrap();
                let mut order = unit.lock_order(OrderId::new(n)).await.unwrap().unwrap();
                let now = unit.now().await.unwrap();
                if order.pay(&"p".parse().unwrap(), now).is_err() {
                    return 0;
                }
                let saved = unit
                    .save_orders(OrderStatus::PendingPayment, &[order])
                    .await;
                assert_eq!(saved.unwrap(), 1);
                unit.commit().await.unwrap();
                1
            })
        })
        .collect();
    let mut expired = 0;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let mut unit = fixture.ports.ledger.begin().await.unwrap();
        let mut due = unit.lock_overdue_orders(3).await.unwrap();
        if due.is_empty() {
            continue;
        }
        let now = unit.now().await.unwrap();
        for order in &mut due {
            order.expire(now).unwrap();
        }
        let saved = unit.save_orders(OrderStatus::PendingPayment, &due).await;
        assert_eq!(saved.unwrap(), due.len());
        let releases: Vec<Release> = due.iter().map(Release::of).collect();
        unit.release(voucher, &releases).await.unwrap();
        unit.commit().await.unwrap();
        expired += due.len();
    }
    let mut paid = 0;
    for payer in payers {
        paid += payer.await.unwrap();
    }
    assert_eq!(paid + expired, 40);
    assert_eq!(fixture.voucher().await.stock_units as usize, 60 + expired);
    fixture.assert_sound().await;
}
