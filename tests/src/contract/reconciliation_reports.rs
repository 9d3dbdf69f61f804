//! `Reconciliations`: reports.

use seckill_application::ports::{
    Difference, DifferenceKind, LastRuns, Report, Told, VoucherFinding,
};
use seckill_domain::invariants::Tally;
use seckill_domain::{BuyerId, Claim, OrderId, Timestamp, VoucherId};

use super::desk::Desk;
use super::{LedgerHarness, promises};

promises! { reconciliation_reports over dyn LedgerHarness:
    a_report_is_kept_with_all_that_was_found,
    a_report_of_many_differences_is_kept,
    reports_are_listed_newest_first_page_by_page,
    what_was_told_of_a_voucher_last_is_known,
    a_sale_that_is_loaded_again_is_told_of_once,
    the_last_runs_are_known,
    old_reports_are_forgotten_a_few_at_a_time,
}

fn report(number: i64, vouchers: Vec<VoucherFinding>) -> Report {
    Report {
        id: 0,
        started_at: Timestamp::from_millis(1_796_000_000_000 + number),
        finished_at: Timestamp::from_millis(1_796_000_000_501 + number),
        full: number % 2 == 0,
        dry_run: number % 3 == 0,
        vouchers,
    }
}

fn difference(number: u64, kind: DifferenceKind) -> Difference {
    let claim = Claim {
        order: OrderId::new(u64::MAX - number),
        voucher: VoucherId::new(9_007_199_254_740_993),
        buyer: BuyerId::new(u64::MAX),
        quantity: 3,
        key: None,
    };
    Difference {
        claim,
        kind,
        repaired: number.is_multiple_of(2),
    }
}

fn finding(free_drift: i64, differences: Vec<Difference>) -> VoucherFinding {
    VoucherFinding {
        voucher: VoucherId::new(9_007_199_254_740_993),
        tally: Tally {
            total: 100,
            free: -1,
            in_flight: 2,
            parked: 3,
            awaiting_payment: 40,
            paid: 56,
        },
        holds: free_drift == 0,
        free_drift,
        stock_drift: -3 * free_drift,
        terms_differ: free_drift == -7,
        at_gate: free_drift != -7,
        reloads: 0,
        differences,
    }
}

async fn newest(desk: &Desk<'_>) -> Report {
    let page = desk.ports.reconciliations.reports(None, 1).await.unwrap();
    page.items.into_iter().next().expect("a report")
}

async fn a_report_is_kept_with_all_that_was_found(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let kinds = [
        DifferenceKind::NotDelivered,
        DifferenceKind::MessageGone,
        DifferenceKind::HolderGone,
        DifferenceKind::NotReleased,
        DifferenceKind::WaiterGone,
        DifferenceKind::WaiterUnknown,
        DifferenceKind::PlaceDiffers,
    ];
    let differences = (0..)
        .zip(kinds)
        .map(|(number, kind)| difference(number, kind));
    let findings = vec![
        finding(0, differences.collect()),
        finding(-7, Vec::new()),
        finding(i64::from(u32::MAX), Vec::new()),
    ];
    for (number, vouchers) in (1..).zip([Vec::new(), findings]) {
        let report = report(number, vouchers);
        let id = desk.ports.reconciliations.store(&report).await.unwrap();
        assert!(id > 0, "0 is a report that is not stored");
        assert_eq!(newest(&desk).await, Report { id, ..report });
    }
}

async fn a_report_of_many_differences_is_kept(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let differences = (0..1_000).map(|number| difference(number, DifferenceKind::HolderGone));
    let report = report(1, vec![finding(0, differences.collect())]);
    let id = desk.ports.reconciliations.store(&report).await.unwrap();
    assert_eq!(newest(&desk).await, Report { id, ..report });
}

fn told(voucher: VoucherId, reloads: u32) -> VoucherFinding {
    VoucherFinding {
        voucher,
        reloads,
        ..finding(0, Vec::new())
    }
}

/// By the newest report about it that could repair something.
async fn what_was_told_of_a_voucher_last_is_known(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let books = &desk.ports.reconciliations;
    let [one, other] = [71, 72].map(VoucherId::new);
    let about = |voucher, differences| VoucherFinding {
        voucher,
        ..finding(0, differences)
    };
    let told = async |voucher| {
        let mut told = books.told_before(voucher).await.unwrap();
        told.sort_by_key(|it| std::cmp::Reverse((it.order, it.buyer)));
        told
    };
    assert_eq!(told(one).await, []);
    let kinds = [
        (0, DifferenceKind::HolderGone),
        (1, DifferenceKind::WaiterGone),
    ];
    let [first, second] = kinds.map(|(number, kind)| difference(number, kind));
    let stranger = Difference {
        claim: Claim {
            buyer: BuyerId::new(9),
            ..second.claim.clone()
        },
        ..second.clone()
    };
    let found = [first, second, stranger];
    let expected = found.clone().map(|it| Told::of(&it.claim, it.kind));
    let store = async |dry_run, vouchers| {
        let report = Report {
            dry_run,
            ..report(1, vouchers)
        };
        books.store(&report).await.unwrap();
    };
    store(
        false,
        vec![about(other, Vec::new()), about(one, found.to_vec())],
    )
    .await;
    assert_eq!(told(one).await, expected);
    assert_eq!(told(other).await, []);
    store(true, vec![about(one, Vec::new())]).await;
    store(false, vec![about(other, vec![found[0].clone()])]).await;
    assert_eq!(told(one).await, expected, "nothing newer is about it");
    assert_eq!(told(other).await, expected[..1]);
    store(false, vec![about(one, Vec::new())]).await;
    assert_eq!(told(one).await, []);
}

async fn a_sale_that_is_loaded_again_is_told_of_once(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let books = &desk.ports.reconciliations;
    let [one, other] = [desk.voucher(5, 1).await.id, desk.voucher(5, 1).await.id];
    let reloads = async || books.reloads(&[one, other]).await.unwrap();
    assert_eq!(reloads().await, []);
    assert!(!books.note_load(one).await.unwrap(), "the first time");
    assert!(!books.note_load(other).await.unwrap());
    assert_eq!(reloads().await, []);
    for _ in 0..3 {
        assert!(books.note_load(one).await.unwrap());
    }
    assert_eq!(reloads().await, [(one, 3)]);
    let dry = Report {
        dry_run: true,
        ..report(1, vec![told(one, 3)])
    };
    books.store(&dry).await.unwrap();
    assert_eq!(reloads().await, [(one, 3)], "a dry run changes nothing");
    let real = Report {
        dry_run: false,
        ..report(2, vec![told(one, 2), told(other, 0)])
    };
    let id = books.store(&real).await.unwrap();
    assert_eq!(newest(&desk).await, Report { id, ..real });
    assert_eq!(reloads().await, [(one, 1)], "it came after the report");
    assert!(books.note_load(other).await.unwrap());
    let mut both = reloads().await;
    both.sort();
    assert_eq!(both, [(one, 1), (other, 1)]);
    assert_eq!(books.reloads(&[other]).await.unwrap(), [(other, 1)]);
}

async fn the_last_runs_are_known(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let books = &desk.ports.reconciliations;
    assert_eq!(books.last_runs().await.unwrap(), LastRuns::default());
    // One in two is full, and one in three a dry run.
    let mut seen = Vec::new();
    for number in 1..=6 {
        let report = report(number, Vec::new());
        books.store(&report).await.unwrap();
        let last = books.last_runs().await.unwrap();
        let ms = |at: Option<Timestamp>| at.map(|at| at.as_millis() - 1_796_000_000_000);
        seen.push((ms(last.any), ms(last.full)));
    }
    let expected = [
        (Some(1), None),
        (Some(2), Some(2)),
        (Some(2), Some(2)),
        (Some(4), Some(4)),
        (Some(5), Some(4)),
        (Some(5), Some(4)),
    ];
    assert_eq!(seen, expected);
}

async fn old_reports_are_forgotten_a_few_at_a_time(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let books = &desk.ports.reconciliations;
    let mut ids = Vec::new();
    for number in 1..=7 {
        let differences = vec![difference(1, DifferenceKind::HolderGone)];
        let report = report(number, vec![finding(0, differences)]);
        ids.push(books.store(&report).await.unwrap());
    }
    let before = report(6, Vec::new()).started_at;
    let left = async || {
        let page = books.reports(None, 100).await.unwrap();
        let mut ids: Vec<u64> = page.items.iter().map(|report| report.id).collect();
        ids.reverse();
        ids
    };
    assert_eq!(books.forget(before, 3).await.unwrap(), 3);
    assert_eq!(left().await, ids[3..]);
    assert_eq!(books.forget(before, 100).await.unwrap(), 2);
    assert_eq!(books.forget(before, 100).await.unwrap(), 0);
    assert_eq!(left().await, ids[5..]);
    let id = books.store(&report(8, Vec::new())).await.unwrap();
    assert!(id > ids[6], "numbers are not used again");
}

async fn reports_are_listed_newest_first_page_by_page(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut expected = Vec::new();
    for number in 1..=7 {
        let report = report(number, Vec::new());
        let id = desk.ports.reconciliations.store(&report).await.unwrap();
        expected.insert(0, Report { id, ..report });
    }
    let ids: Vec<u64> = expected.iter().map(|report| report.id).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older));
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let page = desk.ports.reconciliations.reports(before, 3).await;
        let page = page.unwrap();
        assert_eq!(page.next.is_some(), page.items.len() == 3);
        found.extend(page.items);
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    assert_eq!(found, expected);
}
