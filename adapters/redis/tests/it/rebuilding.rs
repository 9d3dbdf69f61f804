//! What survives of a sale, and what processes remember of it.

use seckill_application::ports::{Admitted, EntryId, LoadStep, NotLoaded, Offered, Opened};
use seckill_domain::{Claim, Decision, Seat, Sequence, Ticket, VoucherId};

use crate::loading::{begin, begun, claim, opening, seat, token};
use crate::stage::{EPOCH, Stage, VOUCHER, attempt, key, keyed};

#[tokio::test]
async fn survivors_are_told_with_their_keys_page_by_page() {
    let stage = Stage::selling(1_500, |terms| {
        terms.per_buyer_limit = 3;
        terms.waitlist_capacity = 2_000;
    })
    .await;
    let mut expected = Vec::new();
    for batch in 0..30 {
        let attempts: Vec<_> = (1..=50)
            .map(|n| keyed(batch * 50 + n, batch * 50 + n, 1, "k"))
            .collect();
        stage.batch(&attempts).await;
        expected.extend(attempts.iter().map(|it| Claim::of(VOUCHER, it)));
    }
    let mut seats = Vec::new();
    for batch in 0..30 {
        let first = 2_000 + batch * 50;
        let attempts: Vec<_> = (1..=50).map(|n| attempt(first + n, first + n, 2)).collect();
        stage.batch(&attempts).await;
        seats.extend((1..=50).map(|n| Seat {
            ticket: Ticket::drawn_at(EPOCH, Sequence::new(1_500 + batch * 50 + n)),
            quantity: 2,
            ..seat(0, first + n, first + n)
        }));
    }
    stage.hot.loader.unload(VOUCHER).await.unwrap();
    assert_eq!(
        stage.admitted(1, 1).await,
        Admitted::NotLoaded(NotLoaded::Voucher)
    );
    let (mut holders, mut found_seats, mut pages, mut cursor) = (Vec::new(), Vec::new(), 0, 0);
    loop {
        let page = stage.hot.loader.survivors(VOUCHER, cursor).await.unwrap();
        assert!(page.holders.len() + page.seats.len() <= 2_000);
        holders.extend(page.holders);
        found_seats.extend(page.seats);
        pages += 1;
        let Some(next) = page.next else { break };
        cursor = next;
    }
    assert!(pages > 2, "{pages} pages");
    holders.sort_by_key(|claim| claim.order);
    holders.dedup();
    assert_eq!(holders, expected);
    found_seats.sort_by_key(|seat| seat.ticket);
    found_seats.dedup();
    assert_eq!(found_seats, seats);
    let nothing = stage
        .hot
        .loader
        .survivors(VoucherId::new(9), 0)
        .await
        .unwrap();
    assert_eq!((nothing.holders, nothing.seats), (vec![], vec![]));
}

#[tokio::test]
async fn remembered_grants_are_taken_recorded_as_lost_or_left_alone() {
    let stage = Stage::selling(2, |terms| terms.waitlist_capacity = 5).await;
    stage.batch(&[attempt(1, 1, 1)]).await;
    let offer = |claims: Vec<Claim>| {
        let loader = stage.hot.loader.clone();
        async move { loader.offer(VOUCHER, &claims, &[]).await.unwrap() }
    };
    let claims = vec![
        claim(1, 1, 1),
        claim(2, 2, 1),
        claim(3, 3, 1),
        claim(4, 1, 1),
    ];
    assert_eq!(offer(claims.clone()).await, Offered::Taken);
    assert_eq!(offer(claims).await, Offered::Taken, "repeatable");
    let decisions = stage.decisions().await;
    let expected = [
        Decision::Granted(claim(1, 1, 1)),
        Decision::Granted(claim(2, 2, 1)),
        Decision::Lost(claim(3, 3, 1)),
        Decision::Lost(claim(4, 1, 1)),
    ];
    assert_eq!(decisions, expected);
    let (_, pulse) = stage.batch(&[]).await;
    assert_eq!(pulse.free, 0);
    let token = token("a");
    assert_eq!(begin(&stage, &token).await, begun(4));
    assert_eq!(
        offer(vec![claim(5, 5, 1), claim(2, 2, 1)]).await,
        Offered::Taken
    );
    let last = stage.decisions().await.pop();
    assert_eq!(
        last,
        Some(Decision::Granted(claim(5, 5, 1))),
        "whatever the stock, while loading"
    );
    let behind = stage
        .hot
        .loader
        .open(VOUCHER, &token, &opening(0, 4), 0)
        .await
        .unwrap();
    assert_eq!(behind, Opened::Behind(Sequence::new(5)));
    stage.hot.loader.abandon(VOUCHER, &token).await.unwrap();
    assert_eq!(offer(vec![claim(6, 6, 1)]).await, Offered::NotLoaded);
    let elsewhere = VoucherId::new(8);
    let missing = stage
        .hot
        .loader
        .offer(elsewhere, &[claim(6, 6, 1)], &[])
        .await
        .unwrap();
    assert_eq!(missing, Offered::PartitionMissing);
}

#[tokio::test]
async fn a_thousand_claims_make_entries_that_a_reader_has_room_for() {
    let stage = Stage::bare().await;
    let token = token("a");
    begin(&stage, &token).await;
    let claims: Vec<_> = (1..=1_000).map(|n| claim(n, n, 1)).collect();
    let step = stage
        .hot
        .loader
        .append_again(VOUCHER, &token, &claims, &[])
        .await
        .unwrap();
    assert_eq!(step, LoadStep::Done(Sequence::new(1_000)));
    let entries = stage.entries(EntryId::START).await;
    let longest = entries
        .iter()
        .map(|it| it.body.as_ref().map_or(0, |it| it.decisions.len()))
        .max();
    assert_eq!((entries.len(), longest), (8, Some(128)));
    assert_eq!(stage.decisions().await.len(), 1_000);
    assert_eq!(
        stage.raw::<i64>(&format!("HLEN {}", key("decided"))).await,
        1_000
    );
}
