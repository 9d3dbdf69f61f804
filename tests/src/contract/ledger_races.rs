//! Writers, commands and readers at once: whatever the database refuses for now may be repeated,
//! and the books balance.

use seckill_application::Fault;
use seckill_application::ports::{Applied, LedgerPorts, NewAdjustment, PartitionHead};
use seckill_domain::{Claim, Decision, OrderStatus, Stage, Voucher};

use super::desk::{Desk, batch_from, claim, release};
use super::{LedgerHarness, promises};

promises! { ledger_races over dyn LedgerHarness:
    grants_cancellations_and_new_stock_at_once_balance,
    commands_on_many_orders_in_any_order_all_get_done,
    orders_named_in_opposite_order_are_locked_in_one,
}

const BUYERS: u64 = 40;

/// Repeats what the database refused for now, as a deadlock or a lock wait is.
async fn insisting<T>(mut ask: impl AsyncFnMut() -> Result<T, Fault>) -> T {
    for tries in 0..200 {
        match ask().await {
            Ok(answer) => return answer,
            Err(fault) => assert!(fault.is_retryable(), "{}", fault.chain()),
        }
        // Longer each time, so that of two who are in each other's way one gets through.
        for _ in 0..4 * tries {
            tokio::task::yield_now().await;
        }
    }
    panic!("it never succeeds");
}

/// Writes grants in small batches, going on from wherever the ledger says it is.
async fn write(ports: &LedgerPorts, desk: &Desk<'_>, voucher: &Voucher, claims: &[Claim]) {
    let partition = desk.partition_of(voucher.id);
    let mut head: PartitionHead =
        insisting(async || ports.admissions.take_over(partition).await).await;
    for part in claims.chunks(4) {
        let grants: Vec<Decision> = part.iter().cloned().map(Decision::Granted).collect();
        let batch = batch_from(head, partition, grants, desk.now().await);
        match insisting(async || ports.admissions.apply(&batch).await).await {
            Applied::Committed { head: next, .. } => head = next,
            Applied::Stale(found) => panic!("nobody else writes, but {found:?}"),
        }
    }
}

/// Cancels an order once it is there.
async fn cancel(ports: &LedgerPorts, claim: &Claim) {
    let arrived = async || match ports.ledger.order(claim.order).await? {
        Some(_) => Ok(()),
        None => Err(Fault::unavailable("test", "not there yet")),
    };
    while arrived().await.is_err() {
        tokio::task::yield_now().await;
    }
    insisting(async || {
        let mut unit = ports.ledger.begin().await?;
        let order = unit.lock_order(claim.order).await?;
        let mut order = order.expect("it arrived");
        order.stage = Stage::Cancelled;
        let saved = unit
            .save_orders(OrderStatus::PendingPayment, &[order])
            .await?;
        assert_eq!(saved, 1);
        unit.release(claim.voucher, &[release(claim)]).await?;
        unit.commit().await
    })
    .await;
}

async fn restock(ports: &LedgerPorts, voucher: &Voucher) {
    insisting(async || {
        let mut unit = ports.ledger.begin().await?;
        let new = NewAdjustment {
            voucher: voucher.id,
            delta: 1,
            reason: "more".to_owned(),
            key: None,
        };
        let reply = unit.record_adjustment(&new).await?;
        let seckill_application::ports::AdjustmentReply::Recorded(adjustment) = reply else {
            panic!("{reply:?}");
        };
        unit.add_units(voucher.id, adjustment.id, 1).await?;
        unit.commit().await
    })
    .await;
}

async fn grants_cancellations_and_new_stock_at_once_balance(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let other = harness.another_process().await;
    let voucher = desk.voucher(u32::try_from(BUYERS).unwrap(), 1).await;
    let claims: Vec<Claim> = (1..=BUYERS)
        .map(|buyer| claim(&voucher, buyer, 1))
        .collect();
    let cancelled: Vec<&Claim> = claims.iter().step_by(2).collect();
    let cancels = async {
        for claim in &cancelled {
            cancel(&other, claim).await;
        }
    };
    let restocks = async {
        for _ in 0..10 {
            restock(&desk.ports, &voucher).await;
        }
    };
    let reads = async {
        for _ in 0..20 {
            desk.snapshot(voucher.id).await;
            tokio::task::yield_now().await;
        }
    };
    futures::join!(
        write(&desk.ports, &desk, &voucher, &claims),
        cancels,
        restocks,
        reads
    );
    let tally = desk.tally(voucher.id).await;
    let live = claims.len() - cancelled.len();
    assert_eq!(tally.awaiting_payment as usize, live);
    assert_eq!(tally.total, voucher.total_units + 10);
    let updates = desk
        .ports
        .updates
        .after(voucher.id, voucher.version, 100)
        .await
        .unwrap();
    let versions: Vec<u64> = updates.iter().map(|update| update.version.get()).collect();
    let expected: Vec<u64> = (1..=10 + cancelled.len() as u64).collect();
    assert_eq!(versions, expected, "one version for each, without a gap");
}

/// Two sweeps that take the same orders in opposite order must not stop for ever.
///
/// Stands for: rows locked in opposite order: two transactions stop each other (B48).
async fn commands_on_many_orders_in_any_order_all_get_done(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let vouchers = [desk.voucher(9, 1).await, desk.voucher(9, 1).await];
    let mut claims = Vec::new();
    for buyer in 1..=6 {
        claims.push(
            desk.granted(&vouchers[usize::from(buyer % 2 == 1)], buyer, 1)
                .await,
        );
    }
    let settle = async |claims: Vec<&Claim>| {
        insisting(async || {
            let mut unit = desk.ports.ledger.begin().await?;
            for claim in &claims {
                let order = unit.lock_order(claim.order).await?.expect("an order");
                tokio::task::yield_now().await;
                if order.stage != Stage::PendingPayment {
                    continue;
                }
                let order = seckill_domain::Order {
                    stage: Stage::Expired,
                    ..order
                };
                unit.save_orders(OrderStatus::PendingPayment, &[order])
                    .await?;
                unit.release(claim.voucher, &[release(claim)]).await?;
            }
            unit.commit().await
        })
        .await;
    };
    let forward = settle(claims.iter().collect());
    let backward = settle(claims.iter().rev().collect());
    futures::join!(forward, backward);
    for voucher in &vouchers {
        let tally = desk.tally(voucher.id).await;
        assert_eq!((tally.stock, tally.awaiting_payment), (9, 0));
        assert_eq!(tally.version.get(), 3, "each came back once");
    }
}

/// However two sweeps name the same orders, each locks them by rising id, and neither is ever
/// refused because of the other.
///
/// Stands for: rows locked in opposite order: two transactions stop each other (B48).
async fn orders_named_in_opposite_order_are_locked_in_one(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let vouchers = [desk.voucher(9, 1).await, desk.voucher(9, 1).await];
    let mut ids = Vec::new();
    for buyer in 1..=8 {
        let voucher = &vouchers[usize::from(buyer % 2 == 1)];
        ids.push(desk.granted(voucher, buyer, 1).await.order);
    }
    ids.sort_unstable();
    let backwards: Vec<_> = ids.iter().rev().copied().collect();
    let other = harness.another_process().await;
    let lock = async |ports: &LedgerPorts, named: &[_]| {
        for _ in 0..20 {
            let mut unit = ports.ledger.begin().await.unwrap();
            let locked = unit.lock_orders(named).await.unwrap();
            tokio::task::yield_now().await;
            let locked: Vec<_> = locked.iter().map(|order| order.id).collect();
            assert_eq!(locked, ids);
            unit.commit().await.unwrap();
        }
    };
    futures::join!(lock(&desk.ports, &ids), lock(&other, &backwards));
}
