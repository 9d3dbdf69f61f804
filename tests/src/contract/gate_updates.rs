//! `GateUpdates`: the outbox of what the gate has to follow.

use seckill_domain::{GateChange, GateUpdate, GateVersion, SaleStatus, Voucher, VoucherId};

use super::desk::Desk;
use super::{LedgerHarness, promises};

promises! { gate_updates over dyn LedgerHarness:
    updates_come_in_the_order_of_versions,
    updates_come_after_a_version_and_not_too_many,
    an_update_stays_until_it_is_forgotten,
    forgetting_may_be_repeated,
    forgetting_one_voucher_keeps_the_others,
    a_version_is_never_used_again,
    vouchers_with_updates_wait_the_oldest_first,
    writers_at_once_leave_no_gap,
}

async fn push(desk: &Desk<'_>, voucher: VoucherId, units: u32) -> GateVersion {
    let mut unit = desk.begin().await;
    let changes = [GateChange::AddUnits { units }];
    let version = unit.push_update(voucher, &changes).await.unwrap();
    unit.commit().await.unwrap();
    version
}

async fn after(desk: &Desk<'_>, voucher: &Voucher, after: u64, max: usize) -> Vec<u64> {
    let after = GateVersion::new(after);
    let updates = desk
        .ports
        .updates
        .after(voucher.id, after, max)
        .await
        .unwrap();
    updates.iter().map(|update| update.version.get()).collect()
}

async fn updates_come_in_the_order_of_versions(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let other = desk.voucher(5, 1).await;
    let mut expected = Vec::new();
    for units in 1..=12 {
        let version = push(&desk, voucher.id, units).await;
        push(&desk, other.id, 100).await;
        let changes = vec![GateChange::AddUnits { units }];
        let voucher = voucher.id;
        expected.push(GateUpdate {
            voucher,
            version,
            changes,
        });
    }
    let start = GateVersion::default();
    let updates = desk
        .ports
        .updates
        .after(voucher.id, start, 100)
        .await
        .unwrap();
    assert_eq!(updates, expected);
    assert_eq!(
        after(&desk, &voucher, 0, 100).await,
        (1..=12).collect::<Vec<_>>()
    );
}

async fn updates_come_after_a_version_and_not_too_many(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    for units in 1..=5 {
        push(&desk, voucher.id, units).await;
    }
    assert_eq!(after(&desk, &voucher, 2, 2).await, [3, 4]);
    assert_eq!(after(&desk, &voucher, 4, 2).await, [5]);
    assert_eq!(after(&desk, &voucher, 5, 2).await, [0_u64; 0]);
    assert_eq!(after(&desk, &voucher, 900, 2).await, [0_u64; 0]);
}

async fn an_update_stays_until_it_is_forgotten(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    for units in 1..=4 {
        push(&desk, voucher.id, units).await;
    }
    assert_eq!(after(&desk, &voucher, 0, 100).await, [1, 2, 3, 4]);
    assert_eq!(after(&desk, &voucher, 0, 100).await, [1, 2, 3, 4]);
    desk.ports
        .updates
        .forget(voucher.id, GateVersion::new(3))
        .await
        .unwrap();
    assert_eq!(after(&desk, &voucher, 0, 100).await, [4]);
}

async fn forgetting_may_be_repeated(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    for units in 1..=3 {
        push(&desk, voucher.id, units).await;
    }
    for up_to in [2, 2, 1, 0] {
        desk.ports
            .updates
            .forget(voucher.id, GateVersion::new(up_to))
            .await
            .unwrap();
        assert_eq!(after(&desk, &voucher, 0, 100).await, [3]);
    }
    let unknown = VoucherId::new(999);
    desk.ports
        .updates
        .forget(unknown, GateVersion::new(9))
        .await
        .unwrap();
}

async fn forgetting_one_voucher_keeps_the_others(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [one, two] = [desk.voucher(5, 1).await, desk.voucher(5, 1).await];
    push(&desk, one.id, 1).await;
    push(&desk, two.id, 1).await;
    desk.ports
        .updates
        .forget(one.id, GateVersion::new(1))
        .await
        .unwrap();
    assert_eq!(after(&desk, &one, 0, 100).await, [0_u64; 0]);
    assert_eq!(after(&desk, &two, 0, 100).await, [1]);
}

async fn a_version_is_never_used_again(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    push(&desk, voucher.id, 1).await;
    desk.ports
        .updates
        .forget(voucher.id, GateVersion::new(1))
        .await
        .unwrap();
    assert_eq!(push(&desk, voucher.id, 1).await, GateVersion::new(2));
    let mut unit = desk.begin().await;
    unit.push_update(voucher.id, &[]).await.unwrap();
    drop(unit);
    let paused = desk.set_status(voucher.id, SaleStatus::Paused, true).await;
    assert_eq!(
        paused.version,
        GateVersion::new(3),
        "a rolled-back one leaves no gap"
    );
}

async fn vouchers_with_updates_wait_the_oldest_first(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut vouchers = Vec::new();
    for _ in 0..4 {
        vouchers.push(desk.voucher(5, 1).await.id);
    }
    let waiting = async |max| desk.ports.updates.waiting(max).await.unwrap();
    assert_eq!(waiting(10).await, []);
    let order = [vouchers[2], vouchers[0], vouchers[3]];
    for voucher in order {
        push(&desk, voucher, 1).await;
        harness.elapse(std::time::Duration::from_millis(20)).await;
    }
    push(&desk, order[0], 2).await;
    assert_eq!(waiting(10).await, order);
    assert_eq!(waiting(2).await, order[..2]);
    desk.ports
        .updates
        .forget(order[0], GateVersion::new(2))
        .await
        .unwrap();
    assert_eq!(waiting(10).await, order[1..]);
}

/// The gate refuses gaps, so versions must become visible in their order.
async fn writers_at_once_leave_no_gap(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let write = async || {
        for _ in 0..6 {
            push(&desk, voucher.id, 1).await;
            tokio::task::yield_now().await;
        }
    };
    let read = async {
        for _ in 0..30 {
            let seen = after(&desk, &voucher, 0, 100).await;
            let expected: Vec<u64> = (1..).take(seen.len()).collect();
            assert_eq!(seen, expected);
            tokio::task::yield_now().await;
        }
    };
    futures::join!(write(), write(), write(), read);
    assert_eq!(
        after(&desk, &voucher, 0, 100).await,
        (1..=18).collect::<Vec<_>>()
    );
}
