//! `PurchaseGate::claimants` and `holders`: who holds units.

use std::collections::{HashMap, HashSet};

use seckill_application::ports::HoldersPage;
use seckill_domain::{BuyerId, Claim, Held, OrderId, VoucherId};

use super::opening::{Opening, VOUCHER};
use super::stall::{Stall, new_order, release_of};
use super::{HotHarness, promises};

promises! { gate_holders over dyn HotHarness:
    held_orders_are_told_buyer_by_buyer_as_asked,
    a_buyers_orders_come_the_first_one_first,
    whoever_was_promoted_holds_and_whoever_waits_does_not,
    whoever_gave_his_units_back_holds_nothing,
    a_thousand_buyers_fit_a_question,
    every_holder_is_on_some_page,
    a_holder_who_stays_is_on_some_page_though_others_go,
    nobody_holds_units_of_a_new_sale,
    a_voucher_that_is_not_loaded_has_no_answer,
    vouchers_have_holders_each_for_itself,
}

async fn held(stall: &Stall, buyers: &[u64]) -> Vec<Vec<Held>> {
    let buyers: Vec<BuyerId> = buyers.iter().copied().map(BuyerId::new).collect();
    let found = stall.hot.gate.claimants(stall.voucher, &buyers).await;
    let found = found.unwrap().expect("loaded").into_iter();
    found.map(|it| it.held).collect()
}

async fn page(stall: &Stall, cursor: u64) -> HoldersPage {
    let page = stall.hot.gate.holders(stall.voucher, cursor).await;
    page.unwrap().expect("loaded")
}

/// What the pages say from a cursor on. A page may repeat what another had, never otherwise.
async fn holders_from(stall: &Stall, mut cursor: u64) -> HashMap<OrderId, Claim> {
    let mut all = HashMap::new();
    loop {
        let page = page(stall, cursor).await;
        for claim in page.claims {
            let before = all.insert(claim.order, claim.clone());
            assert!(before.is_none_or(|before| before == claim));
        }
        match page.next {
            Some(next) => cursor = next,
            None => return all,
        }
    }
}

fn holding(order: OrderId, quantity: u32, promoted: bool) -> Held {
    Held {
        order,
        quantity,
        promoted,
    }
}

async fn held_orders_are_told_buyer_by_buyer_as_asked(harness: &dyn HotHarness) {
    let stall = Opening::of(10).limit(5).open(harness).await;
    // Buyers whose order by number is not their order by text.
    let nine = stall.granted(9, 2).await;
    let ten = stall.granted(10, 1).await;
    let expected = [
        vec![holding(ten.order, 1, false)],
        vec![],
        vec![holding(nine.order, 2, false)],
        vec![holding(ten.order, 1, false)],
    ];
    assert_eq!(held(&stall, &[10, 77, 9, 10]).await, expected);
    assert!(held(&stall, &[]).await.is_empty());
}

async fn a_buyers_orders_come_the_first_one_first(harness: &dyn HotHarness) {
    let stall = Opening::of(10).limit(5).open(harness).await;
    let mut expected = Vec::new();
    for quantity in [2, 1, 1] {
        let attempt = stall.granted(1, quantity).await;
        expected.push(holding(attempt.order, quantity, false));
    }
    assert_eq!(held(&stall, &[1]).await, [expected]);
}

async fn whoever_was_promoted_holds_and_whoever_waits_does_not(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let first = stall.granted(1, 1).await;
    let second = stall.waiting(2, 1).await;
    stall.waiting(3, 1).await;
    stall.release(&first).await;
    let expected = [vec![], vec![holding(second.order, 1, true)], vec![]];
    assert_eq!(held(&stall, &[1, 2, 3]).await, expected);
    let claim = stall.claim(&second);
    let holders = HashMap::from([(second.order, claim)]);
    assert_eq!(holders_from(&stall, 0).await, holders);
}

async fn whoever_gave_his_units_back_holds_nothing(harness: &dyn HotHarness) {
    let stall = Opening::of(9).limit(5).open(harness).await;
    let [gone, kept] = [stall.granted(1, 2).await, stall.granted(1, 1).await];
    stall.release(&gone).await;
    let expected = [vec![holding(kept.order, 1, false)]];
    assert_eq!(held(&stall, &[1]).await, expected);
    stall.release(&kept).await;
    assert_eq!(held(&stall, &[1]).await, [vec![]]);
    assert!(holders_from(&stall, 0).await.is_empty());
}

/// A sale with so many holders, buyers 1 and up, each with one unit.
async fn crowded(harness: &dyn HotHarness, holders: u64) -> (Stall, HashMap<OrderId, Claim>) {
    let mut opening = Opening::of(100);
    let mut claims = HashMap::new();
    for buyer in 1..=holders {
        let (buyer, order) = (BuyerId::new(buyer), new_order());
        opening = opening.holder(buyer, order, 1);
        let claim = Claim {
            order,
            voucher: VOUCHER,
            buyer,
            quantity: 1,
            key: None,
        };
        claims.insert(order, claim);
    }
    (opening.open(harness).await, claims)
}

async fn a_thousand_buyers_fit_a_question(harness: &dyn HotHarness) {
    let (stall, claims) = crowded(harness, 1_000).await;
    let buyers: Vec<u64> = (1..=1_000).collect();
    let held = held(&stall, &buyers).await;
    assert_eq!(held.len(), 1_000);
    for (buyer, held) in buyers.into_iter().zip(held) {
        let [held] = held[..] else {
            panic!("one order each: {held:?}");
        };
        assert_eq!(claims[&held.order].buyer, BuyerId::new(buyer));
    }
}

async fn every_holder_is_on_some_page(harness: &dyn HotHarness) {
    let (stall, mut claims) = crowded(harness, 1_000).await;
    for first in [2_000, 3_000, 4_000] {
        let attempts: Vec<_> = (first..first + 30).map(|it| stall.attempt(it, 1)).collect();
        stall.admit_all(&attempts).await;
        claims.extend(attempts.iter().map(|it| (it.order, stall.claim(it))));
    }
    assert_eq!(holders_from(&stall, 0).await, claims);
    let with_key = stall.keyed(9_000, 1, "k").clone();
    stall.admit(&with_key).await;
    let found = holders_from(&stall, 0).await;
    assert_eq!(found[&with_key.order].key, None, "keys are not kept here");
}

async fn a_holder_who_stays_is_on_some_page_though_others_go(harness: &dyn HotHarness) {
    let (stall, claims) = crowded(harness, 1_000).await;
    let attempts: Vec<_> = (2_000..2_060).map(|it| stall.attempt(it, 1)).collect();
    stall.admit_all(&attempts).await;
    let first = page(&stall, 0).await;
    let seen: HashSet<OrderId> = first.claims.iter().map(|claim| claim.order).collect();
    let goes: HashSet<OrderId> = seen.iter().copied().take(700).collect();
    let releases = first.claims.iter().filter(|it| goes.contains(&it.order));
    let releases = releases.map(|claim| {
        release_of(&seckill_domain::Attempt {
            order: claim.order,
            buyer: claim.buyer,
            quantity: 1,
            key: None,
        })
    });
    stall.follow(releases.collect()).await;
    let rest = match first.next {
        Some(next) => holders_from(&stall, next).await,
        None => HashMap::new(),
    };
    let bought = attempts.iter().map(|it| it.order);
    for order in claims.keys().copied().chain(bought) {
        let found = seen.contains(&order) || rest.contains_key(&order);
        assert!(goes.contains(&order) || found, "{order} was passed over");
    }
}

async fn nobody_holds_units_of_a_new_sale(harness: &dyn HotHarness) {
    let stall = Opening::of(10).open(harness).await;
    assert!(holders_from(&stall, 0).await.is_empty());
    assert_eq!(held(&stall, &[1]).await, [vec![]]);
}

async fn a_voucher_that_is_not_loaded_has_no_answer(harness: &dyn HotHarness) {
    let stall = Opening::of(10).open(harness).await;
    stall.granted(1, 1).await;
    let gate = &stall.hot.gate;
    for voucher in [VoucherId::new(VOUCHER.get() + 2), VOUCHER] {
        if voucher == VOUCHER {
            stall.hot.loader.unload(VOUCHER).await.unwrap();
        }
        let found = gate.claimants(voucher, &[BuyerId::new(1)]).await;
        assert_eq!(found.unwrap(), None);
        assert_eq!(gate.holders(voucher, 0).await.unwrap(), None);
    }
}

async fn vouchers_have_holders_each_for_itself(harness: &dyn HotHarness) {
    let stall = Opening::of(10).open(harness).await;
    let voucher = VoucherId::new(VOUCHER.get() + u64::from(super::PARTITIONS));
    let other = Opening::of(10).voucher(voucher).open(harness).await;
    let [mine, others] = [stall.granted(1, 1).await, other.granted(1, 1).await];
    let of = |attempt: &seckill_domain::Attempt| [vec![holding(attempt.order, 1, false)]];
    assert_eq!(held(&stall, &[1]).await, of(&mine));
    assert_eq!(held(&other, &[1]).await, of(&others));
    assert_eq!(holders_from(&other, 0).await.len(), 1);
}
