//! What the gate has to follow.

use seckill_application::ports::Release;
use seckill_domain::{BuyerId, GateChange, GateVersion, OrderId};

use crate::fixture::{Fixture, publish};

#[tokio::test]
async fn updates_come_in_the_order_of_versions_until_they_are_forgotten() {
    let mut fixture = Fixture::new(10, 2).await;
    fixture
        .apply(vec![
            fixture.granted(u64::MAX, 1, 2),
            fixture.granted(2, 2, 1),
        ])
        .await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let releases = [(u64::MAX, 1, 2), (2, 2, 1)].map(|(order, buyer, quantity)| Release {
        order: OrderId::new(order),
        buyer: BuyerId::new(buyer),
        quantity,
    });
    unit.release(fixture.voucher, &releases).await.unwrap();
    let pushed = [GateChange::AddUnits { units: 3 }];
    unit.push_update(fixture.voucher, &pushed).await.unwrap();
    unit.commit().await.unwrap();

    let updates = &fixture.ports.updates;
    let all = updates
        .after(fixture.voucher, GateVersion::new(0), 100)
        .await
        .unwrap();
    let versions: Vec<u64> = all.iter().map(|update| update.version.get()).collect();
    assert_eq!(versions, [1, 2, 3]);
    let terms = fixture.voucher().await.sale_terms();
    assert_eq!(all[0].changes, [GateChange::SetTerms(terms)]);
    assert_eq!(
        all[1].changes[0],
        GateChange::Release {
            order: OrderId::new(u64::MAX),
            buyer: BuyerId::new(1),
            quantity: 2
        }
    );
    assert_eq!(all[1].units_returned(), 3);
    assert_eq!(all[2].changes, pushed);

    let ledger = &fixture.ports.ledger;
    for (followed, returned) in [(0, 6), (1, 6), (2, 3), (3, 0)] {
        let tally = ledger
            .tally(fixture.voucher, GateVersion::new(followed))
            .await;
        assert_eq!(tally.unwrap().unwrap().units_returned_after, returned);
    }

    let some = updates.after(fixture.voucher, GateVersion::new(1), 1).await;
    assert_eq!(some.unwrap(), all[1..2]);
    for _ in 0..2 {
        updates
            .forget(fixture.voucher, GateVersion::new(2))
            .await
            .unwrap();
    }
    let rest = updates
        .after(fixture.voucher, GateVersion::new(0), 100)
        .await;
    assert_eq!(rest.unwrap(), all[2..]);
}

#[tokio::test]
async fn vouchers_with_the_oldest_updates_come_first() {
    let fixture = Fixture::new(10, 2).await;
    let second = publish(&fixture.ports, 1, 1).await.id;
    let third = publish(&fixture.ports, 1, 1).await.id;
    let updates = &fixture.ports.updates;
    let waiting = updates.waiting(10).await.unwrap();
    assert_eq!(waiting, [fixture.voucher, second, third]);
    updates
        .forget(fixture.voucher, GateVersion::new(1))
        .await
        .unwrap();
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    unit.push_update(fixture.voucher, &[]).await.unwrap();
    unit.commit().await.unwrap();
    let waiting = updates.waiting(2).await.unwrap();
    assert_eq!(waiting, [second, third]);
}

#[tokio::test]
async fn an_update_stands_and_falls_with_its_transaction() {
    let fixture = Fixture::new(10, 2).await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let version = unit.push_update(fixture.voucher, &[]).await.unwrap();
    assert_eq!(version, GateVersion::new(2));
    drop(unit);
    let voucher = fixture.voucher().await;
    assert_eq!(voucher.version, GateVersion::new(1));
    let left = fixture
        .ports
        .updates
        .after(fixture.voucher, GateVersion::new(1), 10)
        .await;
    assert!(left.unwrap().is_empty());
}
