//! Consistent reads of a whole sale.

use seckill_application::ports::LOAD_CHUNK_MAX;
use seckill_domain::{Claim, Decision, GateVersion, OrderId, PlaceAtFirst, VoucherId};

use crate::fixture::{Fixture, batch};

fn with_key(claim: Claim, key: &str) -> Claim {
    Claim {
        key: Some(key.parse().unwrap()),
        ..claim
    }
}

#[tokio::test]
async fn a_snapshot_has_everything_the_gate_needs() {
    let mut fixture = Fixture::new(10, 2).await;
    let decisions = vec![
        Decision::Granted(with_key(fixture.claim(50, 1, 2), "a")),
        fixture.granted(20, 2, 1),
        Decision::Joined {
            claim: with_key(fixture.claim(40, 3, 1), "b"),
            ticket: seckill_domain::Ticket::new(3),
        },
        fixture.joined(10, 4, 2, 4),
        fixture.joined(30, 5, 1, 5),
        fixture.promoted(40, 3, 1),
        fixture.granted(60, 6, 1),
    ];
    fixture.apply(decisions).await;
    fixture.pay(20, "p").await;
    fixture.cancel(60).await;
    let snapshot = fixture.ports.ledger.sale_snapshot(fixture.voucher).await;
    let snapshot = snapshot.unwrap().unwrap();
    let voucher = fixture.voucher().await;
    assert_eq!(snapshot.sale.terms, voucher.sale_terms());
    assert_eq!(snapshot.sale.free, 6);
    assert_eq!(snapshot.sale.version, voucher.version);
    assert_eq!(snapshot.sale.applied, fixture.head.applied);
    let [chunk] = &snapshot.chunks[..] else {
        panic!("one chunk");
    };
    let holders: Vec<_> = chunk
        .holders
        .iter()
        .map(|holder| {
            let held = holder.held;
            (
                held.order.get(),
                holder.buyer.get(),
                held.quantity,
                held.promoted,
            )
        })
        .collect();
    assert_eq!(
        holders,
        [(20, 2, 1, false), (40, 3, 1, true), (50, 1, 2, false)]
    );
    let seats: Vec<_> = chunk
        .seats
        .iter()
        .map(|seat| (seat.ticket.get(), seat.order.get(), seat.quantity))
        .collect();
    assert_eq!(seats, [(4, 10, 2), (5, 30, 1)]);
    let mut keys: Vec<_> = chunk
        .keys
        .iter()
        .map(|used| (used.key.as_str(), used.first.order.get(), used.first.first))
        .collect();
    keys.sort_unstable_by_key(|(key, ..)| *key);
    assert_eq!(
        keys,
        [
            ("a", 50, PlaceAtFirst::Granted),
            ("b", 40, PlaceAtFirst::Waitlisted)
        ]
    );
}

#[tokio::test]
async fn a_parked_grant_counts_as_held() {
    let mut fixture = Fixture::new(10, 2).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    // The id belongs to buyer 1; what was granted to buyer 2 is parked.
    let odd = fixture.granted(1, 2, 2);
    fixture.apply(vec![odd, fixture.granted(3, 3, 1)]).await;
    let snapshot = fixture.ports.ledger.sale_snapshot(fixture.voucher).await;
    let snapshot = snapshot.unwrap().unwrap();
    assert_eq!(snapshot.sale.free, 6);
    let held: u32 = snapshot.chunks[0]
        .holders
        .iter()
        .map(|holder| holder.held.quantity)
        .sum();
    assert_eq!(held, 4, "10 units are free or held by somebody");
}

#[tokio::test]
async fn unknown_vouchers_have_no_snapshot_and_empty_sales_one_chunk() {
    let fixture = Fixture::new(10, 2).await;
    let ledger = &fixture.ports.ledger;
    let unknown = VoucherId::new(99);
    assert!(ledger.sale_snapshot(unknown).await.unwrap().is_none());
    assert!(
        ledger
            .tally(unknown, GateVersion::new(0))
            .await
            .unwrap()
            .is_none()
    );
    let empty = ledger
        .sale_snapshot(fixture.voucher)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(empty.chunks.len(), 1);
    assert_eq!(empty.sale.applied.get(), 0);
}

#[tokio::test]
async fn large_sales_come_in_chunks() {
    let mut fixture = Fixture::new(10_000, 1).await;
    for from in [0, 1_000] {
        let decisions = (from + 1..=from + 1_000)
            .map(|n| fixture.granted(n, n, 1))
            .collect();
        fixture.apply(decisions).await;
    }
    let joins = (2_001..=2_500)
        .map(|n| fixture.joined(n, n, 1, n))
        .collect();
    fixture.apply(joins).await;
    let last = fixture.granted(3_000, 3_000, 1);
    fixture.apply(vec![last]).await;
    let snapshot = fixture.ports.ledger.sale_snapshot(fixture.voucher).await;
    let chunks = snapshot.unwrap().unwrap().chunks;
    let sizes: Vec<_> = chunks
        .iter()
        .map(|chunk| (chunk.holders.len(), chunk.seats.len()))
        .collect();
    assert_eq!(sizes, [(1_000, 500), (1_000, 0), (1, 0)]);
    assert!(sizes.iter().all(|(holders, _)| *holders <= LOAD_CHUNK_MAX));
}

/// Whatever moment a snapshot is of, its parts agree.
#[tokio::test]
async fn a_snapshot_is_of_one_moment() {
    let fixture = Fixture::new(3_000, 1).await;
    let (ports, mut head) = (fixture.ports.clone(), fixture.head);
    let voucher = fixture.voucher;
    let claim = fixture.claim(1, 1, 1);
    let writer = tokio::spawn(async move {
        for round in 0..60 {
            let decisions = (0..20)
                .map(|n| {
                    let id = round * 20 + n + 1;
                    Decision::Granted(Claim {
                        order: OrderId::new(id),
                        buyer: seckill_domain::BuyerId::new(id),
                        ..claim.clone()
                    })
                })
                .collect();
            let applied = ports
                .admissions
                .apply(&batch(head, decisions))
                .await
                .unwrap();
            let seckill_application::ports::Applied::Committed { head: next, .. } = applied else {
                panic!("stale");
            };
            head = next;
        }
    });
    let mut looks = 0;
    while !writer.is_finished() {
        let snapshot = fixture.ports.ledger.sale_snapshot(voucher).await;
        let snapshot = snapshot.unwrap().unwrap();
        let holders: usize = snapshot
            .chunks
            .iter()
            .map(|chunk| chunk.holders.len())
            .sum();
        assert_eq!(holders as u64, snapshot.sale.applied.get());
        assert_eq!(holders, 3_000 - snapshot.sale.free as usize);
        let tally = fixture
            .ports
            .ledger
            .tally(voucher, GateVersion::new(1))
            .await;
        let tally = tally.unwrap().unwrap();
        assert_eq!(tally.stock + tally.awaiting_payment, 3_000);
        assert_eq!(u64::from(tally.awaiting_payment), tally.head.applied.get());
        looks += 1;
    }
    writer.await.unwrap();
    assert!(looks > 3, "{looks} looks while the writer wrote");
}
