//! Vouchers in the ledger.

use std::time::Duration;

use seckill_application::ports::{NewVoucher, Page, VoucherFilter};
use seckill_domain::{
    GateChange, GateUpdate, GateVersion, SaleStatus, SaleTerms, Timestamp, Voucher, VoucherId,
    VoucherTerms,
};

use super::desk::{Desk, terms};
use super::{LedgerHarness, promises};

promises! { ledger_vouchers over dyn LedgerHarness:
    the_ledger_answers_a_ping,
    a_new_voucher_is_a_draft_with_all_its_settings,
    a_voucher_is_there_once_it_is_committed,
    vouchers_are_numbered_upwards,
    a_draft_is_saved_whole,
    after_publishing_units_move_by_orders_alone,
    saved_settings_are_followed_by_the_gate_if_asked,
    two_administrators_do_not_overwrite_each_other,
    vouchers_are_listed_newest_first_in_pages,
    a_list_shows_what_its_filter_says,
    overdue_is_by_the_ledgers_clock,
    an_unknown_voucher_is_not_there,
    pushed_changes_are_one_version,
}

async fn the_ledger_answers_a_ping(harness: &dyn LedgerHarness) {
    harness.ledger().ledger.ping().await.unwrap();
}

async fn a_new_voucher_is_a_draft_with_all_its_settings(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let all = VoucherTerms {
        waitlist_capacity: 1_000_000,
        payment_window: Duration::from_hours(24),
        ..terms(1_000)
    };
    let bare = VoucherTerms {
        description: None,
        waitlist_capacity: 0,
        ..terms(1)
    };
    for (total_units, terms) in [(100_000_000, all), (1, bare)] {
        let before = desk.now().await;
        let voucher = desk.draft(total_units, terms.clone()).await;
        let after = desk.now().await;
        let created_at = voucher.created_at;
        assert!((before..=after).contains(&created_at));
        let expected = Voucher {
            id: voucher.id,
            terms,
            total_units,
            stock_units: total_units,
            status: SaleStatus::Draft,
            version: GateVersion::default(),
            created_at,
            retired: false,
        };
        assert_eq!(voucher, expected);
        assert_eq!(desk.stored(voucher.id).await, expected);
    }
}

async fn a_voucher_is_there_once_it_is_committed(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let new = NewVoucher {
        terms: terms(1),
        total_units: 5,
    };
    let mut unit = desk.begin().await;
    let voucher = unit.insert_voucher(&new).await.unwrap();
    assert_eq!(desk.ports.ledger.voucher(voucher.id).await.unwrap(), None);
    drop(unit);
    assert_eq!(desk.ports.ledger.voucher(voucher.id).await.unwrap(), None);
}

async fn vouchers_are_numbered_upwards(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut last = VoucherId::new(0);
    for _ in 0..4 {
        let id = desk.draft(5, terms(1)).await.id;
        assert!(id > last);
        last = id;
    }
}

async fn a_draft_is_saved_whole(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let id = desk.draft(5, terms(1)).await.id;
    let mut unit = desk.begin().await;
    let mut voucher = unit.lock_voucher(id).await.unwrap().unwrap();
    "Tea, \u{8336}".clone_into(&mut voucher.terms.title);
    voucher.terms.description = None;
    voucher.terms.face_value.minor = 1;
    voucher.terms.price.minor = 0;
    voucher.terms.per_buyer_limit = 7;
    voucher.terms.window.opens_at = Timestamp::from_millis(1_800_000_000_001);
    voucher.terms.window.closes_at = Timestamp::from_millis(1_800_000_000_002);
    voucher.terms.payment_window = Duration::from_secs(1);
    voucher.terms.waitlist_capacity = 9;
    (voucher.total_units, voucher.stock_units) = (70, 70);
    let version = unit.save_voucher(&voucher, false).await.unwrap();
    assert_eq!(version, GateVersion::default());
    unit.commit().await.unwrap();
    assert_eq!(desk.stored(id).await, voucher);
}

/// The stock that an administrator's form was opened with must not come back with it.
async fn after_publishing_units_move_by_orders_alone(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    desk.granted(&voucher, 1, 1).await;
    let mut unit = desk.begin().await;
    let title = "Another title".to_owned();
    let old = Voucher {
        terms: VoucherTerms {
            title: title.clone(),
            ..voucher.terms.clone()
        },
        ..voucher.clone()
    };
    unit.save_voucher(&old, false).await.unwrap();
    unit.commit().await.unwrap();
    let stored = desk.stored(voucher.id).await;
    assert_eq!((stored.total_units, stored.stock_units), (5, 4));
    assert_eq!(stored.terms.title, title);
    desk.tally(voucher.id).await;
}

async fn saved_settings_are_followed_by_the_gate_if_asked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let paused = desk.set_status(voucher.id, SaleStatus::Paused, true).await;
    assert_eq!(paused.version, voucher.version.next());
    assert_eq!(desk.stored(voucher.id).await, paused);
    let updates = desk
        .ports
        .updates
        .after(voucher.id, voucher.version, 10)
        .await
        .unwrap();
    let [
        GateUpdate {
            version, changes, ..
        },
    ] = updates.as_slice()
    else {
        panic!("one update: {updates:?}");
    };
    assert_eq!(*version, paused.version);
    let [GateChange::SetTerms(told)] = changes.as_slice() else {
        panic!("settings: {changes:?}");
    };
    let expected: SaleTerms = paused.sale_terms();
    assert_eq!(*told, expected);
    let silent = desk
        .set_status(voucher.id, SaleStatus::Published, false)
        .await;
    assert_eq!(silent.version, paused.version);
    let updates = desk
        .ports
        .updates
        .after(voucher.id, paused.version, 10)
        .await
        .unwrap();
    assert_eq!(updates, []);
}

async fn two_administrators_do_not_overwrite_each_other(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let id = desk.voucher(5, 1).await.id;
    let raise = async || {
        let mut unit = desk.begin().await;
        let mut voucher = unit.lock_voucher(id).await.unwrap().unwrap();
        voucher.terms.waitlist_capacity += 1;
        unit.save_voucher(&voucher, true).await.unwrap();
        unit.commit().await.unwrap();
    };
    futures::join!(raise(), raise(), raise());
    let voucher = desk.stored(id).await;
    assert_eq!(
        voucher.terms.waitlist_capacity,
        terms(1).waitlist_capacity + 3
    );
    assert_eq!(voucher.version, GateVersion::new(3));
}

async fn list(
    desk: &Desk<'_>,
    filter: VoucherFilter,
    before: Option<u64>,
    limit: usize,
) -> (Vec<VoucherId>, Option<u64>) {
    let before = before.map(VoucherId::new);
    let Page { items, next } = desk
        .ports
        .ledger
        .vouchers(filter, before, limit)
        .await
        .unwrap();
    (items.iter().map(|voucher| voucher.id).collect(), next)
}

async fn vouchers_are_listed_newest_first_in_pages(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    assert_eq!(
        list(&desk, VoucherFilter::All, None, 10).await,
        (vec![], None)
    );
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, desk.draft(5, terms(1)).await.id);
    }
    let all = VoucherFilter::All;
    let next = Some(ids[1].get());
    assert_eq!(list(&desk, all, None, 2).await, (ids[..2].to_vec(), next));
    let after = Some(ids[3].get());
    assert_eq!(list(&desk, all, next, 2).await, (ids[2..4].to_vec(), after));
    assert_eq!(list(&desk, all, after, 2).await, (ids[4..].to_vec(), None));
    assert_eq!(list(&desk, all, None, 5).await, (ids.clone(), None));
    assert_eq!(list(&desk, all, None, 1_000).await, (ids, None));
}

async fn a_list_shows_what_its_filter_says(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let draft = desk.draft(5, terms(1)).await.id;
    let published = desk.voucher(5, 1).await.id;
    let paused = desk.voucher(5, 1).await.id;
    desk.set_status(paused, SaleStatus::Paused, false).await;
    let closed = desk.voucher(5, 1).await.id;
    desk.set_status(closed, SaleStatus::Closed, false).await;
    let expected = [
        (VoucherFilter::All, vec![closed, paused, published, draft]),
        (VoucherFilter::Public, vec![closed, paused, published]),
        (VoucherFilter::OnSale, vec![paused, published]),
        (VoucherFilter::Overdue, vec![]),
    ];
    for (filter, ids) in expected {
        assert_eq!(
            list(&desk, filter, None, 10).await,
            (ids, None),
            "{filter:?}"
        );
    }
}

async fn overdue_is_by_the_ledgers_clock(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let soon = desk.now().await.plus(Duration::from_millis(300));
    let mut closing = terms(1);
    closing.window.closes_at = soon;
    let draft = desk.draft(5, closing.clone()).await.id;
    let published = desk.on_sale(5, closing.clone()).await.id;
    let closed = desk.on_sale(5, closing.clone()).await.id;
    desk.set_status(closed, SaleStatus::Closed, false).await;
    let paused = desk.on_sale(5, closing).await.id;
    desk.set_status(paused, SaleStatus::Paused, false).await;
    desk.voucher(5, 1).await;
    harness.elapse(Duration::from_millis(350)).await;
    let overdue = list(&desk, VoucherFilter::Overdue, None, 10).await;
    assert_eq!(
        overdue,
        (vec![paused, published], None),
        "draft {draft}, closed {closed}"
    );
}

async fn an_unknown_voucher_is_not_there(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let unknown = VoucherId::new(u64::MAX);
    let ledger = &desk.ports.ledger;
    assert_eq!(ledger.voucher(unknown).await.unwrap(), None);
    assert_eq!(ledger.sale_snapshot(unknown).await.unwrap(), None);
    assert_eq!(
        ledger.tally(unknown, GateVersion::default()).await.unwrap(),
        None
    );
}

async fn pushed_changes_are_one_version(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let changes = vec![
        GateChange::Release {
            order: super::stall::new_order(),
            buyer: seckill_domain::BuyerId::new(u64::MAX),
            quantity: 3,
        },
        GateChange::SetTerms(voucher.sale_terms()),
        GateChange::AddUnits { units: 2 },
    ];
    let mut unit = desk.begin().await;
    let version = unit.push_update(voucher.id, &changes).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(version, voucher.version.next());
    let update = GateUpdate {
        voucher: voucher.id,
        version,
        changes,
    };
    let updates = desk
        .ports
        .updates
        .after(voucher.id, voucher.version, 10)
        .await
        .unwrap();
    assert_eq!(updates, [update]);
    assert_eq!(
        desk.stock(&voucher).await,
        5,
        "a repair moves no stock of the ledger"
    );
}
