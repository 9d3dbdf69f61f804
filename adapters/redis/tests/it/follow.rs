//! Following the ledger, and serving the waitlist.

use seckill_application::ports::{FollowReply, LeaveReply, NotLoaded, WithdrawReply};
use seckill_domain::{
    AdjustmentId, Admission, BuyerId, Decision, GateChange, GateUpdate, GateVersion, LeftReason,
    OrderId, SaleStatus, SaleTerms,
};

use crate::stage::{Stage, VOUCHER, attempt, granted, terms, waitlisted};

pub(crate) fn word(status: SaleStatus) -> &'static str {
    match status {
        SaleStatus::Draft => "draft",
        SaleStatus::Published => "published",
        SaleStatus::Paused => "paused",
        SaleStatus::Closed => "closed",
    }
}

fn update(version: u64, changes: Vec<GateChange>) -> GateUpdate {
    GateUpdate {
        voucher: VOUCHER,
        version: GateVersion::new(version),
        changes,
    }
}

fn release(order: u64, buyer: u64, quantity: u32) -> GateChange {
    GateChange::Release {
        order: OrderId::new(order),
        buyer: BuyerId::new(buyer),
        quantity,
    }
}

const APPLIED: FollowReply = FollowReply::Applied { more: false };

#[tokio::test]
async fn freed_units_go_to_the_head_and_to_nobody_else() {
    let stage = Stage::selling(2, |terms| terms.waitlist_capacity = 10).await;
    let attempts: Vec<_> = (1..=5).map(|n| attempt(n, n, 1)).collect();
    stage.batch(&attempts).await;
    let reply = stage
        .hot
        .gate
        .follow(&update(2, vec![release(1, 1, 1)]))
        .await;
    assert_eq!(reply.unwrap(), APPLIED);
    let promoted = stage.decisions().await.pop().expect("a decision");
    assert!(matches!(&promoted, Decision::Promoted(claim) if claim.order.get() == 3));
    assert_eq!(
        stage.buy(9, 9, 1).await,
        waitlisted(9, 3, 7),
        "newcomers wait too"
    );
    assert_eq!(stage.buy(9, 9, 1).await, waitlisted(9, 3, 7));
    let again = stage.buy(1, 1, 1).await;
    let first = seckill_domain::PlaceAtFirst::Granted;
    let order = OrderId::new(1);
    assert_eq!(again, Admission::Replayed { order, first }, "released");
    assert_eq!(
        stage.buy(11, 1, 1).await,
        waitlisted(11, 4, 8),
        "he may buy again"
    );
}

#[tokio::test]
async fn an_update_is_applied_once_and_in_order() {
    let stage = Stage::selling(1, |_| {}).await;
    stage.buy(1, 1, 1).await;
    let follow = |version, changes| {
        let (gate, update) = (stage.hot.gate.clone(), update(version, changes));
        async move { gate.follow(&update).await.unwrap() }
    };
    assert_eq!(
        follow(3, vec![release(1, 1, 1)]).await,
        FollowReply::Gap {
            at: GateVersion::new(1)
        }
    );
    assert_eq!(follow(2, vec![release(1, 1, 1)]).await, APPLIED);
    for version in [1, 2] {
        let again = follow(version, vec![release(1, 1, 1)]).await;
        assert_eq!(again, FollowReply::AlreadyApplied);
    }
    assert_eq!(
        follow(3, vec![release(1, 1, 1)]).await,
        APPLIED,
        "but no unit comes back twice"
    );
    let (_, pulse) = stage.batch(&[]).await;
    assert_eq!((pulse.free, pulse.version.get()), (1, 3));
    assert_eq!(
        follow(4, vec![GateChange::AddUnits { units: 3 }]).await,
        APPLIED
    );
    let facts = stage.hot.gate.facts(&[VOUCHER]).await.unwrap()[0].unwrap();
    assert_eq!((facts.pulse.free, facts.terms.total_units), (4, 4));
}

#[tokio::test]
async fn free_units_accumulate_for_a_head_that_wants_several() {
    let stage = Stage::selling(3, |terms| {
        terms.per_buyer_limit = 3;
        terms.waitlist_capacity = 10;
    })
    .await;
    let attempts = [attempt(1, 1, 1), attempt(2, 2, 1), attempt(3, 3, 1)];
    stage.batch(&attempts).await;
    stage.batch(&[attempt(4, 4, 3), attempt(5, 5, 1)]).await;
    for order in 1..=3_u64 {
        let update = update(order + 1, vec![release(order, order, 1)]);
        assert_eq!(stage.hot.gate.follow(&update).await.unwrap(), APPLIED);
        let promotions = stage.decisions().await;
        let promotions = promotions
            .iter()
            .filter(|it| matches!(it, Decision::Promoted(_)))
            .count();
        assert_eq!(
            promotions,
            usize::from(order == 3),
            "nobody is served before the head"
        );
    }
    let facts = stage.hot.gate.facts(&[VOUCHER]).await.unwrap()[0].unwrap();
    assert_eq!((facts.pulse.free, facts.pulse.waiting), (0, 1));
}

#[tokio::test]
async fn at_most_128_are_promoted_in_one_call() {
    let stage = Stage::selling(0, |terms| terms.waitlist_capacity = 1_000).await;
    for batch in 0..5 {
        let attempts: Vec<_> = (1..=60)
            .map(|n| attempt(batch * 60 + n, batch * 60 + n, 1))
            .collect();
        stage.batch(&attempts).await;
    }
    let add = update(2, vec![GateChange::AddUnits { units: 290 }]);
    let reply = stage.hot.gate.follow(&add).await.unwrap();
    assert_eq!(reply, FollowReply::Applied { more: true });
    assert!(stage.hot.gate.promote(VOUCHER).await.unwrap());
    assert!(!stage.hot.gate.promote(VOUCHER).await.unwrap());
    let promoted: Vec<u64> = stage
        .decisions()
        .await
        .iter()
        .filter(|it| matches!(it, Decision::Promoted(_)))
        .filter_map(|it| it.claim().map(|claim| claim.order.get()))
        .collect();
    assert_eq!(
        promoted,
        (1..=290).collect::<Vec<_>>(),
        "in order of arrival"
    );
}

#[tokio::test]
async fn a_head_that_can_never_be_served_leaves() {
    let stage = Stage::selling(4, |terms| {
        terms.per_buyer_limit = 4;
        terms.waitlist_capacity = 10;
    })
    .await;
    stage.batch(&[attempt(1, 1, 2), attempt(2, 2, 2)]).await;
    stage.batch(&[attempt(3, 3, 4), attempt(4, 4, 1)]).await;
    let gate = &stage.hot.gate;
    assert_eq!(
        gate.follow(&update(2, vec![release(1, 1, 2)]))
            .await
            .unwrap(),
        APPLIED
    );
    let withdrawn = gate
        .withdraw(VOUCHER, 1, AdjustmentId::new(1))
        .await
        .unwrap();
    assert_eq!(withdrawn, WithdrawReply::Withdrawn);
    assert!(!gate.promote(VOUCHER).await.unwrap());
    let last: Vec<_> = stage.decisions().await.split_off(5);
    assert!(matches!(
        &last[0],
        Decision::Left { claim, reason: LeftReason::NotEnoughUnits } if claim.order.get() == 3
    ));
    assert!(matches!(&last[1], Decision::Promoted(claim) if claim.order.get() == 4));
    assert_eq!(last.len(), 2);
}

#[tokio::test]
async fn a_pause_stops_promotion_and_closing_drains() {
    let open = SaleTerms {
        waitlist_capacity: 200,
        ..terms(0)
    };
    let stage = Stage::bare().await;
    stage.open(open, 0).await;
    for batch in 0..3 {
        let attempts: Vec<_> = (1..=50)
            .map(|n| attempt(batch * 50 + n, batch * 50 + n, 1))
            .collect();
        stage.batch(&attempts).await;
    }
    let gate = &stage.hot.gate;
    let set = |status| GateChange::SetTerms(SaleTerms { status, ..open });
    let pause = update(
        2,
        vec![set(SaleStatus::Paused), GateChange::AddUnits { units: 5 }],
    );
    assert_eq!(gate.follow(&pause).await.unwrap(), APPLIED);
    assert!(!gate.promote(VOUCHER).await.unwrap());
    let resume = update(3, vec![set(SaleStatus::Published)]);
    assert_eq!(gate.follow(&resume).await.unwrap(), APPLIED);
    assert_eq!(stage.decisions().await.len(), 155);
    assert!(!gate.retire(VOUCHER).await.unwrap(), "not over");
    let close = update(4, vec![set(SaleStatus::Closed)]);
    let more = FollowReply::Applied { more: true };
    assert_eq!(gate.follow(&close).await.unwrap(), more);
    assert!(!gate.retire(VOUCHER).await.unwrap(), "somebody waits");
    assert!(gate.promote(VOUCHER).await.unwrap());
    assert!(!gate.promote(VOUCHER).await.unwrap());
    let left = stage.decisions().await.split_off(155);
    assert_eq!(left.len(), 145);
    let reason = LeftReason::ClosedOut;
    assert!(
        left.iter()
            .all(|it| matches!(it, Decision::Left { reason: r, .. } if *r == reason))
    );
    assert!(gate.retire(VOUCHER).await.unwrap());
    assert!(gate.retire(VOUCHER).await.unwrap(), "repeatable");
    let retired = gate.leave(VOUCHER, BuyerId::new(1)).await.unwrap();
    assert_eq!(retired, LeaveReply::NotLoaded(NotLoaded::Retired));
    let keys: Vec<String> = stage.raw("KEYS *:v7:*").await;
    assert_eq!(keys, [crate::stage::key("sale")], "only the marker is left");
}

#[tokio::test]
async fn a_place_is_given_up_once() {
    let stage = Stage::selling(1, |terms| terms.waitlist_capacity = 10).await;
    stage
        .batch(&[attempt(1, 1, 1), attempt(2, 2, 1), attempt(3, 3, 1)])
        .await;
    let leave = |buyer| {
        let gate = stage.hot.gate.clone();
        async move { gate.leave(VOUCHER, BuyerId::new(buyer)).await.unwrap() }
    };
    assert_eq!(leave(2).await, LeaveReply::Left(OrderId::new(2)));
    assert_eq!(leave(2).await, LeaveReply::NotWaiting);
    assert_eq!(leave(1).await, LeaveReply::NotWaiting, "he never waited");
    let update = update(2, vec![release(1, 1, 1)]);
    stage.hot.gate.follow(&update).await.unwrap();
    assert_eq!(leave(3).await, LeaveReply::AlreadyPromoted(OrderId::new(3)));
    assert_eq!(
        stage.buy(2, 2, 1).await,
        Admission::Replayed {
            order: OrderId::new(2),
            first: seckill_domain::PlaceAtFirst::Waitlisted,
        }
    );
    assert_eq!(stage.buy(3, 3, 1).await, granted(3));
}

#[tokio::test]
async fn units_are_taken_out_once_per_adjustment() {
    let stage = Stage::selling(5, |_| {}).await;
    stage.buy(1, 1, 1).await;
    let withdraw = |units, adjustment| {
        let gate = stage.hot.gate.clone();
        async move {
            let adjustment = AdjustmentId::new(adjustment);
            gate.withdraw(VOUCHER, units, adjustment).await.unwrap()
        }
    };
    assert_eq!(withdraw(5, 1).await, WithdrawReply::NotEnough { free: 4 });
    assert_eq!(withdraw(3, 2).await, WithdrawReply::Withdrawn);
    assert_eq!(withdraw(3, 2).await, WithdrawReply::Withdrawn);
    let facts = stage.hot.gate.facts(&[VOUCHER]).await.unwrap()[0].unwrap();
    assert_eq!((facts.pulse.free, facts.terms.total_units), (1, 2));
    assert_eq!(stage.decisions().await.len(), 2);
}
