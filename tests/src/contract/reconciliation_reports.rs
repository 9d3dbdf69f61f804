//! `Reconciliations`: reports.

use seckill_application::ports::{Difference, DifferenceKind, Report, VoucherFinding};
use seckill_domain::invariants::Tally;
use seckill_domain::{BuyerId, Claim, OrderId, Timestamp, VoucherId};

use super::desk::Desk;
use super::{LedgerHarness, promises};

promises! { reconciliation_reports over dyn LedgerHarness:
    a_report_is_kept_with_all_that_was_found,
    a_report_of_many_differences_is_kept,
    reports_are_listed_newest_first_page_by_page,
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
