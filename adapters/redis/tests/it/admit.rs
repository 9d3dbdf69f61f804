//! The order of questions.

use seckill_application::Effect;
use seckill_application::ports::{Admitted, EntryId, NotLoaded};
use seckill_domain::{
    Admission, Decision, OrderId, PlaceAtFirst, SaleStatus, Timestamp, VoucherId,
};

use crate::stage::{Stage, attempt, granted, key, keyed, terms, waitlisted};

#[tokio::test]
async fn units_are_granted_until_none_is_left() {
    let stage = Stage::selling(2, |_| {}).await;
    let attempts: Vec<_> = (1..=4).map(|n| attempt(100 + n, n, 1)).collect();
    let (admissions, pulse) = stage.batch(&attempts).await;
    assert_eq!(
        admissions,
        [
            granted(101),
            granted(102),
            Admission::SoldOut,
            Admission::SoldOut
        ]
    );
    assert_eq!(
        (pulse.free, pulse.waiting, pulse.waitlist_open),
        (0, 0, false)
    );
    let decisions = stage.decisions().await;
    assert_eq!(decisions.len(), 2);
    assert!(
        decisions
            .iter()
            .all(|it| matches!(it, Decision::Granted(_)))
    );
    assert_eq!(
        stage.entries(EntryId::START).await.len(),
        1,
        "one entry a call"
    );
}

#[tokio::test]
async fn a_repeat_gets_the_first_id_even_when_the_sale_is_paused_or_over() {
    for status in [
        SaleStatus::Published,
        SaleStatus::Paused,
        SaleStatus::Closed,
    ] {
        let stage = Stage::selling(5, |terms| terms.waitlist_capacity = 5).await;
        stage.attempt(&keyed(11, 1, 1, "k")).await;
        stage.buy(12, 2, 1).await;
        let set = ["HSET", &key("sale"), "status", crate::follow::word(status)];
        stage.command::<i64>(&set).await;
        assert_eq!(
            stage.buy(11, 1, 1).await,
            granted(11),
            "the very same attempt"
        );
        assert_eq!(
            stage.attempt(&keyed(99, 1, 1, "k")).await,
            Admission::Replayed {
                order: OrderId::new(11),
                first: PlaceAtFirst::Granted
            },
            "the same key"
        );
        assert_eq!(
            stage.attempt(&keyed(98, 1, 2, "k")).await,
            Admission::KeyReused {
                order: OrderId::new(11)
            }
        );
        let held = Admission::AlreadyHeld {
            orders: vec![OrderId::new(12)],
        };
        assert_eq!(stage.buy(97, 2, 1).await, held, "at the limit");
        let fresh = stage.buy(96, 3, 1).await;
        assert_eq!(
            fresh,
            match status {
                SaleStatus::Paused => Admission::Paused,
                SaleStatus::Closed => Admission::Closed,
                _ => granted(96),
            }
        );
    }
}

#[tokio::test]
async fn within_one_batch_everybody_sees_what_was_decided_before() {
    let stage = Stage::selling(2, |terms| {
        terms.per_buyer_limit = 2;
        terms.waitlist_capacity = 2;
    })
    .await;
    let attempts = [
        keyed(1, 1, 1, "a"),
        keyed(2, 1, 1, "a"),
        attempt(1, 1, 1),
        attempt(3, 1, 2),
        attempt(4, 1, 1),
        attempt(5, 1, 1),
        attempt(6, 2, 2),
        attempt(6, 2, 2),
        attempt(7, 2, 1),
        attempt(8, 3, 1),
        attempt(9, 4, 1),
        attempt(6, 4, 1),
    ];
    let (admissions, pulse) = stage.batch(&attempts).await;
    let id = OrderId::new;
    assert_eq!(
        admissions,
        [
            granted(1),
            Admission::Replayed {
                order: id(1),
                first: PlaceAtFirst::Granted
            },
            granted(1),
            Admission::LimitExceeded { remaining: 1 },
            granted(4),
            Admission::AlreadyHeld {
                orders: vec![id(1), id(4)]
            },
            waitlisted(6, 1, 3),
            waitlisted(6, 1, 3),
            Admission::AlreadyWaiting {
                order: id(6),
                position: 1
            },
            waitlisted(8, 2, 4),
            Admission::SoldOut,
            Admission::Replayed {
                order: id(6),
                first: PlaceAtFirst::Waitlisted
            },
        ]
    );
    assert_eq!(
        (pulse.free, pulse.waiting, pulse.waitlist_open),
        (0, 2, false)
    );
    let (again, _) = stage.batch(&attempts).await;
    assert_eq!(again[0], granted(1));
    assert_eq!(again[6], waitlisted(6, 1, 3));
    assert_eq!(
        stage.decisions().await.len(),
        4,
        "repeating decides nothing"
    );
}

/// Stands for: stock tested before repeat, so that every click is a new place (hole 3).
#[tokio::test]
async fn clicking_again_after_selling_out_is_no_new_place() {
    let stage = Stage::selling(1, |terms| terms.waitlist_capacity = 10).await;
    stage.buy(1, 1, 1).await;
    assert_eq!(stage.buy(2, 2, 1).await, waitlisted(2, 1, 2));
    for order in 10..15 {
        let held = stage.buy(order, 1, 1).await;
        assert!(matches!(held, Admission::AlreadyHeld { .. }), "{held:?}");
        let waiting = stage.buy(order + 10, 2, 1).await;
        assert!(
            matches!(waiting, Admission::AlreadyWaiting { .. }),
            "{waiting:?}"
        );
    }
    assert_eq!(stage.decisions().await.len(), 2);
}

#[tokio::test]
async fn redis_time_decides_the_window() {
    let stage = Stage::bare().await;
    let time: (i64, i64) = stage.raw("TIME").await;
    let now = time.0 * 1_000 + time.1 / 1_000;
    let mut terms = terms(5);
    terms.opens_at = Timestamp::from_millis(now + 250);
    terms.closes_at = Timestamp::from_millis(now + 600);
    stage.open(terms, 5).await;
    let not_open = Admission::NotOpen {
        opens_at: terms.opens_at,
    };
    assert_eq!(stage.buy(1, 1, 1).await, not_open);
    crate::stage::pause(300).await;
    assert_eq!(stage.buy(2, 1, 1).await, granted(2));
    crate::stage::pause(400).await;
    assert_eq!(stage.buy(3, 2, 1).await, Admission::Closed);
}

/// Stands for: 64-bit ids through Lua numbers (hole 15).
#[tokio::test]
async fn the_largest_ids_come_back_to_the_digit() {
    let stage = Stage::selling(2, |_| {}).await;
    assert_eq!(
        stage.buy(u64::MAX, u64::MAX - 1, 1).await,
        granted(u64::MAX)
    );
    let order = 609_848_294_759_202_817;
    assert_eq!(stage.buy(order, u64::MAX - 2, 1).await, granted(order));
    let Some(Decision::Granted(claim)) = stage.decisions().await.pop() else {
        panic!("a grant");
    };
    assert_eq!(
        (claim.order.get(), claim.buyer.get()),
        (order, u64::MAX - 2)
    );
}

#[tokio::test]
async fn a_batch_of_64_is_decided_and_one_of_65_refused() {
    let stage = Stage::selling(64, |_| {}).await;
    let attempts: Vec<_> = (1..=65).map(|n| attempt(n, n, 1)).collect();
    let (admissions, _) = stage.batch(&attempts[..64]).await;
    assert!(
        admissions
            .iter()
            .all(|it| matches!(it, Admission::Granted { .. }))
    );
    let fault = stage.hot.gate.admit(crate::stage::VOUCHER, &attempts).await;
    let fault = fault.expect_err("too many");
    assert_eq!(
        (fault.effect(), fault.is_retryable()),
        (Effect::None, false)
    );
    assert_eq!(stage.batch(&[]).await.0, []);
}

#[tokio::test]
async fn the_backlog_limit_stops_admission_and_changes_nothing() {
    let stage = Stage::with(&[], |config| config.backlog_limit = 3).await;
    stage.open(terms(10), 10).await;
    let attempts: Vec<_> = (1..=3).map(|n| attempt(n, n, 1)).collect();
    stage.batch(&attempts).await;
    let before = stage.everything().await;
    assert_eq!(stage.admitted(9, 9).await, Admitted::BacklogFull);
    assert_eq!(stage.everything().await, before);
    let ids: Vec<_> = stage.entries(EntryId::START).await;
    let ids: Vec<_> = ids.into_iter().map(|delivery| delivery.id).collect();
    let applied = seckill_domain::Sequence::new(1);
    let (partition, epoch) = (crate::stage::PARTITION, crate::stage::EPOCH);
    stage
        .hot
        .stream
        .ack(partition, epoch, &ids, applied)
        .await
        .unwrap();
    assert!(matches!(
        stage.admitted(9, 9).await,
        Admitted::Decided { .. }
    ));
}

/// Stands for: a missing key read as "sold out" or "queued" (hole 4).
#[tokio::test]
async fn an_unknown_voucher_is_not_sold_out() {
    let stage = Stage::selling(1, |_| {}).await;
    let unknown = VoucherId::new(9);
    let admitted = stage.hot.gate.admit(unknown, &[attempt(1, 1, 1)]).await;
    assert_eq!(admitted.unwrap(), Admitted::NotLoaded(NotLoaded::Voucher));
}

#[tokio::test]
async fn a_key_of_a_dash_is_a_key() {
    let stage = Stage::selling(5, |terms| terms.per_buyer_limit = 5).await;
    assert_eq!(stage.attempt(&keyed(1, 1, 1, "-")).await, granted(1));
    let replayed = Admission::Replayed {
        order: OrderId::new(1),
        first: PlaceAtFirst::Granted,
    };
    assert_eq!(stage.attempt(&keyed(2, 1, 1, "-")).await, replayed);
    assert_eq!(stage.buy(3, 1, 1).await, granted(3));
    let keys: Vec<_> = stage.decisions().await;
    let keys: Vec<_> = keys
        .iter()
        .map(|it| {
            it.claim()
                .and_then(|it| it.key.clone())
                .map(|it| it.to_string())
        })
        .collect();
    assert_eq!(keys, [Some("-".to_owned()), None]);
}
