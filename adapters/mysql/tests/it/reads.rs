//! Reads.

use seckill_application::ports::VoucherFilter;
use seckill_domain::{BuyerId, Claim, Decision, OrderId, OrderStatus, VoucherId};

use crate::fixture::{Fixture, publish, run};

#[tokio::test]
async fn lists_of_orders_are_newest_first_and_continue() {
    let mut fixture = Fixture::new(100, 50).await;
    let decisions = (1..=7).map(|n| fixture.granted(n * 10, 1, 1)).collect();
    fixture.apply(decisions).await;
    let ledger = &fixture.ports.ledger;
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = ledger.orders_of(BuyerId::new(1), before, 3).await.unwrap();
        seen.extend(page.items.iter().map(|order| order.id.get()));
        match page.next {
            Some(next) => before = Some(OrderId::new(next)),
            None => break,
        }
    }
    assert_eq!(seen, [70, 60, 50, 40, 30, 20, 10]);
    let exact = ledger.orders_of(BuyerId::new(1), None, 7).await.unwrap();
    assert_eq!((exact.items.len(), exact.next), (7, None));
    let nobody = ledger.orders_of(BuyerId::new(2), None, 7).await.unwrap();
    assert!(nobody.items.is_empty());
}

#[tokio::test]
async fn lists_of_vouchers_show_what_they_are_for() {
    let fixture = Fixture::new(1, 1).await;
    let mut ids = vec![fixture.voucher];
    for _ in 0..4 {
        ids.push(publish(&fixture.ports, 1, 1).await.id);
    }
    let mut meddler = fixture.database.connect().await;
    for (id, status) in ids.iter().zip(["draft", "published", "paused", "closed"]) {
        run(
            &mut meddler,
            &format!("UPDATE vouchers SET status = '{status}' WHERE id = {id}"),
        )
        .await;
    }
    run(
        &mut meddler,
        &format!(
            "UPDATE vouchers SET closes_at = UTC_TIMESTAMP(3) WHERE id <= {}",
            ids[3]
        ),
    )
    .await;
    let list = async |filter, before, limit| {
        let page = fixture.ports.ledger.vouchers(filter, before, limit).await;
        let page = page.unwrap();
        let items: Vec<VoucherId> = page.items.iter().map(|voucher| voucher.id).collect();
        (items, page.next)
    };
    let newest: Vec<VoucherId> = ids.iter().rev().copied().collect();
    assert_eq!(
        list(VoucherFilter::All, None, 10).await,
        (newest.clone(), None)
    );
    assert_eq!(list(VoucherFilter::Public, None, 10).await.0, newest[..4]);
    assert_eq!(
        list(VoucherFilter::OnSale, None, 10).await.0,
        [ids[4], ids[2], ids[1]]
    );
    assert_eq!(
        list(VoucherFilter::Overdue, None, 10).await.0,
        [ids[2], ids[1]]
    );
    let (some, next) = list(VoucherFilter::All, None, 2).await;
    assert_eq!(some, newest[..2]);
    let before = next.map(VoucherId::new);
    assert_eq!(list(VoucherFilter::All, before, 10).await.0, newest[2..]);
}

#[tokio::test]
async fn what_a_buyer_still_has_on_a_voucher() {
    let mut fixture = Fixture::new(100, 50).await;
    let keyed = Claim {
        key: Some("k".parse().unwrap()),
        ..fixture.claim(1, 1, 1)
    };
    let decisions = vec![
        Decision::Granted(keyed),
        fixture.granted(2, 1, 1),
        fixture.granted(3, 1, 1),
        fixture.joined(4, 1, 1, 4),
        fixture.granted(5, 2, 1),
    ];
    fixture.apply(decisions).await;
    fixture.cancel(1).await;
    fixture.cancel(2).await;
    fixture.pay(3, "p").await;
    let on = async |key: Option<&str>| -> Vec<u64> {
        let key = key.map(|key| key.parse().unwrap());
        let buyer = BuyerId::new(1);
        let ledger = &fixture.ports.ledger;
        let orders = ledger.orders_on(fixture.voucher, buyer, key.as_ref()).await;
        orders.unwrap().iter().map(|order| order.id.get()).collect()
    };
    assert_eq!(on(None).await, [3, 4]);
    assert_eq!(on(Some("k")).await, [1, 3, 4]);
    assert_eq!(on(Some("K")).await, [3, 4]);
}

#[tokio::test]
async fn stages_of_many_orders_in_one_call() {
    let mut fixture = Fixture::new(2_000, 1).await;
    let decisions = (1..=900).map(|n| fixture.granted(n, n, 1)).collect();
    fixture.apply(decisions).await;
    let ids: Vec<OrderId> = (1..=1_000).map(OrderId::new).collect();
    let stages = fixture.ports.ledger.stages(&ids).await.unwrap();
    assert_eq!(stages.len(), 900);
    assert!(
        stages
            .iter()
            .all(|(_, status)| *status == OrderStatus::PendingPayment)
    );
    assert!(fixture.ports.ledger.stages(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_server_says_who_it_is() {
    let fixture = Fixture::new(1, 1).await;
    fixture.ports.ledger.ping().await.unwrap();
    let server = fixture.ledger.describe().await.unwrap();
    assert!(
        server
            .version
            .starts_with(|first: char| first.is_ascii_digit())
    );
    println!("ran against {} ({})", server.version, server.comment);
}
